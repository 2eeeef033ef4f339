"""How a statement ranks: ORDER BY with LIMIT, FETCH or OFFSET, or a rank with a filter on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.statement import Statement


@dataclass(frozen=True)
class Key:
    """One of the things in ORDER BY."""

    tree: exp.Expr
    ascending: bool
    nulls: exp.Expr | None  # FIRST or LAST, where it was written


@dataclass(frozen=True)
class Ranking:
    """ORDER BY, LIMIT k, perhaps for each value of some columns."""

    keys: tuple[Key, ...]
    k: int
    per: tuple[exp.Expr, ...] = ()
    number: exp.Expr | None = None  # ROW_NUMBER() OVER (…) or the like, where that was written
    first: int = 1  # of the ranks that are shown: OFFSET
    ties: str | None = None  # equal rows share a rank: "rank" or "dense"

    @property
    def by(self) -> exp.Expr:
        """The first key, or the only one."""
        return self.keys[0].tree

    @property
    def ascending(self) -> bool:
        return self.keys[0].ascending


def ranking_of(statement: Statement, *, several: bool = False, ties: bool = False) -> Ranking:
    """ORDER BY … LIMIT k, LIMIT k BY …, or QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) <= k. `several`: there
    may be more than one key, of any type that has an order. `ties`: equal rows may share a rank."""
    qualify = statement.take("qualify")
    if qualify is None and (number := next((one.tree for one in statement.items if one.tree.find(exp.Window)), None)):
        statement.refuse("The number of rows is missing", number, "Write WHERE rn <= 10 around it, or QUALIFY.")
    ranking = _qualified(statement, qualify) if qualify else _ordered(statement)
    if ranking.ties is not None and not ties:
        _refuse_ties(statement, ranking.number)
    if not several:
        _check_one(statement, ranking.keys)
        if ranking.first > 1:
            statement.refuse("This kind of answer always starts with rank 1", None, "Leave OFFSET out.")
    return ranking


def _ordered(statement: Statement) -> Ranking:
    order, limit = statement.take("order"), statement.take("limit")
    if order is None or limit is None:
        missing = "ORDER BY" if order is None else "LIMIT"
        statement.refuse(
            f"There is no {missing}, so every answer would show all rows of its window",
            "SELECT" if order is limit is None else "LIMIT" if order is None else "ORDER",
            "Possible: ORDER BY … DESC LIMIT 10; LIMIT 10 BY column; GROUP BY with aggregates.",
        )
    per, skipped = tuple(limit.expressions or ()), offset_of(statement)
    k, ties = count_of(statement, limit.expression), "rank" if has_ties(limit) else None
    if ties is not None and skipped:
        statement.refuse("WITH TIES always starts with rank 1", statement.select.args["offset"], _BETWEEN)
    return Ranking(keys_of(order), skipped + k, per, first=skipped + 1, ties=ties)


MOST_ROWS = 2**30  # two such numbers, of LIMIT and OFFSET, are below 2**31 together
_POSSIBLE = "Possible: QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) <= 10."
_BETWEEN = "Write QUALIFY RANK() OVER (ORDER BY x DESC) BETWEEN 3 AND 5."
_COUNTED: Mapping[type[exp.Expr], str | None] = {exp.RowNumber: None, exp.Rank: "rank", exp.DenseRank: "dense"}
_SWAPPED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.EQ: exp.EQ,
}


def _qualified(statement: Statement, qualify: exp.Expr) -> Ranking:
    asked = [_asked(statement, condition) for condition in _parts(qualify.this)]
    window = asked[0][0]
    for other, _, _, condition in asked[1:]:
        if other != window:
            statement.refuse("A statement ranks its rows once", condition, _POSSIBLE)
    if statement.select.args.get("order") or statement.select.args.get("limit"):
        statement.refuse("QUALIFY already ranks the rows, so ORDER BY and LIMIT are not allowed", asked[0][3])
    if window.args.get("order") is None:
        statement.refuse(f"{_called(window)} needs an ORDER BY", window, _POSSIBLE)
    first, last = max(one[1] for one in asked), min((one[2] for one in asked if one[2] is not None), default=None)
    if last is None:
        statement.refuse(f"You can ask only for the first rows: {_called(window)} <= k", asked[0][3], _POSSIBLE)
    if last < first:
        statement.refuse(f"No row has a number from {first} to {last}", asked[0][3], _POSSIBLE)
    per, ties = tuple(window.args.get("partition_by") or ()), _COUNTED[type(window.this)]
    return Ranking(keys_of(window.args["order"]), last, per, window, first, ties)


def _called(window: exp.Window) -> str:
    return window.this.sql(dialect="spark")


def has_ties(limit: exp.Expr) -> bool:
    """Do equal ones share a rank: LIMIT … WITH TIES?"""
    options = limit.args.get("limit_options")
    return options is not None and bool(options.args.get("with_ties"))


def _refuse_ties(statement: Statement, number: exp.Expr | None) -> None:
    words = ("TIES",) if number is None else ("RANK", "DENSE_RANK")
    texts.refuse(
        statement.text,
        "This kind of query puts the more recent of two equal ones first, so they cannot share a rank",
        texts.place_of_word(statement.text, words, near=statement.select if number is None else number),
        "Leave WITH TIES out." if number is None else "Write ROW_NUMBER() OVER (…); rows and groups have RANK().",
    )


def _parts(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*_parts(condition.this), *_parts(condition.expression)]
    if isinstance(condition, exp.Between):
        low, high = condition.args["low"], condition.args["high"]
        return [exp.GTE(this=condition.this, expression=low), exp.LTE(this=condition.this, expression=high)]
    return [condition]


def _asked(statement: Statement, condition: exp.Expr) -> tuple[exp.Window, int, int | None, exp.Expr]:
    """The number that a condition is about, and from where to where it may lie."""
    if type(condition) in _SWAPPED and isinstance(condition.expression.unnest(), exp.Window):  # 3 >= ROW_NUMBER() …
        condition = _SWAPPED[type(condition)](this=condition.expression, expression=condition.this)
    window = condition.this.unnest() if type(condition) in _SWAPPED else None
    if not isinstance(window, exp.Window) or type(window.this) not in _COUNTED:
        statement.refuse("QUALIFY can only ask for the first rows", condition, _POSSIBLE)
    k = _whole(statement, condition.expression)
    match condition:
        case exp.EQ():
            first, last = k, k
        case exp.LTE() | exp.LT():
            first, last = 1, k - isinstance(condition, exp.LT)
        case _:
            return window, max(1, k + isinstance(condition, exp.GT)), None, condition
    if last < 1:
        statement.refuse("No row has a number below 1", condition, _POSSIBLE)
    return window, first, last, condition


def keys_of(order: exp.Expr) -> tuple[Key, ...]:
    return tuple(Key(one.this, not one.args.get("desc"), one.args.get("nulls")) for one in order.expressions)


def _check_one(statement: Statement, keys: tuple[Key, ...]) -> None:
    """Raise unless there is one key, which is a score."""
    if len(keys) != 1:
        statement.refuse(
            "This kind of query ranks by one score; of equal scores, the more recent comes first",
            keys[1].tree,
            "Write one expression. Only rows of one input can be ranked by several.",
        )
    if (nulls := keys[0].nulls) is not None:
        statement.refuse(
            f"Skyband never ranks a row or pair without a score here, so NULLS {nulls.name} has no meaning",
            nulls,
            "Leave it out, or give it a score: COALESCE(price, 0).",
        )


def count_of(statement: Statement, node: exp.Expr | None) -> int:
    """How many rows: at least one."""
    count = _whole(statement, node)
    if count < 1:
        statement.refuse("The number of rows must be a whole number, at least 1", node)
    return count


def _whole(statement: Statement, node: exp.Expr | None) -> int:
    number = node.unnest() if node is not None else None
    is_placed = node is not None and texts.place_of(node) is not None
    if not isinstance(number, exp.Literal) or not number.is_int:
        statement.refuse("The number of rows must be a whole number, at least 1", node if is_placed else "LIMIT")
    if int(number.name) > MOST_ROWS:
        statement.refuse(f"The number of rows must be at most {MOST_ROWS:,}", node if is_placed else "LIMIT")
    return int(number.name)


def offset_of(statement: Statement) -> int:
    """How many of the first rows are not shown."""
    offset = statement.take("offset")
    return 0 if offset is None else _whole(statement, offset.expression)
