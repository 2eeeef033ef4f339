"""The metrics of a server in Prometheus's text format, under the same names as those of pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from skyband.serving.catalog import Catalog

_COUNTERS: Final = {
    "skyband_input_rows": ("rows_in", "Rows read."),
    "skyband_late_rows_dropped": ("rows_late", "Rows dropped because their windows had closed."),
    "skyband_bad_rows_set_aside": ("rows_set_aside", "Records set aside because they cannot be read."),
}
_GAUGES: Final = {
    "skyband_state_rows": ("rows_held", "Rows held because an answer may still show them."),
    "skyband_state_bytes": ("bytes_held", "Bytes of state."),
}


class _Collector:
    """Asks every query for its figures when it is scraped."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def collect(self) -> Iterator[Metric]:
        figures = {query.name: query.figures() for query in self._catalog.queries()}
        for name, (key, doc) in _COUNTERS.items():
            yield _filled(CounterMetricFamily(name, doc, labels=["query"]), key, figures)
        for name, (key, doc) in _GAUGES.items():
            yield _filled(GaugeMetricFamily(name, doc, labels=["query"]), key, figures)
        up = GaugeMetricFamily("skyband_query_up", "1 while the query runs.", labels=["query"])
        for query in self._catalog.queries():
            up.add_metric([query.name], float(query.describe()["state"] == "running"))
        yield up


def _filled(family: Any, key: str, figures: dict[str, dict[str, Any]]) -> Any:
    for query, found in figures.items():
        if found.get(key) is not None:
            family.add_metric([query], found[key])
    return family


def text_of(catalog: Catalog) -> bytes:
    """All figures now."""
    registry = CollectorRegistry()
    registry.register(_Collector(catalog))
    return generate_latest(registry)
