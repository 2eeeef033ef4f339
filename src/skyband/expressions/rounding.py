"""ROUND in other words: half away from zero, the same on both engines."""

from __future__ import annotations

from sqlglot import exp

from skyband.errors import InvalidExpression

MOST_DIGITS = 15


def digits_kept(node: exp.Round) -> int:
    """How many digits behind the point ROUND keeps; of those before the point it drops as many as the number is below
    0."""
    decimals = node.args.get("decimals")
    number = decimals.this if isinstance(decimals, exp.Neg) else decimals
    if number is not None and not (
        isinstance(number, exp.Literal) and number.is_int and int(number.name) <= MOST_DIGITS
    ):
        raise InvalidExpression(
            f"{node.sql('spark')!r}: ROUND keeps a whole number of digits, from -{MOST_DIGITS} to {MOST_DIGITS}."
        )
    return 0 if number is None else int(number.name) * (-1 if isinstance(decimals, exp.Neg) else 1)


def rounded(node: exp.Expr) -> exp.Expr:
    """ROUND of a float: half away from zero; of so many digits, by the power of ten, here as on Spark."""
    if not isinstance(node, exp.Round):
        return node
    digits = digits_kept(node)
    value: exp.Expr = exp.Paren(this=node.this.copy())
    power = exp.Literal.number(f"{10 ** abs(digits)}.0")
    forth, back = (exp.Mul, exp.Div) if digits > 0 else (exp.Div, exp.Mul)
    if digits:
        value = exp.Paren(this=forth(this=value, expression=power))
    size = exp.Abs(this=value)
    rest = exp.Sub(this=size.copy(), expression=exp.Floor(this=size.copy()))
    more = exp.Case(
        ifs=[exp.If(this=exp.GTE(this=exp.Paren(this=rest), expression=exp.Literal.number("0.5")), true=_one(1))],
        default=_one(0),
    )
    away = exp.Paren(this=exp.Add(this=exp.Floor(this=size.copy()), expression=more))
    made: exp.Expr = exp.Mul(this=exp.Sign(this=value.copy()), expression=away)
    if digits:
        made = back(this=exp.Paren(this=made), expression=power.copy())
    return exp.Paren(this=made)


def rounded_to_tens(value: exp.Expr, digits: int) -> exp.Expr:
    """ROUND(x, -2) of a whole number, exactly."""
    power = 10**-digits
    size = exp.Paren(this=exp.Add(this=exp.Abs(this=value.copy()), expression=_one(power // 2)))
    rest = exp.Paren(this=exp.Mod(this=size, expression=_one(power)))
    whole = exp.Paren(this=exp.Sub(this=size.copy(), expression=rest))
    return exp.Paren(this=exp.Mul(this=exp.Sign(this=value.copy()), expression=whole))


def _one(number: int) -> exp.Expr:
    return exp.Literal.number(number)
