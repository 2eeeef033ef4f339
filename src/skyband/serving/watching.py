"""Watches an embedded session: its latest answer on a board, its metrics, and its recent rows."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from threading import Event, Lock, Thread, current_thread
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.calls import Came
from skyband.core.emit import gives_windows
from skyband.core.explain import explain
from skyband.core.session import Session
from skyband.errors import SkybandError
from skyband.serving import formats
from skyband.serving.served import Served

_REFRESH_SECONDS: Final = 0.05  # between two looks at a ranking that changes with every row
_RATE_SECONDS: Final = 2.0  # over which rows per second are counted
_WEIGH_SECONDS: Final = 5.0  # between two snapshots that are taken to learn their size
_WEIGH_ROWS: Final = 20_000  # held at most: a larger snapshot would hold up the session

Shows = Callable[[pa.Table], pa.Table]  # from what a session gives to what is shown of it


class Watched(Served):
    """A session whose answers go to a board."""

    def __init__(
        self, session: Session, name: str, *, statement: str | None = None, shows: Shows | None = None
    ) -> None:
        super().__init__(name, session.query, statement)
        self.session, self._shows = session, shows
        self.picture = self._problem.picture(session)
        self._pushes, self._watermark, self._latest = 0, None, None
        self._pace: deque[tuple[float, int]] = deque()
        self._lock = Lock()
        self._news, self._ended = Event(), Event()
        self._weighed, self._bytes_held = -_WEIGH_SECONDS, 0
        self.can_be_asked = self._answers_top()
        self._is_refreshed = self.can_be_asked and not gives_windows(self._query.emit)
        self._end = session.observe(self._observe)
        self._refresher = Thread(target=self._refresh, name=f"skyband serves {name}", daemon=True)
        if self._is_refreshed:
            self._refresher.start()

    @property
    def output_schema(self) -> pa.Schema:
        return self.session.output_schema

    def close(self, state: str = "ended", problem: str | None = None) -> None:
        """Stop watching; the last answer stays."""
        if self._ended.is_set():
            return
        self._end()
        self.state, self.problem = state, problem
        self._ended.set()
        self._news.set()
        if self._is_refreshed and current_thread() is not self._refresher:
            self._refresher.join()  # it looks at what came last
        self.board.close()

    def top(self, k: int | None, size: str | int | None) -> pa.Table:
        """Right now; raises what `session.top` does."""
        return self._shown(self.session.top(k, size))

    def figures(self) -> dict[str, Any]:
        """How it is doing, as JSON."""
        try:
            stats = self.session.stats()
        except SkybandError as error:  # a session that failed has no more to say
            self.state, self.problem = "failed", str(error)
            return {}
        plan, in_window = self.session.plan, None if self.picture is None else self.picture.rows_in_window()
        return {
            "rows_in": stats.rows_in,
            "rows_used": stats.rows_used,
            "rows_late": stats.rows_late,
            "rows_without_time": stats.rows_null_time,
            "rows_set_aside": stats.rows_jumped,
            "rows_unranked": stats.rows_unranked,
            "rows_held": stats.rows_held,
            "rows_in_window": in_window,
            "rows_expected": self._expected(stats.groups, in_window),
            "rows_per_second": self._rows_per_second(),
            "bytes_held": self._weigh(stats.rows_held),
            "watermark": formats.value(self._watermark),
            "batch": self._pushes,
            "algorithm": plan.algorithm,
        }

    # -- inside ------------------------------------------------------------------------------------------------------

    def _answers_top(self) -> bool:
        try:
            self.session.top()
        except SkybandError:
            return False
        return True

    def _observe(self, first: int, came: Came, result: pa.Table) -> None:
        """Of the session, in the thread that pushes."""
        self._pushes += 1
        for source, batch in came:
            with self._lock:
                self._pace.append((time.monotonic(), batch.num_rows))
            self._notice_time(batch)
            if self.picture is not None:
                self.picture.take(first, batch, source)
        if self._is_refreshed:
            self._news.set()
        else:
            self._say(result)

    def _notice_time(self, batch: pa.RecordBatch) -> None:
        on = getattr(self._query.window, "on", None)
        if on is None or on not in batch.schema.names or not batch.num_rows:
            return
        latest = pc.max(batch.column(on))
        if latest.is_valid:
            if pa.types.is_timestamp(latest.type) and latest.type.unit == "ns":
                latest = latest.cast(pa.timestamp("us", latest.type.tz), safe=False)
            lateness = getattr(self._query, "lateness", None)
            self._latest = latest.as_py() if self._latest is None else max(self._latest, latest.as_py())
            self._watermark = self._latest if lateness is None else self._latest - lateness

    def _shown(self, table: pa.Table) -> pa.Table:
        return table if self._shows is None else self._shows(table)

    def _publish(self, table: pa.Table, at: Any = None) -> None:
        if self.picture is not None:
            self.picture.show(table)
            if (score := self._score_to_beat(table)) is not None:
                self.picture.step(at if at is not None else self._latest, score)
        self.board.publish(table, at=at, batch=self._pushes, watermark=self._watermark)

    def _score_to_beat(self, table: pa.Table) -> float | None:
        """That of the last row listed, if the list is full."""
        if self._groups or table.num_rows != self._query.k or "score" not in table.schema.names:
            return None
        last = table.column("score")[-1].as_py()
        return float(last) if isinstance(last, int | float | Decimal) and math.isfinite(last) else None

    def _expected(self, groups: int, in_window: int | None) -> float | None:
        """How many rows the plan expects to hold: of a window by value, with as many rows as it has now."""
        plan, rows, rankings = self.session.plan, self.session.plan.rows, max(1, groups if self._groups else 1)
        if plan.assumption:
            if not in_window or not self._problem.has_one_window:
                return None
            considered = explain(self._query, window_rows=in_window / rankings).plan.considered
            rows = next((choice.rows for choice in considered if choice.algorithm == plan.base), math.nan)
        return None if math.isnan(rows) else rows * rankings

    def _weigh(self, rows_held: int) -> int | None:
        """How many bytes a snapshot has, of late; None: too many to take one for this."""
        if rows_held > _WEIGH_ROWS:
            return None
        if time.monotonic() - self._weighed >= _WEIGH_SECONDS:
            self._bytes_held, self._weighed = len(self.session.snapshot()), time.monotonic()
        return self._bytes_held

    def _refresh(self) -> None:
        """In a thread of its own: ask anew when rows have come, not more often than anybody can see."""
        looked, is_over = 0, False  # pushes that were looked at
        while not is_over:
            self._news.wait()
            self._news.clear()
            is_over = self._ended.is_set()  # then the last rows may still be news
            if looked != self._pushes:
                looked = self._pushes
                try:
                    answer = self._shown(self.session.top())
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
