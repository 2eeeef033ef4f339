"""The best pairs of rows of a window: `sb.TopKPairs`.

SELECT a.mote, b.mote FROM readings a, readings b WINDOW [1000 ROWS] WHERE a.id < b.id ORDER BY |a.t - b.t| LIMIT 9
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.distribution import FROM_THE_START, Distribution, merged_by_window, shows_without_rows
from skyband.core.emit import code_of, gives_windows
from skyband.core.encoding.inputs import read
from skyband.core.encoding.schemas import plain_schema
from skyband.core.plan import Draft, Plan
from skyband.core.problem import Running
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement
from skyband.engines.embedded.running import apart, run
from skyband.expressions import pairs as pair_expressions
from skyband.problems.one_window import OneWindowProblem
from skyband.problems.pairs import planning, sql
from skyband.problems.pairs.algorithms.staircase import expected_pairs
from skyband.problems.pairs.codec import PairsCodec
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Spec
from skyband.problems.pairs.query import TopKPairs

if TYPE_CHECKING:
    from skyband.core.picture import Picture


class Pairs(OneWindowProblem[TopKPairs]):
    """The k best pairs of rows of a window."""

    name = "pairs"
    shares_a_pass = True
    query = TopKPairs
    codec_type = PairsCodec

    def title(self, query: TopKPairs) -> str:
        by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
        groups = f" for each {', '.join(query.per)}" if query.per else ""
        conditions = [
            *([f"same {', '.join(query.same)}"] if query.same else []),
            *([f"different {', '.join(query.different)}"] if query.different else []),
            *([f"where {query.where}"] if query.where else []),
        ]
        of = f"; {'; '.join(conditions)}" if conditions else ""
        return f"top {query.k} pairs by {by}{' (smallest first)' if query.ascending else ''}{groups}{of}"

    def summary(self, query: TopKPairs) -> str:
        return "the best pairs of rows of one input"

    def holds(self, query: TopKPairs, plan: Plan, draft: Draft) -> str:
        rows = f"{plan.window_rows:,.0f} rows of a window{plan.assumption}"
        pairs = expected_pairs(query.k, plan.window_rows)
        each = " for each group" if query.per else ""
        return f"the {rows} and about {pairs:,.0f} pairs{each}, if scores come in random order"

    def choose(self, query: TopKPairs, draft: Draft) -> Plan:
        text = query.by, query.where, query.ascending
        if draft.schema is None:  # then columns are taken to be numbers
            score = pair_expressions.outline(*text)
        else:
            score = pair_expressions.bind(*text, plain_schema(draft.schema))
        scoring = scoring_of(score, same=bool(query.same), different=bool(query.different))
        spec = Spec(query.k, query.window.planned(), scoring, code_of(query.emit))
        return planning.plan(spec, query.algorithm, window_rows=draft.window_rows)

    def distribution(self, query: TopKPairs, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        if query.per:
            ticks = query.window.planned()
            if shows_without_rows(ticks, query.emit):
                return FROM_THE_START
            return Distribution(True, f"over buckets by {', '.join(query.per)}: each ranks the pairs of its own groups")
        how = "over a triangle of buckets, so that any two rows meet in one of them; merged for each window"
        if query.same:
            how = f"over buckets by {', '.join(query.same)}, merged for each window"
        return merged_by_window(query.window.planned(), query.emit, how)

    def picture(self, session: Session) -> Picture | None:
        if session.query.per:  # type: ignore[attr-defined]
            return None  # each group has a ranking, and a window of arrivals, of its own
        from skyband.problems.pairs.picture import PairsPicture  # deferred: few look on

        return PairsPicture(session)

    def groups(self, query: TopKPairs) -> tuple[str, ...]:
        return query.per

    def alike(self, query: TopKPairs, columns: Sequence[str]) -> Hashable | None:
        """All but k and size."""
        window = query.window
        if not gives_windows(query.emit) or window.every is None or window.size is None or query.algorithm is not None:
            return None
        if query.per:
            return None
        return replace_unchecked(query, k=1, window=replace(window, size=window.every))

    def start_together(self, data: Any, queries: Sequence[TopKPairs]) -> Sequence[Running]:
        """From one skyband: that of the largest k and size."""
        source = read(data)
        plain = plain_schema(source.schema)
        window = max((query.window for query in queries), key=lambda window: window.ticks(plain).size)
        widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
        together = run(source, lambda schema: Session(PairsCodec(widest, schema, views=queries)), window)
        return apart(together, len(queries))

    def run_on_spark(self, data: Any, query: TopKPairs, given: Any = None) -> Any:
        from skyband.problems.pairs import spark

        return spark.top_k_pairs(data, query)

    def projection_on_spark(self, called: str, data: Mapping[str, Any], query: TopKPairs) -> Any:
        from skyband.problems.pairs import spark

        (rows,) = data.values()
        return spark.projection(rows, query)

    def matches(self, statement: Statement) -> bool:
        if statement.is_grouped or statement.has_full_join or len(statement.inputs) != 2:
            return False
        first, second = statement.inputs
        return first.is_same_as(second)

    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        return sql.ask(statement, schemas)


PROBLEM: Final = Pairs()
