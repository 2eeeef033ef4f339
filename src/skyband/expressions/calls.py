"""Functions of several values, as nodes of their own, written as they are called: LPAD(s, 5, '*'), ADD_MONTHS(d, n).

The parser makes such a node instead of sqlglot's, which may be written as another function. `string_calls` and
`month_calls` say what each gives, in polars and in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Literal, NamedTuple

import pyarrow as pa
from sqlglot import exp

Gives = Literal["text", "number", "truth", "date", "moment"]


class RowCall(exp.Expression, exp.Func):
    """A call, with its arguments in `expressions`. A unit of time is a Var, which is no value."""

    arg_types: ClassVar = {"expressions": False}
    is_var_len_args = True
    gives: ClassVar[Gives] = "text"

    @property
    def values(self) -> list[exp.Expr]:
        """The arguments that are evaluated."""
        return [one for one in self.expressions if not isinstance(one, exp.Var)]


class Given(NamedTuple):
    """An argument of a call."""

    category: str  # "text", "whole", "decimal", "float", "truth", "timestamp", "date" or "span"
    time: pa.DataType | None  # its type, if it is a time
    text: str | None  # the string that is written out here
    number: int | None  # the whole number that is written out here
    bits: int = 0  # of a whole number


def _named(name: str, gives: Gives) -> type[RowCall]:
    return type(f"Call{name.title().replace('_', '')}", (RowCall,), {"_sql_names": [name], "gives": gives})


_GIVEN: Final[dict[Gives, str]] = {
    "text": "LPAD RPAD CONCAT_WS TRANSLATE REPEAT REGEXP_REPLACE SUBSTRING_INDEX DAYNAME MONTHNAME TO_DATE "
    "TO_TIMESTAMP",
    "number": "LOCATE INSTR CHARINDEX BIT_LENGTH OCTET_LENGTH TIMESTAMPDIFF DATEDIFF DATE_DIFF MONTHS_BETWEEN "
    "UNIX_TIMESTAMP UNIX_SECONDS UNIX_MILLIS UNIX_MICROS DIV CBRT",
    "truth": "REGEXP_LIKE",
    "date": "ADD_MONTHS LAST_DAY NEXT_DAY MAKE_DATE",
    "moment": "TIMESTAMPADD DATEADD DATE_ADD TIMESTAMP_SECONDS TIMESTAMP_MILLIS TIMESTAMP_MICROS",
}
CALLS: Final = {name: _named(name, gives) for gives, names in _GIVEN.items() for name in names.split()}
WITH_UNITS: Final = frozenset({"TIMESTAMPADD", "DATEADD", "DATE_ADD", "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF"})


def name_of(call: RowCall) -> str:
    return str(call.sql_names()[0])


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of this function of the table."""
    return CALLS[name](expressions=list(arguments))


def with_unit(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """TIMESTAMPADD(MONTH, n, ts) and others whose first argument is a unit of time: a name, which is no column."""
    first, *others = arguments
    unit = first.name.upper().removesuffix("S")
    if isinstance(first, (exp.Column, exp.Var)) or (isinstance(first, exp.Literal) and first.is_string):
        first = exp.var(unit)
    return call(name, first, *others)


def _builder(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        return call(name, *arguments)

    return build


def _unit_builder(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        return with_unit(name, arguments) if len(arguments) == 3 else exp.Anonymous(this=name, expressions=arguments)

    return build


def _to_time(name: str, otherwise: Callable[[exp.Expr], exp.Expr]) -> Callable[[list[exp.Expr]], exp.Expr]:
    """TO_DATE(s) is a cast; TO_DATE(s, format) reads a format."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        return otherwise(arguments[0]) if len(arguments) == 1 else call(name, *arguments)

    return build


def _part(arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_PART('month', ts): EXTRACT with a string for the unit."""
    if len(arguments) != 2 or not (isinstance(arguments[0], exp.Literal) and arguments[0].is_string):
        return exp.Anonymous(this="DATE_PART", expressions=arguments)
    return exp.Extract(this=exp.var(arguments[0].name.upper()), expression=arguments[1])


def _seconds(arguments: list[exp.Expr]) -> exp.Expr:
    """UNIX_TIMESTAMP(ts). Without an argument it would be the present time; with a format it reads a string."""
    if len(arguments) != 1:
        return exp.Anonymous(this="UNIX_TIMESTAMP", expressions=arguments)
    return call("UNIX_TIMESTAMP", *arguments)


# What the parser makes of these names. Others are nodes of sqlglot, which `synonyms` puts in other words.
CALL_PARSERS: Final[dict[str, Callable[[list[exp.Expr]], exp.Expr]]] = {
    **{name: _builder(name) for name in CALLS if name not in WITH_UNITS},
    **{name: _unit_builder(name) for name in ("TIMESTAMPADD", "DATEADD", "TIMESTAMPDIFF")},
    "TO_DATE": _to_time("TO_DATE", lambda text: exp.Cast(this=text, to=exp.DataType.build("DATE"))),
    "TO_TIMESTAMP": _to_time("TO_TIMESTAMP", lambda text: exp.Cast(this=text, to=exp.DataType.build("TIMESTAMP"))),
    "DATE_PART": _part,
    "DATEPART": _part,
    "UNIX_TIMESTAMP": _seconds,
    "TO_UNIX_TIMESTAMP": _seconds,
}
