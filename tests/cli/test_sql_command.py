"""Examples: `skyband sql` and `skyband explain` of files: what a person types, and what they see or find written."""

from __future__ import annotations

import gzip
import io
import json
import math
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather
from typer.testing import CliRunner, Result

from skyband.cli import app
from skyband.cli.inputs import named_paths
from skyband.errors import InvalidInput
from skyband.sql.files import open_table

BEST = "SELECT symbol FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
ROWS = "minute,symbol,price\n0,OAK,10\n1,ELM,20\n3,FIR,5\n"


def skyband(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


@pytest.fixture
def trades(tmp_path: Path) -> str:
    (tmp_path / "trades.csv").write_text(ROWS)
    return f"trades={tmp_path / 'trades.csv'}"


def rows_of(path: Path) -> list[dict[str, object]]:
    table = open_table(path)
    return (table if isinstance(table, pa.Table) else table.to_table()).to_pylist()


# -- what is printed --------------------------------------------------------------------------------------------------


def test_the_answer_is_a_table(trades: str) -> None:
    printed = skyband("sql", BEST, "--input", trades)
    assert printed.exit_code == 0, printed.output
    assert [line.split() for line in printed.output.splitlines()] == [
        ["window_start", "window_end", "rank", "score", "symbol"],
        ["0", "2", "1", "20", "ELM"],
        ["2", "4", "1", "5", "FIR"],
    ]


def test_files_stand_behind_the_statement_or_alone(trades: str) -> None:
    printed = skyband("sql", BEST, "--input", trades).output
    assert skyband("sql", BEST, trades).output == printed
    assert skyband("sql", BEST.replace("trades", "t"), trades.replace("trades=", "t=", 1)).output == printed
    assert skyband("sql", trades, stdin=BEST).stdout == printed
    assert skyband("explain", BEST, trades).output == skyband("explain", BEST, "--input", trades).output
    twice = skyband("sql", BEST, trades, "--input", trades)
    assert twice.exit_code == 2
    assert "Two inputs are called 'trades'" in twice.stderr


def test_help_shows_patterns_as_they_are_written() -> None:
    assert "*/*.csv" in "".join(skyband("sql", "--help").output.split())


def test_plain_rows_are_a_table_too(trades: str, tmp_path: Path) -> None:
    """They carry no counts of late rows, and that ended in a traceback."""
    statement = "SELECT symbol, price FROM trades WHERE price > 5"
    printed = skyband("sql", statement, "--input", trades, "--format", "csv")
    assert (printed.exit_code, printed.stdout.split()) == (0, ['"symbol","price"', '"OAK",10', '"ELM",20'])
    written = tmp_path / "out.parquet"
    assert skyband("sql", statement, "--input", trades, "--output", str(written)).exit_code == 0
    assert [row["symbol"] for row in rows_of(written)] == ["OAK", "ELM"]


def test_an_input_is_not_overwritten(trades: str) -> None:
    path = trades.removeprefix("trades=")
    for given in (trades, path):
        result = skyband("sql", BEST, given, "--output", path)
        assert result.exit_code == 2
        assert "would overwrite an input" in " ".join(result.output.split())
    assert Path(path).read_text() == ROWS


def test_the_statement_may_come_from_standard_input(trades: str) -> None:
    for given in ([], ["-"]):
        printed = skyband("sql", *given, "--input", trades, "--format", "csv", stdin=f"{BEST};\n")
        assert printed.stdout == (
            '"window_start","window_end","rank","score","symbol"\n0,2,1,20,"ELM"\n2,4,1,5,"FIR"\n'
        )
    nothing = skyband("sql", "--input", trades, stdin="")
    assert nothing.exit_code == 2
    assert "There is no statement here." in nothing.stderr


def test_each_format_has_all_rows(trades: str) -> None:
    first, second = (
        {"window_start": 0, "window_end": 2, "rank": 1, "score": 20, "symbol": "ELM"},
        {"window_start": 2, "window_end": 4, "rank": 1, "score": 5, "symbol": "FIR"},
    )

    def printed(how: str, *more: str) -> bytes:
        return skyband("sql", BEST, "--input", trades, "--format", how, *more).stdout_bytes

    assert [json.loads(line) for line in printed("json").splitlines()] == [first, second]
    assert pa.ipc.open_stream(printed("arrow")).read_all().to_pylist() == [first, second]
    assert printed("markdown").decode().splitlines() == [
        "| window_start | window_end | rank | score | symbol |",
        "| :-- | :-- | :-- | :-- | :-- |",
        "| 0 | 2 | 1 | 20 | ELM |",
        "| 2 | 4 | 1 | 5 | FIR |",
    ]
    assert csv.read_csv(io.BytesIO(printed("csv", "--rows", "1"))).to_pylist() == [first]


def test_values_do_no_harm_to_what_they_are_printed_in(tmp_path: Path) -> None:
    """Markup, bars, escapes of the terminal and line ends are values; a float shows the digits that it has."""
    path = tmp_path / "odd.jsonl"
    odd = ["[bold]x[/bold]", "a|b", "\x1b[31mred", "two\nlines"]
    path.write_text("".join(json.dumps({"t": 0, "name": name, "x": 123456.789}) + "\n" for name in odd))
    statement = "SELECT name FROM odd [WINDOW 1 EVERY 1 ON t] ORDER BY x LIMIT 9"
    table = skyband("sql", statement, "--input", str(path)).stdout
    assert "[bold]x[/bold]" in table
    assert "\\x1b[31mred" in table
    assert "two\\nlines" in table
    assert "123456.789" in table
    assert len(table.splitlines()) == 5
    assert "a\\|b" in skyband("sql", statement, "--input", str(path), "--format", "markdown").stdout


def test_a_wide_table_has_a_line_a_row_where_there_is_no_screen(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"t,x\n0,{'wide ' * 100}\n")
    shown = skyband("sql", "SELECT x FROM rows [WINDOW 1 EVERY 1 ON t] ORDER BY t LIMIT 1", "-i", str(path)).stdout
    assert len(shown.splitlines()) == 2


def test_a_long_table_is_cut_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("t,x\n" + "".join(f"{n},{n}\n" for n in range(60)))
    statement = "SELECT x FROM rows [WINDOW 1 EVERY 1 ON t] ORDER BY x LIMIT 1"
    shown = skyband("sql", statement, "-i", str(path)).stdout.splitlines()
    assert len(shown) == 52
    assert shown[-1] == "50 of 60 rows; --rows shows more, --output writes them all."
    assert len(skyband("sql", statement, "-i", str(path), "--format", "csv").stdout.splitlines()) == 61


# -- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl", "arrow", "feather"])
def test_the_ending_says_what_is_written_and_it_can_be_read_again(ending: str, trades: str, tmp_path: Path) -> None:
    written = tmp_path / f"best.{ending}"
    result = skyband("sql", BEST, "--input", trades, "--output", str(written))
    assert result.output == f"2 rows written to {written}.\n", result.output
    assert rows_of(written) == [
        {"window_start": 0, "window_end": 2, "rank": 1, "score": 20, "symbol": "ELM"},
        {"window_start": 2, "window_end": 4, "rank": 1, "score": 5, "symbol": "FIR"},
    ]


def test_what_is_written_may_be_a_page(trades: str, tmp_path: Path) -> None:
    skyband("sql", BEST, "--input", trades, "--output", str(tmp_path / "best.md"), "--rows", "1")
    assert len((tmp_path / "best.md").read_text().splitlines()) == 3


def test_a_stream_of_arrow_that_was_printed_is_an_input(trades: str, tmp_path: Path) -> None:
    (tmp_path / "best.arrow").write_bytes(skyband("sql", BEST, "-i", trades, "--format", "arrow").stdout_bytes)
    assert len(rows_of(tmp_path / "best.arrow")) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "best.xlsx"], "Possible endings: .parquet, .csv, .json, .jsonl, .arrow, .feather, .md."),
        (["--output", "best.csv", "--format", "json"], "--format is for printing"),
        (["--output", "no/such/best.csv"], "There is no folder 'no/such'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_row_is_read(options: list[str], said: str) -> None:
    result = skyband("sql", "SELECT 1", *options)
    assert result.exit_code == 2
    assert said in result.stderr


# -- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl", "arrow"])
def test_files_are_put_in_order(tmp_path: Path, ending: str) -> None:
    """Whatever order its rows have in the file, none is late; one without a time is told of."""
    rows = pa.table({"minute": [3, 0, None, 1], "symbol": ["FIR", "OAK", "ASH", "ELM"], "price": [5, 10, 99, 20]})
    path = tmp_path / f"trades.{ending}"
    if ending == "parquet":
        pq.write_table(rows, path)
    elif ending == "arrow":
        feather.write_feather(rows, path)
    elif ending == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))
    else:
        with pa.output_stream(path) as stream:
            csv.write_csv(rows, stream)
    result = skyband("sql", BEST, "--input", f"trades={path}")
    assert result.exit_code == 0, result.output
    assert [line.split()[-1] for line in result.stdout.splitlines()] == ["symbol", "ELM", "FIR"]
    assert result.stderr == "Warning: 1 of 4 rows have no time, and were left out.\n"


