"""Oracle tests: a table has no late rows. Whatever its order and kind, the answer is that of its rows in order.

What rows in order give is told by a session that is fed with them by hand.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from conformance.suite import examples
from core.encoding.test_inputs import STREAMS, WHOLE, as_table
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb

TIMES = {
    "int64": pa.int64(),
    "int8": pa.int8(),
    "uint16": pa.uint16(),
    "timestamp[s]": pa.timestamp("s"),
    "timestamp[ns, tz]": pa.timestamp("ns", "Europe/Berlin"),
}
WHOLE_NUMBERS = pa.int64()
SCHEMA = pa.schema({"t": WHOLE_NUMBERS, "v": pa.float64(), "g": pa.string(), "seq": pa.int64()})
rows = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 40), st.integers(0, 3), st.none()),
        st.one_of(st.integers(-1, 1).map(float), st.none()),
        st.sampled_from(["x", "y", None]),
    ),
    max_size=25,
)


def table_of(lines: list[tuple[Any, ...]], kind: pa.DataType = WHOLE_NUMBERS) -> pa.Table:
    """Rows numbered as they come; the times of a type."""
    times = [None if t is None else t * (10**9 if kind == TIMES["timestamp[ns, tz]"] else 1) for t, *_ in lines]
    inside = pa.int64() if pa.types.is_timestamp(kind) else kind
    return pa.table(
        {
            "t": pa.array(times, inside).cast(kind),
            "v": pa.array([v for _, v, _ in lines], pa.float64()),
            "g": pa.array([g for *_, g in lines], pa.string()),
            "seq": pa.array(range(len(lines)), pa.int64()),
        }
    )


def in_order(table: pa.Table, *by: str) -> pa.Table:
    """Rows of equal time in the order in which they came."""
    values = [table[name].cast(pa.int64()).to_pylist() for name in by]
    keys = [tuple((value is None, value or 0) for value in row) for row in zip(*values, strict=True)]
    return table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))


def fed(session: Any, table: pa.Table) -> list[dict[str, Any]]:
    return pa.concat_tables([session.push(table), session.finish()]).to_pylist()


def span(number: int, kind: pa.DataType) -> Any:
    return pd.Timedelta(seconds=number).to_pytimedelta() if pa.types.is_timestamp(kind) else number


@st.composite
def windows(draw: st.DrawFn, kind: pa.DataType = WHOLE_NUMBERS) -> sb.Window:
    size = draw(st.integers(1, 15))
    every = draw(st.one_of(st.none(), st.integers(1, size).map(lambda number: span(number, kind))))
    return sb.sliding(span(size, kind), every=every, on="t")


@examples(200)
@given(st.data(), rows, st.sampled_from(list(TIMES)), st.sampled_from(list(WHOLE)))
def test_rows(data: st.DataObject, lines: list[tuple[Any, ...]], time: str, kind: str) -> None:
    window = data.draw(windows(TIMES[time]))
    emits = ["windows", "changes", "entries"] if window.every else ["changes", "entries"]
    asked: dict[str, Any] = {
        "k": data.draw(st.integers(1, 3)),
        "by": data.draw(st.sampled_from(["v", "v * 2"])),
        "window": window,
        "per": data.draw(st.sampled_from([(), ("g",)])),
        "emit": data.draw(st.sampled_from(emits)),
        "lateness": data.draw(st.sampled_from([None, span(3, TIMES[time])])) if window.every else None,
    }
    table = table_of(lines, TIMES[time])
    expected = fed(sb.TopK(**asked).open(table.schema), in_order(table, "t"))
    # A frame of pandas has floats where an integer is missing.
    kind = "Table" if kind.startswith("pandas") and None in [line[0] for line in lines] else kind
    with warnings.catch_warnings():
        warnings.simplefilter("error", sb.LateRows)
        answer = as_table(sb.top_k(WHOLE[kind][0](table), **asked))
    assert answer["seq"].to_pylist() == [row["seq"] for row in expected]
    assert answer["rank"].to_pylist() == [row["rank"] for row in expected]
    when = "window_end" if asked["emit"] == "windows" else "at"
    assert answer[when].cast(pa.int64()).to_pylist() == _ticks(expected, when, answer.schema.field(when).type)


def _ticks(expected: list[dict[str, Any]], name: str, kind: pa.DataType) -> list[int]:
    return pa.array([row[name] for row in expected], kind).cast(pa.int64()).to_pylist()


@examples(60)
@given(rows, windows())
def test_many_queries(lines: list[tuple[Any, ...]], window: sb.Window) -> None:
    queries = pa.table({"id": [1, 2], "x": [0.0, 2.0]})
    query = sb.TopKForEach(queries=queries, k=2, by="abs(v - q.x)", window=window)
    table = table_of(lines)
    answer = sb.top_k(table, k=2, by="abs(v - q.x)", window=window, for_each=queries)
    assert answer.to_pylist() == fed(query.open(SCHEMA), in_order(table, "t"))


@examples(60)
@given(rows, windows())
def test_pairs(lines: list[tuple[Any, ...]], window: sb.Window) -> None:
    asked: dict[str, Any] = {"k": 2, "by": "abs(a.v - b.v)", "window": window, "different": "g"}
    table = table_of(lines)
    assert sb.top_k_pairs(table, **asked).to_pylist() == fed(sb.TopKPairs(**asked).open(SCHEMA), in_order(table, "t"))


@examples(60)
@given(rows, windows(), st.booleans())
def test_across(lines: list[tuple[Any, ...]], window: sb.Window, mapped: bool) -> None:
    """One table in which a column names the stream, or a table for each: of equal times, the first stream's first."""
    lines = [(t, v, g or "z") for t, v, g in lines]
    table = table_of(lines)
    options: dict[str, Any] = {"k": 2, "id": "v", "value": "seq", "window": window, "bounds": (0, 99)}
    options |= {"repeat": "last"}
    session = sb.TopKAcross(**options, streams=list("xyz"), stream="g").open(SCHEMA)
    if not mapped:
        answer = sb.top_k_across(table, **options, streams=list("xyz"), stream="g")
        assert answer.to_pylist() == fed(session, in_order(table, "t"))
        return
    streams = {name: table.filter(pa.array([g == name for *_, g in lines], pa.bool_())) for name in "xyz"}
    expected = fed(session, in_order(pa.concat_tables(list(streams.values())), "t"))
    assert sb.top_k_across(streams, **options).to_pylist() == expected


