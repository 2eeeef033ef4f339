"""Restart and oracle tests of tables of Delta Lake and Iceberg: each answer is there once, whatever is repeated."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from engines.spark.streams import lines, split, trades, write_batches
from pipelines.test_file import RIGHT, problem
from pipelines.test_file import written as file_of
from pipelines.test_running import BATCHES, ROWS, after, expected, pipeline_file, run
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

import skyband as sb
from skyband.errors import EnvironmentProblem, PipelineChanged, PipelineFailed
from skyband.pipelines.answers import Answers
from skyband.pipelines.doctor import libraries
from skyband.pipelines.file import load
from skyband.pipelines.tables import TableTarget, latest, open_table

DELTA = '[sinks.lake]\nformat = "delta"\npath = "lake/{query}"\n'
ICEBERG = '[sinks.lake]\nformat = "iceberg"\ntable = "market.{query}"\npath = "lake"\n'
KINDS = pytest.mark.parametrize("sink", [DELTA, ICEBERG], ids=["delta", "iceberg"])


def content(folder: Path, query: str, sink: str) -> pa.Table:
    """What any reader of the table sees."""
    if sink.startswith(DELTA[:40]):
        return DeltaTable(folder / "lake" / query).to_pyarrow_table()
    return iceberg(folder, query).scan().to_arrow()


def iceberg(folder: Path, query: str) -> Table:
    catalog = load_catalog("skyband", type="sql", uri=f"sqlite:///{folder}/lake/catalog.db")
    return catalog.load_table(f"market.{query}")


def target(folder: Path, sink: str, query: str = "top", *, is_stream: bool = True) -> TableTarget:
    """A sink as a run opens it: each run anew."""
    pipeline = load(file_of(folder, RIGHT.replace('to = ["files", "board"]', 'to = "lake"') + sink))
    return open_table(pipeline, pipeline.sinks["lake"], query, is_stream=is_stream)


def answers(rows: list[dict[str, Any]] | pa.Table) -> Answers:
    return Answers(None, rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows))  # type: ignore[arg-type]


@KINDS
def test_a_micro_batch_that_was_written_is_not_written_again(tmp_path: Path, sink: str) -> None:
    """A run that is killed after the table's commit and before Spark's repeats the micro-batch, in a new process."""
    first, second = [{"window_end": 60, "rank": 1, "who": "OAK"}], [{"window_end": 120, "rank": 1, "who": "ELM"}]
    target(tmp_path, sink).write(answers(first), 0)
    target(tmp_path, sink).write(answers(first), 0)
    target(tmp_path, sink).write(answers(second), 3)  # between them nothing was said
    target(tmp_path, sink).write(answers(second), 3)
    target(tmp_path, sink).write(answers(first), 0)
    assert sorted(content(tmp_path, "top", sink).to_pylist(), key=str) == sorted([*first, *second], key=str)
    # Another query, and another pipeline, count their own micro-batches.
    (tmp_path / "market.toml").unlink()
    pipeline = load(file_of(tmp_path, RIGHT.replace('name = "market"', 'name = "other"') + sink))
    open_table(pipeline, pipeline.sinks["lake"], "top", is_stream=True).write(answers(first), 0)
    assert content(tmp_path, "top", sink).num_rows == 3


@KINDS
def test_others_may_write_to_the_table_between(tmp_path: Path, sink: str) -> None:
    rows = pa.table({"window_end": [60], "who": ["OAK"]})
    target(tmp_path, sink).write(answers(rows), 7)
    if sink == DELTA:
        write_deltalake(tmp_path / "lake" / "top", rows, mode="append")
    else:
        table = load_catalog("skyband", type="sql", uri=f"sqlite:///{tmp_path}/lake/catalog.db").load_table(
            "market.top"
        )
        table.append(rows)
        ours = table.snapshots()[0].snapshot_id
        table.maintenance.expire_snapshots().by_id(ours).commit()
    target(tmp_path, sink).write(answers(rows), 7)
    assert content(tmp_path, "top", sink).num_rows == 2


@KINDS
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_changes_are_merged_by_key(tmp_path: Path, sink: str, several: bool) -> None:
    """As a dictionary would hold them; keys are null and NaN, too, and names need quotes."""
    sink += 'key = ["a b`c", "who"]\n' if several else 'key = ["a b`c"]\n'
    schema = pa.schema(
        [("at", pa.int64()), ("change", pa.string()), ("who", pa.string()), ("a b`c", pa.float64()), ("n", pa.int64())]
    )
    random, now, at = Random(7), {}, 0
    for batch in range(6):
        rows = []
        for _ in range(5):
            at += 1
            who, score = random.choice(["OAK", "o'k", None]), random.choice([0.5, 1.5, float("nan"), None])
            one = str((who if several else "", score))
            rows.append((at, random.choice(["upsert", "delete"]), who, score, at))
            now[one] = (at, who, score, at)
            if rows[-1][1] == "delete":
                del now[one]
        columns = [list(column) for column in zip(*rows, strict=True)]
        table = pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
        target(tmp_path, sink).write(answers(table), batch)
        target(tmp_path, sink).write(answers(table.slice(0, 1)), batch)
        if not now:
            continue  # of Delta, there may be no table yet
        held = [str(tuple(row.values())) for row in content(tmp_path, "top", sink).to_pylist()]
        assert sorted(held) == sorted(map(str, now.values()))


def test_of_one_key_the_latest_row_counts_and_in_a_window_the_best() -> None:
    rows = [(60, 1, "OAK"), (120, 2, "OAK"), (120, 1, "OAK"), (60, 2, "ELM")]
    table = pa.Table.from_pylist([{"window_end": end, "rank": rank, "who": who} for end, rank, who in rows])
    kept, gone = latest(table, ("who",))
    assert sorted(tuple(row.values()) for row in kept.to_pylist()) == [(60, 2, "ELM"), (120, 1, "OAK")]
    assert gone.num_rows == 0
    left = pa.table({"at": [5, 5, 6], "change": ["leave", "enter", "leave"], "rank": [1, 2, 1], "who": ["a", "a", "b"]})
    kept, gone = latest(left, ("who",))
    assert kept.to_pylist() == [{"at": 5, "rank": 2, "who": "a"}]
    assert gone.to_pylist() == [{"who": "b"}]


@KINDS
def test_every_type_that_spark_has(tmp_path: Path, sink: str) -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
    row = {
        "tiny": pa.array([1, None], pa.int8()),
        "small": pa.array([1, None], pa.int16()),
        "float": pa.array([1.5, None], pa.float32()),
        "decimal": pa.array([Decimal("1.20"), None], pa.decimal128(38, 2)),
        "instant": pa.array([moment.replace(tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")),
        "local": pa.array([moment, None], pa.timestamp("us")),
        "date": pa.array([moment.date(), None]),
        "flag": pa.array([True, None]),
        "bytes": pa.array([b"\0", None]),
        "text": pa.array(["ü", None], pa.large_string()),
        "list": pa.array([[1, None], None]),
        "struct": pa.array([{"a": 1}, None]),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
    table = pa.table(row)
    target(tmp_path, sink).write(answers(table), 0)
    target(tmp_path, sink).write(answers(table.select(table.column_names[::-1])), 1)  # in another order
    assert content(tmp_path, "top", sink).to_pylist() == table.to_pylist() * 2


@KINDS
def test_a_table_with_other_columns_is_refused_by_name(tmp_path: Path, sink: str) -> None:
    target(tmp_path, sink).write(answers([{"window_end": 60, "price": 1.5, "old": 1}]), 0)
    with pytest.raises(PipelineChanged) as refused:
        target(tmp_path, sink).write(answers([{"window_end": 60, "price": "dear", "new": 1}]), 1)
    message = str(refused.value)
    assert "top has columns that differ from the answers: 'price' is double there, and string in the answers" in message
    assert "'new' (int64) is not there; the answers have no 'old'" in message
    assert content(tmp_path, "top", sink).num_rows == 1


@KINDS
def test_answers_about_a_table_replace_those_before(tmp_path: Path, sink: str) -> None:
    for who in ("OAK", "ELM"):
        target(tmp_path, sink, is_stream=False).write(answers([{"window_end": 60, "who": who}]), 0)
    assert content(tmp_path, "top", sink).to_pylist() == [{"window_end": 60, "who": "ELM"}]


@KINDS
def test_a_table_that_cannot_be_written_is_named(tmp_path: Path, sink: str) -> None:
    with pytest.raises(PipelineFailed, match="top did not take the answers of micro-batch 4: "):
        target(tmp_path, sink).write(answers(pa.table({"gap": pa.array([1], pa.duration("us"))})), 4)


@pytest.mark.parametrize(("sink", "package"), [(DELTA, "deltalake"), (ICEBERG, "pyiceberg")])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str, package: str
) -> None:
    extra = sink.split('"')[1]
    monkeypatch.delitem(sys.modules, f"skyband.pipelines.{extra}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentProblem, match=rf"needs the package {package}: pip install 'skyband\[{extra}\]'"):
        target(tmp_path, sink)


def test_doctor_looks_at_what_sinks_are_written_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = load(file_of(tmp_path, RIGHT + DELTA + ICEBERG.replace("sinks.lake", "sinks.tables")))
    assert [finding.fix for finding in libraries(pipeline)] == [None, None]
    monkeypatch.setattr(sys, "path", [])  # where installed packages are looked for
    assert [finding.fix for finding in libraries(pipeline)] == [
        "pip install 'skyband[delta]'",
        "pip install 'skyband[iceberg]'",
    ]


def test_mistakes_in_tables_are_said_with_their_line(tmp_path: Path) -> None:
    def said(sink: str) -> str:
        return problem(tmp_path, RIGHT.replace('to = ["files", "board"]', 'to = "lake"') + sink)

    assert "options are for an object store" in said(DELTA + "options = { mergeSchema = true }\n")
    assert 'table = "market.{query}"' in said(ICEBERG.replace("market.", ""))
    assert "Leave out one of the two" in said(ICEBERG + 'options = { type = "rest" }\n')
    assert "Rename the column with AS" in said(ICEBERG + 'key = ["a.b"]\n')
    assert "For tables elsewhere name the catalog" in said(ICEBERG.replace('"lake"', '"s3://lake"'))
    assert "have no column 'size'. They have: " in said(DELTA + 'key = ["size"]\n')


def test_a_catalog_that_is_not_there_is_named(tmp_path: Path) -> None:
    sink = ICEBERG.replace('path = "lake"\n', 'options = { type = "sql", uri = "sqlite:////nowhere/at/all.db" }\n')
    with pytest.raises(EnvironmentProblem, match="There is no Iceberg catalog for sink 'lake': "):
        target(tmp_path, sink)
    # Named by options as pyiceberg has them.
    options = (
        f'{{ type = "sql", uri = "sqlite:///{tmp_path}/c.db", warehouse = "file://{tmp_path}/w", catalog = "mine" }}'
    )
    elsewhere = target(tmp_path, ICEBERG.replace('path = "lake"\n', f"options = {options}\n"))
    elsewhere.write(answers([{"n": 1}]), 0)
    catalog = load_catalog("mine", type="sql", uri=f"sqlite:///{tmp_path}/c.db")
    assert catalog.load_table("market.top").scan().to_arrow().to_pylist() == [{"n": 1}]


# -- in a pipeline -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("tables") / "trades", split(trades(ROWS), BATCHES))


CHANGES = "SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 2 SECONDS EVERY 1 SECOND] GROUP BY symbol EMIT CHANGES"


@pytest.mark.spark
def test_a_pipeline_that_stops_between_the_commits_repeats_nothing(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Windows are appended, changes of groups are merged, to tables of both kinds."""
    file = pipeline_file(tmp_path, source, ["best", "groups"], groups=CHANGES)
    text = file.read_text().replace('to = "files"', 'to = ["delta", "iceberg"]', 1)
    text = text.replace('to = "files"', 'to = ["delta_now", "iceberg_now"]')
    for sink, kind in ((DELTA, "delta"), (ICEBERG, "iceberg")):
        text += sink.replace("sinks.lake", f"sinks.{kind}")
        text += sink.replace("sinks.lake", f"sinks.{kind}_now") + 'key = ["symbol"]\n'
    file.write_text(text)
    run(spark, file, stop=after(3, file))
    # As if the last micro-batch had been written, and the process had died before it could say so.
    commits = tmp_path / ".skyband" / "market" / "trades_1" / "commits"
    commit = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
    commit.unlink()
    (commits / f".{commit.name}.crc").unlink(missing_ok=True)
    before = content(tmp_path, "best", DELTA).num_rows
    assert before == content(tmp_path, "best", ICEBERG).num_rows > 0
    run(spark, file)
    for sink in (DELTA, ICEBERG):
        best, groups = content(tmp_path, "best", sink), content(tmp_path, "groups", sink)
        assert best.num_rows > before
        assert sorted(lines(best)) == expected("best")
        assert {row["symbol"]: row["n"] for row in groups.to_pylist()} == groups_now()
    # Without its checkpoint it would begin with micro-batch 0 again.
    (tmp_path / ".skyband").rename(tmp_path / "elsewhere")
    with pytest.raises(PipelineChanged, match="has answers of this query already, but there is no checkpoint"):
        run(spark, file)


def groups_now() -> dict[str, int]:
    """What the changes come to."""
    now: dict[str, int] = {}
    watermark = max(trades(ROWS).column("ts").to_pylist())
    for row in sb.sql(CHANGES, trades=trades(ROWS)).to_pylist():
        if row["at"] <= watermark:
            now[row["symbol"]] = row["n"]
            if row["change"] == "delete":
                del now[row["symbol"]]
    assert now
    return now