def test_a_folder_or_a_pattern_is_one_table(tmp_path: Path) -> None:
    """In the order of names; folders of a partition give a column; what one file lacks is null there."""
    for day, text in (("1", "minute,symbol,price\n0,OAK,10\n"), ("2", "minute,price,note\n3,5,x\n")):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "part.csv").write_text(text)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.md").write_text("not a table")
    expected = [
        {"minute": 0, "symbol": "OAK", "price": 10, "note": None, "day": 1},
        {"minute": 3, "symbol": None, "price": 5, "note": "x", "day": 2},
    ]
    for given in (tmp_path, f"{tmp_path}/*/*.csv", f"{tmp_path}/**/*.csv"):
        rows = open_table(given).to_table().select(["minute", "symbol", "price", "note", "day"]).to_pylist()
        assert rows == expected, given
    assert open_table(f"{tmp_path}/day=2/*.csv").to_table().num_rows == 1


def test_a_folder_of_json_is_one_table(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"x": 2.5, "y": "z"}\n'))
    assert rows_of(tmp_path) == [{"x": 1.0, "y": None}, {"x": 2.5, "y": "z"}]


TIMES = {
    "zoned": (["2026-01-01T00:00:00Z", "2026-01-01T02:00:01.5+01:00"], pa.timestamp("us", "UTC")),
    "local": (["2026-01-01T00:00:00", "2026-01-01 00:00:01.25"], pa.timestamp("us")),
    "day": (["2026-01-01", "2026-02-28"], pa.date32()),
    "text": (["2026-01-01", "yesterday"], pa.string()),
}


