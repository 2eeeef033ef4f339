"""Example tests: the families of data that go in, the family that comes out, and the types of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
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


class HasRows:
    """Something else with the Arrow stream interface."""

    def __init__(self, rows: pa.Table) -> None:
        self.__arrow_c_stream__ = rows.__arrow_c_stream__


# Of each kind that rows come in: how they get there, and the kind that comes out.
WHOLE: dict[str, tuple[Callable[[pa.Table], Any], type]] = {
    "Table": (lambda rows: rows, pa.Table),
    "chunked Table": (lambda rows: pa.concat_tables([rows.slice(0, 1), rows.slice(1, 0), rows.slice(1)]), pa.Table),
    "sliced Table": (
        lambda rows: pa.concat_tables([rows.slice(3), rows]).combine_chunks().slice(max(len(rows) - 3, 0), len(rows)),
        pa.Table,
    ),
    "RecordBatch": (lambda rows: pa.record_batch(rows.combine_chunks().to_pydict(), rows.schema), pa.Table),
    "sliced RecordBatch": (
        lambda rows: pa.record_batch(pa.concat_tables([rows, rows]).to_pydict(), rows.schema).slice(len(rows)),
        pa.Table,
    ),
    "pandas": (lambda rows: rows.to_pandas(), pd.DataFrame),
    "pandas with an index": (lambda rows: rows.to_pandas().set_index(pd.Index(range(5, 5 + len(rows)))), pd.DataFrame),
    "polars": (lambda rows: pl.DataFrame(rows), pl.DataFrame),
    "polars, sliced": (lambda rows: pl.concat([pl.DataFrame(rows), pl.DataFrame(rows)])[len(rows) :], pl.DataFrame),
    "LazyFrame": (lambda rows: pl.DataFrame(rows).lazy(), pl.LazyFrame),
    "Dataset": (lambda rows: ds.dataset(rows), pa.Table),
    "list of batches": (lambda rows: [*in_batches(rows), *rows.slice(0, 0).to_batches(), rows.slice(0, 0)], pa.Table),
    "tuple of tables": (lambda rows: (rows.slice(0, 2), rows.slice(2)), pa.Table),
    "the Arrow stream interface": (HasRows, pa.Table),
}
STREAMS: dict[str, Callable[[pa.Table], Any]] = {
    "RecordBatchReader": lambda rows: pa.RecordBatchReader.from_batches(rows.schema, in_batches(rows)),
    "generator of batches": in_batches,
    "iterator over a list": lambda rows: iter(rows.to_batches(max_chunksize=1)),
    "map": lambda rows: map(pa.record_batch, in_batches(rows)),
    "iterator of tables": lambda rows: iter([rows.slice(0, 3), rows.slice(3)]),
    "Scanner": lambda rows: ds.dataset(rows).scanner(),
}


def as_table(answer: Any) -> pa.Table:
    """An answer of any kind, to look at."""
    if isinstance(answer, pa.RecordBatchReader):
        return answer.read_all()
    answer = answer.collect() if isinstance(answer, pl.LazyFrame) else answer
    return answer if isinstance(answer, pa.Table) else pa.table(answer)


@pytest.mark.parametrize("kind", WHOLE)
def test_an_answer_is_of_the_kind_of_the_rows(kind: str) -> None:
    make, gives = WHOLE[kind]
    result = sb.top_k(make(ROWS), **QUERY)
    assert isinstance(result, gives)
    assert shows(as_table(result), EXPECTED)


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_gives_a_reader(kind: str) -> None:
    result = sb.top_k(STREAMS[kind](ROWS), **QUERY)
    assert isinstance(result, pa.RecordBatchReader)
    assert shows(result.read_all(), EXPECTED)


@pytest.mark.parametrize("kind", [*WHOLE, *STREAMS])
def test_push_takes_what_the_functions_take(kind: str) -> None:
    make = WHOLE[kind][0] if kind in WHOLE else STREAMS[kind]
    session = sb.TopK(**QUERY).open(ROWS.schema)
    answers = [session.push(make(ROWS.slice(0, 2))), session.push(make(ROWS.slice(2))), session.finish()]
    assert all(isinstance(answer, pa.Table) for answer in answers)
    assert shows(pa.concat_tables(answers), EXPECTED)


def test_push_refuses_what_is_no_table() -> None:
    session = sb.TopK(**QUERY).open(ROWS.schema)
    with pytest.raises(sb.InvalidInput, match=r"Cannot read rows from int. Possible: a pyarrow Table, "):
        session.push(5)
    with pytest.raises(sb.InvalidInput, match=r"v: int64 before, missing now\. Skyband rejected the batch"):
        session.push(ROWS.to_pandas()[["t", "name"]])
    assert session.stats().rows_in == 0


def test_a_frame_is_pushed_into_the_types_of_the_first() -> None:
    """Of a part of a frame, pandas may know less than of the whole: here that an empty text is none, and polars has
    texts in a form of its own."""
    session = sb.TopK(**QUERY).open(pa.schema({"t": pa.int64(), "v": pa.float64(), "name": pa.string()}))
    session.push(pd.DataFrame({"t": [1], "v": [5], "name": [None]}))
    session.push(pl.DataFrame({"t": [3], "v": [8.0], "name": ["b"]}, schema_overrides={"t": pl.Int8, "v": pl.Float32}))
    session.push(pa.table({"t": [4], "v": [1.0], "name": pa.array(["c"]).dictionary_encode()}))
    assert session.finish().select(["score", "t", "name"]).to_pylist() == [{"score": 8.0, "t": 3, "name": "b"}]
    with pytest.raises(sb.InvalidInput, match=r"name: string before, double now"):
        session.push(pa.table({"t": [4], "v": [1.0], "name": [1.5]}))
    with pytest.raises(sb.InvalidInput, match=r"t: int64 before, uint64 now"):
        session.push(pa.table({"t": pa.array([2**63], pa.uint64()), "v": [1.0], "name": ["c"]}))


@pytest.mark.parametrize("empty", [[], (), iter(())], ids=["list", "tuple", "iterator"])
def test_no_batch_at_all(empty: Any) -> None:
    with pytest.raises(sb.InvalidInput, match="gave no batch, so its columns are unknown"):
        sb.top_k(empty, **QUERY)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([1, 2], "must give pyarrow record batches, got int"),
        (iter([1, 2]), "must give pyarrow record batches, got int"),
        ([ROWS, ROWS.drop_columns(["v"])], "v: int64 before, missing now"),
        (pd.DataFrame({"t": [1, 2], "v": [1.0, "x"]}), "Cannot read this DataFrame as Arrow data"),
        (pl.DataFrame(ROWS).lazy().select("tt"), "polars cannot collect this LazyFrame"),
        ({"t": [1]}, "Cannot read rows from dict"),
    ],
)
def test_what_cannot_be_read(rows: Any, said: str) -> None:
    with pytest.raises(sb.InvalidInput, match=said):
        sb.top_k(rows, **QUERY)


def test_an_index_of_pandas_is_no_column() -> None:
    """Not one with a name either: reset_index() makes a column of it."""
    for index in (pd.Index([7, 8, 9, 10, 11]), pd.Index(list("vwxyz"), name="index")):
        frame = ROWS.to_pandas().set_index(index)
        answer = sb.top_k(frame, **QUERY)
        assert list(answer.columns) == ["window_start", "window_end", "rank", "score", "t", "name"]
        assert list(answer.index) == [0, 1, 2]
    queries = pd.DataFrame({"id": [1], "x": [0.0]}, index=[5])
    answer = sb.top_k(ROWS, k=1, by="abs(v - q.x)", window=sb.tumbling(5, on="t"), for_each=queries)
    assert "__index_level_0__" not in answer.column_names


def test_pandas_gets_its_own_types_back() -> None:
    frame = ROWS.to_pandas().assign(
        whole=pd.array([1, None, 3, 4, 5], "Int64"),
        arrow=pd.array([1, None, 3, 4, 5], "int32[pyarrow]"),
        side=pd.Categorical(list("abaab")),
        flag=pd.array([True, None, True, True, True], "boolean"),
    )
    answer = sb.top_k(frame, **QUERY)
    for name in ("whole", "arrow", "side", "flag"):
        assert answer[name].dtype == frame[name].dtype, name
    assert answer["whole"].isna().tolist() == [True, False, False]


def test_a_mapping_of_one_kind_gives_that_kind_and_of_several_a_table() -> None:
    window, kinds = sb.tumbling(5, on="t"), {"pandas": ROWS.to_pandas(), "polars": pl.DataFrame(ROWS)}
    asked: dict[str, Any] = {"k": 1, "id": "name", "value": "v", "window": window, "bounds": (0, 9)}
    for kind, frame in kinds.items():
        for answer in (
            sb.top_k_across({"x": frame, "y": frame}, **asked),
            sb.join_aggregate(frame, window=window, aggregates={"n": "COUNT(*)"}),
            sb.sql("SELECT * FROM rows [WINDOW 5 EVERY 5 ON t] ORDER BY v DESC LIMIT 1", rows=frame),
            *sb.run_all({"a": "SELECT * FROM rows [WINDOW 5 EVERY 5 ON t] ORDER BY v LIMIT 1"}, rows=frame).values(),
        ):
            assert type(answer) is type(frame), kind
    assert isinstance(sb.top_k_across({"x": kinds["pandas"], "y": kinds["polars"]}, **asked), pa.Table)
    mixed = {"x": kinds["pandas"], "y": pa.RecordBatchReader.from_batches(ROWS.schema, in_batches(ROWS))}
    assert isinstance(sb.top_k_across(mixed, **asked), pa.RecordBatchReader)


def test_the_answer_says_what_became_of_the_rows() -> None:
    rows = ROWS.set_column(0, "t", pa.array([1, None, 6, 7, 11])).set_column(1, "v", pa.array([1.0, 2.0, None, 4, 5]))
    counts = {"rows_in": 5, "rows_used": 4, "rows_late": 0, "rows_null_time": 1, "rows_jumped": 0, "rows_unranked": 1}
    assert json.loads(sb.top_k(rows, **QUERY).schema.metadata[b"skyband"]) == counts
    frame = rows.to_pandas().astype({"t": "Int64"})
    assert sb.top_k(frame, **QUERY).attrs["skyband"] == counts
    statement = "SELECT name FROM rows [WINDOW 5 EVERY 5 ON t] ORDER BY v DESC LIMIT 1"
    assert json.loads(sb.sql(statement, rows=rows).schema.metadata[b"skyband"]) == counts
    several = sb.run_all({"a": statement, "b": statement.replace("LIMIT 1", "LIMIT 2")}, rows=rows)
    assert [json.loads(each.schema.metadata[b"skyband"]) for each in several.values()] == [counts, counts]


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
    assert words(as_table(sb.top_k(empty, **QUERY))) == [["window_start", "window_end", "rank", "score", "t", "name"]]


def test_a_reader_without_batches() -> None:
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, iter([]))
    assert sb.top_k(reader, **QUERY).read_all().num_rows == 0


@pytest.mark.parametrize("lazy", [False, True])
def test_python_objects_in_a_polars_frame_are_refused(lazy: bool) -> None:
    """They came out as the bytes of their addresses."""
    frame = pl.DataFrame({"s": [1], "o": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(sb.InvalidInput, match="Column 'o' contains Python objects"):
        sb.top_k(frame.lazy() if lazy else frame, k=1, by="s", window=sb.tumbling(1))
