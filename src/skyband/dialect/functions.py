"""The functions that statements may call, and the error for an unknown one."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from skyband.expressions import functions
from skyband.expressions.aggregates import FUNCTIONS
from skyband.expressions.grammar import READ, READ_IN_ROWS

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement

_NO_CALLS = frozenset({"AND", "OR", "CASE"})


@cache
def known_functions() -> tuple[str, ...]:
    """Those of SQL that an expression may call, and the aggregates."""
    kinds = (kind for kind in (*READ, *READ_IN_ROWS) if issubclass(kind, exp.Func))
    return tuple(sorted(({name for kind in kinds for name in kind.sql_names()} - _NO_CALLS) | set(FUNCTIONS)))


def unknown_function(tree: exp.Expr) -> exp.Anonymous | None:
    """The first call of a function that nobody knows."""
    return next((one for one in tree.find_all(exp.Anonymous) if functions.find(one.name) is None), None)


def refuse_function(statement: Statement, call: exp.Anonymous) -> NoReturn:
    near = difflib.get_close_matches(call.name.upper(), known_functions(), n=1, cutoff=0.7)
    own = f"; and of your own: {functions.known()}" if functions.meaning() else ""
    possible = f"Did you mean {near[0]}?" if near else f"Functions: {', '.join(known_functions())}{own}."
    statement.refuse(f"There is no function {call.name!r}", call, possible)
