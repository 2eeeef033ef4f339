"""Oracle and restart tests: what a pipeline writes is what its statements answer over all rows, stopped or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.spark.streams import START_US, Line, lines, split, trades, write_batches
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import skyband as sb
from skyband.cli import app
from skyband.errors import PipelineChanged, PipelineFailed
from skyband.pipelines import running, streams
from skyband.pipelines.figures import Figures
from skyband.pipelines.file import load
from skyband.pipelines.running import Running

pytestmark = pytest.mark.spark

ROWS, BATCHES = 600, 4
ALL_FILES = 100  # in one micro-batch
LAST_US = START_US + (ROWS - 1) * 250_000

# All but one share one pass over the trades: it measures whole numbers.
STATEMENTS = {
    "best": "SELECT price, seq FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol",
    "waits": (
        "SELECT seq, price * 2 AS twice FROM trades [WINDOW 1 MINUTE EVERY 10 SECONDS LATENESS 15 SECONDS] "
        "WHERE symbol <> 'S1' ORDER BY price - seq / 100 LIMIT 3"
    ),
    "counted": "SELECT * FROM trades [WINDOW 100 ROWS EVERY 25 ROWS ORDER BY seq] WHERE buys ORDER BY price LIMIT 2",
    "numbered": "SELECT symbol FROM trades [WINDOW 100 EVERY 40 ON seq] ORDER BY price DESC LIMIT 2",
    "groups": (
        "SELECT symbol, COUNT(*) AS n, SUM(price) AS total FROM trades [WINDOW 30 SECONDS EVERY 10 SECONDS] "
        "GROUP BY symbol ORDER BY total DESC LIMIT 3"
    ),
    "sectors": (
        "SELECT sector, COUNT(*) AS n FROM trades t [WINDOW 30 SECONDS EVERY 10 SECONDS] JOIN sectors s "
        "ON t.symbol = s.symbol WHERE t.price > 20 GROUP BY sector"
    ),
    "pairs": (
        "SELECT a.seq AS one, b.seq AS other FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol <> b.symbol "
        "ORDER BY abs(a.price - b.price) LIMIT 2 WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
}
LATENESS_US = {"waits": 15_000_000}
SECTORS = pa.table({"symbol": ["S0", "S1", "S2"], "sector": ["steel", "glass", "steel"]})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("pipelines") / "trades", split(trades(ROWS), BATCHES))


def pipeline_file(folder: Path, source: Path, names: list[str], files: int = 2, **changed: str) -> Path:
    """A pipeline that takes so many files in a micro-batch, with some statements changed."""
    queries = "".join(
        f'[queries.{name}]\nsql = """{changed.get(name, STATEMENTS[name])}"""\nto = "files"\n' for name in names
    )
    pq.write_table(SECTORS, folder / "sectors.parquet")
    file = folder / "market.toml"
    file.write_text(
        f'trigger = "available now"\n'
        f'[sources.sectors]\nformat = "parquet"\npath = "sectors.parquet"\nstream = false\n'
        f'[sources.trades]\nformat = "parquet"\npath = "{source}"\noptions = {{ maxFilesPerTrigger = {files} }}\n'
        f'{queries}[sinks.files]\nformat = "parquet"\npath = "answers/{{query}}"\n'
    )
    return file


def run(spark: SparkSession, file: Path, stop: Callable[[], bool] = lambda: False) -> dict[str, Figures]:
    running = Running(spark, load(file), print)
    running.start()
    try:
        for _ in running.follow(stop):
            pass
    finally:
        running.stop()
    return running.figures


def written(folder: Path, query: str) -> list[Line]:
    """What any reader of the folder sees, without the column that names the micro-batch."""
    return sorted(lines(pq.read_table(folder / "answers" / query).drop_columns(["batch"])))


def expected(query: str) -> list[Line]:
    """The answers over all rows, of windows that have closed."""
    answers = sb.sql(STATEMENTS[query], trades=trades(ROWS), sectors=SECTORS)
    if query == "counted":
        return sorted(lines(answers))
    return closed(answers, ROWS - 1 if query == "numbered" else LAST_US - LATENESS_US.get(query, 0))


def closed(answers: pa.Table, watermark: int) -> list[Line]:
    """The answers about windows that a watermark has closed."""
    end = answers.column_names.index("window_end")
    return sorted(line for line in lines(answers) if line[end] <= watermark)


def test_every_query_answers_as_over_all_rows(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = run(spark, pipeline_file(tmp_path, source, list(STATEMENTS)))
    for name in STATEMENTS:
        assert written(tmp_path, name) == expected(name), name
        assert figures[name].rows_in == ROWS, "each row is read once for each stream"
        assert not figures[name].up
        assert sum(figures[name].changes.values()) == len(expected(name))
    begun = {path.name for path in (tmp_path / ".skyband" / "market").iterdir() if path.is_dir()}
    assert begun == {"trades_1", "query_numbered"}
    shared = json.loads((tmp_path / ".skyband" / "market" / "trades_1.json").read_text())
    assert set(shared) == set(STATEMENTS) - {"numbered"}
    assert 0 < figures["best"].rows_held < ROWS
    assert 0 < figures["best"].rows_gathered < ROWS, "most rows are ruled out before the shuffle"
    asked_right_now(spark, tmp_path / "market.toml", monkeypatch)


def asked_right_now(spark: SparkSession, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`skyband top` and `skyband state`, of a pipeline that has stopped."""
    monkeypatch.setattr("skyband.pipelines.session.start_session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)

    def skyband(*arguments: str) -> Result:
        return CliRunner().invoke(app, [arguments[0], str(file), *arguments[1:]])

    closes = (LAST_US // 10_000_000 + 1) * 10_000_000  # the first window that the last trade leaves open
    for size in (25, 15):
        said = skyband("top", "best", "-k", "1", "--format", "json", *(("--size", "15 seconds") if size == 15 else ()))
        rows = [trade for trade in lines(trades(ROWS)) if closes - size * 1_000_000 <= trade[0] < closes]
        best = {symbol: max(trade[4] for trade in rows if trade[2] == symbol) for symbol in {row[2] for row in rows}}
        found = [json.loads(line) for line in said.output.splitlines()]
        assert {row["symbol"]: row["score"] for row in found} == best
        assert len(found) == len(best)
    assert skyband("top", "counted").output.splitlines()[0].split()[:3] == ["window_start", "window_end", "rank"]
    assert "Which query? Possible: best, waits" in skyband("top").output
    assert "There is no query 'none'." in skyband("top", "none").output
    assert "joins cannot be asked from outside" in skyband("top", "sectors").output.replace("\n", " ")
    assert {"best", "numbered", "pairs"} < {line.split()[0] for line in skyband("state").output.splitlines()}


def test_answers_that_are_many_stay_on_spark(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_BYTES", 0)
    figures = run(spark, pipeline_file(tmp_path, source, ["best", "waits", "groups", "pairs"], ALL_FILES))
    for name in ("best", "waits", "groups", "pairs"):
        assert written(tmp_path, name) == expected(name)
        assert figures[name].changes == {"shown": len(expected(name))}


def after(batches: int, file: Path) -> Callable[[], bool]:
    commits = file.parent / ".skyband" / "market" / "trades_1" / "commits"
    return lambda: commits.exists() and len([*commits.glob("[0-9]*")]) >= batches


def test_stopped_and_gone_on_with(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, source, ["best", "waits"])
    first = run(spark, file, stop=after(2, file))
    assert 0 < first["best"].rows_in < ROWS
    then = run(spark, file)
    assert first["best"].rows_in + then["best"].rows_in == ROWS, "the batch that ran when it stopped came to its end"
    for name in ("best", "waits"):
        assert written(tmp_path, name) == expected(name)
    # What is held is counted on from what the state says, so an undisturbed run ends with the same.
    other = tmp_path / "undisturbed"
    other.mkdir()
    undisturbed = run(spark, pipeline_file(other, source, ["best", "waits"]))
    assert then["best"].rows_held == undisturbed["best"].rows_held
    assert then["waits"].bytes_held == undisturbed["waits"].bytes_held


@pytest.mark.parametrize("times", [2, 4])
def test_a_stream_without_a_worker_is_started_again(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Up to four times in all: Spark waits 10 seconds for a Python, however busy the machine is, or it loses one."""
    write, given_up = running.write_batch, []

    def busy(*given: Any) -> None:
        if len(given_up) < times:
            given_up.append("best")
            said = "Python worker exited unexpectedly (crashed)", "Python worker failed to connect back."
            raise RuntimeError(said[len(given_up) % 2 - 1])
        write(*given)

    monkeypatch.setattr(running, "write_batch", busy)
    file = pipeline_file(tmp_path, source, ["best"], ALL_FILES)
    if times == 2:
        run(spark, file)
        assert written(tmp_path, "best") == expected("best")
    else:
        with pytest.raises(PipelineFailed, match="best failed: A Python worker did not answer"):
            run(spark, file)
    assert len(given_up) == times


def test_a_query_that_comes_later_is_whole_and_one_that_goes_is_no_trouble(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    file = pipeline_file(tmp_path, source, ["best", "counted"])
    run(spark, file, stop=after(2, file))
    pipeline_file(tmp_path, source, ["best", "waits"])
    run(spark, file)
    assert written(tmp_path, "best") == expected("best")
    assert written(tmp_path, "waits") == expected("waits")


def test_a_changed_query_is_refused_with_what_changed(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    run(spark, pipeline_file(tmp_path, source, ["best"], ALL_FILES))
    blanks = STATEMENTS["best"].replace(" ORDER BY", "\n  order by")
    run(spark, pipeline_file(tmp_path, source, ["best"], best=blanks))  # says the same, and reads fewer files at once
    with pytest.raises(PipelineChanged) as refused:
        run(spark, pipeline_file(tmp_path, source, ["best"], best=STATEMENTS["best"].replace("LIMIT 2", "LIMIT 3")))
    message = str(refused.value)
    assert "Query 'best' has changed since it wrote its checkpoint:\n  statement: was SELECT" in message
    assert "LIMIT 2 BY symbol, is SELECT" in message
    assert "give the query another name" in message


def test_answers_of_an_earlier_run_are_not_mixed_in(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, source, ["best"], ALL_FILES)
    run(spark, file)
    (tmp_path / ".skyband").rename(tmp_path / "elsewhere")
    with pytest.raises(PipelineChanged, match="has answers already, but there is no checkpoint"):
        run(spark, file)


def test_memory_and_console(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    text = pipeline_file(tmp_path, source, ["groups"], ALL_FILES).read_text()
    (tmp_path / "market.toml").write_text(
        text.replace('to = "files"', 'to = ["memory", "screen"]')
        + '[sinks.memory]\nformat = "memory"\n[sinks.screen]\nformat = "console"\n'
    )
    shown: list[Any] = []
    running = Running(spark, load(tmp_path / "market.toml"), shown.append)
    running.start()
    assert [*running.follow()]
    assert sorted(lines(spark.table("groups").toArrow())) == expected("groups")
    (table,) = shown
    assert table.row_count == 20 < len(expected("groups"))
    assert "and more" in table.caption


def test_a_table_is_asked_once(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(trades(200)).createOrReplaceTempView("all_trades")
    (tmp_path / "once.toml").write_text(
        f'[sources.trades]\nformat = "table"\ntable = "all_trades"\n[queries.best]\nsql = """{STATEMENTS["best"]}"""\n'
        'to = "files"\n[sinks.files]\nformat = "parquet"\npath = "answers/{query}"\n'
    )
    run(spark, tmp_path / "once.toml")
    assert written(tmp_path, "best") == sorted(lines(sb.sql(STATEMENTS["best"], trades=trades(200))))


def test_what_goes_wrong_is_said_in_words(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is none, in the middle of the stream; its name has a secret in it."""
    monkeypatch.setenv("BUCKET_TOKEN", "hunter2")
    good, more = split(trades(200), 2)
    folder = write_batches(tmp_path / "hunter2", [good])
    file = pipeline_file(tmp_path, folder, ["best"])
    file.write_text(file.read_text().replace("hunter2", "${BUCKET_TOKEN}"))
    (folder / "9999.parquet").write_bytes(b"this is no Parquet file")
    with pytest.raises(PipelineFailed) as failed:
        run(spark, file)
    message = str(failed.value)
    assert "best failed: " in message
    assert "\tat " not in message
    assert "hunter2" not in message
    assert len(message) < 2_000
    # Somebody puts a good file in its place.
    pq.write_table(more, folder / "9999.parquet")
    run(spark, file)
    assert written(tmp_path, "best") == closed(sb.sql(STATEMENTS["best"], trades=trades(200)), START_US + 199 * 250_000)


def test_bad_lines_of_files_are_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    """JSON and CSV with dead letters: what cannot be read goes there, with its reason and its file."""
    good = [f"2023-11-14T22:15:{second:02}Z" for second in range(30)]
    bad = {
        "events": {"{": "not JSON", f'{{"ts": "{good[0]}", "price": "dear"}}': "a type that differs from the schema"},
        "orders": {
            f"{good[0]},dear": "columns or types that differ from the schema",
            f"{good[0]},1.0,more": "columns or types that differ from the schema",
            ",9.0": "no ts",
        },
    }
    rows = {
        "events": [json.dumps({"ts": ts, "price": number}) for number, ts in enumerate(good)],
        "orders": ['ts, "price"', *(f"{ts},{number}" for number, ts in enumerate(good))],
    }
    text = 'trigger = "available now"\n'
    for name, kind, options in (("events", "json", ""), ("orders", "csv", "options = { header = true }\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.txt").write_text("\n".join([*rows[name][:9], *bad[name], "", *rows[name][9:]]))
        text += (
            f'[sources.{name}]\nformat = "{kind}"\npath = "{name}"\nschema = "ts TIMESTAMP, price DOUBLE"\n'
            f'time = "ts"\ndead_letters = "bad_{name}"\n{options}'
            f'[sinks.bad_{name}]\nformat = "parquet"\npath = "bad/{name}"\n'
            f'[queries.of_{name}]\nto = "files"\n'
            f'sql = "SELECT price FROM {name} [WINDOW 10 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 1"\n'
        )
    file = tmp_path / "files.toml"
    file.write_text(text + '[sinks.files]\nformat = "parquet"\npath = "answers/{query}"\n')
    figures = run(spark, file)
    for name, records in bad.items():
        set_aside = pq.read_table(tmp_path / "bad" / name).to_pylist()
        assert {row["record"]: row["reason"] for row in set_aside} == records
        assert {Path(row["file"]).name for row in set_aside} == {"one.txt"}
        assert figures[f"of_{name}"].rows_set_aside == len(records)
        assert [row[3] for row in written(tmp_path, f"of_{name}")] == [9.0, 19.0]
