"""EXISTS (SELECT …) and IN (SELECT …) in WHERE: a SEMI JOIN with the table; NOT EXISTS: an ANTI JOIN."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.nodes import Stream
from skyband.expressions.grammar import parts_of

SUBQUERY: Final = "subquery"  # of a join, in its meta: its names are those of a query, which come before others
OUTSIDE: Final = "outside"  # of a column, in its meta: it stands before IN, where names are not those of the query
SEMI, ANTI = "SEMI", "ANTI"
KINDS: Final = (SEMI, ANTI)

_READ: Final = ("expressions", "from_", "where", "kind", "hint")
_POSSIBLE: Final = "Possible: WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = t.person)."
_ONE_INPUT: Final = "This subquery must read one input"
_NOT_IN: Final = (
    "NOT IN (SELECT …) is never true once the table contains a null",
    "Write WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = t.person).",
)


class _Asked(NamedTuple):
    """A condition about rows of a table."""

    kind: str
    body: exp.Expr
    value: exp.Expr | None = None  # what is to be among those of the query


def with_semi_joins(text: str, select: exp.Select) -> None:
    """Put joins in place of conditions about rows of a table, in this query and those within it."""
    for one in list(select.find_all(exp.Select)):
        where = one.args.get("where")
        conditions = parts_of([where.this]) if where else []
        asked = {condition: found for condition in conditions if (found := _asked(text, condition)) is not None}
        kept = [condition for condition in conditions if condition not in asked]
        for condition in kept:
            for inside in condition.find_all(exp.Exists, exp.In):
                if isinstance(inside, exp.Exists) or inside.args.get("query"):
                    word = "EXISTS" if isinstance(inside, exp.Exists) else "IN (SELECT …)"
                    texts.refuse(
                        text,
                        f"{word} must be a condition by itself, or one of several joined by AND",
                        inside,
                        _POSSIBLE,
                    )
        if asked:
            one.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
            one.set("joins", [*(one.args.get("joins") or ()), *(_join(text, each) for each in asked.values())])


def _asked(text: str, condition: exp.Expr) -> _Asked | None:
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    is_not = inner is not condition
    if isinstance(inner, exp.Exists):
        return _Asked(ANTI if is_not else SEMI, inner.this)
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        if is_not:
            texts.refuse(text, _NOT_IN[0], condition, _NOT_IN[1])
        return _Asked(SEMI, inner.args["query"], inner.this)
    return None


def _join(text: str, asked: _Asked) -> exp.Join:
    body = asked.body.unnest()
    is_simple = isinstance(body, exp.Select) and all(name in _READ for name, value in body.args.items() if value)
    table = body.args["from_"].this if is_simple and body.args.get("from_") else None
    named = table.this if isinstance(table, Stream) else table
    if not isinstance(named, (exp.Table, exp.Subquery)):
        texts.refuse(text, _ONE_INPUT, body, _POSSIBLE)
    where = body.args.get("where")
    conditions = parts_of([where.this]) if where else []
    if asked.value is not None:
        if len(body.expressions) != 1 or body.expressions[0].is_star:
            texts.refuse(text, "IN (SELECT …) takes a query of one column", body, _POSSIBLE)
        its = body.expressions[0].unalias()
        if isinstance(its, exp.Column) and not its.table:
            its.set("table", exp.to_identifier(named.alias_or_name))
        for column in asked.value.find_all(exp.Column):
            column.meta[OUTSIDE] = True
        conditions.append(exp.EQ(this=asked.value, expression=its))
    elif any(item.find(exp.AggFunc) for item in body.expressions):  # which is one row, whatever the table has
        texts.refuse(text, _ONE_INPUT, body, _POSSIBLE)
    on = exp.and_(*conditions, copy=False) if conditions else None
    join = exp.Join(this=table, side="LEFT", kind=asked.kind, on=on)
    join.meta[SUBQUERY] = True
    return join
