"""Expressions over two rows as lines of Python that keep whole numbers, times and strings exact.

A value in these lines is of one of three kinds. A float is as in `lines`: null is NaN. A whole number has 64 bits, and
a number of digits after the point, which is how decimals come; a time is the number of its microseconds, or
nanoseconds, since 1970. A text is a whole number too: one that orders as the string does, among those that are
compared. Of the last two kinds the least number means null.

Where SQL would keep whole numbers, so do the lines: in sums, differences, products, comparisons, CASE and the like. How
large the results may be follows from how large the columns are, so whoever has the rows can tell that 64 bits suffice
before any pair is scored (`Check`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from skyband.errors import InvalidExpression
from skyband.expressions.bounds import Bound, absolute, bound_of, constant, difference, either, product, sum_of
from skyband.expressions.exact_values import (
    EXACT,
    FLOAT,
    KNOWN,
    NULL,
    TEXT,
    WHOLE,
    Check,
    Column,
    Kinds,
    Value,
    any_unknown,
    own_scales,
    written_out,
)
from skyband.expressions.lines import (
    COMPARISONS,
    FUNCTIONS,
    OPERATORS,
    branches_of,
    distance_of,
    is_two,
    not_a_number,
)
from skyband.expressions.wide import WIDE, Sum, Term, read_term, template, terms_of

if TYPE_CHECKING:
    from sqlglot import exp


class ExactLines(Kinds):
    """Lines in which values are of these kinds."""

    def __init__(
        self,
        columns: Sequence[Column],
        schema: pa.Schema,
        labels: Sequence[tuple[bytes, int]] = (),
        distances: dict[str, int] | None = None,
    ) -> None:
        super().__init__(columns, schema, "v" if distances is None else "w")
        self.sums: list[Sum] = []
        self._terms: dict[int, Term] = {}  # by node, so that none is read twice
        self._labels = dict(labels)
        self._distances = distances  # by column: which distance it is; then these stand for the columns

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, node: exp.Expr, text: str) -> Value:
        """Write the lines that compute a value."""
        from sqlglot import exp

        if self._distances is not None and (found := distance_of(node)):
            return self._distance(*found)
        match node:
            case exp.Paren():
                return self.value(node.this, text)
            case exp.Literal() | exp.Null() | exp.Cast():
                return self._literal(node, text)
            case exp.Column():
                return self._column(node, text)
            case exp.Interval():
                return self._span(node, text)
            case exp.Case() | exp.If():
                return self._case(node, text)
            case exp.Neg() if isinstance(node.this, exp.Literal) and node.this.is_number:
                return written_out(f"-{node.this.this}")
            case exp.Anonymous():
                return self._call(node, text)
            case exp.Coalesce() | exp.Nullif() | exp.Greatest() | exp.Least():
                return self._chosen(node, text)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._arithmetic(node, text)
            case exp.Mod() | exp.Abs() | exp.Neg() | exp.Floor() | exp.Ceil():
                value = self._of_whole(node, text)
                if value is not None:
                    return value
            case exp.Log() if node.args.get("expression"):
                base, number = self.number(node.this, text), self.number(node.expression, text)
                return self._new(f"math.log({number}) / math.log({base})")
            case exp.Pow() if is_two(node.expression):
                number = self.number(node.this, text)
                return self._new(f"{number} * {number}")
        kind = type(node).__name__
        if kind in OPERATORS:
            return self._new(f"{self.number(node.this, text)} {OPERATORS[kind]} {self.number(node.expression, text)}")
        if kind in FUNCTIONS:
            parts = [self.number(part, text) for part in (node.this, node.args.get("expression")) if part is not None]
            return self._new(FUNCTIONS[kind].format(*parts))
        raise not_a_number(node, text)

    def number(self, node: exp.Expr, text: str) -> str:
        """Write the lines that compute a float; returns its name."""
        return self.as_float(self.value(node, text), node, text).text

    def _literal(self, node: exp.Expr, text: str) -> Value:
        from sqlglot import exp

        if isinstance(node, exp.Null):
            return Value("np.nan", NULL)
        if isinstance(node, exp.Cast):
            literal = node.this.unnest()
            if not (node.to.is_type(*exp.DataType.TEMPORAL_TYPES) and isinstance(literal, exp.Literal)):
                raise InvalidExpression(
                    f"{node.sql('spark')!r} in {text!r} is a conversion that Skyband does not support: it must turn a "
                    "literal into a time."
                )
            return self._time(str(literal.this), text)
        written = str(node.this)
        if node.is_string:
            return Value(repr(self._labels[written.encode()]), TEXT, literal=written)
        return written_out(written)

    def _column(self, node: exp.Column, text: str) -> Value:
        number = self._numbers[node.name]
        column, column_type = self._columns[number], self._schema.field(node.name).type
        if pa.types.is_boolean(column_type):
            raise not_a_number(node, text)
        name = f"{node.table}{number}"
        if column.kind == WHOLE:
            return Value(name, WHOLE, column.scale, lambda bounds: bounds[number], None, bool(column.unit))
        if column.kind != FLOAT:
            return Value(name, column.kind)
        return Value(name, FLOAT, 0, bound_of(column_type))

    def _distance(self, name: str, squared: bool) -> Value:
        assert self._distances is not None
        number = self._numbers[name]
        column = self._columns[number]
        bound = bound_of(self._schema.field(name).type) if column.kind == FLOAT else lambda bounds: bounds[number]
        far = None if bound is None else absolute(difference(bound, bound))
        value = Value(f"l{self._distances[name]}", column.kind, column.scale, far)
        if not squared:
            return value
        plain = self._float(value).text
        return self._new(f"{plain} * {plain}")

    def _call(self, node: exp.Expr, text: str) -> Value:
        name = self._callee(node)
        arguments = [self._argument(self.value(part, text), part, text) for part in node.expressions]
        return self._new(f"1.0 * {name}({', '.join(arguments)})")

    def function_argument(self, column: exp.Expr) -> str:
        """A column as a function of two rows gets it."""
        return self._argument(self._compared(column, ""), column, "")

    def _argument(self, value: Value, node: exp.Expr, text: str) -> str:
        """As a function of the user's gets it: a float, which must be the very number."""
        if value.kind == WHOLE and value.bound is not None:
            limit = EXACT * 10**value.scale
            self.checks.append(Check(node.sql("spark"), value.bound, limit, "a function gets numbers as float64"))
        return self.as_float(value, node, text).text

    # -- operations --------------------------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Expr, text: str) -> Value:
        from sqlglot import exp

        if isinstance(node, exp.Add) and (total := self._sum_of_like_terms(node, text)) is not None:
            return total
        sides = [self.value(part, text) for part in (node.this, node.expression)]
        for value, part in zip(sides, (node.this, node.expression), strict=True):
            if value.kind in (TEXT, KNOWN):
                raise self._no_number(part, text)
        sign = OPERATORS[type(node).__name__]
        combine = {"+": sum_of, "-": difference, "*": product}[sign]
        if isinstance(node, exp.Mul) and (scales := own_scales(sides)) is not None:
            x, y = (self._whole(value, scale, node.sql("spark")) for value, scale in zip(sides, scales, strict=True))
        else:
            x, y = self._alike(sides, node, text)
        if x.bound is None or y.bound is None:
            return self._new(f"{x.text} {sign} {y.text}")
        bound = combine(x.bound, y.bound)
        if x.kind == FLOAT:
            low, high = bound(())
            if max(-low, high) <= EXACT:
                return self._new(f"{x.text} {sign} {y.text}", FLOAT, 0, bound)
            x, y = (self._whole(value, 0, node.sql("spark")) for value in (x, y))
        scale = x.scale + y.scale if sign == "*" else x.scale
        line = f"{x.text} {sign} {y.text}"
        unknown = any_unknown(x, y)
        return self._checked(f"NULL if {unknown} else {line}" if unknown else line, scale, bound, node.sql("spark"))

    def _sum_of_like_terms(self, node: exp.Expr, text: str) -> Value | None:
        """A sum as a loop, if it has many terms, all of floats and alike but for their columns and numbers."""
        terms = terms_of(node)
        if len(terms) < WIDE or self._distances is not None:
            return None
        for part in terms:
            if id(part) not in self._terms:
                self._terms[id(part)] = read_term(part)
        read = [self._terms[id(part)] for part in terms]
        if any(term.shape != read[0].shape for term in read):
            return None
        slots = list(zip(*(term.columns for term in read), strict=True))
        types = [{self._schema.field(name).type for name in names} for names in slots]
        kinds = {self._columns[self._numbers[name]].kind for names in slots for name in names}
        numbers = list(zip(*(term.numbers for term in read), strict=True))
        varying = [i for i, written in enumerate(numbers) if len(set(written)) > 1]
        if kinds != {FLOAT} or any(len(some) > 1 for some in types):
            return None
        if varying and any(pa.types.is_integer(kind) for some in types for kind in some):
            return None  # whether numbers are whole decides what the score is
        fields = [*(some.pop() for some in types), *(pa.float64() for _ in varying)]
        schema = pa.schema([(f"s{i}", kind) for i, kind in enumerate(fields)])
        code = ExactLines([Column(name, FLOAT) for name in schema.names], schema)
        value = code.value(template(terms[0], read[0].columns, varying), text)
        if value.kind != FLOAT or code.calls or code.checks or code.sums:
            return None
        bound = None if value.bound is None else product(value.bound, constant(len(terms), len(terms)))
        if bound is not None and max(map(abs, bound(()))) > EXACT:
            return None
        lines = tuple(_renamed(line) for line in code.lines)
        columns = [tuple(self._numbers[name] for name in names) for names in slots]
        weights = [tuple(float(written) for written in numbers[i]) for i in varying]
        used = " ".join([*lines, _renamed(value.text)])
        sides = tuple("".join(s for s in "ab" if re.search(rf"\b{s}s{i}\b", used)) for i in range(len(fields)))
        self.sums.append(Sum(len(terms), (*columns, *weights), lines, _renamed(value.text), sides))
        return Value(f"sum{len(self.sums) - 1}", FLOAT, 0, bound)

    def _of_whole(self, node: exp.Expr, text: str) -> Value | None:
        """ABS, -, FLOOR, CEIL and % of whole numbers; None: of floats."""
        from sqlglot import exp

        values = [self.value(node.this, text)]
        if isinstance(node, exp.Mod):
            values = self._alike([*values, self.value(node.expression, text)], node, text)
        value = values[0]
        if value.kind in (TEXT, KNOWN):
            raise self._no_number(node.this, text)
        if value.kind == NULL or (value.kind == FLOAT and value.bound is None):
            plain = [self._float(one).text for one in values]
            return self._new(FUNCTIONS[type(node).__name__].format(*plain))
        assert value.bound is not None
        x, is_whole = value.text, value.kind == WHOLE
        match node:
            case exp.Abs():  # of the least whole number, which means null, it is that number again
                return self._new(f"abs({x})", value.kind, value.scale, absolute(value.bound))
            case exp.Neg():
                return self._new(f"-{x}", value.kind, value.scale, difference(constant(0, 0), value.bound))
            case exp.Floor() | exp.Ceil():
                if not value.scale:
                    return value
                unit, bound = 10**value.scale, value.bound
                cut = f"{x} // {unit}" if isinstance(node, exp.Floor) else f"-(-{x} // {unit})"
                return self._new(
                    f"NULL if {x} == NULL else {cut}",
                    WHOLE,
                    0,
                    lambda b: (bound(b)[0] // unit, -(-bound(b)[1] // unit)),
                )
        y, reach = values[1].text, absolute(value.bound)
        within: Bound = lambda bounds: (-reach(bounds)[1], reach(bounds)[1])  # noqa: E731
        if not is_whole:
            return self._new(f"np.fmod({x}, {y})", FLOAT, 0, within)
        unknown = " | ".join(filter(None, [any_unknown(*values), f"({y} == 0)"]))
        rest = f"(-(abs({x}) % abs({y})) if {x} < 0 else abs({x}) % abs({y}))"
        return self._new(f"NULL if {unknown} else {rest}", WHOLE, value.scale, within)

    def _chosen(self, node: exp.Expr, text: str) -> Value:
        """COALESCE, NULLIF, GREATEST and LEAST: one of several values of a kind."""
        from sqlglot import exp

        others = [node.expression] if isinstance(node, exp.Nullif) else node.expressions
        first, *rest = self._alike([self.value(part, text) for part in (node.this, *others)], node, text)
        if isinstance(node, exp.Nullif):
            (other,) = rest
            none = "np.nan" if first.kind == FLOAT else "NULL"
            return self._as(first, f"{none} if {first.text} == {other.text} else {first.text}", [first])
        value = first
        for other in rest:
            missing = f"({value.text} != {value.text})" if value.kind == FLOAT else f"({value.text} == NULL)"
            if isinstance(node, exp.Coalesce):
                line = f"{other.text} if {missing} else {value.text}"
            else:
                sign = ">" if isinstance(node, exp.Greatest) else "<"
                better = f"({other.text} {sign} {value.text})"
                if value.kind != FLOAT and sign == "<":
                    better = f"({better} & ({other.text} != NULL))"  # null is the least number
                line = f"{other.text} if {better} | {missing} else {value.text}"
            value = self._as(value, line, [value, other])
        return value

    def _as(self, like: Value, line: str, among: list[Value]) -> Value:
        """A line whose value is one of these."""
        bounds = [value.bound for value in among]
        bound = None if like.kind == TEXT or None in bounds else either(bounds)  # type: ignore[arg-type]
        return replace(self._new(line, like.kind, like.scale, bound), is_time=any(value.is_time for value in among))

    def _case(self, node: exp.Expr, text: str) -> Value:
        branches, otherwise = branches_of(node)
        values = [self.value(result, text) for _, result in branches]
        values.append(Value("np.nan", NULL) if otherwise is None else self.value(otherwise, text))
        *values, value = self._alike(values, node, text)
        for (condition, _), result in zip(reversed(branches), reversed(values), strict=True):
            met = self.truth(condition, text)[0]
            value = self._as(value, f"{result.text} if {met} else {value.text}", [result, value])
        return value

    # -- conditions --------------------------------------------------------------------------------------------------

    def _is_null(self, node: exp.Expr, text: str) -> tuple[str, str]:
        value = self._compared(node, text)
        if value.kind in (WHOLE, TEXT, NULL):
            name = "NULL" if value.kind == NULL else value.text
            return self._line(f"{name} == NULL"), self._line(f"{name} != NULL")
        return self._line(f"{value.text} != {value.text}"), self._line(f"{value.text} == {value.text}")

    def _comparison(self, node: exp.Expr, text: str) -> tuple[str, str]:
        x, y = self._alike([self._compared(part, text) for part in (node.this, node.expression)], node, text)
        true, false = (f"({line.format(x.text, y.text)})" for line in COMPARISONS[type(node).__name__])
        if x.kind == FLOAT:
            return self._line(true), self._line(false)
        unknown = any_unknown(x, y)
        known = self._line(f"not ({unknown})" if unknown else "True")
        return self._line(f"{true} & {known}"), self._line(f"{false} & {known}")

    def _compared(self, node: exp.Expr, text: str) -> Value:
        """As `value`, but a column of truth values is as good."""
        from sqlglot import exp

        inner = node.unnest()
        if isinstance(inner, exp.Column) and self._is_truth(inner):
            return Value(self._column_name(inner))
        if isinstance(inner, exp.Boolean):
            return Value("1.0" if inner.this else "0.0")
        return self.value(node, text)


def _renamed(line: str) -> str:
    """A line of a term, with names of its own: as0 for a0, u1 for v1."""
    return re.sub(r"\bv(\d+)\b", r"u\1", re.sub(r"\b([ab])(\d+)\b", r"\1s\2", line))
