"""The metrics of a query, from Spark's report on each of its micro-batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

SET_ASIDE: Final = "skyband_set_aside"  # the observed metric that counts bad records starts with this

_FARTHEST: Final = datetime(2200, 1, 1, tzinfo=UTC)  # a clock of whole numbers lies far behind this


@dataclass
class Figures:
    """A query so far; rates and times are of its last micro-batch."""

    query: str
    shared: bool = False  # is its stream also that of others?
    batch: int = -1
    rows_in: int = 0  # since this start, as all counts are
    rows_late: int = 0
    rows_without_time: int = 0
    rows_set_aside: int = 0
    rows_gathered: int = 0  # not ruled out before the shuffle
    rows_held: int = 0  # now
    bytes_held: int = 0  # now
    rows_per_second: float = 0.0
    batch_seconds: float = 0.0
    watermark: datetime | None = None
    newest: datetime | None = None  # the latest event time seen
    changes: Counter[str] = field(default_factory=Counter)  # rows of answers, by kind
    up: bool = True

    def take(self, progress: Mapping[str, Any]) -> bool:
        """Count a micro-batch in; False if it was counted before."""
        if progress["batchId"] <= self.batch:
            return False
        self.batch = progress["batchId"]
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        for name, observed in (progress.get("observedMetrics") or {}).items():
            # Of queries that share a stream each has counts under its name; bad records are everybody's.
            if not self.shared or name == f"skyband_{self.query}" or name.startswith(SET_ASIDE):
                self._observe(observed)
        rows = sum(source["numInputRows"] for source in progress["sources"])
        self.rows_in += rows
        if rows or not self.batch_seconds:
            self.batch_seconds = seconds
            self.rows_per_second = rows / seconds if seconds else 0.0
        times = progress.get("eventTime") or {}
        self.watermark = _moment(times.get("watermark")) or self.watermark
        self.newest = max(filter(None, (self.newest, _moment(times.get("max")))), default=None)
        return True

    def copy(self) -> Figures:
        return replace(self, changes=Counter(self.changes))

    def _observe(self, observed: Any) -> None:
        counts = observed if isinstance(observed, Mapping) else observed.asDict()
        if counts.keys() == {"values", "schema"}:  # as Spark Connect sends a row
            names = [field["name"] for field in counts["schema"]["fields"]]
            counts = dict(zip(names, counts["values"], strict=True))
        self.rows_late += counts.get("rows_late") or 0
        self.rows_without_time += counts.get("rows_null_time") or 0
        self.rows_set_aside += counts.get("rows_set_aside") or 0
        self.rows_gathered += counts.get("rows_gathered") or 0
        self.rows_held += counts.get("rows_held_change") or 0
        self.bytes_held += counts.get("bytes_held_change") or 0

    def lag_seconds(self, now: datetime) -> float | None:
        """How far the newest row is behind the clock; None if its time is none of ours."""
        return None if self.newest is None else (now - self.newest).total_seconds()

    def as_json(self, now: datetime) -> dict[str, Any]:
        shown = asdict(self) | {"changes": dict(self.changes), "lag_seconds": self.lag_seconds(now)}
        return shown | {
            name: value and value.isoformat() for name, value in shown.items() if isinstance(value, datetime)
        }


def _moment(text: str | None) -> datetime | None:
    """A time that Spark reports; None for none yet, and for the clock of a column of whole numbers."""
    if not text or text.startswith("1970-01-01T00:00:00") or not text[:4].isdigit() or text[4] != "-":
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment < _FARTHEST else None
