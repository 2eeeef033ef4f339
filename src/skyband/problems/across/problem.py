"""The best objects of a window, whose scores combine values from several streams: `sb.TopKAcross`.

SELECT flow FROM r1 FULL JOIN r2 USING (flow) WINDOW [100 EVERY 1 ON t] ORDER BY r1.size + r2.size DESC LIMIT 20
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.distribution import Distribution, merged_by_window
from skyband.core.plan import Draft, Plan
from skyband.core.problem import Running
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.errors import InvalidInput
from skyband.problems.across import embedded, planning, sql
from skyband.problems.across.codec import AcrossCodec
from skyband.problems.across.combining import BY_NAME
from skyband.problems.across.query import TopKAcross
from skyband.problems.across.session import AcrossSession
from skyband.problems.one_window import OneWindowProblem

if TYPE_CHECKING:
    from skyband.core.picture import Picture


class Across(OneWindowProblem[TopKAcross]):
    """The k best objects of a window, across streams."""

    name = "across"
    query = TopKAcross
    codec_type = AcrossCodec
    session = AcrossSession
    takes_bounds = True

    def title(self, query: TopKAcross) -> str:
        repeat = f", each the {query.repeat} of the object's values in a stream" if query.repeat else ""
        ids, values = ", ".join(query.ids), ", ".join(dict.fromkeys(query.values))
        if isinstance(query.combine, tuple):
            score = " + ".join(f"{weight:g} * {stream}" for stream, weight in query.combine)
        else:
            score = f"{query.combine} of {values}" if query.combine in BY_NAME else query.combine
        return f"top {query.k} of {ids} across {', '.join(query.streams)} by {score}{repeat}"

    def summary(self, query: TopKAcross) -> str:
        count = len(query.streams)
        return f"the best objects, scored by {'one stream' if count == 1 else f'{count} streams'}"

    def holds(self, query: TopKAcross, plan: Plan, draft: Draft) -> str:
        of = f"{plan.window_rows:,.0f} in a window{plan.assumption}"
        order = "every second row is about an object that another stream has just reported"
        return f"about {plan.rows:,.0f} rows of the {of}, if {order}"

    def choose(self, query: TopKAcross, draft: Draft) -> Plan:
        spec = planning.in_numbers(query, query.window.planned())
        return planning.plan(spec, query.algorithm, window_rows=draft.window_rows)

    def distribution(self, query: TopKAcross, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        return merged_by_window(
            query.window.planned(), query.emit, f"over buckets by {', '.join(query.ids)}, merged for each window"
        )

    def picture(self, session: AcrossSession) -> Picture:
        from skyband.problems.across.picture import AcrossPicture  # deferred: few look on

        return AcrossPicture(session)

    def start(self, data: Any, query: TopKAcross) -> Running:
        """Run over one stream, in which a column may name the source, or over a mapping from names to streams."""
        if isinstance(data, Mapping):
            return embedded.start(data, query)
        if query.stream is None and len(query.streams) > 1:
            raise InvalidInput(
                f"Rows of {len(query.streams)} streams ({', '.join(query.streams)}), but nothing says which row "
                "belongs to which stream. Pass a mapping of the streams' names to their rows, or name the column with "
                "stream=."
            )
        return super().start(data, query)

    def bucket_on_spark(self, query: TopKAcross, schema: Any, snapshot: bytes, *, external_clock: bool) -> Any:
        return self._spark.reopened(query, schema, snapshot, external_clock=external_clock)

    def run_on_spark(self, data: Any, query: TopKAcross, given: Any = None) -> Any:
        from skyband.problems.across import spark

        return spark.top_k_across(data, query)

    def matches(self, statement: Statement) -> bool:
        return not statement.is_grouped and statement.has_full_join

    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        return sql.ask(statement, schemas)


PROBLEM: Final = Across()
