"""The best rows of a window: `sb.TopK`.

SELECT symbol, price FROM trades [WINDOW 10 MINUTES EVERY 1 MINUTE ON ts] ORDER BY price DESC LIMIT 10
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from skyband.core.distribution import FROM_THE_START, Distribution, shows_without_rows
from skyband.core.emit import gives_windows
from skyband.core.encoding.output import TAKEN
from skyband.core.plan import Draft, Plan
from skyband.core.problem import Running
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.engines.embedded.running import apart, run
from skyband.errors import InvalidQuery
from skyband.problems.one_window import OneWindowProblem
from skyband.problems.rows import planning, sql
from skyband.problems.rows.codec import RowsCodec, ViewsCodec
from skyband.problems.rows.query import TopK

if TYPE_CHECKING:
    from skyband.core.picture import Picture


class Rows(OneWindowProblem[TopK]):
    """The k best rows of a window, overall or for each value of some columns."""

    name = "rows"
    takes_part_of_answer = True
    shares_a_pass = True
    query = TopK
    codec_type = RowsCodec

    def title(self, query: TopK) -> str:
        by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
        by = ", ".join(query.by) if isinstance(query.by, tuple) else by
        groups = f" for each {', '.join(query.per)}" if query.per else ""
        ties = (
            ""
            if query.ties is None
            else f", with {'dense' if query.ties == 'dense' else 'shared'} ranks for equal rows"
        )
        return f"top {query.k} by {by}{' (smallest first)' if query.ascending else ''}{groups}{ties}"

    def summary(self, query: TopK) -> str:
        return "the best rows of one input"

    def holds(self, query: TopK, plan: Plan, draft: Draft) -> str:
        rows, of = f"{plan.rows:,.0f} rows{' per group' if query.per else ''}", f"{plan.window_rows:,.0f} in a window"
        equal = "" if query.ties is None else " and few are equal; all rows that share the best scores are held"
        return f"about {rows} of the {of}{plan.assumption}, if scores come in random order{equal}"

    def costs_if(self, query: TopK) -> str:
        return f", if scores come in {query.expect or 'random'} order"

    def choose(self, query: TopK, draft: Draft) -> Plan:
        spec = planning.spec_of(query, query.window.planned())
        return planning.plan(spec, query.algorithm, expect=query.expect, window_rows=draft.window_rows)

    def distribution(self, query: TopK, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        ticks = query.window.planned()
        if not query.per:
            return Distribution(False, "in one bucket: there is one ranking")
        if ticks.moves_by_value:
            return Distribution(False, "in one bucket: each row moves the one clock that all groups share")
        if shows_without_rows(ticks, query.emit):
            return FROM_THE_START
        return Distribution(True, f"over buckets by {', '.join(query.per)}: each ranks its own groups")

    def groups(self, query: TopK) -> tuple[str, ...]:
        return query.per

    def picture(self, session: Session) -> Picture | None:
        from skyband.problems.rows.picture import picture_of  # deferred: few look on

        return picture_of(session)

    def alike(self, query: TopK, columns: Sequence[str]) -> Hashable | None:
        """Everything but k, size and slide.

        None for rows with a column whose name an answer uses itself: its new name would depend on the other queries.
        """
        window = query.window
        if not TAKEN.isdisjoint(columns):
            return None
        if not gives_windows(query.emit) or window.size is None or window.every is None or query.per:
            return None
        if query.ad_hoc or any(part is not None for part in (query.algorithm, query.error, query.expect, query.ties)):
            return None
        kind = type(window.every)  # a number and a duration have no common slide
        return replace_unchecked(query, k=1, window=replace(window, size=None, every=None)), kind

    def start_together(self, data: Any, queries: Sequence[TopK]) -> Sequence[Running]:
        """Answer all of them from the skyband of the largest k and size."""
        windows = [query.window for query in queries]
        size = max(cast(Any, window.size) for window in windows)
        window = replace(windows[0], size=size, every=_common_slide([cast(Any, window.every) for window in windows]))
        widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
        return apart(run(data, lambda schema: Session(ViewsCodec(widest, schema, queries)), window), len(queries))

    def run_on_spark(self, data: Any, query: TopK, given: Any = None) -> Any:
        from skyband.problems.rows import spark

        return spark.top_k(data, query, given)

    def sieve_on_spark(self, data: Any, query: TopK) -> str | None:
        from skyband.problems.rows import spark

        return spark.explain_sieve(data, query)

    def projection_on_spark(self, called: str, data: Mapping[str, Any], query: TopK) -> Any:
        from skyband.problems.rows import spark

        (rows,) = data.values()
        job, score = spark.resolve(rows, query, None)
        if score is None:
            why = "ranks by several keys" if isinstance(query.by, tuple) else "calls a function of yours"
            raise InvalidQuery(f"{called!r} {why}, which cannot share a stream.")
        return spark.projection(rows, job, score)

    def matches(self, statement: Statement) -> bool:
        return not statement.is_grouped and len(statement.inputs) == 1 and not statement.over

    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        return sql.ask(statement, schemas)


def _common_slide(slides: Sequence[int | timedelta]) -> int | timedelta:
    """The longest slide of which all these are multiples."""
    if all(isinstance(slide, timedelta) for slide in slides):
        tick = timedelta(microseconds=1)
        return math.gcd(*(slide // tick for slide in cast("Sequence[timedelta]", slides))) * tick
    return math.gcd(*cast("Sequence[int]", slides))


PROBLEM: Final = Rows()
