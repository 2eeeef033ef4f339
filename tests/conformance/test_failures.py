"""Example tests of failures: a session that fails in the middle of its work refuses to go on; one that refuses a batch
before it changes anything goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from keys import POOLS, column

import skyband as sb
from skyband.core import registry
from skyband.core.encoding.groups import GroupCodes

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.int64(), "v": pa.float64()})
OTHER = pa.table({"t": ["soon"]})
WINDOW = sb.sliding(20, every=10, on="t")
QUERIES = pa.table({"id": [1, 2], "w": [1.0, 2.0]})


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch([list(times), [1] * len(times), [float(t) for t in times]], schema=SCHEMA)


PROBLEMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "rows": (sb.TopK(k=2, by="v", window=WINDOW, per="g"), SCHEMA, {}),
    "pairs": (sb.TopKPairs(k=2, by="a.v + b.v", window=WINDOW, same="g"), SCHEMA, {}),
    "across": (
        sb.TopKAcross(k=2, id="g", value="v", streams=["s"], bounds=(0, 99), window=WINDOW),
        SCHEMA,
        {"stream": "s"},
    ),
    "joins": (
        sb.JoinAggregate(
            inputs={"a": sb.sliding(20, on="t"), "b": sb.sliding(20, on="t")},
            on="a.g = b.g",
            group_by=["a.g"],
            aggregates={"n": "COUNT(*)"},
            every=10,
        ),
        {"a": SCHEMA, "b": SCHEMA},
        {"input": "a"},
    ),
    "subscriptions": (sb.TopKForEach(k=2, by="v * q.w", window=WINDOW, queries=QUERIES, key="id"), SCHEMA, {}),
}

# A problem that is not in the list above is missed here.
every_problem = pytest.mark.parametrize("problem", registry.problems())

CALLS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "push": lambda session, options: session.push(rows(12), **options),
    "push nothing": lambda session, options: session.push(pa.Table.from_batches([], SCHEMA), **options),
    "advance": lambda session, options: session.advance(40),
    "finish": lambda session, options: session.finish(),
    "snapshot": lambda session, options: session.snapshot(),
    "next_close": lambda session, options: session.next_close(),
    "top": lambda session, options: session.top() if hasattr(session, "top") else session.snapshot(),
    "top_many": lambda session, options: (
        session.top_many([(1, None)]) if hasattr(session, "top_many") else session.snapshot()
    ),
    "add": lambda session, options: session.add(QUERIES.slice(0, 0)) if hasattr(session, "add") else session.snapshot(),
    "remove": lambda session, options: session.remove([1]) if hasattr(session, "remove") else session.snapshot(),
}


def opened(problem: str) -> tuple[Any, dict[str, Any]]:
    query, schema, options = PROBLEMS[problem]
    session = query.open(schema)
    session.push(rows(1, 5), **options)
    return session, options


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def refuses_to_go_on(session: Any, options: dict[str, Any], cause: BaseException) -> None:
    for call in CALLS.values():
        with pytest.raises(sb.SessionFailed, match="last snapshot") as refused:
            call(session, options)
        assert refused.value.__cause__ is cause


@pytest.mark.parametrize("error", [RuntimeError("planted"), KeyboardInterrupt(), sb.TooManyGroups("planted")], ids=repr)
@pytest.mark.parametrize("entry", ["push", "advance", "finish"])
@every_problem
def test_an_operator_that_failed_is_not_asked_again(
    problem: str, entry: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, options = opened(problem)
    state = session.snapshot()
    with monkeypatch.context() as planted:
        planted.setattr(session._operator, entry, failing(error))
        with pytest.raises(type(error)):
            CALLS[entry](session, options)
    refuses_to_go_on(session, options, error)
    query, schema, _ = PROBLEMS[problem]
    again, undisturbed = query.open(schema, state), opened(problem)[0]
    for each in (again, undisturbed):
        each.push(rows(12), **options)
    assert again.finish().equals(undisturbed.finish())


@pytest.mark.parametrize("problem", ["rows", "pairs", "across", "joins"])
def test_so_it_is_where_keys_are_half_known(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, options = opened(problem)
    error = KeyboardInterrupt()
    with monkeypatch.context() as planted:
        planted.setattr(GroupCodes, "encode", failing(error))
        with pytest.raises(KeyboardInterrupt):
            session.push(rows(12), **options)
    refuses_to_go_on(session, options, error)


@every_problem
def test_so_it_is_where_an_answer_cannot_be_shown(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, options = opened(problem)
    error = MemoryError("planted")
    with monkeypatch.context() as planted:
        planted.setattr(type(session), "_table", failing(error))
        with pytest.raises(MemoryError):
            session.finish()
    refuses_to_go_on(session, options, error)


@every_problem
def test_what_is_refused_before_anything_changes_stops_nothing(problem: str) -> None:
    (session, options), (undisturbed, _) = opened(problem), opened(problem)
    too_far = rows(2**62)
    refused: list[Callable[[], Any]] = [
        lambda: session.push(OTHER, **options),
        lambda: session.push("rows", **options),
        lambda: session.push(too_far, **options),
        lambda: session.advance("noon"),
    ]
    if hasattr(session, "top"):
        refused.append(lambda: session.top(0))
    if hasattr(session, "add"):
        refused += [lambda: session.add(QUERIES), lambda: session.remove([9]), lambda: session.add(OTHER)]
    for call in refused:
        with pytest.raises(sb.SkybandError) as error:
            call()
        assert not isinstance(error.value, sb.SessionFailed)
    for each in (session, undisturbed):
        each.push(rows(12), **options)
    assert session.finish().equals(undisturbed.finish())
    assert session.stats() == undisturbed.stats()


def test_queries_that_fail_to_come_in_stop_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session, options = opened("subscriptions")
    error = RuntimeError("planted")
    with monkeypatch.context() as planted:
        planted.setattr(session._operator, "add", failing(error))
        with pytest.raises(RuntimeError):
            session.add(pa.table({"id": [3], "w": [3.0]}))
    refuses_to_go_on(session, options, error)


def test_a_batch_may_say_otherwise_whether_columns_can_be_null() -> None:
    """Arrow would not put such batches together."""
    for data_type, values in POOLS:
        schema = pa.schema([pa.field("g", data_type, nullable=False), ("v", pa.float64())])
        session = sb.TopK(k=9, by="v", window=sb.sliding(20, every=1), per="g").open(schema)
        for value in values:
            session.push(pa.record_batch([column([value], data_type), [1.0]], names=["g", "v"]))
        assert session.top().num_rows == len(values)