def test_iso_times_are_times_in_json(tmp_path: Path) -> None:
    path = tmp_path / "times.jsonl"
    values = [{name: texts[i] for name, (texts, _) in TIMES.items()} for i in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*values, dict.fromkeys(TIMES)]))
    table = open_table(path)
    assert {each.name: each.type for each in table.schema} == {name: kind for name, (_, kind) in TIMES.items()}
    assert table.to_pylist()[1] == {
        "zoned": datetime(2026, 1, 1, 1, 0, 1, 500_000, UTC),
        "local": datetime(2026, 1, 1, 0, 0, 1, 250_000),
        "day": date(2026, 2, 28),
        "text": "yesterday",
    }
    assert table.to_pylist()[2] == dict.fromkeys(TIMES)


def test_infinite_scores_that_were_printed_as_json_are_numbers_again(trades: str, tmp_path: Path) -> None:
    listed = "symbol, ln(price - 10) AS low, price / 0 AS high, IF(minute > 0, 'NaN', '+INF') || '' AS word"
    printed = skyband("sql", f"SELECT {listed} FROM trades", "--input", trades, "--format", "json")
    assert '"high":"+INF"' in printed.stdout
    (tmp_path / "answer.jsonl").write_text(printed.stdout + '{"symbol":"BOX","low":1,"high":null,"word":"x"}\n')
    table = open_table(tmp_path / "answer.jsonl")
    assert [str(kind) for kind in table.schema.types] == ["string", "double", "double", "string"]
    assert [row["low"] for row in rows_of(tmp_path / "answer.jsonl")][:2] == [-math.inf, math.log(10)]
    assert table["high"].to_pylist() == [math.inf] * 3 + [None]
    assert table["word"].to_pylist() == ["+INF", "NaN", "NaN", "x"]


