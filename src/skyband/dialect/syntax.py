"""Explains a syntax error: which word is wrong, and which one was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from skyband.dialect.grammar import SkybandSql
from skyband.dialect.nodes import Continuous

WORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "GROUP", "HAVING", "ORDER BY", "ORDER", "LIMIT", "OFFSET", "QUALIFY"),
    *("WITH", "DISTINCT", "AS", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "CASE"),
    *("WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "NULLS", "FIRST", "LAST", "JOIN", "FULL", "LEFT", "ON", "USING"),
    *("OVER", "PARTITION BY", "PARTITION", "FILTER", "CAST", "INTERVAL", "EXPLAIN", "ANALYZE", "FETCH", "UNION"),
    *("WINDOW", "EVERY", "UNTIL NOW", "UNTIL", "NOW", "ROWS", "LATENESS", "FORGET AFTER", "EMIT", "ERROR", "RECALL"),
    "BOUNDS",
)
_MOST_TRIED: Final = 16  # words in place of others, before one gives up
_MOST_CHARACTERS: Final = 10_000  # of a statement for which they are tried
_OTHERS: Final = {  # of other dialects
    r"\b(TOP)\s+\d": "Write LIMIT at the end: ORDER BY price DESC LIMIT 3.",
    r"\bWINDOW\s+(TUMBLING)\b": "Write FROM trades [WINDOW 1 HOUR EVERY 1 HOUR].",
    r"\bWINDOW\s+(HOPPING)\b": "Write FROM trades [WINDOW 1 HOUR EVERY 10 MINUTES].",
    r"\bEMIT\s+(ON)\s+WINDOW\s+CLOSE\b": "Write EMIT WINDOWS.",
}


def fault(text: str, error: ParseError) -> tuple[str, int, str]:
    """Why a text cannot be read, where, and what to write instead."""
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    before = str(first.get("start_context") or "")  # what stands before the place, as far back as sqlglot shows it
    place = text.find(before) + len(before)
    tokens = SkybandSql().tokenize(text)
    if (meant := meant_word(text, tokens, place)) is not None:
        token, word = meant
        return f"unexpected word {token.text!r}", token.start, f"Did you mean {word}?"
    here = next((token for token in tokens if token.start <= place <= token.end), None)
    for words, advice in _OTHERS.items():
        if (other := re.search(words, text, re.IGNORECASE)) is not None and other.start() <= place:
            return f"unexpected word {other[1]!r}", other.start(1), advice
    return _in_words(str(first.get("description") or error), here), place, ""


def _in_words(why: str, here: Token | None) -> str:
    """What sqlglot says, for who wrote the statement: its own words are about tokens and classes."""
    if found := re.match(r"The number of provided arguments \((\d+)\) .* \((\d+)\)", why):
        return f"a function takes {found[2]} argument{'s' * (found[2] != '1')}, got {found[1]}"
    if "<" in why or here is None:
        return "something is missing here"
    if why.startswith("Invalid expression"):
        return f"{here.text!r} does not belong here"
    return why.replace("Expecting", "Expected").replace("Expected TYPE after CAST", f"{here.text!r} is not a type")


def meant_word(text: str, tokens: list[Token], place: int) -> tuple[Token, str] | None:
    """A name up to the place that is nearly a word of the language, and the word with which it is a statement."""
    if len(text) > _MOST_CHARACTERS:
        return None
    for tried, (token, word) in enumerate(_candidates(tokens, place)):
        if tried == _MOST_TRIED:
            return None
        if is_statement(f"{text[: token.start]}{word}{text[token.end + 1 :]}"):
            return token, word
    return None


def _candidates(tokens: list[Token], place: int) -> Iterator[tuple[Token, str]]:
    """The nearest to the place come first."""
    for i, token in reversed([*enumerate(tokens)]):
        if token.start > place or token.token_type not in (TokenType.VAR, TokenType.TOP):
            continue
        said = token.text.upper()
        if said in exp.FUNCTION_BY_NAME and tokens[i + 1 : i + 2] and tokens[i + 1].token_type == TokenType.L_PAREN:
            continue  # it calls a function
        for word in difflib.get_close_matches(said, WORDS, n=3, cutoff=0.5 if len(said) < 4 else 0.6):
            if word != said:
                yield token, word


def is_statement(text: str) -> bool:
    """Can it be read?"""
    try:
        statements = SkybandSql().parse(text)
    except (SqlglotError, RecursionError):
        return False
    return len(statements) == 1 and isinstance(statements[0], Continuous)
