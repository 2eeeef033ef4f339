"""The metrics of a running pipeline for Prometheus: base units, one prefix, queries as labels.

No label has a ranked key: such a metric would grow with the data.
"""

from __future__ import annotations

from collections import Counter as Tally
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from skyband.errors import EnvironmentProblem
from skyband.pipelines.figures import Figures

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """What is scraped; `take` is told of each micro-batch."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        each = ["query"]
        self._input = Counter("skyband_input_rows", "Rows read.", each, registry=self.registry)
        self._late = Counter(
            "skyband_late_rows_dropped", "Rows dropped because their windows had closed.", each, registry=self.registry
        )
        self._aside = Counter(
            "skyband_bad_rows_set_aside", "Records set aside because they cannot be read.", each, registry=self.registry
        )
        self._changes = Counter(
            "skyband_rank_changes", "Rows of answers, by kind of change.", ["query", "change"], registry=self.registry
        )
        self._duration = Histogram(
            "skyband_batch_duration_seconds",
            "How long micro-batches take.",
            ["query"],
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._watermark = Gauge(
            "skyband_watermark_timestamp_seconds",
            "The watermark: windows do not wait for earlier rows.",
            each,
            registry=self.registry,
        )
        self._freshness = Gauge("skyband_freshness_seconds", "How old the newest row is.", each, registry=self.registry)
        self._state_rows = Gauge(
            "skyband_state_rows", "Rows held because an answer may still show them.", each, registry=self.registry
        )
        self._state_bytes = Gauge("skyband_state_bytes", "Bytes of state.", each, registry=self.registry)
        self._candidates = Gauge(
            "skyband_candidates",
            "Rows of the last batch that passed the sieve before the shuffle.",
            each,
            registry=self.registry,
        )
        self._up = Gauge("skyband_query_up", "1 while the query runs.", each, registry=self.registry)
        self._before: dict[str, Figures] = {}

    def serve(self, port: int, address: str) -> None:
        try:
            start_http_server(port, addr=address, registry=self.registry)
        except OSError as error:
            raise EnvironmentProblem(
                f"Metrics cannot be served at {address}:{port}: {error.strerror}. Name another --metrics-port."
            ) from error

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)

    def take(self, figures: Figures) -> None:
        """Count what is new since the last time."""
        name = figures.query
        before = self._before.get(name) or Figures(name)
        self._input.labels(name).inc(figures.rows_in - before.rows_in)
        self._late.labels(name).inc(figures.rows_late - before.rows_late)
        self._aside.labels(name).inc(figures.rows_set_aside - before.rows_set_aside)
        for change, rows in (Tally(figures.changes) - Tally(before.changes)).items():
            self._changes.labels(name, change).inc(rows)
        if figures.batch > before.batch:
            self._duration.labels(name).observe(figures.batch_seconds)
            self._candidates.labels(name).set(figures.rows_gathered - before.rows_gathered)
        if figures.watermark is not None:
            self._watermark.labels(name).set(figures.watermark.timestamp())
        if figures.newest is not None:
            # Asked when scraped: rows grow older while none come.
            newest = figures.newest
            self._freshness.labels(name).set_function(lambda: (datetime.now(UTC) - newest).total_seconds())
        self._state_rows.labels(name).set(figures.rows_held)
        self._state_bytes.labels(name).set(figures.bytes_held)
        self._up.labels(name).set(1 if figures.up else 0)
        self._before[name] = figures.copy()
