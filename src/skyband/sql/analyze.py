"""EXPLAIN and EXPLAIN ANALYZE: the plan, and what it does when it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.explain import analyzed, explained, readable
from skyband.core.plan import Draft, Measured, Read
from skyband.core.problem import Running
from skyband.core.registry import problem_of
from skyband.dialect.nodes import WHOLE_TABLE
from skyband.dialect.query_spec import ONLY, QuerySpec, View
from skyband.errors import InvalidInput
from skyband.sql.answers import projected
from skyband.sql.embedded import start_embedded, with_queries
from skyband.sql.inputs import Inputs
from skyband.sql.spark import rows_in_spark, run_on_spark

PIECES = 64  # in which the rows of a table are pushed, so that there is more than one moment to look at
FEWEST_ROWS = 500


def explain(spec: QuerySpec, inputs: Inputs, *, analyze: bool) -> Any:
    """The plan of a query; `analyze`: and what it does when it runs over its inputs, to their end."""
    if inputs.on_spark:
        sieve = problem_of(spec.query).sieve_on_spark(rows_in_spark(spec, inputs), spec.query)
        draft = _draft_of(spec, inputs.schemas, on_spark=True, sieve=sieve)
        return (
            analyzed(draft, _measure_on_spark(run_on_spark(spec, inputs), inputs.data)) if analyze else explained(draft)
        )
    spec, sources = with_queries(spec, inputs.data)
    draft = _draft_of(spec, inputs.schemas, on_spark=False)
    if not analyze:
        return explained(draft)
    pieces = {name: source.cut(lambda rows: max(FEWEST_ROWS, -(-rows // PIECES))) for name, source in sources.items()}
    return analyzed(draft, _measure(start_embedded(spec, pieces), spec))


def _draft_of(spec: QuerySpec, schemas: Mapping[str, pa.Schema], *, on_spark: bool, sieve: str | None = None) -> Draft:
    """The query with what is known of its inputs; `schemas` by the names they were given as."""
    reads = []
    for name, rows in spec.rows.items():
        schema = rows.schema(schemas[rows.name])
        columns = schema.names if rows.columns is None else [*rows.columns, *(column for _, column in rows.renamed)]
        steps = (view.where if isinstance(view, View) else str(view) for view in rows.views)
        where = " AND ".join(one for one in (*steps, rows.where) if one) or None
        named = tuple(name for name in dict.fromkeys(columns) if name != WHOLE_TABLE)
        reads.append(Read(rows.name if name == ONLY else name, schema, named, where))
    return Draft(spec.query, tuple(reads), on_spark, sieve, then=tuple(_asked_then(spec.then)))


def _asked_then(spec: QuerySpec | None) -> Iterator[str]:
    """What is asked of the lines of each window, and of the lines of that, in words."""
    if spec is not None:
        yield readable(problem_of(spec.query).title(spec.query))
        yield from _asked_then(spec.then)


def _measure(running: Running, spec: QuerySpec) -> Measured:
    """Run it to its end, and see what it holds and how long it takes on the way."""
    held, costs, seconds, rows_in, rows_out = [], [], 0.0, 0, 0
    answers: Iterator[pa.Table] = running.answers
    while True:
        started = time.perf_counter()
        answer = next(answers, None)
        took = time.perf_counter() - started
        if answer is None:
            break
        seconds += took
        rows_out += len(projected(answer, spec))
        stats = running.session.stats()
        if stats.rows_in > rows_in:
            costs.append(1e9 * took / (stats.rows_in - rows_in))
            held.append(stats.rows_held)
            rows_in = stats.rows_in
    stats = running.session.stats()
    if not costs:
        return Measured(rows_in, stats.rows_late, rows_out, seconds, math.nan, math.nan, math.nan)
    # The first batches may have waited for kernels to be compiled; half of all take no longer than this.
    return Measured(
        rows_in,
        stats.rows_late,
        rows_out,
        seconds,
        float(np.median(costs)),
        float(max(held)),
        float(np.mean(held)),
        stats.rows_missed,
    )


def _measure_on_spark(answer: Any, inputs: Mapping[str, Any]) -> Measured:
    """The same of batch DataFrames: how long Spark takes for all of it. What its workers hold cannot be seen here."""
    if answer.isStreaming:
        raise InvalidInput(
            "EXPLAIN ANALYZE runs a query to its end, and a stream has none. EXPLAIN shows the plan; the progress of a "
            "running query has its counts, under observedMetrics."
        )
    rows_in = sum(df.count() for df in inputs.values())
    started = time.perf_counter()
    rows_out = answer.count()
    seconds = time.perf_counter() - started
    return Measured(rows_in, 0, rows_out, seconds, 1e9 * seconds / max(rows_in, 1), math.nan, math.nan)
