"""DATE_ADD, DATEDIFF and d + INTERVAL 3 DAYS by the numbers of days, counted from 1970 on: functions of one value."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from skyband.expressions.function_spec import WRITTEN, said
from skyband.expressions.grammar import DateSub

EPOCH: Final = exp.Cast(this=exp.Literal.string("1970-01-01"), to=exp.DataType.build("DATE"))


def in_days(node: exp.Expr) -> exp.Expr:
    """The same in other words, if it is one of these; DATEDIFF(x, DATE '1970-01-01') is the number of a day."""
    match node:
        case exp.TsOrDsAdd():
            return days_after(node.this, node.expression, node)
        case DateSub():
            return days_after(node.this, exp.Neg(this=exp.Paren(this=node.expression.copy())), node)
        case exp.DateDiff() if not (is_number_of_day(node) or node.args.get("unit")):
            later, earlier = (_day_number(side, node) for side in (node.this, node.expression))
            return exp.Paren(this=exp.Sub(this=later, expression=earlier))
    return node


def is_number_of_day(node: exp.Expr) -> bool:
    return isinstance(node, exp.DateDiff) and bool(node.expression == EPOCH)


def days_after(day: exp.Expr, count: exp.Expr, whole: exp.Expr) -> exp.Expr:
    """The date so many days after a day, where `whole` says so."""
    days = exp.Add(this=_day_number(day, whole), expression=exp.Paren(this=count.copy()))
    made = exp.DateFromUnixDate(this=days)
    days.meta[WRITTEN] = made.meta[WRITTEN] = said(whole)
    return made


def _day_number(day: exp.Expr, whole: exp.Expr) -> exp.Expr:
    inner = day.unnest()
    if isinstance(inner, exp.Literal):  # which a cast checks before a row is read
        day = exp.Cast(this=inner.copy(), to=EPOCH.to.copy())
    number = exp.DateDiff(this=exp.Paren(this=day.copy()), expression=EPOCH.copy())
    number.meta[WRITTEN] = said(whole)
    return number