def test_iso_times_are_times_in_csv_also_where_parts_of_a_second_come_late(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("zoned,local\n" + "2026-01-01T00:00:00Z,2026-01-01 00:00:00\n" * 40_000)
    with path.open("a") as file:
        file.write("2026-01-01T02:00:01.5+01:00,2026-01-01 00:00:01.25\n")
    last = open_table(path).to_table().slice(40_000).to_pylist()
    assert last == [
        {"zoned": datetime(2026, 1, 1, 1, 0, 1, 500_000, UTC), "local": datetime(2026, 1, 1, 0, 0, 1, 250_000)}
    ]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trades.csv"
    path.write_text("minute,price\n" + "1,1\n" * 400_000 + "x,1\n")
    statement = "SELECT * FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price LIMIT 1"
    result = skyband("sql", statement, "--input", f"trades={path}")
    assert result.exit_code == 2
    assert f"Error: Cannot read {str(path)!r}: " in result.stderr
    (tmp_path / "first.csv").write_text("minute,price\n0,1\n")
    result = skyband("sql", statement, "--input", f"trades={tmp_path}")
    assert f"Error: Cannot read {str(path)!r}: " in result.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("trades", "There is no file and no folder 'trades'"),
        ("=x.csv", "--input takes a name and a file"),
        ("trades=", "--input takes a name and a file"),
        ("trades=none.csv", "There is no file and no folder 'none.csv'"),
        ("trades=README.md", "Cannot tell what kind of file 'README.md' is"),
        ("no-name.csv", "--input takes a name and a file"),
        ("t=none/*.csv", "No file matches 'none/*.csv'"),
    ],
)
def test_what_is_wrong_with_an_input_is_said(given: str, said: str) -> None:
    refused = skyband("sql", "SELECT 1", "--input", given)
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_folders_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has no file that can be read"):
        open_table(tmp_path)
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(InvalidInput, match="files of several kinds: csv, json"):
        open_table(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(InvalidInput, match="is a Delta table"):
        open_table(tmp_path)


def test_an_input_without_a_name_is_called_as_its_file() -> None:
    assert named_paths(["data/day=1/trades.csv.gz", "t=x=y.csv"]) == {
        "trades": "data/day=1/trades.csv.gz",
        "t": "x=y.csv",
    }
    with pytest.raises(InvalidInput, match="Two inputs are called 'Trades'"):
        named_paths(["trades.csv", "old/Trades.csv"])


# -- explain ----------------------------------------------------------------------------------------------------------


def test_explain_takes_a_statement(trades: str) -> None:
    for text in (BEST, f"EXPLAIN {BEST}"):
        assert skyband("explain", text, "--input", trades).output.startswith("top 1 by price\n")
    assert skyband("sql", f"EXPLAIN {BEST}", "--input", trades).output.startswith("top 1 by price\n")


def test_explain_shows_a_mistake_at_its_place(trades: str) -> None:
    refused = skyband(
        "explain", "SELECT prise FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price LIMIT 1", "-i", trades
    )
    assert refused.exit_code == 2
    assert "\n         ^\n" in refused.stderr


def test_explain_refuses_what_a_statement_says_itself(trades: str) -> None:
    refused = skyband("explain", BEST, "--input", trades, "--k", "3")
    assert refused.exit_code == 2
    assert refused.stderr == "Error: --k cannot go with a statement: say it in the statement.\n"
    assert skyband("explain", "--k", "3", "--size", "10", "--input", trades).exit_code == 2
    plan = skyband("sql", f"EXPLAIN {BEST}", "--input", trades, "--format", "csv")
    assert plan.exit_code == 2
    assert "EXPLAIN gives a plan" in plan.stderr


# -- follow -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ([], '"window_start","window_end","rank","score","symbol"\n0,2,1,20,"ELM"\n2,4,1,5,"FIR"\n'),
        (["--format", "json"], '{"window_start":0,"window_end":2,"rank":1,"score":20,"symbol":"ELM"}'),
        (["--format", "markdown"], "| :-- | :-- | :-- | :-- | :-- |\n| 0 | 2 | 1 | 20 | ELM |\n"),
        (["--format", "table"], " 0           2     1     20  ELM "),
    ],
)
def test_follow_gives_windows_as_they_close(how: list[str], said: str, trades: str) -> None:
    """Without a terminal, and until there are as many rows as one asked for: the last window has not closed."""
    with Path(trades.partition("=")[2]).open("a") as file:
        file.write("5,ASH,7\n7,OAK,8\n")
    result = skyband("sql", BEST, "--input", trades, "--follow", "--rows", "2", *how)
    assert result.exit_code == 0, result.output
    assert said in result.stdout
    assert "ASH" not in result.stdout


def test_follow_gives_arrow_and_joins_a_table_that_does_not_grow(trades: str, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("symbol,name\nOAK,oak\nELM,elm\nFIR,fir\n")
    statement = """SELECT n.name, COUNT(*) AS c FROM trades AS t [WINDOW 2 EVERY 2 ON minute], names AS n
                   WHERE t.symbol = n.symbol GROUP BY n.name"""
    inputs = ["-i", trades, "-i", str(tmp_path / "names.csv")]
    result = skyband("sql", statement, *inputs, "--follow", "--rows", "1", "--format", "arrow")
    assert result.exit_code == 0, result.output
    assert pa.ipc.open_stream(result.stdout_bytes).read_all().select(["window_end", "c"]).to_pylist() == [
        {"window_end": 2, "c": 1}
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "x.csv"], "--output writes a whole answer"),
        (["--input", "trades=none.csv"], "There is no file"),
        ([], "Write --input trades=FILE."),
    ],
)
def test_follow_refuses_what_it_cannot_do(options: list[str], said: str) -> None:
    result = skyband("sql", BEST, "--follow", *options)
    assert result.exit_code == 2
    assert said in result.stderr
