"""The best rows of a window for each subscription, where subscriptions come and go: `sb.TopKForEach`.

SELECT price FROM trades t [WINDOW 1000 ROWS], people q WHERE t.symbol = q.symbol
ORDER BY price DESC LIMIT 3 BY q.id
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.distribution import Distribution, by_its_rows
from skyband.core.encoding.schemas import plain_schema
from skyband.core.plan import Draft, Plan
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.expressions import subscriptions
from skyband.problems.one_window import OneWindowProblem
from skyband.problems.subscriptions import planning, sql
from skyband.problems.subscriptions.codec import SubscriptionsCodec
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.query import TopKForEach
from skyband.problems.subscriptions.session import SubscriptionsSession

if TYPE_CHECKING:
    from skyband.core.picture import Picture


class Subscriptions(OneWindowProblem[TopKForEach]):
    """The k best rows of a window, for each query of a table or a stream of them."""

    name = "subscriptions"
    query = TopKForEach
    codec_type = SubscriptionsCodec
    session = SubscriptionsSession

    def title(self, query: TopKForEach) -> str:
        of = f"{query.for_each}, identified by {', '.join(query.key)}"
        return f"top {query.k} by {query.by}{' (smallest first)' if query.ascending else ''} {of}"

    def summary(self, query: TopKForEach) -> str:
        return f"the best rows of one input, {query.for_each}"

    def holds(self, query: TopKForEach, plan: Plan, draft: Draft) -> str:
        rows = f"{plan.window_rows:,.0f} rows of a window{plan.assumption}"
        if not math.isnan(plan.rows):
            return f"about {plan.rows:,.0f} of the {rows}, if scores come in random order"
        return f"the {rows}, once for all, and a list somewhat longer than k for each query"

    def choose(self, query: TopKForEach, draft: Draft) -> Plan:
        if draft.schema is None:  # without a schema, all columns are taken to be numbers
            score = subscriptions.outline(query.score, query.ascending)
        else:
            schemas = plain_schema(draft.schema), plain_schema(query.queries.schema)
            score = subscriptions.bind(query.score, query.ascending, *schemas)
        spec = planning.in_numbers(query, query.window.planned(), scoring_of(score))
        score_groups = planning.score_groups_of(query.queries, score)
        count = len(query.queries)
        return planning.plan(spec, count, query.algorithm, window_rows=draft.window_rows, score_groups=score_groups)

    def distribution(self, query: TopKForEach, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        ticks = query.window.planned()
        if by_its_rows(ticks) and (by := subscriptions.equalities(query.where)):
            asked = ", ".join(f"q.{name}" for _, name in by)
            return Distribution(True, f"over buckets by {asked}: a row goes to the queries that ask for its value")
        if by_its_rows(ticks) and len(query.queries):  # a stream of queries has none yet
            why = "over buckets by query: each bucket gets the rows of a pane that its queries may show"
            return Distribution(True, why)
        return Distribution(True, "over buckets by query: each bucket gets every row")

    def groups(self, query: TopKForEach) -> tuple[str, ...]:
        return query.key

    def picture(self, session: SubscriptionsSession) -> Picture:
        from skyband.problems.subscriptions.picture import SubscriptionsPicture  # deferred: few look on

        return SubscriptionsPicture(session)

    def run_on_spark(self, data: Any, query: TopKForEach, given: Any = None) -> Any:
        """Run `query` over the DataFrame `data`. `given`: a DataFrame of queries, or a stream of their changes."""
        from skyband.problems.subscriptions import spark

        if given is None:
            return spark.top_k_for_each(data, query)
        queries, changes = spark.queries_of(given)
        return spark.top_k_for_each(data, query.of(queries), changes)

    def matches(self, statement: Statement) -> bool:
        return sql.matches(statement)

    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        return sql.ask(statement, schemas)


PROBLEM: Final = Subscriptions()
