"""Watches an embedded session: its latest answer on a board, its metrics, and its recent rows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.emit import gives_windows
from skyband.core.explain import Explanation, explain
from skyband.core.registry import problem_of
from skyband.core.session import Session
from skyband.errors import SkybandError
from skyband.serving import formats
from skyband.serving.boards import Board, latest_of_groups, windows_of
from skyband.serving.seen import SeenRows
from skyband.serving.standings import Standing

_REFRESH_SECONDS: Final = 0.05  # between two looks at a ranking that changes with every row
_RATE_SECONDS: Final = 2.0  # over which rows per second are counted

Shows = Callable[[pa.Table], pa.Table]  # from what a session gives to what is shown of it


class Watched:
    """A session whose answers go to a board."""

    def __init__(
        self, session: Session, name: str, *, statement: str | None = None, shows: Shows | None = None
    ) -> None:
        self.session, self.name, self.statement = session, name, statement
        self.board = Board(name)
        query: Any = session.query
        self._query, self._problem = query, problem_of(query)
        self._shows = shows or _as_it_is
        self._groups = self._problem.groups(self._query)
        self.seen = SeenRows.of(session)
        self.state = "running"
        self.problem: str | None = None  # why it stopped, if something went wrong
        self._pushes, self._watermark = 0, None
        self._pace: deque[tuple[float, int]] = deque()
        self._lock = Lock()
        self._news, self._ended = Event(), Event()
        self._standing: Standing | None = None
        self._by_group: pa.Table | None = None  # the last window of each group, where they have their own
        self._has_top = self._can_be_asked()
        if not gives_windows(query.emit) and not self._has_top and "change" in session.output_schema.names:
            self._standing = Standing(session.output_schema, key_columns(query))
        self._end = session.observe(self._observe)
        if not gives_windows(query.emit) and self._has_top:
            Thread(target=self._refresh, name=f"skyband serves {name}", daemon=True).start()

    @property
    def can_be_asked(self) -> bool:
        """Can `top` be asked for any k, right now?"""
        return self._has_top

    def close(self, state: str = "ended", problem: str | None = None) -> None:
        """Stop watching; the last answer stays."""
        if self._ended.is_set():
            return
        self._end()
        self.state, self.problem = state, problem
        self._ended.set()
        self._news.set()
        self.board.close()

    def top(self, k: int | None, size: str | int | None) -> pa.Table:
        """Right now; raises what `session.top` does."""
        return self._shows(self.session.top(k, size))

    def explanation(self) -> Explanation:
        """What runs and why."""
        return explain(self._query)

    def describe(self) -> dict[str, Any]:
        """What the query is, as JSON."""
        query, window = self._query, self._query.window
        return {
            "name": self.name,
            "title": formats.readable(self._problem.title(query)),
            "problem": self._problem.name,
            "summary": self._problem.summary(query),
            "statement": self.statement,
            "k": getattr(query, "k", None),
            "ascending": bool(getattr(query, "ascending", False)),
            "groups": list(self._groups),
            "identity": identity_of(query),
            "inputs": [] if self.seen is None else list(self.session.schema.names),
            "emit": query.emit,
            "window": None if window is None else str(window),
            "ad_hoc": self._has_top,
            "picture": self.seen is not None,
            "columns": [{"name": each.name, "type": str(each.type)} for each in self.session.output_schema],
            "state": self.state,
            "problem_text": self.problem,
        }

    def figures(self) -> dict[str, Any]:
        """How it is doing, as JSON."""
        try:
            stats = self.session.stats()
        except SkybandError as error:  # a session that failed has no more to say
            self.state, self.problem = "failed", str(error)
            return {}
        plan = self.session.plan
        return {
            "rows_in": stats.rows_in,
            "rows_used": stats.rows_used,
            "rows_late": stats.rows_late,
            "rows_without_time": stats.rows_null_time,
            "rows_set_aside": stats.rows_jumped,
            "rows_unranked": stats.rows_unranked,
            "rows_held": stats.rows_held,
            "rows_in_window": None if self.seen is None else self.seen.rows_in_window(),
            "rows_expected": formats.value(plan.rows) if plan.rows == plan.rows else None,
            "rows_per_second": self._rows_per_second(),
            "bytes_held": None,
            "watermark": formats.value(self._watermark),
            "batch": self._pushes,
            "algorithm": plan.algorithm,
        }

    # -- inside ------------------------------------------------------------------------------------------------------

    def _can_be_asked(self) -> bool:
        try:
            self.session.top()
        except SkybandError:
            return False
        return True

    def _observe(self, first: int, batch: pa.RecordBatch | None, result: pa.Table) -> None:
        """Of the session, in the thread that pushes."""
        self._pushes += 1
        if batch is not None:
            with self._lock:
                self._pace.append((time.monotonic(), batch.num_rows))
            self._notice_time(batch)
            if self.seen is not None:
                self.seen.take(first, batch)
        if gives_windows(self._query.emit):
            if result.num_rows:
                self._publish_windows(self._shows(result))
        elif self._standing is not None:
            if result.num_rows:
                self._publish(self._shows(self._standing.apply(result)))
        elif self._has_top:
            self._news.set()
        elif result.num_rows:
            self._publish(self._shows(result))

    def _notice_time(self, batch: pa.RecordBatch) -> None:
        on = getattr(self._query.window, "on", None)
        if on is None or on not in batch.schema.names or not batch.num_rows:
            return
        latest = pc.max(batch.column(on))
        if latest.is_valid:
            if pa.types.is_timestamp(latest.type) and latest.type.unit == "ns":
                latest = latest.cast(pa.timestamp("us", latest.type.tz), safe=False)
            lateness = getattr(self._query, "lateness", None)
            now = latest.as_py() if lateness is None else latest.as_py() - lateness
            self._watermark = now if self._watermark is None else max(self._watermark, now)

    def _publish_windows(self, table: pa.Table) -> None:
        if "window_end" not in table.schema.names:
            self._publish(table)
        elif self._groups and self._query.window.by_count and set(self._groups) <= set(table.schema.names):
            self._by_group = latest_of_groups(self._by_group, table, self._groups)
            self._publish(self._by_group)
        else:
            for end, rows in windows_of(table):
                self._publish(rows, at=end)

    def _publish(self, table: pa.Table, at: Any = None) -> None:
        self.board.publish(table, at=at, batch=self._pushes, watermark=self._watermark)

    def _refresh(self) -> None:
        """In a thread of its own: ask anew when rows have come, not more often than anybody can see."""
        while not self._ended.is_set():
            self._news.wait()
            self._news.clear()
            try:
                answer = self._shows(self.session.top())
            except SkybandError as error:
                self.close("failed", str(error))
                return
            before = self.board.latest()
            if before is None or not before.table.equals(answer):
                self._publish(answer)
            self._ended.wait(_REFRESH_SECONDS)

    def _rows_per_second(self) -> float:
        now = time.monotonic()
        with self._lock:
            while self._pace and self._pace[0][0] < now - _RATE_SECONDS:
                self._pace.popleft()
            return round(sum(rows for _, rows in self._pace) / _RATE_SECONDS, 1)


def key_columns(query: Any) -> tuple[str, ...]:
    """The columns that tell rankings apart, or the groups of a join."""
    return tuple(name for name in problem_of(query).key(query) if name not in ("window_end", "rank"))


def identity_of(query: Any) -> list[str]:
    """The columns by which a row of one answer is found in the next; none: it is what it shows, without its rank."""
    id = getattr(query, "id", None)
    return [id] if isinstance(id, str) else list(key_columns(query)) if getattr(query, "by", None) is None else []


def _as_it_is(table: pa.Table) -> pa.Table:
    return table
