"""Oracle tests: strings, times, whole numbers beyond 2**53 and nulls in scores and conditions of pairs, exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from conformance.rows.strategies import times
from conformance.suite import batch_sizes, examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question
from pair_oracle import PairRow, ShownPair, answers

import skyband as sb

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("position", pa.int32()),
        ("t", pa.int64()),
        ("s", pa.string()),
        ("u", pa.large_string()),
        ("n", pa.int64()),
        ("ts", pa.timestamp("ns")),
        ("x", pa.float64()),
        ("d", pa.decimal128(20, 2)),
    ]
)


class Typed(NamedTuple):
    """The values of a row."""

    s: str | None
    u: str | None
    n: int | None
    ts: int | None
    x: float | None
    d: int | None  # hundredths


def less(x: Any, y: Any) -> bool | None:
    """As SQL compares: with null it is unknown, and so it is with NaN."""
    return None if unknown(x) or unknown(y) else x < y


def equal(x: Any, y: Any) -> bool | None:
    return None if unknown(x) or unknown(y) else x == y


def unknown(x: Any) -> bool:
    return x is None or x != x


def known(*conditions: bool | None) -> bool:
    """Are all of these true?"""
    return all(condition is True for condition in conditions)


def not_(condition: bool | None) -> bool | None:
    return None if condition is None else not condition


def gap(x: int | None, y: int | None) -> float:
    return NAN if x is None or y is None else x - y


class Ask(NamedTuple):
    query: dict[str, Any]
    meaning: Callable[[Typed, Typed], float]  # higher is better; NaN: not ranked


ASKS = {
    "the paper's": Ask(
        {"by": "abs(a.n - b.n)", "ascending": True, "where": "a.s < b.s AND a.u <> b.u"},
        lambda a, b: -abs(gap(a.n, b.n)) if known(less(a.s, b.s), not_(equal(a.u, b.u))) else NAN,
    ),
    "strings as written": Ask(
        {"by": "a.n - b.n", "where": "a.s = 'ab' OR b.u IN ('b', 'zz') OR a.s IS NULL OR a.s > b.u"},
        lambda a, b: (
            gap(a.n, b.n)
            if known(equal(a.s, "ab")) or b.u in ("b", "zz") or a.s is None or known(less(b.u, a.s))
            else NAN
        ),
    ),
    "times of a colour": Ask(
        {"by": "abs(a.ts - b.ts)", "ascending": True, "same": "u"},
        lambda a, b: -abs(gap(a.ts, b.ts)) if a.u == b.u else NAN,
    ),
    "times compared": Ask(
        {"by": "2 * a.n + b.n", "where": "a.ts <= b.ts AND b.ts < '1970-01-01 00:00:00.000000003'"},
        lambda a, b: (
            2 * a.n + b.n
            if known(not_(less(b.ts, a.ts)), less(b.ts, 3)) and a.n is not None and b.n is not None
            else NAN
        ),
    ),
    "floats": Ask(
        {"by": "abs(a.n - b.n)", "where": "a.x <> b.x AND (a.x < b.x OR NOT a.x = 0 OR NOT b.x > 1)"},
        lambda a, b: (
            abs(gap(a.n, b.n))
            if known(not_(equal(a.x, b.x)))
            and (known(less(a.x, b.x)) or known(not_(equal(a.x, 0))) or known(not_(less(1, b.x))))
            else NAN
        ),
    ),
    "decimals": Ask(
        {"by": "abs(a.d - b.d)", "where": "a.d >= 0.01 OR a.n = b.n"},
        lambda a, b: abs(gap(a.d, b.d)) if known(not_(less(a.d, 1))) or known(equal(a.n, b.n)) else NAN,
    ),
}

TEXTS = st.sampled_from([None, "", "a", "ab", "b", "b\0", "ä", "zz"])
FLOATS = st.sampled_from([None, NAN, 0.0, -0.0, 1.0, 1.5, float("inf")])
FAR = [0, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2**60 + 1, 2**60 + 2]


@st.composite
def texts(draw: st.DrawFn, n: int) -> list[str | None]:
    """A few, many, rising, falling, or each between the two before: then labels run out."""
    shape = draw(st.sampled_from(["few", "few", "any", "rising", "falling", "between"]))
    if shape in ("few", "any"):
        one = TEXTS if shape == "few" else st.none() | st.text(max_size=3)
        return draw(st.lists(one, min_size=n, max_size=n))
    numbers = [1_000 + i if shape == "rising" else 9_000 - i for i in range(n)]
    return [str(i) for i in numbers] if shape != "between" else ["a" * (i + 1) + "b" if i else "a" for i in range(n)]


@st.composite
def rows(draw: st.DrawFn, n: int) -> list[Typed]:
    near = draw(st.sampled_from([[None, 0, 1, 2, 3, 5], FAR, [None, *FAR]]))
    numbers = st.lists(st.sampled_from(near), min_size=n, max_size=n)
    floats = st.lists(FLOATS, min_size=n, max_size=n)
    columns = [draw(part) for part in (texts(n), texts(n), numbers, numbers, floats, numbers)]
    return [Typed(*values) for values in zip(*columns, strict=True)]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    by_count, slides = draw(st.booleans()), draw(st.booleans())
    size = draw(st.integers(2, 60))
    return Question(
        k=draw(st.sampled_from([1, 2, 5, 40, 2_000])),
        size=size,
        every=draw(st.integers(1, size)) if slides else None,
        by_count=by_count,
        emit=draw(st.sampled_from(["windows", "changes", "entries"] if slides else ["changes", "entries"])),
        lateness=draw(st.sampled_from([0, 4, 30])) if slides and not by_count else 0,
    )


def opened(question: Question, ask: Ask, algorithm: str) -> sb.TopKPairs:
    window = sb.sliding(question.size, every=question.every, on=None if question.by_count else "t")
    late = {"lateness": question.lateness} if question.every and not question.by_count else {}
    return sb.TopKPairs(k=question.k, window=window, emit=question.emit, algorithm=algorithm, **ask.query, **late)


def table_of(values: list[Typed], when: list[int]) -> pa.Table:
    plain = ("s", "u", "n", "ts", "x")
    columns = [pa.array([getattr(row, name) for row in values], SCHEMA.field(name).type) for name in plain]
    hundredths = pa.array([row.d for row in values], pa.decimal128(20, 0)).to_pylist()
    decimals = pa.array([None if d is None else d.scaleb(-2) for d in hundredths], pa.decimal128(20, 2))
    position = pa.array(range(len(values)), pa.int32())
    return pa.Table.from_arrays([position, pa.array(when, pa.int64()), *columns, decimals], schema=SCHEMA)


def shown(table: pa.Table, ascending: bool, question: Question) -> list[ShownPair]:
    lines = []
    for row in table.to_pylist():
        score = row["score"] if isinstance(row["score"], int) else int(row["score"].scaleb(2))
        at = row["window_end" if question.emit == "windows" else "at"]
        change = row.get("change", "enter")
        score = -score if ascending else score
        lines.append(ShownPair(at, change, row["rank"], score, row["a_position"], row["b_position"]))
    return lines


@pytest.mark.parametrize("name", ASKS)
@examples(25)
@given(st.data(), questions(), batch_sizes(20))
def test_agrees_with_python(name: str, data: st.DataObject, question: Question, sizes: list[int]) -> None:
    ask = ASKS[name]
    possible = ["staircase", "staircase(batch=3, room=1)", "recompute"]
    if ask.query["by"].startswith("abs"):
        possible += ["threshold", "threshold(least=1, lookup_cost=1, share=2)"]
    query = opened(question, ask, data.draw(st.sampled_from(possible), label="algorithm"))
    n = data.draw(st.integers(0, 36))
    values, when = data.draw(rows(n)), data.draw(times(n))
    table, restarts = table_of(values, when), data.draw(st.booleans(), label="restarts")
    session, parts, i = query.open(SCHEMA), [], 0
    for size in [*sizes, n]:
        parts.append(session.push(table.slice(i, size)))
        i += size
        session.check()
        if restarts:
            session = query.open(SCHEMA, session.snapshot())
    parts.append(session.finish())
    events = [PairRow(row, None if question.by_count else time) for row, time in zip(values, when, strict=True)]
    expected = answers(question, lambda a, b: ask.meaning(a.values, b.values), events)
    assert shown(pa.concat_tables(parts), query.ascending, question) == expected
