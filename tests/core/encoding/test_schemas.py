"""Example and oracle tests: columns of every type, as data, key, time and score, and tables whose types differ."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conformance.suite import examples
from core.encoding.test_inputs import EXPECTED, QUERY, ROWS, as_table
from hypothesis import given
from hypothesis import strategies as st
from tables import shows

import skyband as sb
from skyband.core.encoding.schemas import common_type, plain_batch, plain_schema

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
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 5], pa.int32()), pa.array(["x", "y", None, "x"]))
IN_OTHER_FORMS: dict[str, pa.Array] = {  # and what they come out as
    "in runs": RUNS,
    "a part of one in runs": pa.concat_arrays([RUNS.slice(1), RUNS]).slice(4),
    "UUID": pa.array([b"x" * 16, b"y" * 16, None, b"x" * 16, b"x" * 16], pa.uuid()),
    "dictionary of UUIDs": pa.DictionaryArray.from_arrays(
        [0, 1, None, 0, 0], pa.array([b"x" * 16, b"y" * 16], pa.uuid())
    ),
}
KEPT |= IN_OTHER_FORMS
NOT_KEYS: dict[str, pa.Array] = {
    "null": pa.nulls(5),
    "list": pa.array([[1], [], None, [1, 2], [3]]),
    "struct": pa.array([{"a": 1}, {"a": None}, None, {"a": 2}, {"a": 3}]),
    "map": pa.array([[("a", 1)], [], None, [("b", 2)], []], pa.map_(pa.string(), pa.int64())),
}


def shown_as(kind: pa.DataType) -> pa.DataType:
    """Arrow cannot take rows of views and runs yet, so they come out as what they stand for."""
    if pa.types.is_dictionary(kind) and kind.value_type == pa.uuid():
        return pa.uuid()
    return pa.string() if kind == pa.string_view() or pa.types.is_run_end_encoded(kind) else kind


@pytest.mark.parametrize("kind", [*KEPT, *NOT_KEYS])
def test_columns_of_any_type_come_out_as_they_went_in(kind: str) -> None:
    column = {**KEPT, **NOT_KEYS}[kind]
    rows = ROWS.append_column("extra", column)
    for batches in (rows.to_batches(), rows.to_batches(max_chunksize=1)):
        result = sb.top_k(pa.Table.from_batches(batches), **QUERY)
        assert result.schema.field("extra").type == shown_as(column.type)
        assert str(result["extra"].to_pylist()) == str([plain(column).to_pylist()[i] for i in (1, 3, 4)])
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
        x, y, none = (str(plain(key)[i].as_py()) for i in (0, 1, 2))
        assert found == sorted([(x, 1, "a"), (x, 2, "d"), (x, 3, "e"), (y, 1, "b"), (none, 1, "c")])


@pytest.mark.parametrize("kind", NOT_KEYS)
def test_columns_that_cannot_be_keys_are_refused_before_a_row_is_read(kind: str) -> None:
    schema = ROWS.append_column("key", NOT_KEYS[kind]).schema
    with pytest.raises(sb.InvalidQuery, match=r"per='key' is .*Possible: "):
        sb.TopK(**QUERY, per="key").open(schema)


@pytest.mark.parametrize("kind", KEPT)
def test_objects_and_groups_of_joins_by_columns_of_any_flat_type(kind: str) -> None:
    rows = ROWS.append_column("key", KEPT[kind])
    window = sb.tumbling(100, on="t")
    across = sb.top_k_across(rows, k=9, id="key", value="v", window=window, bounds=(0, 99), repeat="sum")
    groups = sb.join_aggregate(rows, window=window, group_by="key", aggregates={"s": "SUM(v)"})
    x, y, none = (str(plain(KEPT[kind])[i].as_py()) for i in (0, 1, 2))
    for answer, column in ((across, "score"), (groups, "s")):
        assert answer.schema.field("key").type == shown_as(KEPT[kind].type)
        found = zip(map(str, answer["key"].to_pylist()), answer[column].to_pylist(), strict=True)
        assert sorted(found) == sorted([(x, 12), (y, 8), (none, 2)])


def test_times_and_scores_in_runs() -> None:
    def in_runs(column: pa.ChunkedArray) -> pa.Array:
        return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 6), pa.int16()), column.combine_chunks())

    rows = ROWS.set_column(0, "t", in_runs(ROWS["t"])).set_column(1, "v", in_runs(ROWS["v"]))
    assert shows(sb.top_k(rows, **QUERY), EXPECTED)
    assert shows(sb.top_k(rows.to_reader(), **QUERY).read_all(), EXPECTED)
    session = sb.TopK(**QUERY).open(rows.schema)
    assert shows(pa.concat_tables([session.push(rows), session.finish()]), EXPECTED)
    statement = "SELECT * FROM r [WINDOW 5 EVERY 5 ON t] WHERE v > 3 ORDER BY v DESC LIMIT 1"
    assert sb.sql(statement, r=rows)["name"].to_pylist() == ["b", "d"]


UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1, 0], pa.int8()), [pa.array(range(5)), pa.array(list("abcde"))])
UUID = IN_OTHER_FORMS["UUID"]


@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        (UNION, {}, "Column 'extra' is sparse_union.*Leave the column out"),
        (pa.StructArray.from_arrays([RUNS], ["r"]), {}, "run-end encoding inside another type.*Decode it first"),
        (UUID, {"by": "extra"}, "A score must be a number, but column 'extra' is extension<arrow.uuid>"),
        (UUID, {"by": "extra * 2"}, "extra"),
        (UUID, {"window": sb.tumbling(5, on="extra")}, "needs a timestamp or integer column, but 'extra' is extension"),
        (NOT_KEYS["list"], {"window": sb.tumbling(5, on="t", order="extra")}, "order='extra' cannot put rows in order"),
        (KEPT["decimal"].cast(pa.decimal256(50, 2)), {"by": "extra * 2"}, "cast it to decimal128"),
    ],
    ids=["a union", "runs inside", "a score", "an expression", "a time", "an order", "a wide decimal"],
)
def test_columns_that_cannot_be_used_are_refused_by_name(column: Any, options: dict[str, Any], said: str) -> None:
    for rows in (ROWS.append_column("extra", column), ROWS.append_column("extra", column).to_reader()):
        with pytest.raises(sb.SkybandError, match=said):
            sb.top_k(rows, **{**QUERY, **options})


def test_a_struct_as_id_is_refused_as_id() -> None:
    rows = ROWS.append_column("key", NOT_KEYS["struct"])
    with pytest.raises(sb.InvalidQuery, match=r"^id='key' is struct<a: int64>, which cannot be a key"):
        sb.top_k_across(rows, k=1, id="key", value="v", window=sb.tumbling(5, on="t"), bounds=(0, 9))
    with pytest.raises(sb.InvalidInput, match=r"stream='key' must name a stream in each row"):
        sb.top_k_across(rows, k=1, id="name", value="v", window=sb.tumbling(5, on="t"), stream="key", streams=["x"])


@pytest.mark.parametrize("kind", ["string", "dictionary", "in runs", "string_view", "int8", "date"])
def test_queries_that_compare_columns_of_any_flat_type(kind: str) -> None:
    """The same key in rows and queries: each query sees the rows that have its own."""
    queries = pa.table({"id": [0, 1], "key": plain(KEPT[kind]).take(pa.array([0, 1]))})
    rows = ROWS.append_column("key", KEPT[kind])
    asked: dict[str, Any] = {"k": 9, "by": "v", "window": sb.tumbling(100, on="t"), "where": "key = q.key"}
    answer = sb.top_k(rows, **asked, for_each=queries)
    assert list(zip(answer["id"].to_pylist(), answer["name"].to_pylist(), strict=True)) == [
        (0, "a"),
        (0, "d"),
        (0, "e"),
        (1, "b"),
    ]


def plain(column: pa.Array) -> pa.Array:
    batch = pa.record_batch({"c": column})
    return plain_batch(batch, plain_schema(batch.schema)).column(0)


@pytest.mark.parametrize("by", [np.hypot, max])
def test_a_function_that_does_not_name_its_parameters(by: Any) -> None:
    with pytest.raises(sb.InvalidExpression, match=r"does not name its parameters after columns.*lambda price, volume"):
        sb.top_k(ROWS, k=1, by=by, window=sb.tumbling(5, on="t"))
    with pytest.raises(sb.InvalidQuery):
        sb.top_k_pairs(ROWS, k=1, by=by, window=sb.tumbling(5, on="t"))


# -- tables of one mapping --------------------------------------------------------------------------------------------

SAME: dict[str, tuple[list[Any], pa.DataType | None]] = {  # types that mean the same, and what they have in common
    "texts": ([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], None),
    "floats": ([pa.float32(), pa.float64(), pa.float16()], pa.float64()),
    "whole numbers": ([pa.int8(), pa.uint8(), pa.int32(), pa.uint32()], pa.int64()),
    "few bits and floats": ([pa.int16(), pa.float32()], pa.float32()),
    "more bits and floats": ([pa.int32(), pa.float32()], pa.float64()),
    "nothing and something": ([pa.null(), pa.int8()], pa.int8()),
    "instants": ([pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ms")], pa.timestamp("us")),
    "too wide": ([pa.int64(), pa.float64()], None),
    "too wide without a sign": ([pa.uint64(), pa.int8()], None),
    "time zones": ([pa.timestamp("s", "UTC"), pa.timestamp("s")], None),
    "text and numbers": ([pa.string(), pa.int8()], None),
}


@pytest.mark.parametrize("name", SAME)
def test_the_type_that_has_a_place_for_all_values(name: str) -> None:
    types, expected = SAME[name]
    for order in itertools.permutations(types):
        found = common_type(order)
        assert found == (pa.large_string() if name == "texts" else expected)


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
NUMBERS = [pa.int8(), pa.uint16(), pa.int32(), pa.float32(), pa.float64()]
INSTANTS = [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")]


@examples(60)
@given(st.data())
def test_tables_of_a_mapping_may_differ_in_form(data: st.DataObject) -> None:
    """Across streams and in joins: the answer is that of the same values in one type."""

    def drawn(kinds: list[Any], values: list[Any]) -> pa.Array:
        kind = data.draw(st.sampled_from(kinds))
        if pa.types.is_timestamp(kind):
            return pa.array(values, pa.timestamp("s")).cast(kind)
        return pa.array(values).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(values).dictionary_encode()

    plain, mixed, streams = {}, {}, set[str]()
    for name in ("a", "b"):
        ids, values = ["x", "y", None, "x"], [1, 5, 2, 3] if name == "a" else [4, 1, 1, 2]
        is_stream = data.draw(st.booleans())
        times = [0, 3, 6, 9] if is_stream else [3, 0, 9, 6]
        instants = pa.array(times, pa.timestamp("s")).cast(INSTANTS[-1])
        plain[name] = pa.table({"id": ids, "v": pa.array(values, pa.float64()), "t": instants})
        mixed[name] = pa.table({"id": drawn(TEXTS, ids), "v": drawn(NUMBERS, values), "t": drawn(INSTANTS, times)})
        streams |= {name} if is_stream else set()
    window = sb.sliding("6 seconds", every="2 seconds", on="t")
    asked: dict[str, Any] = {"k": 3, "id": "id", "value": "v", "window": window, "bounds": (0, 9), "repeat": "max"}

    def lines(answer: Any) -> list[tuple[Any, ...]]:
        shown = as_table(answer).to_pylist()
        return [tuple(pd.Timestamp(v) if isinstance(v, dt.datetime) else v for v in row.values()) for row in shown]

    def rows() -> dict[str, Any]:
        return {name: table.to_reader() if name in streams else table for name, table in mixed.items()}

    assert lines(sb.top_k_across(rows(), **asked)) == lines(sb.top_k_across(plain, **asked))
    join: dict[str, Any] = {"inputs": {"a": window, "b": window}, "on": "a.id = b.id", "group_by": "a.id"}
    join |= {"aggregates": {"n": "COUNT(*)", "m": "MAX(b.v)"}}
    answer = lines(sb.join_aggregate(rows(), **join))
    assert [tuple(map(float_of, row)) for row in answer] == [
        tuple(map(float_of, row)) for row in lines(sb.join_aggregate(plain, **join))
    ]


def float_of(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def test_types_of_a_mapping_that_have_nothing_in_common() -> None:
    rows = {
        "a": pa.table({"id": [1], "v": [1.0], "t": [1]}),
        "b": pa.table({"id": [1.5], "v": [1.0], "t": [1]}),
    }
    with pytest.raises(
        sb.InvalidInput, match=r"Column 'id' has no type that can hold .*: it is int64 in 'a', double in 'b'"
    ):
        sb.top_k_across(rows, k=1, id="id", value="v", window=sb.tumbling(5, on="t"), bounds=(0, 9))
    late = pa.table({"id": [1], "v": [1.0], "t": pa.array([2**55], pa.timestamp("s"))})
    soon = pa.table({"id": [1], "v": [1.0], "t": pa.array([1], pa.timestamp("ns"))})
    window = sb.tumbling("5 seconds", on="t")
    with pytest.raises(sb.InvalidInput, match=r"Column 't' is timestamp\[s\], and some of its values do not fit"):
        sb.top_k_across({"a": late, "b": soon}, k=1, id="id", value="v", window=window, bounds=(0, 9))


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    for number in (np.int64, np.uint8, np.int32):
        window = sb.sliding(number(4), every=number(2), on="t")
        asked: dict[str, Any] = {"k": number(1), "by": "v", "window": window, "lateness": number(1)}
        query = sb.TopK(**asked, max_jump=number(9))
        assert query == sb.TopK(k=1, by="v", window=sb.sliding(4, every=2, on="t"), lateness=1, max_jump=9)
        assert [type(each) for each in (query.k, query.window.size, query.window.every, query.lateness)] == [int] * 4
        session = query.open(ROWS.schema)
        session.push(ROWS)
        assert len(session.top(number(1))) == 1
        session.advance(number(20))
        assert sb.TopKPairs(k=number(2), by="a.v + b.v", window=window).k == 2
        across = sb.TopKAcross(k=number(2), id="id", value="v", window=window, repeat="max", max_repeats=number(3))
        assert type(across.max_repeats) is int
        groups = sb.join_aggregate(
            ROWS, window=window, aggregates={"n": "COUNT(*)"}, group_by="name", order_by="n", k=number(1)
        )
        assert groups.num_rows == 7
    for wrong in (True, np.bool_(True), 1.0, np.float64(2), "5"):
        with pytest.raises(sb.InvalidQuery, match="k must be a whole number"):
            sb.TopK(k=wrong, by="v", window=sb.tumbling(5, on="t"))  # type: ignore[arg-type]


def test_dictionaries_that_differ_from_batch_to_batch() -> None:
    encoded = [pa.array(words).dictionary_encode() for words in (["x", "y"], ["y", "z"], ["x"])]
    times, scores = ([1, 2], [3, 4], [9]), ([1.0, 2.0], [3.0, 4.0], [5.0])
    batches = [pa.record_batch({"t": t, "v": v, "key": key}) for t, v, key in zip(times, scores, encoded, strict=True)]
    for per in ((), ("key",)):
        session = sb.TopK(k=9, by="v", window=sb.tumbling(5, on="t"), per=per).open(batches[0].schema)
        results = [session.push(batch) for batch in batches] + [session.finish()]
        shown = [(row["score"], row["key"]) for result in results for row in result.to_pylist()]
        assert sorted(shown) == [(1.0, "x"), (2.0, "y"), (3.0, "y"), (4.0, "z"), (5.0, "x")]


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()])
@pytest.mark.parametrize("per", [(), ("g",)])
def test_dictionaries_that_have_more_values_together_than_their_indices_can_tell_apart(
    index: pa.DataType, per: tuple[str, ...]
) -> None:
    """As pandas' categories: each batch has few of them, and other ones. They come out with indices of 32 bits."""
    kind = pa.dictionary(index, pa.string())
    batches = [
        pa.table({"g": pa.array([f"x{i}" for i in range(j, j + 50)]).dictionary_encode().cast(kind), "s": range(50)})
        for j in range(0, 400, 50)
    ]
    query = sb.TopK(k=1, by="s", window=sb.sliding(2, every=1), per=per)
    session = query.open(batches[0].schema)
    pushed = pa.concat_tables([session.push(batch) for batch in batches])
    whole = sb.top_k(pa.concat_tables(batches), k=1, by="s", window=sb.sliding(2, every=1), per=per)
    assert pushed["g"].to_pylist() == whole["g"].to_pylist()
    assert pushed["g"].to_pylist()[:3] == (["x0", "x1", "x2"])
    assert pushed.num_rows == 400
    assert pushed.schema.field("g").type == pa.dictionary(index if index.bit_width >= 32 else pa.int32(), pa.string())
    resumed = query.open(batches[0].schema, session.snapshot())
    assert resumed.push(batches[0])["g"].to_pylist() == session.push(batches[0])["g"].to_pylist()


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("per", [(), ("g",)])
def test_a_null_among_the_values_of_a_dictionary(index: pa.DataType, per: tuple[str, ...]) -> None:
    values = pa.array(["a", None, "b"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 1], index), values)
    rows = pa.table({"g": column, "s": [1, 2, 3, 4, 5]})
    plain = rows.set_column(0, "g", rows["g"].combine_chunks().cast(pa.string()))
    asked: dict[str, Any] = {"k": 2, "by": "s", "window": sb.sliding(3, every=1), "per": per}
    expected = sb.top_k(plain, **asked).to_pylist()
    assert sb.top_k(rows, **asked).to_pylist() == expected
    session = sb.TopK(**asked).open(rows.schema)
    pushed = [session.push(batch) for batch in rows.to_batches(max_chunksize=2)]
    assert [row for answer in pushed for row in answer.to_pylist()] == expected


def test_a_dictionary_forgets_values_that_no_row_held_has() -> None:
    schema = pa.schema({"g": pa.dictionary(pa.int32(), pa.string()), "s": pa.int64()})
    session = sb.TopK(k=1, by="s", window=sb.sliding(100, every=10)).open(schema)
    for j in range(0, 200_000, 1_000):
        names = pa.array([f"row {i}" for i in range(j, j + 1_000)]).dictionary_encode()
        session.push(pa.table({"g": names, "s": range(1_000)}, schema=schema))
    assert len(session.snapshot()) < 1_000_000, "a fraction of the 2 MB that 200,000 names take"


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
    result = as_table(sb.top_k(frame, k=1, by="price", window=sb.tumbling("1 minute", on="ts"), per="side"))
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
    assert result.sort("window_end", "symbol").select("symbol", "side", "score", "price").rows() == [
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
    assert result["nested"].to_list() == frame["nested"].to_list()


def test_data_that_arrow_cannot_read() -> None:
    frame = pl.DataFrame({"t": [1], "v": [1.0], "wide": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(sb.InvalidInput, match="DataFrame"):
        sb.top_k(frame, k=1, by="v", window=sb.tumbling(2, on="t"))
