"""The answers of a running pipeline over HTTP: each micro-batch of a query replaces what its board shows, whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.emit import gives_windows
from skyband.dialect.query_spec import QuerySpec
from skyband.errors import InvalidQuery
from skyband.pipelines.answers import Answers
from skyband.pipelines.figures import Figures
from skyband.pipelines.model import Pipeline
from skyband.serving import formats
from skyband.serving.catalog import Catalog
from skyband.serving.served import Served

MOST_ROWS: Final = 100_000  # of a micro-batch's answers that are brought to this process to be served


class ServedQuery(Served):
    """One query of a pipeline, as readers see it. Its state is on the workers, so `top` cannot be asked."""

    def __init__(self, name: str, statement: str, spec: QuerySpec, figures: Figures, *, is_resumed: bool) -> None:
        super().__init__(name, spec.query, statement)
        self._figures, self._batch = figures, 0
        # What had entered before a restart is not said again, so what changes add up to lacks it.
        self.is_whole = gives_windows(spec.query.emit) or not is_resumed
        self._schema: pa.Schema | None = None

    @property
    def output_schema(self) -> pa.Schema | None:
        return self._schema

    def take(self, answers: Answers, batch: int) -> None:
        """What a micro-batch said; all of it is published, or the latest window of it, before the next one is."""
        table = answers.table if answers.in_hand else answers.frame.limit(MOST_ROWS).toArrow()
        self._schema, self._batch = table.schema, batch
        order = ("at",) if "change" in table.schema.names else ("window_end", *self._groups, "rank")
        self._say(_in_order(table, *order) if {"change", "window_end"} & set(table.schema.names) else table)

    def fail(self, why: str) -> None:
        self.problem = why

    def top(self, k: int | None, size: str | int | None) -> NoReturn:
        raise InvalidQuery("The state of this query is on Spark's workers: so you can ask only for its answers.")

    def close(self) -> None:
        self.board.close()

    def describe(self) -> dict[str, Any]:
        running = "running" if self._figures.up and not self.board.closed else "ended"
        return {**super().describe(), "state": "failed" if self.problem else running}

    def figures(self) -> dict[str, Any]:
        now = self._figures
        return {
            "rows_in": now.rows_in,
            "rows_late": now.rows_late,
            "rows_without_time": now.rows_without_time,
            "rows_set_aside": now.rows_set_aside,
            "rows_held": now.rows_held,
            "bytes_held": now.bytes_held,
            "rows_per_second": round(now.rows_per_second, 1),
            "watermark": formats.value(now.watermark),
            "batch": now.batch,
            "batch_seconds": now.batch_seconds,
        }

    def _publish(self, table: pa.Table, at: Any = None) -> None:
        watermark = self._figures.watermark if at is None else self._passed(at)
        self.board.publish(table, at=at, batch=self._batch, watermark=watermark)

    def _passed(self, end: Any) -> Any:
        """Where the watermark is at least, when a window has closed: Spark reports it after the micro-batch."""
        reported = self._figures.watermark
        return end if reported is None or type(end) is not type(reported) else max(end, reported)


class ServedPipeline:
    """All queries of a pipeline that are served."""

    def __init__(self, pipeline: Pipeline, metrics: Callable[[], bytes]) -> None:
        self.catalog = Catalog(pipeline.name, metrics=metrics)
        self._pipeline = pipeline
        self._served: dict[str, ServedQuery] = {}

    def begin(self, specs: Mapping[str, QuerySpec], figures: Mapping[str, Figures], *, is_resumed: bool) -> None:
        """Queries that are about to run, with the figures that will be counted of them."""
        for name, spec in specs.items():
            statement = self._pipeline.queries[name].sql.strip()
            self._served[name] = ServedQuery(name, statement, spec, figures[name], is_resumed=is_resumed)
            self.catalog.add(self._served[name])

    def take(self, name: str, answers: Answers, batch: int) -> None:
        if name in self._served:
            self._served[name].take(answers, batch)

    def fail(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if name in self._served:
                self._served[name].fail(why)


def _in_order(table: pa.Table, *names: str) -> pa.Table:
    """Rows by columns, those that are equal in the order they had; columns that are not there do not count."""
    order = np.arange(table.num_rows)
    for name in reversed([name for name in names if name in table.schema.names]):
        ranks = np.asarray(pc.rank(table.column(name), tiebreaker="dense"))
        order = order[np.argsort(ranks[order], kind="stable")]
    return table.take(pa.array(order))
