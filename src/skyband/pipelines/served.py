"""The answers of a running pipeline over HTTP: each micro-batch of a query replaces what its board shows, whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.emit import gives_windows
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import QuerySpec
from skyband.errors import InvalidQuery
from skyband.pipelines.answers import Answers
from skyband.pipelines.figures import Figures
from skyband.pipelines.model import Pipeline
from skyband.serving import formats
from skyband.serving.boards import Board, latest_of_groups, windows_of
from skyband.serving.catalog import Catalog
from skyband.serving.standings import Standing
from skyband.serving.watching import identity_of, key_columns

MOST_ROWS: Final = 100_000  # of a micro-batch's answers that are brought to this process to be served


class ServedQuery:
    """One query of a pipeline, as readers see it."""

    can_be_asked = False  # its state is on the workers

    def __init__(self, name: str, statement: str, spec: QuerySpec, figures: Figures, *, is_resumed: bool) -> None:
        self.name, self.board = name, Board(name)
        self._statement, self._query, self._figures = statement, spec.query, figures
        self._problem = problem_of(spec.query)
        self._groups = self._problem.groups(spec.query)
        # What had entered before a restart is not said again, so what changes add up to lacks it.
        self._is_whole = gives_windows(spec.query.emit) or not is_resumed
        self._standing: Standing | None = None
        self._by_group: pa.Table | None = None
        self._columns: list[dict[str, str]] = []
        self.failure: str | None = None

    def take(self, answers: Answers, batch: int) -> None:
        """What a micro-batch said; all of it is published, or the latest window of it, before the next one is."""
        table = answers.table if answers.in_hand else answers.frame.limit(MOST_ROWS).toArrow()
        self._columns = [{"name": each.name, "type": str(each.type)} for each in table.schema]
        if not table.num_rows:
            return
        if "change" in table.schema.names:
            self._standing = self._standing or Standing(table.schema, key_columns(self._query))
            self.board.publish(
                self._standing.apply(_in_order(table, "at")), batch=batch, watermark=self._figures.watermark
            )
        elif "window_end" not in table.schema.names:
            self.board.publish(table, batch=batch, watermark=self._figures.watermark)
        elif self._has_own_windows(table):
            self._by_group = latest_of_groups(self._by_group, _in_order(table, "window_end"), self._groups)
            self.board.publish(self._by_group, batch=batch, watermark=self._figures.watermark)
        else:
            for end, rows in windows_of(_in_order(table, "window_end", *self._groups, "rank")):
                self.board.publish(rows, at=end, batch=batch, watermark=self._passed(end))

    def top(self, k: int | None, size: str | int | None) -> NoReturn:
        raise InvalidQuery("The state of this query is on Spark's workers: only its answers can be asked for.")

    def close(self) -> None:
        self.board.close()

    def describe(self) -> dict[str, Any]:
        query = self._query
        window = getattr(query, "window", None)
        running = "running" if self._figures.up and not self.board.closed else "ended"
        return {
            "name": self.name,
            "title": formats.readable(self._problem.title(query)),
            "problem": self._problem.name,
            "summary": self._problem.summary(query),
            "statement": self._statement,
            "k": getattr(query, "k", None),
            "ascending": bool(getattr(query, "ascending", False)),
            "groups": list(self._groups),
            "identity": identity_of(query),
            "inputs": [],
            "emit": query.emit,
            "window": None if window is None else str(window),
            "ad_hoc": False,
            "picture": False,
            "columns": self._columns,
            "state": "failed" if self.failure else running,
            "problem_text": self.failure,
            "is_whole": self._is_whole,
        }

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

    def _passed(self, end: Any) -> Any:
        """Where the watermark is at least, when a window has closed: Spark reports it after the micro-batch."""
        reported = self._figures.watermark
        return end if reported is None or type(end) is not type(reported) else max(end, reported)

    def _has_own_windows(self, table: pa.Table) -> bool:
        """Does each group count its own arrivals?"""
        return bool(self._groups) and self._query.window.by_count and set(self._groups) <= set(table.schema.names)


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
                self._served[name].failure = why


def _in_order(table: pa.Table, *names: str) -> pa.Table:
    """Rows by columns, those that are equal in the order they had; columns that are not there do not count."""
    order = np.arange(table.num_rows)
    for name in reversed([name for name in names if name in table.schema.names]):
        ranks = np.asarray(pc.rank(table.column(name), tiebreaker="dense"))
        order = order[np.argsort(ranks[order], kind="stable")]
    return table.take(pa.array(order))
