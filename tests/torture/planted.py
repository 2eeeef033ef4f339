"""`make torture ARGS=--planted`: a bug is planted for each line of the campaign, and the line has to find it.

A zero proves little if a line cannot fail. A line that works in processes of its own plants the bug there, too:
`TORTURE_PLANTED` is its number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from deltalake import CommitProperties

from skyband.core import clock, store
from skyband.core.encoding import groups
from skyband.core.query import Query, replace_unchecked
from skyband.core.session import Session
from skyband.core.validation import Saved
from skyband.expressions import tree
from skyband.pipelines import delta, sinks
from skyband.windows import Window
from torture.campaign import Line, Result

PLANTED = "TORTURE_PLANTED"


@dataclass(frozen=True)
class Bug:
    words: str
    seeds: int  # so many have to be enough to find it
    plant: Callable[[], AbstractContextManager[Any]]


def _save_in_place(self: Any, state: bytes) -> None:
    self._file(0).write_bytes(self._digest(state) + state[: len(state) // 2])
    self._file(0).write_bytes(self._digest(state) + state)


def _write_silently(place: Any, *parts: Any) -> None:
    try:
        _write(place, *parts)
    except OSError:
        place.touch()


def _write_parquet_silently(table: Any, folder: Any) -> None:
    with suppress(OSError):
        _write_parquet(table, folder)


def _restore_later(self: Any, state: Any) -> None:
    _restore(self, state)
    if self.waits:
        self.closed += self.window.every


def _push_less(self: Any, rows: Any, source: Any = None) -> Any:
    return _push(self, rows.slice(0, min(rows.num_rows, 100)), source)


def _parse_raw(text: str, **options: Any) -> Any:
    raise KeyError(text)


def _parse_from_file(text: str, **options: Any) -> Any:
    with open(os.devnull, "w") as file:
        file.write(text)
    return _parse(text, **options)


def _of_any_k(self: Any, schema: Any) -> str:
    return _fingerprint(replace_unchecked(self, k=1), schema)


def _tick_later(self: Any, schema: Any, lateness: Any = None) -> Any:
    found = _ticks(self, schema, lateness)
    return replace(found, lateness=found.lateness + 1)


def _push_but_one(self: Any, rows: Any, source: Any = None) -> Any:
    return _push(self, rows.slice(0, max(rows.num_rows - 1, 0)), source)


_write, _restore, _push, _parse = store._write, clock.WindowClock.restore, Session._push, tree.parse
_write_parquet = sinks._write_parquet
_fingerprint, _ticks = Query.fingerprint, Window.ticks

BUGS = {
    "1": Bug("a store writes over its last snapshot", 12, lambda: patch.object(store.Store, "save", _save_in_place)),
    "2": Bug(
        "a Delta table does not keep the number of a micro-batch",
        1,
        lambda: patch.object(delta.DeltaLakeTable, "_commit", lambda *_: CommitProperties()),
    ),
    "3": Bug("a store passes over errors of the disk", 60, lambda: patch.object(store, "_write", _write_silently)),
    "3s": Bug(
        "a sink of files passes over errors of the disk",
        1,
        lambda: patch.object(sinks, "_write_parquet", _write_parquet_silently),
    ),
    "4": Bug(
        "a clock is restored a window too late", 60, lambda: patch.object(clock.WindowClock, "restore", _restore_later)
    ),
    "5": Bug("the last row of a batch is lost", 10, lambda: patch.object(Session, "_push", _push_but_one)),
    "6": Bug("promises of a snapshot are not checked", 80, lambda: patch.object(Saved, "promise", lambda *_: None)),
    "7": Bug("reading an expression raises KeyError", 30, lambda: patch.object(tree, "parse", _parse_raw)),
    "9": Bug("a snapshot fits any k", 100, lambda: patch.object(Query, "fingerprint", _of_any_k)),
    "10": Bug("no group is forgotten", 6, lambda: patch.object(groups.GroupCodes, "compact", lambda *_: None)),
    "11": Bug("of a batch only 100 rows are taken", 7, lambda: patch.object(Session, "_push", _push_less)),
    "12": Bug("windows wait a tick longer than they should", 8, lambda: patch.object(Window, "ticks", _tick_later)),
    "13": Bug(
        "a session that failed goes on",
        9,
        lambda: patch.object(Session, "_failure", property(lambda _: None, lambda *_: None), create=True),
    ),
    "14": Bug("reading an expression opens a file", 9, lambda: patch.object(tree, "parse", _parse_from_file)),
}


@contextmanager
def planted_here() -> Iterator[None]:
    """In a process that a line has started: its bug, if one is planted."""
    if number := os.environ.get(PLANTED):
        with BUGS[number].plant():
            yield
    else:
        yield


def find(line: Line) -> str | None:
    """Run a line with its bug: the first failure, or None if it found nothing. Without the bug the line must pass."""
    bug = BUGS[line.number]
    if line.run(0, bug.seeds).failures:
        raise RuntimeError(f"Line {line.number} fails without a planted bug, so it cannot show that it finds one.")
    with bug.plant(), patch.dict(os.environ, {PLANTED: line.number}):
        try:
            result = line.run(0, bug.seeds)
        except Exception as error:  # a line that cannot go on has found it, too
            result = Result(failures=[(0, f"{type(error).__name__}: {error}")])
    return result.failures[0][1] if result.failures else None
