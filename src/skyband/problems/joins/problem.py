"""Aggregates by group over a join of windows, or over one window: `sb.JoinAggregate`.

SELECT a.id, COUNT(b.*) AS bids FROM auction AS a [WINDOW UNTIL NOW], bid AS b [WINDOW 1 HOUR]
WHERE a.id = b.auction GROUP BY a.id
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.distribution import FROM_THE_START, Distribution
from skyband.core.emit import gives_windows
from skyband.core.plan import Draft, Plan, Step, in_panes
from skyband.core.problem import Problem, Running
from skyband.core.query import replace_unchecked
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.expressions.aggregates import COUNT_DISTINCT, read_aggregate
from skyband.problems.joins import embedded, planning, sql, sql_over, sql_rows
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.columns import bind
from skyband.problems.joins.distribution import shows_without_rows, spread
from skyband.problems.joins.query import ANTI, INNER, LEFT, SEMI, JoinAggregate, StreamInput
from skyband.problems.joins.session import JoinSession

if TYPE_CHECKING:
    from skyband.core.picture import Picture


class Joins(Problem[JoinAggregate]):
    """Groups of a join; each input has its own window."""

    name = "joins"
    takes_part_of_answer = True
    takes_partners = True
    query = JoinAggregate
    session = JoinSession
    chooses = "plan"

    def title(self, query: JoinAggregate) -> str:
        groups = f" for each {', '.join(query.group_by)}" if query.group_by else ""
        ranked = f"top {query.k} by {', '.join(query.order_by)}: " if query.k else ""
        return ranked + ", ".join(f"{text} AS {name}" for name, text in query.aggregates) + groups

    def summary(self, query: JoinAggregate) -> str:
        inputs = len(query.names)
        of = "one window" if inputs == 1 else f"a join of {inputs} inputs"
        return f"{'the best groups' if query.k else 'groups'} of {of}"

    def windows(self, query: JoinAggregate) -> tuple[Step, ...]:
        steps = []
        for name, given in query.inputs:
            what = "a relation"
            if isinstance(given, StreamInput):
                window = replace(given.window, every=query.every)
                # With several streams, a row's panes depend on when rows of other streams come.
                apart = window.by_count and len(query.streams) > 1
                what = f"a stream, {window if apart else in_panes(window)}"
                how = query.how_of(name)
                what += "" if how == INNER else f", joined by {how.upper()} JOIN: {_HOW[how]}"
                what += f", where {given.where}" if how != INNER and given.where else ""
            steps.append(Step(name, what))
        return (*steps, Step("join", " AND ".join(query.on).replace("`", ""))) if query.on else tuple(steps)

    def holds(self, query: JoinAggregate, plan: Plan, draft: Draft) -> str:
        known = planning.inputs_of(query, draft.statistics)
        return "; ".join(
            f"{name} {each.rows:,.0f} rows in {each.cells:,.0f} cells of {each.keys:,.0f} keys{plan.assumption}"
            for name, each in zip(query.names, known, strict=True)
        )

    def choose(self, query: JoinAggregate, draft: Draft) -> Plan:
        return planning.plan(query, draft.statistics)

    def distribution(self, query: JoinAggregate, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        if schemas is None:
            why = "over buckets by a join column that all streams have, if it identifies groups; else in one bucket"
            return Distribution(True, why)
        bound = bind(query, schemas)
        how = spread(query, bound)
        if how is None:
            lasts = shows_without_rows(query)
            return FROM_THE_START if lasts else Distribution(False, f"in one bucket: {_why_not(query)}")
        by = ", ".join(f"{name}.{column}" for name, columns in how.columns.items() for column in columns)
        if how.adds_up:
            why = f"over buckets {f'by {by}' if by else 'by turns'}, which add up their parts of a group"
        else:
            why = f"over buckets by {by}: each has whole groups" + (", ranked once more" if query.k else "")
        return Distribution(True, why)

    def key(self, query: JoinAggregate) -> tuple[str, ...]:
        return "window_end", *(name.column for name in query.parsed_group_by()), "rank"

    def size(self, query: JoinAggregate) -> int | timedelta | None:
        sizes = {stream.window.size for _, stream in query.streams}
        return sizes.pop() if len(sizes) == 1 else None

    def picture(self, session: JoinSession) -> Picture:
        from skyband.problems.joins.picture import JoinsPicture  # deferred: few look on

        return JoinsPicture(session)

    def said_of_nothing(self, query: JoinAggregate, answer: pa.Schema) -> pa.Table | None:
        if query.group_by:
            return None
        counts = {name for name, text in query.aggregates if read_aggregate(text).function in ("COUNT", COUNT_DISTINCT)}
        first = dict.fromkeys(counts, 0) | dict.fromkeys(answer.names[: -len(query.aggregates)], 1)
        return pa.table([pa.array([first.get(field.name)], field.type) for field in answer], schema=answer)

    def unfiltered(self, query: JoinAggregate) -> tuple[JoinAggregate, str | None]:
        return (query, None) if query.group_by else (replace_unchecked(query, having=None), query.having)

    def codec(self, query: JoinAggregate, schema: Mapping[str, pa.Schema] | pa.Schema) -> JoinsCodec:
        return JoinsCodec(query, query.schemas(schema))

    def start(self, data: Any, query: JoinAggregate) -> Running:
        return embedded.start(data, query)

    def refuses_spark(self, query: JoinAggregate) -> str | None:
        return "its windows count arrivals" if query.window.by_count else None

    def run_on_spark(self, data: Any, query: JoinAggregate, given: Any = None) -> Any:
        from skyband.problems.joins import spark

        return spark.join_aggregate(data, query)

    def clock_column(self, query: JoinAggregate) -> str | None:
        if len(query.streams) > 1 or query.every is None:
            return None
        return query.streams[0][1].window.on

    def projection_on_spark(self, called: str, data: Mapping[str, Any], query: JoinAggregate) -> Any:
        from skyband.problems.joins import spark

        join = spark.resolve(data, query)
        return join.projection(join.tagged[query.streams[0][0]])

    def matches(self, statement: Statement) -> bool:
        return statement.is_grouped or bool(statement.partners) or sql_rows.matches(statement)

    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        if statement.over:
            return sql_over.ask(statement, schemas)
        is_of_rows = not statement.is_grouped or sql_rows.needs_rows(statement)
        return (sql_rows if is_of_rows else sql).ask(statement, schemas)


_HOW: Final = {
    LEFT: "for each key, its rows or a row of nulls",
    SEMI: "for each key, whether it has rows",
    ANTI: "for each key, whether it has none",
}


def _why_not(query: JoinAggregate) -> str:
    if query.every is None:
        return "each row moves the windows of all"
    if not gives_windows(query.emit):
        return "only that bucket sees every change"
    return "parts of these aggregates cannot be added up exactly"


PROBLEM: Final = Joins()
