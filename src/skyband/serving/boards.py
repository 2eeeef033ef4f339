"""The answers of a query that readers see: the complete latest one, and some earlier ones.

The thread that runs the query publishes answers. This takes as long for a thousand readers as for none: a reader takes
the latest answer when it is ready, and learns how many it has missed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa

KEPT: Final = 128  # answers that can still be asked for, and that a reader that was away can catch up on


@dataclass(frozen=True)
class Answer:
    """All that a query said at one moment."""

    version: int  # answers are counted from 1
    table: pa.Table
    at: Any = None  # the end of its window; None: it has none
    batch: int | None = None  # the micro-batch, or the push, that it is from
    watermark: Any = None  # no earlier row was waited for then
    published: float = field(default_factory=time.monotonic, compare=False)
    encoded: dict[Any, bytes] = field(default_factory=dict, compare=False)  # what readers share, by what they asked for


class Board:
    """The latest answers of one query."""

    def __init__(self, name: str, *, kept: int = KEPT) -> None:
        self.name = name
        self._answers: deque[Answer] = deque(maxlen=kept)
        self._version = 0
        self._lock = Lock()
        self._bells: dict[asyncio.AbstractEventLoop, _Bell] = {}
        self.closed = False  # nothing will be published any more

    @property
    def version(self) -> int:
        """How many answers there were."""
        return self._version

    def publish(self, table: pa.Table, *, at: Any = None, batch: int | None = None, watermark: Any = None) -> None:
        """The query says this now."""
        with self._lock:
            self._version += 1
            self._answers.append(Answer(self._version, table, at, batch, watermark))
            self._ring()

    def close(self) -> None:
        """Readers are told that this was all."""
        with self._lock:
            self.closed = True
            self._ring()

    def latest(self) -> Answer | None:
        with self._lock:
            return self._answers[-1] if self._answers else None

    def kept(self) -> list[Answer]:
        """The answers that can still be asked for, the latest last."""
        with self._lock:
            return list(self._answers)

    def since(self, version: int, most: int = KEPT) -> tuple[list[Answer], int]:
        """The answers after `version` that are still kept, the latest `most` of them, and how many are not given."""
        with self._lock:
            # From the end: a reader that keeps up asks for one.
            found: list[Answer] = []
            for answer in reversed(self._answers):
                if answer.version <= version or len(found) == most:
                    break
                found.append(answer)
            found.reverse()
            return found, self._version - version - len(found)

    async def change(self, version: int) -> None:
        """Return when there is an answer after `version`, or when there will be none."""
        with self._lock:
            if self._version > version or self.closed:
                return
            loop = asyncio.get_running_loop()
            event = self._bells.setdefault(loop, _Bell()).event
        await event.wait()

    def _ring(self) -> None:
        """Wake all readers, with one call to each event loop, however many they are."""
        for loop, bell in [*self._bells.items()]:
            if bell.is_rung:
                continue
            bell.is_rung = True
            try:
                loop.call_soon_threadsafe(self._wake, loop)
            except RuntimeError:  # the loop is closed: its server has stopped
                del self._bells[loop]

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            bell = self._bells.pop(loop, None)
        if bell is not None:
            bell.event.set()


@dataclass
class _Bell:
    event: asyncio.Event = field(default_factory=asyncio.Event)
    is_rung: bool = False


def windows_of(table: pa.Table, most: int = KEPT) -> list[tuple[Any, pa.Table]]:
    """The last windows of a table of answers: the end of each, and its rows; the latest last."""
    ends = table.column("window_end").combine_chunks()
    if isinstance(ends, pa.ChunkedArray):
        ends = pa.concat_arrays(ends.chunks)
    numbers = np.asarray(ends.view(pa.int64()) if pa.types.is_timestamp(ends.type) else ends)
    cuts = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = [0, *cuts.tolist()][-most:]
    stops = [*starts[1:], table.num_rows]
    return [(ends[start].as_py(), table.slice(start, stop - start)) for start, stop in zip(starts, stops, strict=True)]


def latest_of_groups(before: pa.Table | None, table: pa.Table, groups: Sequence[str]) -> pa.Table:
    """The last window of each group, where groups have windows of their own: by count."""
    rows = table if before is None else pa.concat_tables([before, table])
    keys = list(zip(*(rows.column(name).to_pylist() for name in groups), strict=True))
    ends = rows.column("window_end").to_pylist()
    last: dict[Any, Any] = dict(zip(keys, ends, strict=True))  # a group's windows come in order
    kept = np.array([last[key] == end for key, end in zip(keys, ends, strict=True)], bool)
    return rows.filter(pa.array(kept))
