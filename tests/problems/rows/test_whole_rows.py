"""Oracle tests through the public API: whole rows, nulls in every column, keys of two columns, any cut into batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st
from numbers_at_the_edge import EDGES_OF_64_BITS, EDGES_WITHOUT_SIGN
from oracle import Question, Row, answers, by_group, late

import skyband as sb

SECOND = dt.timedelta(seconds=1)
SCHEMA = pa.schema(
    {"ts": pa.timestamp("ms"), "price": pa.float64(), "g": pa.string(), "h": pa.int8(), "id": pa.int64()}
)
PUSHED: list[Callable[[pa.RecordBatch], Any]] = [  # what a batch may be pushed as
    lambda batch: batch,
    lambda batch: pa.Table.from_batches([batch.slice(0, 1), batch.slice(1)]),
    lambda batch: [batch.slice(0, 1), batch.slice(1)],
    lambda batch: iter([batch]),
    lambda batch: pa.Table.from_batches([batch]).to_reader(),
    lambda batch: batch.to_pandas(types_mapper=pd.ArrowDtype),
    pl.DataFrame,
    lambda batch: pl.DataFrame(batch).lazy(),
]
KEYS = st.sampled_from([(), ("g",), ("g", "h")])

# Scores of each type: what there is of them, often the same, often next to each other, and where something ends.
PRICES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.float64(): st.one_of(st.just(float("nan")), st.integers(-3, 3).map(float)),
    pa.float32(): st.integers(-3, 3).map(lambda x: x / 4),
    pa.int8(): st.integers(-3, 3),
    pa.int64(): st.one_of(st.sampled_from(EDGES_OF_64_BITS), st.integers(-(2**63), 2**63 - 1)),
    pa.uint64(): st.one_of(st.sampled_from(EDGES_WITHOUT_SIGN), st.integers(0, 2**64 - 1)),
    pa.decimal128(18, 4): st.integers(-(10**18) + 1, 10**18 - 1).map(lambda x: Decimal(x).scaleb(-4)),
    pa.decimal128(38, 18): st.one_of(
        st.sampled_from([Decimal("12.5"), Decimal("0.125"), Decimal(2**53) / 1000, Decimal(2**53 + 1) / 1000]),
        st.integers(-(2**53), 2**53).map(lambda x: Decimal(x).scaleb(-3)),
    ),
}

rows = st.fixed_dictionaries(
    {
        "ts": st.one_of(st.none(), st.integers(-20, 60), st.integers(0, 30)),
        "g": st.sampled_from(["x", "y", "", None]),
        "h": st.sampled_from([0, 1, None]),
    }
)


@st.composite
def queries(draw: st.DrawFn) -> dict[str, Any]:
    by_count, landmark, slides = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    size = draw(st.integers(1, 20))
    every = draw(st.integers(1, size)) if slides else None
    return {
        "k": draw(st.integers(1, 5)),
        "size": None if landmark else size,
        "every": every,
        "by_count": by_count,
        "emit": draw(st.sampled_from(["windows", "changes", "entries"] if slides else ["changes", "entries"])),
        "lateness": draw(st.integers(0, 15)) if slides and not by_count else 0,
    }


def as_query(parts: dict[str, Any], **others: Any) -> sb.TopK:
    """The oracle's question as a user writes it: seconds of a timestamp, or arrivals."""

    def span(number: int | None) -> Any:
        return number if number is None or parts["by_count"] else number * SECOND

    window = {"every": span(parts["every"]), "on": None if parts["by_count"] else "ts"}
    return sb.TopK(
        k=parts["k"],
        window=sb.landmark(**window) if parts["size"] is None else sb.sliding(span(parts["size"]), **window),
        emit=parts["emit"],
        lateness=parts["lateness"] * SECOND if parts["lateness"] else None,
        **others,
    )


@st.composite
def streams(draw: st.DrawFn) -> tuple[pa.DataType, list[dict[str, Any]]]:
    """Rows whose price is of some type, and the type."""
    price_type = draw(st.sampled_from(list(PRICES)))
    price = st.one_of(st.none(), PRICES[price_type])
    return price_type, [{**row, "price": draw(price)} for row in draw(st.lists(rows, max_size=30))]


@examples(200)
@given(queries(), streams(), KEYS, st.booleans(), st.integers(1, 12), st.booleans(), st.sampled_from(PUSHED))
def test_agrees_with_the_oracle(
    parts: dict[str, Any],
    typed_stream: tuple[pa.DataType, list[dict[str, Any]]],
    per: tuple[str, ...],
    ascending: bool,
    batch: int,
    restarts: bool,
    pushed: Callable[[pa.RecordBatch], Any],
) -> None:
    price_type, stream = typed_stream
    schema = SCHEMA.set(1, pa.field("price", price_type))
    question = Question(**parts)
    events = [Row(_signed(row["price"], ascending), row["ts"], tuple(row[name] for name in per)) for row in stream]
    table = pa.Table.from_pylist(
        [{**row, "ts": None if row["ts"] is None else row["ts"] * 1_000, "id": i} for i, row in enumerate(stream)],
        pa.schema([pa.field("ts", pa.int64()), *list(schema)[1:]]),
    ).cast(schema)

    query = as_query(parts, by="price", per=per, ascending=ascending)
    session, results = query.open(schema), []
    for some in table.to_batches(max_chunksize=batch):
        results.append(session.push(pushed(some)))
        session.check()
        if restarts:
            session = query.open(schema, session.snapshot())
    results.append(session.finish())
    assert all(result.schema.field("score").type == price_type for result in results)

    expected = by_group(answers(question, events))
    found: dict[Any, list[Any]] = {}
    for shown in (row for result in results for row in result.to_pylist()):
        found.setdefault(tuple(shown[name] for name in per), []).append(shown)
    assert found.keys() == expected.keys()
    for group, lines in expected.items():
        for shown, line in zip(found[group], lines, strict=True):
            at = shown["window_end" if parts["emit"] == "windows" else "at"]
            assert (line.at if parts["by_count"] else _moment(line.at)) == at
            assert shown.get("change", "enter") == line.change
            assert (shown["rank"], shown["id"]) == (line.rank, line.position)
            assert shown["score"] == _signed(line.score, ascending) == stream[line.position]["price"]
            assert shown["g"] == stream[line.position]["g"]

    stats = session.stats()
    assert stats.rows_in == len(stream) == stats.rows_used + stats.rows_late + stats.rows_null_time
    assert stats.rows_late == len(late(question, events))
    assert stats.rows_null_time == (0 if parts["by_count"] else sum(row["ts"] is None for row in stream))


def _signed(score: Any, ascending: bool) -> Any:
    return -score if ascending and score is not None else score


def _moment(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + seconds * SECOND
