"""The completions of the shell: commands, tables, columns, functions and keywords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from skyband.dialect.functions import known_functions

KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "QUALIFY", "WITH", "AS", "AND", "OR"),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "NULLS"),
    *("FIRST", "LAST", "JOIN", "FULL", "ON", "USING", "OVER", "PARTITION", "ROW_NUMBER", "FILTER", "INTERVAL"),
    *("EXPLAIN", "ANALYZE", "WINDOW", "EVERY", "UNTIL", "NOW", "ROWS", "LATENESS", "FORGET", "AFTER", "SECONDS"),
    *("MINUTES", "HOURS", "DAYS", "EMIT", "WINDOWS", "CHANGES", "ENTRIES", "ERROR", "RECALL", "BOUNDS"),
)
_WORD: Final = re.compile(r"(?:(\w+)\.)?(\w*)\Z")

Schemas = Mapping[str, pa.Schema]


def completions(before: str, after: str, tables: Schemas, commands: Iterable[str]) -> tuple[int, list[str]]:
    """What may stand at the cursor: how many characters it replaces, and the words, those of the user's own first."""
    text = before.lstrip()
    if text.startswith(".") and not re.search(r"\s", text):
        return len(text), [each for each in commands if each.startswith(text.lower())]
    found = _WORD.search(before)
    assert found is not None  # it matches nothing, too
    qualifier, word = found.groups()
    if qualifier is not None:
        schema = _schema_of(qualifier, f"{before} {after}", tables)
        return len(word), _beginning(word, [] if schema is None else schema.names)
    if text.startswith(".") and not text.startswith(".explain"):
        return len(word), _beginning(word, tables)
    return len(word), _beginning(word, _words(tables)) if word else []


def _words(tables: Schemas) -> list[str]:
    columns = (name for schema in tables.values() for name in schema.names)
    return list(dict.fromkeys([*tables, *columns, *known_functions(), *KEYWORDS]))


def _beginning(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(word.lower()) and name != word]


def _schema_of(qualifier: str, text: str, tables: Schemas) -> pa.Schema | None:
    """The columns of the table that is called so, by its own name or by the one that the statement gives it."""
    by_name = {name.lower(): schema for name, schema in tables.items()}
    if qualifier.lower() in by_name:
        return by_name[qualifier.lower()]
    named = re.findall(r"(\w+)\s+(?:AS\s+)?(\w+)", text, re.IGNORECASE)
    named += re.findall(r"(\w+)\s*,?\s*\[[^\]]*\]\s*(?:AS\s+)?(\w+)", text, re.IGNORECASE)
    for name, alias in named:
        if alias.lower() == qualifier.lower() and name.lower() in by_name:
            return by_name[name.lower()]
    return None
