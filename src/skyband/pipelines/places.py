"""Finds the line of a key in a TOML text. tomllib returns only values, but a message about a mistake needs the line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_HEADER: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY: Final = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART: Final = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_QUOTES: Final = ('"""', "'''")

Path = tuple[str, ...]


class Places:
    """The lines of the tables and keys of a TOML text, counted from 1."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        table: Path = ()
        closing: str | None = None  # what ends the string of several lines that we are in
        for number, line in enumerate(text.splitlines(), start=1):
            if closing is not None:
                closing = None if closing in line else closing
                continue
            if header := _HEADER.match(line):
                table = _parts(header[1])
                self._note(table, number)
            elif key := _KEY.match(line):
                self._note(table + _parts(key[1]), number)
                value = line[key.end() :].lstrip()
                quote = next((quote for quote in _QUOTES if value.startswith(quote)), None)
                closing = quote if quote and quote not in value[3:] else None

    def line(self, path: Sequence[str]) -> int:
        """The line of a key; of what it is in, if it has none of its own, as in an inline table."""
        key = tuple(path)
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def _note(self, path: Path, number: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], number)


def _parts(text: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(text))
