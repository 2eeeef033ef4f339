"""Expressions over rows in Spark SQL, with the meaning that they have in polars, whatever the ANSI setting."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from skyband.expressions.function_spec import operands_of
from skyband.expressions.grammar import RowExpressions, bottom_up, cast_to, rewritten
from skyband.expressions.row_functions import function_of
from skyband.expressions.times import in_spark, written_time
from skyband.expressions.whole import (
    DIGITS,
    MOST_DIGITS,
    RESULT,
    TOO_WIDE,
    Kind,
    is_narrowed,
    kind_of,
    written_in_digits,
)
from skyband.expressions.zeros import is_unknown, unknown


def to_spark(tree: exp.Expr, text: str) -> str:
    """A number as Spark SQL with the meaning it has in polars: float64 with IEEE division, or whole numbers that fit in
    64 bits, whatever the ANSI setting."""
    number, kind = _for_spark(tree, text), kind_of(tree)
    if not kind.is_whole:
        return cast_to(number, "DOUBLE").sql(dialect="spark")
    if kind.is_decimal:
        return _as_decimal(number.sql(dialect="spark"), kind)
    fitting = number if _fits(tree) else _checked(number, text)
    return cast_to(fitting, "BIGINT").sql(dialect="spark")


def _as_decimal(number: str, kind: Kind) -> str:
    """A whole number of the last digit as a decimal, in Spark SQL."""
    digits, scale = kind.type.precision, kind.scale
    shown = f"DECIMAL({digits}, {scale})"
    if not scale:
        return f"CAST({number} AS {shown})"
    if digits + scale < MOST_DIGITS:
        power = f"CAST('1E-{scale}' AS DECIMAL({scale}, {scale}))"
        return f"CAST(CAST({number} AS DECIMAL({digits}, 0)) * {power} AS {shown})"
    # The product would have more digits than Spark has; what is written has not.
    return f"CAST(CONCAT(CAST({number} AS STRING), 'E-{scale}') AS {shown})"


def condition_to_spark(tree: exp.Expr, text: str) -> str:
    """The same for what is true or false."""
    return _for_spark(tree, text).sql(dialect="spark")


def _for_spark(tree: exp.Expr, text: str) -> exp.Expr:
    wide = "BIGINT" if all(_fits(node) for node in tree.walk()) else "DECIMAL(38, 0)"

    def rewrite(node: exp.Expr) -> exp.Expr:
        kind = kind_of(node)
        if written_time(node) is not None:
            return in_spark(node)
        if (function := function_of(node)) is not None:
            values = [bottom_up(rewritten(one, rewrite), guard).sql(dialect="spark") for one in operands_of(node)]
            made = function.spark(*values)
            return exp.var(f"CAST({made} AS {wide})" if kind.is_whole else made)  # which is written as it is
        if isinstance(node, exp.Substring):
            return exp.Substring(**{**node.args, "this": rewritten(node.this, rewrite)})
        if isinstance(node, exp.Column):
            column: exp.Expr = exp.column(exp.to_identifier(node.name, quoted=True))
            if kind.scale and not isinstance(node.parent, exp.Cast):
                column = _in_digits(column, kind, text)
            elif kind.scale:
                return column
            return cast_to(column, wide if kind.is_whole else "DOUBLE") if kind.is_whole or kind.is_float else node
        if isinstance(node, exp.Literal) and node.is_number:
            return cast_to(written_in_digits(node) if kind.is_whole else node, wide if kind.is_whole else "DOUBLE")
        if is_unknown(node):
            return unknown()
        if is_narrowed(node):
            return _checked(rewritten(node.this, rewrite), text)
        return node

    def guard(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div) and not _is_nonzero(node.expression):
            return _template("CASE WHEN y <> 0 THEN x / y WHEN y = 0 THEN NULLIF(x, 0) * inf END", node)
        if isinstance(node, (exp.Greatest, exp.Least)) and kind_of(node).is_float:
            # NaN is Spark's largest number; polars passes over it, as both do over null.
            node.set("this", _template("NANVL(x, NULL)", node))
            node.set("expressions", [_template("NANVL(x, NULL)", exp.Paren(this=e)) for e in node.expressions])
            return node
        if isinstance(node, (exp.Sign, exp.Length)) and kind_of(node).is_whole:  # of another type in Spark
            return cast_to(node, wide)
        if isinstance(node, (exp.Floor, exp.Ceil)) and kind_of(node).is_whole:
            return exp.Paren(this=node.this)
        if isinstance(
            node, (exp.Floor, exp.Ceil)
        ):  # whole numbers of 64 bits in Spark; what is beyond is whole as it is
            return _template(
                f"CASE WHEN ABS(x) < 4503599627370496D THEN DOUBLE({node.key.upper()}(x)) ELSE x END", node
            )
        if isinstance(node, exp.Mod):
            return _template("CASE WHEN y <> 0 THEN x % y END", node)
        if isinstance(node, exp.Ln):
            return _template("CASE WHEN x = 0 THEN -inf ELSE LN(x) END", node)
        if isinstance(node, exp.Log) and node.args.get("expression"):
            base = exp.Ln(this=node.this)
            return exp.Div(
                this=guard(exp.Ln(this=node.expression)), expression=base if _is_nonzero(node.this) else guard(base)
            )
        return node

    return bottom_up(rewritten(tree, rewrite), guard)


def _fits(node: exp.Expr) -> bool:
    """Does it fit in 64 bits, whatever the values of its columns? A column does; its negative may lie just beyond."""
    kind = kind_of(node)
    return not kind.is_whole or kind.bits < RESULT or (isinstance(node, exp.Column) and kind.bits == RESULT)


def _checked(number: exp.Expr, text: str) -> exp.Expr:
    """A whole number that fits in 64 bits, or an error where it does not, in Spark SQL."""
    message = exp.Literal.string(f"{text!r} {TOO_WIDE}.")
    checked = exp.Case(
        ifs=[
            exp.If(
                this=exp.Between(this=exp.Paren(this=number.copy()), low=_whole(-(2**63)), high=_whole(2**63 - 1)),
                true=exp.Paren(this=number.copy()),
            ),
            exp.If(
                this=exp.Not(this=exp.Is(this=exp.Paren(this=number.copy()), expression=exp.Null())),
                true=exp.Anonymous(this="RAISE_ERROR", expressions=[message]),
            ),
        ]
    )
    return exp.Paren(this=checked)


def _whole(number: int) -> exp.Expr:
    return cast_to(exp.Literal.string(str(number)), "DECIMAL(38, 0)")


def _in_digits(column: exp.Expr, kind: Kind, text: str) -> exp.Expr:
    """A decimal column as a whole number of its last digit, or an error where it has too many digits, in Spark SQL."""
    name, scale = column.sql(dialect="spark"), kind.scale
    checked = name
    if kind.bits >= (10**DIGITS).bit_length():
        fewer = f"TRY_CAST({name} AS DECIMAL({DIGITS}, {scale}))"
        why = f"{text!r} computes with {name}, a decimal of more than {DIGITS} digits."
        said = exp.Literal.string(why).sql("spark")
        checked = f"CASE WHEN {name} IS NULL OR {fewer} IS NOT NULL THEN {fewer} ELSE RAISE_ERROR({said}) END"
    product = RowExpressions().parse(f"({checked}) * CAST('1{'0' * scale}' AS DECIMAL({scale + 1}, 0))")[0]
    assert product is not None
    return exp.Paren(this=product)


def _is_nonzero(node: exp.Expr) -> bool:
    """Is this a number, as written, other than 0 (and 1, whose logarithm is 0)?"""
    literal = node.this if isinstance(node, exp.Cast) else node
    return isinstance(literal, exp.Literal) and literal.is_number and float(literal.this) not in (0.0, 1.0)


_INFINITY: Final = "CAST('Infinity' AS DOUBLE)"


def _template(text: str, node: exp.Expr) -> exp.Expr:
    """`text` with x and y replaced by the operands of `node`."""
    operands = {"x": node.this, "y": node.args.get("expression")}

    def fill(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        if part.name == "inf":
            return RowExpressions().parse(_INFINITY)[0] or part
        return exp.Paren(this=operands[part.name].copy())

    filled = RowExpressions().parse(text)[0]
    assert filled is not None
    return exp.Paren(this=rewritten(filled, fill))
