"""Statements as text: read into a tree, printed again, and pointed into where something is wrong."""

from __future__ import annotations

from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from skyband.dialect.grammar import Continuous, SkybandSql
from skyband.errors import InvalidQuery, InvalidSql


def read(text: str) -> Continuous:
    """The one statement in `text`."""
    if not isinstance(text, str):
        raise InvalidQuery(f"A statement is text, got {type(text).__name__}.")
    try:
        statements = [statement for statement in SkybandSql().parse(text) if statement is not None]
    except ParseError as error:
        first: dict[str, Any] = error.errors[0] if error.errors else {}
        # What stands before the place, as far back as sqlglot shows it.
        before = str(first.get("start_context") or "")
        why = str(first.get("description") or error)
        # Its own words about tokens and classes say little to who wrote the statement.
        refuse(
            text,
            f"Cannot read this: {'something is missing here' if '<' in why else why}",
            text.find(before) + len(before),
        )
    except (SqlglotError, RecursionError) as error:
        why = "a quote is not closed" if isinstance(error, TokenError) else "it is nested too deeply"
        raise InvalidSql(f"Cannot read this: {why}.\n{_quoted(text)}") from None
    if not statements:
        raise InvalidSql("There is no statement here. A statement: SELECT … FROM … [WINDOW …] ORDER BY … LIMIT k.")
    if len(statements) > 1:
        raise InvalidSql(f"One statement at a time, got {len(statements)}.\n{_quoted(text)}")
    statement = statements[0]
    if not isinstance(statement, Continuous):
        refuse(text, f"Only SELECT can be answered, not {statement.key.upper()}", 0)
    return statement


def write(statement: exp.Expr) -> str:
    """The tree as text."""
    return statement.sql(dialect=SkybandSql)


def refuse(text: str, why: str, where: exp.Expr | int | None = None, possible: str = "") -> NoReturn:
    """Raise `InvalidSql`: what is wrong, the line it is in with a mark below the place, and what is possible."""
    place = where if isinstance(where, int) else None if where is None else place_of(where)
    raise InvalidSql(f"{why.rstrip('.')}.\n{_quoted(text, place)}" + (f"\n{possible}" if possible else ""))


def place_of(node: exp.Expr) -> int | None:
    """Where in the text the node is: at its first part that knows."""
    places = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(places) if places else None


def _quoted(text: str, place: int | None = None) -> str:
    """The text, indented; under the line with the place, a mark."""
    lines, start = [], 0
    for line in text.splitlines():
        shown = line.expandtabs(1)
        lines.append(f"  {shown}")
        if place is not None and start <= place <= start + len(line):
            lines.append("  " + " " * (place - start) + "^")
        start += len(line) + 1
    return "\n".join(lines)
