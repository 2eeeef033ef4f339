"""Example tests: which columns come out, in which order, with which names and types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tables import table

import skyband as sb

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("ms", "UTC"),
        "symbol": pa.string(),
        "price": pa.float32(),
        "volume": pa.int64(),
        "side": pa.string(),
    }
)
BY_TIME = sb.sliding("10 minutes", every="1 minute", on="ts")
AT, COUNT = pa.timestamp("ms", "UTC"), pa.int64()


def columns(query: sb.TopK, schema: pa.Schema = SCHEMA) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in query.open(schema).output_schema]


def test_windows() -> None:
    assert columns(sb.TopK(k=3, by="price * volume", window=BY_TIME, per=["side", "symbol"])) == [
        ("window_start", "timestamp[ms, tz=UTC]"),
        ("window_end", "timestamp[ms, tz=UTC]"),
        ("side", "string"),
        ("symbol", "string"),
        ("rank", "int32"),
        ("score", "double"),
        ("ts", "timestamp[ms, tz=UTC]"),
        ("price", "float"),
        ("volume", "int64"),
    ]


def test_a_plain_column_as_score_is_not_repeated() -> None:
    names = [name for name, _ in columns(sb.TopK(k=3, by="price", window=BY_TIME))]
    assert names == ["window_start", "window_end", "rank", "score", "ts", "symbol", "volume", "side"]


def test_an_expression_or_a_function_repeats_what_it_reads() -> None:
    for by in ("price + 0", "`price` * 1", lambda price: price):
        assert "price" in dict(columns(sb.TopK(k=3, by=by, window=BY_TIME)))


def test_changes_and_entries() -> None:
    window = sb.sliding(100)
    assert columns(sb.TopK(k=3, by="price", window=window, per="symbol"))[:5] == [
        ("at", "int64"),
        ("change", "string"),
        ("symbol", "string"),
        ("rank", "int32"),
        ("score", "float"),
    ]
    assert columns(sb.TopK(k=3, by="price", window=window, emit="entries"))[:3] == [
        ("at", "int64"),
        ("rank", "int32"),
        ("score", "float"),
    ]
    assert columns(sb.TopK(k=3, by="price", window=BY_TIME, emit="changes"))[0] == ("at", "timestamp[ms, tz=UTC]")


@pytest.mark.parametrize(
    ("emit", "given", "shown"),
    [
        (
            "windows",
            ["rank", "score", "window_start", "window_end"],
            ["rank_", "score_", "window_start_", "window_end_"],
        ),
        ("windows", ["at", "change"], ["at", "change"]),
        ("changes", ["at", "change", "window_start"], ["at_", "change_", "window_start"]),
        ("entries", ["at", "change"], ["at_", "change"]),
        ("windows", ["rank_", "rank"], ["rank_", "rank__"]),
        ("windows", ["rank", "rank_"], ["rank_", "rank__"]),
    ],
)
def test_a_name_that_is_taken_gets_an_underscore(emit: sb.queries.Emit, given: list[str], shown: list[str]) -> None:
    schema = pa.schema([("t", pa.int64()), ("v", pa.float64()), *((name, pa.string()) for name in given)])
    query = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), emit=emit)
    assert query.open(schema).output_schema.names[-len(shown) :] == shown
    rows = pa.table([[1], [2.0], *([name] for name in given)], schema=schema)
    result = sb.top_k(rows, k=1, by="v", window=sb.tumbling(10, on="t"), emit=emit)
    assert [result[name][0].as_py() for name in shown] == given


def test_a_column_named_rank_can_be_the_key_the_time_or_the_score() -> None:
    rows = table("rank score at\n1 5 7")
    result = sb.top_k(rows, k=1, by="score", window=sb.tumbling(10, on="rank"), per="at")
    assert result.to_pylist() == [{"window_start": 0, "window_end": 10, "at": 7, "rank": 1, "score": 5.0, "rank_": 1}]


def test_results_have_the_promised_schema_even_when_empty() -> None:
    rows = table("t v g\n1 5 a\n12 7 b")
    for emit in ("windows", "changes", "entries"):
        session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), per="g", emit=emit).open(rows.schema)
        for result in (session.push(rows.slice(0, 0)), session.push(rows), session.advance(5), session.finish()):
            assert result.schema.equals(session.output_schema)


def test_metadata_of_the_input_does_not_disturb() -> None:
    rows = table("t v\n1 5")
    described = rows.replace_schema_metadata({"about": "me"})
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t")).open(described.schema)
    session.push(rows)
    session.push(described)
    assert session.stats().rows_in == 2
