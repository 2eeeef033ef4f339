"""Line 9: a snapshot is opened by another query, with another option, or for rows of another schema. It goes on
rightly, or is refused.

Each seed is one cell of the matrix: a query whose session was saved, and what is different when it is opened again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from torture.campaign import Result
from torture.corpus import MADE, SCHEMA, Case, cases

SAVED_AFTER = 4  # batches


def _schemas() -> Iterator[tuple[str, pa.Schema]]:
    """What becomes of tables: columns come, go, move, and change their names and types."""
    fields = list(SCHEMA)
    yield "a column more", SCHEMA.append(pa.field("new", pa.int64()))
    yield "columns in another order", pa.schema(fields[::-1])
    for at, field in enumerate(fields):
        others = fields[:at], fields[at + 1 :]
        yield f"{field.name} gone", pa.schema([*others[0], *others[1]])
        yield f"{field.name} renamed", pa.schema([*others[0], field.with_name("other"), *others[1]])
        for kind in (pa.int64(), pa.float64(), pa.string(), pa.decimal128(20, 2), pa.timestamp("us")):
            if kind != field.type:
                yield f"{field.name} as {kind}", pa.schema([*others[0], field.with_type(kind), *others[1]])


SCHEMAS = tuple(_schemas())

# What somebody changes in a query that runs: one option at a time.
OPTIONS: tuple[dict[str, Any], ...] = (
    {"k": 2},
    {"k": 4},
    {"by": "x"},
    {"by": "a.x + b.v"},
    {"by": "v * q.w + x"},
    {"ascending": True},
    {"per": "s"},
    {"per": None},
    {"emit": "changes"},
    {"emit": "entries"},
    {"emit": "windows"},
    {"lateness": 7},
    {"window": sb.sliding(40, every=10, on="t")},
    {"window": sb.sliding(30, every=5, on="t")},
    {"window": sb.sliding(16, every=4)},
    {"window": sb.sliding(10)},
    {"id": "s"},
    {"value": "v"},
    {"repeat": "min"},
    {"where": "v > 1"},
    {"same": "g"},
    {"group_by": "b.g"},
    {"aggregates": {"n": "COUNT(*)", "total": "SUM(b.x)"}},
    {"every": 5},
    {"having": "n > 1"},
)


@cache
def _cases(problem: str) -> tuple[Case, ...]:
    return tuple(cases(f"{problem}/").values())


def _changes(case: Case) -> list[tuple[dict[str, Any], Any]]:
    """The options that can be changed in this query, and the queries that come of it."""
    names, found = {each.name for each in fields(case.query)}, []
    for change in OPTIONS:
        if names >= change.keys():
            with suppress(sb.SkybandError):
                query = replace(case.query, **change)
                if query != case.query:
                    query.open(case.schema)
                    found.append((change, query))
    return found


def one(seed: int) -> tuple[str, str | None]:
    rng, problem = np.random.default_rng(seed), list(MADE)[seed % len(MADE)]
    saved = _cases(problem)[int(rng.integers(len(_cases(problem))))]
    state = saved.snapshot(SAVED_AFTER)
    way = rng.random()
    if way < 0.2:
        asked, what = _cases(problem)[int(rng.integers(len(_cases(problem))))], "another query"
    elif way < 0.6:
        able = _changes(saved)
        change, query = able[int(rng.integers(len(able)))]
        asked, what = replace(saved, query=query), f"with {change}"
    else:
        what, schema = SCHEMAS[int(rng.integers(len(SCHEMAS)))]
        several = isinstance(saved.schema, dict)
        asked = replace(saved, schema=dict.fromkeys(saved.schema, schema) if several else schema)
    try:
        session = asked.open(state)
    except sb.SkybandError:
        return "refused by name", None
    told = f"{saved.name} opened as {asked.name}, {what}"
    right, said = _rest(saved, saved.open(state)), _rest(replace(saved, schema=asked.schema), session)
    return "went on", None if said == right else f"{told}: {said[:2]} and not {right[:2]}"


def _rest(case: Case, session: Any) -> list[Any]:
    """What comes of the rows behind the snapshot, in the columns that both have."""
    found: list[Any] = []
    for batch, options in case.pushes[SAVED_AFTER:]:
        schema = case.schema[options["input"]] if isinstance(case.schema, dict) else case.schema
        columns = [batch[name] if name in SCHEMA.names else pa.nulls(len(batch), pa.int64()) for name in schema.names]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        found += session.push(rows, **options).to_pylist()
    found += session.finish().to_pylist()
    return [sorted((name, repr(value)) for name, value in row.items() if not name.endswith("new")) for row in found]


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        try:
            outcome, wrong = one(seed)
        except Exception as error:
            outcome, wrong = "raw error", f"{type(error).__name__}: {error}"
        result.note(seed, outcome if wrong is None else "wrong", wrong)
    return result
