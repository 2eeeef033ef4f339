"""Functions of the user's own, in expressions of rows and of pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.expressions import functions

ROWS = pa.table({"id": [1, 2, 3, 4], "t": [1, 2, 3, 4], "x": [3.0, 1.0, None, 2.0], "y": [1, 1, 1, 5]})
WINDOW = sb.sliding(4, every=4)


@pytest.fixture(autouse=True)
def known_for_one_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(functions, "_known", {})
    return iter(())


def test_scores_of_rows_call_it_with_arrays() -> None:
    sb.function("gap", lambda x, y: np.abs(x - y))
    best = sb.top_k(ROWS, k=4, by="10 * GAP(x, y) + gap(gap(x, 1), 0)", window=WINDOW)
    assert best.column("score").to_pylist() == [31.0, 22.0, 0.0], "null is no score"
    same = sb.top_k(ROWS, k=2, by="gap(2, y)", window=WINDOW)
    assert same.column("score").to_pylist() == [3.0, 1.0], "a number is an argument like any other"


def test_scores_of_pairs_call_it_compiled() -> None:
    sb.function("gap", lambda x, y: abs(x - y) ** 1.5)
    best = sb.top_k_pairs(ROWS, k=3, by="gap(a.x, b.x) - abs(a.y - b.y)", window=WINDOW)
    scores = [abs(3 - 1) ** 1.5, abs(1 - 2) ** 1.5 - 4, abs(3 - 2) ** 1.5 - 4]
    assert best.column("score").to_pylist() == pytest.approx(scores)


def test_the_statement_of_the_pairs_paper() -> None:
    """As printed there, with a distance of one's own."""
    sb.function("dist", lambda x, y: abs(x - y))
    days = np.array([0, 1, 2, 3, 9])
    moments = pa.array(days * 86_400_000_000, pa.timestamp("us"))
    auction = pa.table(
        {"id": [5, 1, 4, 2, 3], "ts": moments, "spec": [1.0, 2.0, 4.0, 7.0, 7.5], "bid": [9.0, 9.0, 5.0, 5.0, 1.0]}
    )
    answer = sb.sql(
        """Select a.id, b.id from auction a, auction b where a.id < b.id
           order by dist(a.spec,b.spec) - |a.bid - b.bid| limit 10 window [7 days]""",
        auction=auction,
    )
    entered = [row for row in answer.to_pylist() if row["change"] == "enter"]
    assert [(row["a_id"], row["b_id"], row["score"]) for row in entered if row["at"].day == 3] == [
        (1, 4, 2.0 - 4.0),
        (4, 5, 3.0 - 4.0),
    ]
    assert all(row["a_id"] < row["b_id"] for row in answer.to_pylist())


def test_conditions_call_it_too() -> None:
    sb.function("even", lambda x: 1 - x % 2)
    answer = sb.sql(
        "SELECT id FROM rows [WINDOW 4 ROWS EVERY 2 ROWS] WHERE even(id) = 1 ORDER BY y DESC LIMIT 2", rows=ROWS
    )
    assert answer.column("id").to_pylist() == [4, 2]


@pytest.mark.parametrize(
    ("name", "fn", "said"),
    [
        ("a b", abs, "a word of letters"),
        ("dist", 3, "must be a function, got int"),
        ("abs", abs, "is a function of SQL already"),
        ("Least", min, "is a function of SQL already"),
    ],
)
def test_what_cannot_be_made_known(name: str, fn: object, said: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=said):
        sb.function(name, fn)  # type: ignore[arg-type]


def test_what_is_not_known() -> None:
    sb.function("gap", abs)
    with pytest.raises(
        sb.InvalidExpression, match=r"There is no function 'gapp'.*functions of your own, from .*: gap\."
    ):
        sb.top_k(ROWS, k=1, by="gapp(x)", window=WINDOW)


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda x: x[:1], r"4 rows in, shape \(1,\) out"),
        (lambda x: 1 / len(x[:0]), "ZeroDivisionError"),
        (lambda x, y: x + y, "TypeError"),
    ],
)
def test_what_it_must_give(fn: object, said: str) -> None:
    sb.function("broken", fn)  # type: ignore[arg-type]
    with pytest.raises(sb.InvalidExpression, match=said):
        sb.top_k(ROWS, k=1, by="broken(y)", window=WINDOW)


def test_a_snapshot_knows_which_function_it_was() -> None:
    query = sb.TopK(k=1, by="gap(x, y)", window=WINDOW)
    sb.function("gap", lambda x, y: x - y)
    state = query.open(ROWS.schema).snapshot()
    query.open(ROWS.schema, state)
    sb.function("gap", lambda x, y: y - x)
    with pytest.raises(sb.SnapshotMismatch):
        query.open(ROWS.schema, state)
