"""Example tests: the families of data that go in, the family that comes out, and the types of their columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import shows, table, words

import skyband as sb

ROWS = table("""
    t   v   name
    1   5   a
    3   8   b
    6   2   c
    7   4   d
    11  3   e
""")
EXPECTED = """
    window_start  window_end  rank  score  t   name
    0             5           1     8      3   b
    5             10          1     4      7   d
    10            15          1     3      11  e
"""
QUERY: dict[str, Any] = {"k": 1, "by": "v", "window": sb.tumbling(5, on="t")}


def in_batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=2)


TABLES: dict[str, Callable[[], Any]] = {
    "Table": lambda: ROWS,
    "chunked Table": lambda: pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1, 0), ROWS.slice(1)]),
    "sliced Table": lambda: pa.concat_tables([ROWS.slice(3), ROWS, ROWS.slice(0, 2)]).combine_chunks().slice(2, 5),
    "RecordBatch": lambda: ROWS.to_batches()[0],
    "sliced RecordBatch": lambda: pa.concat_tables([ROWS, ROWS]).combine_chunks().to_batches()[0].slice(5),
    "pandas": ROWS.to_pandas,
    "polars": lambda: pl.from_arrow(ROWS),
    "polars, sliced": lambda: pl.concat([pl.from_arrow(ROWS), pl.from_arrow(ROWS)])[5:],
    "an object with the Arrow stream interface": lambda: type(
        "Rows", (), {"__arrow_c_stream__": ROWS.__arrow_c_stream__}
    )(),
}
STREAMS: dict[str, Callable[[], Any]] = {
    "RecordBatchReader": lambda: pa.RecordBatchReader.from_batches(ROWS.schema, in_batches(ROWS)),
    "generator of batches": lambda: in_batches(ROWS),
    "iterator over a list": lambda: iter(ROWS.to_batches(max_chunksize=1)),
    "map": lambda: map(pa.record_batch, in_batches(ROWS)),
    "iterator of tables": lambda: iter([ROWS.slice(0, 3), ROWS.slice(3)]),
}


@pytest.mark.parametrize("family", TABLES)
def test_a_table_gives_a_table(family: str) -> None:
    result = sb.top_k(TABLES[family](), **QUERY)
    assert isinstance(result, pa.Table)
    assert shows(result, EXPECTED)


@pytest.mark.parametrize("family", STREAMS)
def test_a_stream_gives_a_reader(family: str) -> None:
    result = sb.top_k(STREAMS[family](), **QUERY)
    assert isinstance(result, pa.RecordBatchReader)
    assert shows(result.read_all(), EXPECTED)


def test_a_reader_gives_answers_as_they_become_known() -> None:
    taken = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in ROWS.to_batches(max_chunksize=1):
            taken.append(batch)
            yield batch

    answers = sb.top_k(batches(), **QUERY)
    assert len(taken) == 1, "the first batch says what the columns are"
    assert answers.read_next_batch().num_rows == 1
    assert len(taken) == 3, "the third row closes the first window"


@pytest.mark.parametrize("family", ["Table", "polars", "pandas"])
def test_no_rows_give_no_rows_with_the_same_columns(family: str) -> None:
    empty = {"Table": ROWS.slice(0, 0), "polars": pl.from_arrow(ROWS).clear(), "pandas": ROWS.to_pandas().iloc[:0]}[
        family
    ]
    assert words(sb.top_k(empty, **QUERY)) == [["window_start", "window_end", "rank", "score", "t", "name"]]


def test_a_reader_without_batches() -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, iter([]))
    assert sb.top_k(reader, **QUERY).read_all().num_rows == 0


# -- column types ---------------------------------------------------------------------------------------------------

NAMES = ["x", "y", None, "x", "x"]
KEPT: dict[str, pa.Array] = {
    "string": pa.array(NAMES),
    "large_string": pa.array(NAMES, pa.large_string()),
    "string_view": pa.array(NAMES, pa.string_view()),
    "dictionary": pa.array(NAMES).dictionary_encode(),
    "binary": pa.array([b"x", b"y", None, b"x", b"x"]),
    "bool": pa.array([True, False, None, True, True]),
    "decimal": pa.array([Decimal("1.5"), Decimal("2.5"), None, Decimal("1.5"), Decimal("1.5")]),
    "date": pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2), None, dt.date(2020, 1, 1), dt.date(2020, 1, 1)]),
    "timestamp with zone": pa.array([1, 2, None, 1, 1], pa.timestamp("us", "Asia/Kathmandu")),
    "int8": pa.array([1, 2, None, 1, 1], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2, None, 2**64 - 1, 2**64 - 1], pa.uint64()),
    "float32": pa.array([1.5, 2.5, None, 1.5, 1.5], pa.float32()),
    "float64 with NaN": pa.array([float("nan"), 2.5, None, float("nan"), float("nan")]),
}
NOT_KEYS: dict[str, pa.Array] = {
    "null": pa.nulls(5),
    "list": pa.array([[1], [], None, [1, 2], [3]]),
    "struct": pa.array([{"a": 1}, {"a": None}, None, {"a": 2}, {"a": 3}]),
    "map": pa.array([[("a", 1)], [], None, [("b", 2)], []], pa.map_(pa.string(), pa.int64())),
}


def shown_as(kind: pa.DataType) -> pa.DataType:
    """Arrow cannot take rows of views yet, so they come out as what they are views of."""
    return pa.string() if kind == pa.string_view() else kind


@pytest.mark.parametrize("kind", [*KEPT, *NOT_KEYS])
def test_columns_of_any_type_come_out_as_they_went_in(kind: str) -> None:
    column = {**KEPT, **NOT_KEYS}[kind]
    rows = ROWS.append_column("extra", column)
    for batches in (rows.to_batches(), rows.to_batches(max_chunksize=1)):
        result = sb.top_k(pa.Table.from_batches(batches), **QUERY)
        assert result.schema.field("extra").type == shown_as(column.type)
        assert str(result["extra"].to_pylist()) == str([column.to_pylist()[i] for i in (1, 3, 4)])
        assert result["extra"].validate(full=True) is None


@pytest.mark.parametrize("kind", KEPT)
def test_groups_by_columns_of_any_flat_type(kind: str) -> None:
    """Null is a group like any other, and so is NaN. Groups are known again in later batches."""
    key = KEPT[kind]
    rows = ROWS.append_column("key", key)
    for chunk in (5, 1):
        batches = pa.Table.from_batches(rows.to_batches(max_chunksize=chunk))
        result = sb.top_k(batches, k=5, by="v", window=sb.tumbling(100, on="t"), per="key")
        assert result.schema.field("key").type == shown_as(key.type)
        found = sorted(
            zip(
                map(str, result["key"].to_pylist()), result["rank"].to_pylist(), result["name"].to_pylist(), strict=True
            )
        )
        x, y, none = (str(key[i].as_py()) for i in (0, 1, 2))
        assert found == sorted([(x, 1, "a"), (x, 2, "d"), (x, 3, "e"), (y, 1, "b"), (none, 1, "c")])


@pytest.mark.parametrize("kind", NOT_KEYS)
def test_columns_that_cannot_be_keys_are_refused_before_a_row_is_read(kind: str) -> None:
    schema = ROWS.append_column("key", NOT_KEYS[kind]).schema
    with pytest.raises(sb.InvalidQuery, match=r"per='key' is .*Possible: "):
        sb.TopK(**QUERY, per="key").open(schema)


def test_dictionaries_that_differ_from_batch_to_batch() -> None:
    encoded = [pa.array(words).dictionary_encode() for words in (["x", "y"], ["y", "z"], ["x"])]
    times, scores = ([1, 2], [3, 4], [9]), ([1.0, 2.0], [3.0, 4.0], [5.0])
    batches = [pa.record_batch({"t": t, "v": v, "key": key}) for t, v, key in zip(times, scores, encoded, strict=True)]
    for per in ((), ("key",)):
        session = sb.TopK(k=9, by="v", window=sb.tumbling(5, on="t"), per=per).open(batches[0].schema)
        results = [session.push(batch) for batch in batches] + [session.finish()]
        shown = [(row["score"], row["key"]) for result in results for row in result.to_pylist()]
        assert sorted(shown) == [(1.0, "x"), (2.0, "y"), (3.0, "y"), (4.0, "z"), (5.0, "x")]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_windows_on_integers_of_any_width(kind: pa.DataType) -> None:
    """Bounds are int64: they can lie outside a narrow type."""
    rows = pa.table({"t": pa.array([1, 3, 100], kind), "v": [1.0, 2.0, 3.0]})
    result = sb.top_k(rows, k=1, by="v", window=sb.sliding(100, every=50, on="t"))
    assert result.schema.field("window_end").type == pa.int64()
    assert result.schema.field("t").type == kind
    assert result["window_start"].to_pylist() == [-50, 0, 50, 100]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_windows_on_timestamps_of_any_unit_and_zone(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    start = dt.datetime(2024, 5, 1, 12, 0, 10)
    rows = pa.table(
        {
            "ts": pa.array([start, start + dt.timedelta(seconds=30), start + dt.timedelta(seconds=65)])
            .cast(pa.timestamp(unit))
            .cast(kind),
            "v": [1.0, 2.0, 3.0],
        }
    )
    result = sb.top_k(rows, k=1, by="v", window=sb.tumbling("1 minute", on="ts"))
    assert result.schema.field("window_start").type == result.schema.field("window_end").type == kind
    assert result["window_start"].cast(pa.int64()).to_pylist() == [
        int(moment.replace(tzinfo=dt.UTC).timestamp()) * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        for moment in (dt.datetime(2024, 5, 1, 12, 0), dt.datetime(2024, 5, 1, 12, 1))
    ]


@pytest.mark.parametrize(
    "scores",
    [
        pa.array([5, 8, 2, 4, 3], pa.int8()),
        pa.array([5, 8, 2, 4, 3], pa.uint64()),
        pa.array([5, 8, 2, 4, 3], pa.float32()),
        pa.array(np.array([5, 8, 2, 4, 3], np.float16)),
        pa.array([Decimal("5.0"), Decimal("8.0"), Decimal("2.0"), Decimal("4.0"), Decimal("3.0")]),
        pa.array(
            [Decimal("5.0"), Decimal("8.0"), Decimal("2.0"), Decimal("4.0"), Decimal("3.0")], pa.decimal256(50, 5)
        ),
    ],
    ids=lambda scores: str(scores.type),
)
def test_scores_of_any_numeric_type(scores: pa.Array) -> None:
    result = sb.top_k(ROWS.set_column(1, "v", scores), **QUERY)
    assert result.schema.field("score").type == scores.type
    assert shows(result.set_column(3, "score", result["score"].cast(pa.float64())), EXPECTED)


def test_null_scores_in_an_integer_column() -> None:
    result = sb.top_k(ROWS.set_column(1, "v", pa.array([5, None, 2, None, None])), **QUERY)
    assert result["name"].to_pylist() == ["a", "c"]


def test_pandas_with_its_own_types() -> None:
    frame = pd.DataFrame(
        {
            "ts": pd.date_range("2024-01-01", periods=4, freq="40s", tz="UTC"),
            "price": [1.0, 3.0, 2.0, float("nan")],
            "side": pd.Categorical(["B", "S", "B", "B"]),
        }
    )
    result = sb.top_k(frame, k=1, by="price", window=sb.tumbling("1 minute", on="ts"), per="side")
    assert sorted(zip(result["side"].to_pylist(), result["score"].to_pylist(), strict=True)) == [
        ("B", 1.0),
        ("B", 2.0),
        ("S", 3.0),
    ]


def test_polars_with_its_own_types() -> None:
    frame = pl.DataFrame(
        {
            "ts": [dt.datetime(2024, 1, 1, 0, 0, 5), dt.datetime(2024, 1, 1, 0, 0, 10), dt.datetime(2024, 1, 1, 0, 1)],
            "price": [1, 3, 2],
            "symbol": ["A", "B", "A"],
            "side": pl.Series(["B", "S", "B"], dtype=pl.Categorical),
        }
    )
    result = sb.top_k(frame, k=1, by="price * 2", window=sb.tumbling("1 minute", on="ts"), per=["symbol", "side"])
    assert pl.from_arrow(result).sort("window_end", "symbol").select("symbol", "side", "score", "price").rows() == [
        ("A", "B", 2.0, 1),
        ("B", "S", 6.0, 3),
        ("A", "B", 4.0, 2),
    ]


@pytest.mark.parametrize(
    "column",
    [
        [["a"], ["b", None], []],
        [{"s": "a"}, {"s": None}, None],
        [[{"s": "a"}], None, []],
        [{"deep": ["a"]}, {"deep": None}, {"deep": []}],
    ],
    ids=["list", "struct", "list of structs", "struct of lists"],
)
def test_polars_with_nested_text(column: list[Any]) -> None:
    frame = pl.DataFrame({"t": [1, 3, 5], "v": [1.0, 2.0, 3.0], "nested": column})
    result = sb.top_k(frame, k=1, by="v", window=sb.tumbling(2, on="t"))
    assert pl.from_arrow(result)["nested"].to_list() == frame["nested"].to_list()


def test_data_that_arrow_cannot_read() -> None:
    frame = pl.DataFrame({"t": [1], "v": [1.0], "wide": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(sb.InvalidInput, match="DataFrame"):
        sb.top_k(frame, k=1, by="v", window=sb.tumbling(2, on="t"))
