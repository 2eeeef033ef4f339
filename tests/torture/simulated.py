"""Line 4: one seed is one stream, with all that happens to streams, asked of an algorithm and of its definition.

The rows of a stream come out of order, twice, late, in bursts and after silence; they are cut into any batches; the
session stops and goes on from its snapshot anywhere. The answers are those of `recompute`, which is the definition and
shares no code with any algorithm, over the same rows in one batch and without a stop.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.core import registry
from torture.campaign import Result
from torture.corpus import MADE, SCHEMA

MOST_ROWS = 60


@cache
def _able(problem: str) -> tuple[tuple[str, Any, dict[str, Any]], ...]:
    """Questions of a problem, each with an algorithm that answers them exactly and takes them."""
    found = []
    for algorithm in registry.every_algorithm_of(problem).values():
        if not algorithm.exact or algorithm.name == "recompute":
            continue
        for name, kind, options in MADE[problem](algorithm.name):
            asked = {"plan" if problem == "joins" else "algorithm": algorithm.name}
            try:
                kind(**options, **asked).open(_schema(problem, options))
                kind(**options, **{next(iter(asked)): "recompute"}).open(_schema(problem, options))
            except sb.SkybandError:
                continue
            found.append((f"{problem}/{algorithm.name}/{name}", kind, {**options, **asked}))
    return tuple(found)


def _schema(problem: str, options: dict[str, Any]) -> Any:
    return dict.fromkeys(options["inputs"], SCHEMA) if problem == "joins" else SCHEMA


def rows_of(rng: np.random.Generator) -> pa.Table:
    """A stream with everything that goes wrong in streams."""
    n = int(rng.integers(1, MOST_ROWS))
    steps = rng.choice([0, 0, 1, 1, 2, 5, -3, -9, 40], n)  # bursts, silence, late rows
    time = np.maximum(np.cumsum(steps), 0)
    known = int(rng.integers(1, 6))
    churn = int(rng.integers(0, 2))  # groups that come and go
    groups = [chr(97 + (i // 12 * churn + int(g)) % 26) for i, g in enumerate(rng.integers(0, known, n))]
    value = rng.choice([0.0, -0.0, 1.0, 2.5, -1.0, 1e300, 5e-324], n)
    columns = {
        "t": time,
        "g": groups,
        "v": [None if rng.random() < 0.1 else float(v) for v in value],
        "n": rng.choice([0, 1, 2**53, 2**53 + 1, 2**62, -(2**62)], n),
        "s": rng.choice(["r1", "r2"], n),
        "x": rng.integers(0, 9, n) / 8,
    }
    table = pa.table([pa.array(column, SCHEMA.field(name).type) for name, column in columns.items()], schema=SCHEMA)
    again = rng.integers(0, n, int(rng.integers(0, 4)))
    return pa.concat_tables([table, table.take(pa.array(again))]).combine_chunks()


def answers(session: Any, problem: str, rows: pa.Table, cuts: list[int], reopen: Any) -> list[Any]:
    found = []
    for begin, end in zip([0, *cuts], [*cuts, rows.num_rows], strict=True):
        part = rows.slice(begin, end - begin)
        if problem == "joins":
            for name in session.schema:
                found += session.push(part, input=name).to_pylist()
        else:
            found += session.push(part).to_pylist()
        session = reopen(session)
    return found + session.finish().to_pylist()


def one(seed: int) -> str | None:
    """None, or what was different."""
    rng = np.random.default_rng(seed)
    problem = list(MADE)[seed % len(MADE)]
    name, kind, options = _able(problem)[int(rng.integers(len(_able(problem))))]
    rows = rows_of(rng)
    if problem == "across" and options.get("repeat") is None:
        rows = rows.take(pa.array(np.unique(rows["t"].to_numpy(), return_index=True)[1]))
        rows = rows.set_column(5, "x", pa.array((rows["t"].to_numpy() % 97) / 97)) if options["id"] == "x" else rows
    cuts = sorted(rng.integers(0, rows.num_rows + 1, int(rng.integers(0, 8))).tolist())
    whole = cuts if problem == "joins" else []  # of a join's inputs, batches say which comes first
    schema, query = _schema(problem, options), kind(**options)
    plain = kind(**{**options, "plan" if problem == "joins" else "algorithm": "recompute"})
    stops = rng.random(len(cuts) + 1) < 0.5
    turn = iter(stops.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = answers(plain.open(schema), problem, rows, whole, lambda session: session)
        said = answers(
            query.open(schema), problem, rows, cuts,
            lambda session: query.open(schema, session.snapshot()) if next(turn) else session,
        )  # fmt: skip
    if problem == "subscriptions":  # at one moment, the lines of each query have an order, and queries have none
        said, right = (sorted(lines, key=lambda line: line["id"]) for lines in (said, right))
    return None if repr(said) == repr(right) else f"{name}: {rows.num_rows} rows cut at {cuts}"


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        try:
            different = one(seed)
        except Exception as error:
            different = f"{type(error).__name__}: {error}"
        result.note(seed, "the same" if different is None else "different", different)
    return result
