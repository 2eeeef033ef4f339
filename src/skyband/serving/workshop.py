"""Where statements are run and stopped while one looks on: the tables there are, and the queries over them.

A table is a file, read at a steady pace as if its rows came now, or a stream that never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any, Final

import pyarrow as pa

from skyband.core.emit import MODES
from skyband.core.encoding.inputs import read
from skyband.core.explain import Explanation, readable
from skyband.core.registry import problem_of
from skyband.dialect.functions import known_functions
from skyband.dialect.statement import Statement, understand
from skyband.dialect.syntax import WORDS
from skyband.errors import InvalidQuery, SkybandError
from skyband.serving.catalog import Catalog
from skyband.serving.watching import Watched
from skyband.sql.recognise import recognise
from skyband.sql.run import Started, plan, start

MOST_RUNNING: Final = 8
MOST_STATEMENT: Final = 8_000  # characters
_PUSHES_PER_SECOND: Final = 25
_UNITS: Final = ("SECOND", "SECONDS", "MINUTE", "MINUTES", "HOUR", "HOURS", "DAY", "DAYS")


def words() -> dict[str, Any]:
    """The words and functions of the dialect, for the editor to colour and to complete, and how long a statement is."""
    single = [each for word in WORDS for each in word.split()]
    return {
        "words": list(dict.fromkeys([*single, "ALL", *(mode.upper() for mode in MODES), *_UNITS])),
        "functions": [*known_functions(), "ROW_NUMBER", "RANK", "DENSE_RANK"],
        "most": MOST_STATEMENT,
    }


@dataclass(frozen=True)
class Feed:
    """Rows that can be asked for by name."""

    name: str
    schema: pa.Schema
    open: Callable[[int], Any]  # from the rows of a batch to the rows, from the start
    rows_per_second: float | None  # None: as fast as they can be ranked

    @property
    def batch_rows(self) -> int:
        return 10_000 if self.rows_per_second is None else max(1, round(self.rows_per_second / _PUSHES_PER_SECOND))


def table_feed(name: str, data: Any, rows_per_second: float | None) -> Feed:
    """A table, or whatever `sql` takes and that can be read again."""
    return Feed(name, read(data).plain().schema, lambda _: data, rows_per_second)


class Workshop:
    """Runs statements over feeds; each becomes a query of the catalog."""

    def __init__(self, catalog: Catalog, feeds: Mapping[str, Feed]) -> None:
        self._catalog, self.feeds = catalog, dict(feeds)
        self._running: dict[str, _Run] = {}
        self._count = 0
        self._lock = Lock()

    def check(self, text: str) -> dict[str, Any]:
        """What a statement would be, as JSON; raises what is wrong with it."""
        statement = understand(_sized(text))
        spec = recognise(statement, {name: feed.schema for name, feed in self._feeds_of(statement).items()})
        problem = problem_of(spec.query)
        return {
            "problem": problem.name,
            "title": readable(problem.title(spec.query)).partition("; ")[0],
            "summary": problem.summary(spec.query),
        }

    def explain(self, text: str) -> Explanation:
        """The plan of a statement. No stream is read; tables beside streams are, as when it runs."""
        statement = understand(_sized(text))
        if statement.explain == "ANALYZE":
            raise InvalidQuery("EXPLAIN ANALYZE reads its input to the end, and a stream has none. Use EXPLAIN.")
        feeds = self._feeds_of(statement)
        tables = {one.name for one in statement.leaves if one.window is None and statement.window is None}
        given = {
            name: feed.open(feed.batch_rows) if name in tables else feed.schema.empty_table()
            for name, feed in feeds.items()
        }
        return plan(text, given)

    def start(self, text: str) -> Watched:
        """Begin to run a statement; its query is in the catalog from then on."""
        statement = understand(_sized(text))
        found = self._feeds_of(statement)
        slowest = min((feed.rows_per_second or float("inf") for feed in found.values()), default=float("inf"))
        with self._lock:
            self._make_room()
            batch_rows = min((feed.batch_rows for feed in found.values()), default=1)
            started = start(text, {name: feed.open(batch_rows) for name, feed in found.items()}, batch_rows=batch_rows)
            self._count += 1
            name = f"query{self._count}"
            watched = Watched(started.running.session, name, statement=text, shows=started.shown)
            # Rows of one stream are counted as they are read: a condition may leave few of them to the session.
            rows_per_push = batch_rows if len(statement.leaves) == 1 else 0
            self._running[name] = _Run(started, watched, slowest, rows_per_push)
            self._catalog.add(watched)
        return watched

    def stop(self, name: str) -> bool:
        """Stop a statement; its query goes. False: no statement is running by that name."""
        with self._lock:
            run = self._running.pop(name, None)
        if run is None:
            return False
        run.stop()
        self._catalog.remove(name)
        return True

    def close(self) -> None:
        for name in [*self._running]:
            self.stop(name)

    def _feeds_of(self, statement: Statement) -> dict[str, Feed]:
        """The feeds that a statement is about, by the names it calls them."""
        by_name = {name.lower(): feed for name, feed in self.feeds.items()}
        for one in statement.leaves:
            if one.name.lower() not in by_name:
                statement.refuse(f"There is no table {one.name!r}", one.node, f"Tables: {', '.join(self.feeds)}.")
        return {one.name: by_name[one.name.lower()] for one in statement.leaves}

    def _make_room(self) -> None:
        """Queries that have come to their end give way to new ones; those that run do not."""
        for name in [name for name, run in self._running.items() if run.watched.state != "running"]:
            if len(self._running) < MOST_RUNNING:
                return
            del self._running[name]
            self._catalog.remove(name)
        if len(self._running) >= MOST_RUNNING:
            raise TooManyQueries(f"{MOST_RUNNING} statements are running. Stop one of them first.")


class TooManyQueries(SkybandError):
    """No further statement can be run now."""


class _Run:
    """A statement that is fed in a thread of its own."""

    def __init__(self, started: Started, watched: Watched, rows_per_second: float, rows_per_push: int) -> None:
        self._started, self.watched, self._rate = started, watched, rows_per_second
        self._rows_per_push = rows_per_push  # 0: nobody knows
        self._stopped = Event()
        self._thread = Thread(target=self._feed, name=f"skyband feeds {watched.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self.watched.close("stopped")

    def _feed(self) -> None:
        began, session = time.monotonic(), self._started.running.session
        try:
            for pushes, _ in enumerate(self._started.running.answers, start=1):
                rows = max(session.stats().rows_in, pushes * self._rows_per_push)
                ahead = rows / self._rate - (time.monotonic() - began)
                if ahead < -1:  # the machine does not keep up: go on from here, without a burst
                    began -= ahead
                if self._stopped.wait(max(0.0, ahead)):
                    return
            self.watched.close("ended")
        except SkybandError as error:
            self.watched.close("failed", str(error))
        except Exception as error:  # whatever it is, whoever looks on has to know
            self.watched.close("failed", f"{type(error).__name__}: {error}")
            raise


def _sized(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidQuery("There is no statement. A statement: SELECT … FROM … [WINDOW …] ORDER BY … LIMIT k.")
    if len(text) > MOST_STATEMENT:
        raise InvalidQuery(f"A statement has at most {MOST_STATEMENT:,} characters here; this one has {len(text):,}.")
    return text
