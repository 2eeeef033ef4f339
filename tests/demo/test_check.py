"""Examples: the demo's checker agrees with right answers, and sees every kind of wrong one."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import skyband as sb
from skyband.demo import run
from skyband.demo.check import check
from skyband.demo.job import QUERY
from skyband.pipelines.file import load
from skyband.sql.run import ask
from skyband.streams.trades import SCHEMA, trades

WINDOWS = 12

Spoil = Callable[[pa.Table], pa.Table]


@pytest.fixture(scope="module")
def stream() -> pa.Table:
    return trades(250_000).read_all()


@pytest.fixture(scope="module")
def answers(stream: pa.Table) -> pa.Table:
    return QUERY.open(SCHEMA).push(stream)


def changed(table: pa.Table, row: int, column: str, change: Callable[[object], object]) -> pa.Table:
    values = table.column(column).to_pylist()
    values[row] = change(values[row])
    return table.set_column(
        table.schema.get_field_index(column), column, pa.array(values, table.schema.field(column).type)
    )


def without(table: pa.Table, row: int) -> pa.Table:
    return pa.concat_tables([table.slice(0, row), table.slice(row + 1)])


def test_right_answers_agree_in_any_order(stream: pa.Table, answers: pa.Table) -> None:
    for rows in (answers, answers.take(pa.array(range(answers.num_rows - 1, -1, -1)))):
        verdict = check(stream, rows)
        assert verdict.windows == WINDOWS
        assert verdict.disagreements == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda rows: without(rows, 25), id="a row is missing"),
        pytest.param(lambda rows: pa.concat_tables([rows, rows.slice(25, 1)]), id="a row comes twice"),
        pytest.param(lambda rows: changed(rows, 25, "score", lambda score: score + 0.01), id="a score is off"),
        pytest.param(lambda rows: changed(rows, 25, "symbol", lambda _: "NONE"), id="a symbol is another"),
        pytest.param(
            lambda rows: changed(rows, 25, "ts", lambda ts: ts + timedelta(microseconds=1)), id="a time is off"
        ),
        pytest.param(
            lambda rows: changed(changed(rows, 25, "rank", lambda _: 7), 26, "rank", lambda _: 6),
            id="two ranks are swapped",
        ),
    ],
)
def test_one_wrong_row_spoils_its_window_and_no_other(stream: pa.Table, answers: pa.Table, spoil: Spoil) -> None:
    window_end = answers.column("window_end")[25].as_py()
    [message] = check(stream, spoil(answers)).disagreements
    assert f"{window_end:%Y-%m-%d %H:%M}" in message


def test_a_window_that_is_missing_or_should_not_be_there_is_seen(stream: pa.Table, answers: pa.Table) -> None:
    first = answers.column("window_end")[0]
    rest = answers.filter(pc.not_equal(answers.column("window_end"), first))
    assert "is missing" in check(stream, rest).disagreements[0]
    finished = sb.top_k(stream, k=10, by="price * volume", window=QUERY.window, lateness=QUERY.lateness)
    unclosed = check(stream, finished).disagreements
    assert len(unclosed) == 10, "those that hold rows but end after the watermark"
    assert all("should not be there" in message for message in unclosed)


def test_a_wrong_start_is_seen(stream: pa.Table, answers: pa.Table) -> None:
    spoiled = changed(answers, 3, "window_start", lambda start: start + timedelta(minutes=1))
    assert check(stream, spoiled).disagreements


def test_the_pipeline_asks_what_the_embedded_engine_is_asked() -> None:
    pipeline = load(Path(run.__file__).with_name("pipeline.toml"))
    asked = ask(pipeline.queries["largest"].sql, {"trades": SCHEMA}).query
    assert isinstance(asked, sb.TopK)
    assert vars(asked) | {"by": str(asked.by).replace("`", "")} == vars(QUERY)
