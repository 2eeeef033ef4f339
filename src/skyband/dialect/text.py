"""Statements as text: read into a tree, printed again, and pointed into where something is wrong."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from skyband.dialect.grammar import SkybandSql
from skyband.dialect.nodes import Continuous
from skyband.dialect.syntax import fault, meant_word
from skyband.errors import InvalidQuery, InvalidSql
from skyband.expressions.grammar import NESTED, TOO_LARGE, too_deep


def read(text: str) -> Continuous:
    """The one statement in `text`."""
    if not isinstance(text, str):
        raise InvalidQuery(f"A statement is text, got {type(text).__name__}.")
    try:
        statements = [statement for statement in SkybandSql().parse(text) if statement is not None]
    except ParseError as error:
        why, place, possible = fault(text, error)
        refuse(text, f"Cannot read this: {why}", place, possible)
    except (SqlglotError, RecursionError) as error:
        if isinstance(error, TokenError):
            refuse(text, "Cannot read this: a quote is not closed", _open_quote(text))
        raise InvalidSql(
            f"Cannot read this: it is nested too deeply. Parentheses and calls may stand {NESTED} deep in each other; "
            f"WITH computes a column in steps.\n{_quoted(text[:1_000])}"
        ) from None
    except IndexError:  # as sqlglot has it of MAP(x), whose arguments come in pairs
        refuse(text, "Cannot read this: a function has too few arguments", place_of_last(text, "MAP"))
    if not statements:
        raise InvalidSql("There is no statement here. A statement: SELECT … FROM … [WINDOW …] ORDER BY … LIMIT k.")
    if len(statements) > 1:
        first = next(token.start for token in SkybandSql().tokenize(text) if token.text == ";")
        refuse(text, f"One statement at a time, got {len(statements)}", first)
    statement = statements[0]
    if too_deep(statement) is not None:
        raise InvalidSql(f"This statement {TOO_LARGE}:\n  {text.strip()[:100]}…")
    if not isinstance(statement, Continuous):
        tokens = SkybandSql().tokenize(text)
        meant = meant_word(text, tokens, tokens[0].start)
        possible = "" if meant is None else f"Did you mean {meant[1]}?"
        refuse(text, f"Skyband answers only SELECT, not {tokens[0].text.upper()}", tokens[0].start, possible)
    return statement


def write(statement: exp.Expr) -> str:
    """The tree as text."""
    return statement.sql(dialect=SkybandSql)


def refuse(text: str, why: str, where: exp.Expr | int | None = None, possible: str = "") -> NoReturn:
    """Raise `InvalidSql`: what is wrong, the line it is in with a mark below the place, and what is possible."""
    place = where if isinstance(where, int) else None if where is None else place_of(where)
    error = InvalidSql(f"{why.rstrip('.')}.\n{_quoted(text, place)}" + (f"\n{possible}" if possible else ""))
    error.place, error.why = place, f"{why.rstrip('.')}. {possible}".rstrip()
    raise error


def place_of(node: exp.Expr) -> int | None:
    """Where in the text the node is: at its first part that knows."""
    places = [part.meta["start"] for part in node.walk(prune=lambda part: "start" in part.meta) if "start" in part.meta]
    return min(places) if places else None


def word_at(text: str, node: exp.Expr) -> str:
    """The word that was written where a call begins: a function may have several names."""
    place = place_of(node)
    around = "" if place is None else text[place:]
    found = re.match(r"(\w+)\s*(\(|$)", around)  # of some functions only what they take knows its place
    found = found or re.search(r"(\w+)\s*\(\s*(DISTINCT\s+)?$", text[:place], re.IGNORECASE)
    return found[1] if found else node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def place_of_word(text: str, words: tuple[str, ...], near: exp.Expr) -> int | None:
    """Where in the text a word stands that the tree has no place of: of several the one nearest to a node."""
    place = place_of(near)
    found = [token.start for token in SkybandSql().tokenize(text) if token.text.upper().split(" ")[0] in words]
    return min(found, key=lambda start: abs(start - (place or 0)), default=place)


def place_of_last(text: str, word: str) -> int | None:
    """Where in the text a word stands for the last time."""
    found = [token.start for token in SkybandSql().tokenize(text) if token.text.upper().split(" ")[0] == word]
    return found[-1] if found else None


def _open_quote(text: str) -> int | None:
    """Where the quote begins that nothing closes."""
    opened: int | None = None
    for place, sign in enumerate(text):
        if opened is None and sign in "'\"`":
            opened = place
        elif opened is not None and sign == text[opened] and text[place - 1] != "\\":
            opened = None
    return opened


def first_of(value: exp.Expr | list[Any]) -> exp.Expr | None:
    """A part of the tree, or the first of several, if it knows its place."""
    first = value[0] if isinstance(value, list) else value
    return first if isinstance(first, exp.Expr) and place_of(first) is not None else None


def _quoted(text: str, place: int | None = None) -> str:
    """The text, indented; under the line with the place, a mark."""
    lines, start = [], 0
    for line in text.splitlines(keepends=True):
        shown = line.rstrip("\r\n")
        lines.append(f"  {shown.expandtabs(1)}")
        if place is not None and start <= place < start + len(line) + (start + len(line) == len(text)):
            lines.append("  " + " " * min(place - start, len(shown)) + "^")
        start += len(line)
    return "\n".join(lines)
