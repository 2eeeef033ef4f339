"""The functions that statements may call, and the error for an unknown one."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.other_functions import INSTEAD
from skyband.expressions import functions, row_functions
from skyband.expressions.aggregates import FUNCTIONS
from skyband.expressions.grammar import READ, READ_IN_ROWS
from skyband.expressions.synonyms import NAMES, is_synonym

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement

_NO_CALLS = frozenset({"AND", "OR", "CASE"})
_OTHER_NAMES = (  # which sqlglot gives them
    *(exp.TimeToStr, exp.TimestampTrunc, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.TimeStrToTime, exp.DateTrunc),
    *(exp.UnixToStr, exp.StrPosition, exp.DecodeCase, exp.IntDiv),
)
_TIMES = ("DATE_ADD", "DATE_BIN", "DATE_FORMAT", "DATE_TRUNC", "TO_CHAR", "DATE_PART", "FROM_UNIXTIME", "TRUNC")
_MORE = ("POSITION", "DECODE", *NAMES)


@cache
def known_functions() -> tuple[str, ...]:
    """Those of SQL that an expression may call, and the aggregates."""
    kinds = (kind for kind in (*READ, *READ_IN_ROWS, *row_functions.READ) if issubclass(kind, exp.Func))
    names = {name for kind in kinds if kind not in _OTHER_NAMES for name in kind.sql_names()}
    return tuple(sorted((names - _NO_CALLS) | {*FUNCTIONS, *_TIMES, *_MORE}))


def unknown_function(tree: exp.Expr) -> exp.Anonymous | None:
    """The first call of a function that nobody knows."""
    called = (one for one in tree.find_all(exp.Anonymous) if functions.find(one.name) is None)
    return next((one for one in called if not is_synonym(one)), None)


def refuse_function(statement: Statement, call: exp.Anonymous) -> NoReturn:
    refuse_call(statement.text, call.name, call)


def refuse_call(text: str, name: str, where: exp.Expr) -> NoReturn:
    """Raise at a call of a function of this name, which there is not."""
    near = difflib.get_close_matches(name.upper(), known_functions(), n=1, cutoff=0.7)
    own = f"; and of your own: {functions.known()}" if functions.meaning() else ""
    possible = INSTEAD.get(name.upper())
    if possible is None:
        possible = f"Did you mean {near[0]}?" if near else f"Functions: {', '.join(known_functions())}{own}."
    texts.refuse(text, f"There is no function {name!r}", where, possible)