@examples(60)
@given(rows, rows, windows(), st.booleans())
def test_joins(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], window: sb.Window, changes: bool) -> None:
    """A join of tables is that of the same tables in order; a relation needs none."""
    asked: dict[str, Any] = {
        "inputs": {"a": window, "b": sb.sliding(7, on="t"), "c": sb.relation()},
        "on": ["a.g = b.g", "b.g = c.g"],
        "group_by": "a.g",
        "aggregates": {"n": "COUNT(*)", "s": "SUM(b.seq)", "m": "MAX(a.v)"},
        "emit": "changes" if changes else None,
        "every": window.every if window.every and window.every <= 7 else None,  # type: ignore[operator]
    }
    if asked["every"] is None:
        asked |= {"inputs": {**asked["inputs"], "a": sb.sliding(window.size, on="t")}}  # type: ignore[arg-type]
    tables = {"a": table_of(left), "b": table_of(right), "c": pa.table({"g": ["y", "x"]})}
    ordered = {name: in_order(table, "t") if "t" in table.column_names else table for name, table in tables.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", sb.LateRows)
        answer = sb.join_aggregate(tables, **asked)
    streams = {name: table.to_reader(max_chunksize=1) for name, table in ordered.items()}
    streams["c"] = tables["c"]
    assert answer.to_pylist() == sb.join_aggregate(streams, **asked).read_all().to_pylist()


@examples(60)
@given(rows, st.sampled_from(["", "WHERE v > 0"]), st.sampled_from(list(WHOLE)))
def test_statements(lines: list[tuple[Any, ...]], where: str, kind: str) -> None:
    """Alone, and several from one skyband."""
    lines = [line for line in lines if line[0] is not None]
    statement = f"SELECT seq FROM r [WINDOW 9 EVERY 3 ON t] {where} ORDER BY v DESC LIMIT 2"
    statements = {
        "a": statement,
        "b": statement.replace("WINDOW 9", "WINDOW 6"),
        "c": statement.replace("v D", "seq D"),
    }
    table = table_of(lines)
    ordered = in_order(table, "t")
    expected = {name: sb.sql(text, r=ordered.to_reader()).read_all().to_pylist() for name, text in statements.items()}
    assert as_table(sb.sql(statement, r=WHOLE[kind][0](table))).to_pylist() == expected["a"]
    answers = sb.run_all(statements, r=WHOLE[kind][0](table))
    assert {name: as_table(answer).to_pylist() for name, answer in answers.items()} == expected


def test_the_order_that_a_window_names_decides_between_equal_times() -> None:
    """And in a window of arrivals it is the only one that is known; without it, rows arrive as they stand."""
    table = pa.table({"t": [2, 1, 1, 1], "o": ["a", "c", "a", None], "v": [1.0, 1.0, 1.0, 1.0], "id": [0, 1, 2, 3]})
    asked: dict[str, Any] = {"k": 9, "by": "v"}
    by_value = sb.top_k(table, **asked, window=sb.tumbling(5, on="t", order="o"))
    assert by_value["id"].to_pylist() == [0, 3, 1, 2]
    by_count = sb.top_k(table, **asked, window=sb.tumbling(4, order="o"))
    assert by_count["id"].to_pylist() == [3, 1, 2, 0]
    assert sb.top_k(table, **asked, window=sb.tumbling(4))["id"].to_pylist() == [3, 2, 1, 0]


def test_a_shuffled_table_loses_nothing() -> None:
    """More rows than are sorted at once, in many chunks, with columns that are not numbers."""
    rng, n = np.random.default_rng(7), 300_000
    time = rng.permutation(n)
    table = pa.table({"t": time, "v": rng.random(n), "name": pa.array([f"r{t}" for t in time]).dictionary_encode()})
    table = pa.concat_tables([table.slice(0, 100_000), table.slice(100_000, 7), table.slice(100_007)])
    window = sb.sliding(10_000, every=5_000, on="t")
    answer = sb.top_k(table, k=3, by="v", window=window)
    assert answer.num_rows == 3 * 61
    assert answer["name"].to_pylist() == [f"r{t}" for t in answer["t"].to_pylist()]
    ordered = table.drop_columns(["name"]).take(pa.array(np.argsort(time)))
    assert answer.drop_columns(["name"]).equals(sb.top_k(ordered.to_reader(), k=3, by="v", window=window).read_all())


# -- streams -----------------------------------------------------------------------------------------------------------

LATE = pa.table({"t": [1, 9, 2, 19, 3, 4], "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})


@pytest.mark.parametrize("kind", STREAMS)
def test_late_rows_of_a_stream_are_warned_of(kind: str) -> None:
    """When the first come, and at the end if there were more."""
    with pytest.warns(sb.LateRows) as told:
        sb.top_k(STREAMS[kind](LATE), k=1, by="v", window=sb.tumbling(5, on="t")).read_all()
    assert 1 <= len(told) <= 2
    assert "3 of 6 rows so far arrived after all their windows had closed" in str(told[-1].message)
    assert "(no lateness now): raise it." in str(told[-1].message)


def test_what_to_do_about_late_rows() -> None:
    with pytest.warns(sb.LateRows, match=r"lateness='2' now\): raise it"):
        sb.top_k(LATE.to_reader(), k=1, by="v", window=sb.tumbling(5, on="t"), lateness=2).read_all()
    with pytest.warns(sb.LateRows, match="pass a table, which Skyband sorts first"):
        sb.top_k(LATE.to_reader(), k=1, by="v", window=sb.sliding(3, on="t")).read_all()


@pytest.mark.parametrize("rows", [LATE, LATE.to_reader()], ids=["table", "enough lateness"])
def test_no_word_where_nothing_is_late(rows: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = as_table(sb.top_k(rows, k=1, by="v", window=sb.tumbling(5, on="t"), lateness=20))
    assert answer["score"].to_pylist() == [6.0, 2.0, 4.0]


def test_late_rows_of_streams_that_are_put_together() -> None:
    with pytest.warns(sb.LateRows, match="3 of 6 rows"):
        sb.join_aggregate(LATE.to_reader(), window=sb.tumbling(5, on="t"), aggregates={"n": "COUNT(*)"}).read_all()
    streams = {"a": LATE.to_reader(), "b": LATE.slice(0, 1)}
    window = sb.tumbling(5, on="t")
    with pytest.warns(sb.LateRows, match="3 of 7 rows"):
        sb.top_k_across(streams, k=1, id="v", value="v", bounds=(0, 9), window=window).read_all()


# -- one wrong time ----------------------------------------------------------------------------------------------------


@examples(100)
@given(st.lists(st.integers(0, 60), max_size=12), st.integers(1, 12), st.randoms())
def test_max_jump_of_a_table_leaves_out_rows_that_come_long_after_all_others(
    times: list[int], most: int, random: Any
) -> None:
    """In order of time, a row that is more than max_jump later than the one before it; the first is believed."""
    random.shuffle(times)
    table = pa.table({"t": pa.array(times, pa.int64()), "v": pa.array([1.0] * len(times), pa.float64())})
    answer = sb.top_k(table, k=99, by="v", window=sb.tumbling(100, on="t"), max_jump=most)
    ordered = sorted(times)
    kept = [t for i, t in enumerate(ordered) if i == 0 or t - ordered[i - 1] <= most]
    assert sorted(answer["t"].to_pylist()) == kept
    tagged = table.append_column("id", pa.array(range(len(times)), pa.int64()))
    options: dict[str, Any] = {"k": 99, "id": "id", "value": "v", "window": sb.tumbling(100, on="t"), "max_jump": most}
    assert len(sb.top_k_across(tagged, **options)) == len(sb.top_k_across({"s": tagged}, **options)) == len(kept)


# -- what is larger than memory ----------------------------------------------------------------------------------------


def test_a_dataset_in_order_is_not_held(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its times are read first, alone; if they are in order, rows go by."""
    for i in range(3):
        part = LATE.sort_by("v").set_column(0, "t", pa.array(range(6 * i, 6 * i + 6)))
        ds.write_dataset(part, tmp_path / str(i), format="parquet")
    dataset = ds.dataset(tmp_path, format="parquet")
    read: list[Any] = []
    scan = type(dataset).to_batches

    class Watched:
        def __init__(self) -> None:
            self.schema = dataset.schema

        def to_batches(self, **options: Any) -> Any:
            read.append(options.get("columns"))
            return scan(dataset, **options)

    Watched.__name__, Watched.__module__ = "Dataset", "pyarrow.dataset"
    answer = sb.top_k(Watched(), k=1, by="v", window=sb.tumbling(6, on="t"))
    assert answer["t"].to_pylist() == [5, 11, 17]
    assert read == [["t"], None]
