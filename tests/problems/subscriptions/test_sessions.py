"""Oracle: queries of few values that are added, changed, filled with what was there and removed, among rows and stops.

Here values are strings, to which a session gives numbers as queries ask for them; operators see only the numbers.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import skyband as sb

ROWS = pa.schema({"t": pa.int64(), "x": pa.float64(), "g": pa.string(), "i": pa.int64()})
QUERIES = pa.schema({"id": pa.int64(), "a": pa.float64(), "g": pa.string()})
CHANGES = pa.schema([*QUERIES, ("_change_type", pa.string())])
VALUES = ["u", "u", "v", "w", None]


class Asked(NamedTuple):
    a: float
    g: str | None
    since: int  # the first row that it sees
    after: int  # the windows that end here or before had closed when it came


class World:
    """The rows and the queries, and what each query should be told."""

    def __init__(self, k: int, size: int, every: int) -> None:
        self.k, self.size, self.every = k, size, every
        self.rows: list[tuple[int, float, str | None, int]] = []
        self.queries: dict[int, Asked] = {}
        self.told: dict[int, list[tuple[int, int, int]]] = {}  # by query: window_end, rank, row
        self.closed: int | None = None

    def add(self, id: int, a: float, g: str | None, *, backfill: bool) -> None:
        closed = -(10**9) if self.closed is None else self.closed
        self.queries[id] = Asked(a, g, 0 if backfill else len(self.rows), closed)

    def push(self, rows: list[tuple[int, float, str | None, int]]) -> None:
        for row in rows:
            if self.closed is not None:
                self.close(row[0] // self.every * self.every)
            self.closed = max(row[0] // self.every * self.every, self.closed or -(10**9))
            self.rows.append(row)

    def close(self, until: int) -> None:
        assert self.closed is not None
        for end in range(self.closed + self.every, until + 1, self.every):
            for id, asked in self.queries.items():
                live = [
                    row
                    for row in self.rows[asked.since :]
                    if end - self.size <= row[0] < end and row[2] is not None and row[2] == asked.g
                ]
                best = sorted(live, key=lambda row: (-abs(row[1] - asked.a), -row[0], -row[3]))[: self.k]
                if end > asked.after:
                    self.told.setdefault(id, []).extend((end, rank, row[3]) for rank, row in enumerate(best, 1))
        self.closed = max(self.closed, until)

    def finish(self) -> None:
        if self.rows:
            self.close((self.rows[-1][0] + self.size) // self.every * self.every)


@pytest.mark.parametrize("algorithm", ["boxes", "cells", "scan"])
@pytest.mark.parametrize("seed", range(10))
def test_queries_of_few_values_come_change_and_go(algorithm: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        every = draw.randint(1, 4)
        world, backfill = World(draw.randint(1, 3), every * draw.randint(1, 5), every), draw.random() < 0.5
        query = sb.TopKForEach(
            queries=QUERIES.empty_table(),
            k=world.k,
            by="abs(x - q.a)",
            where="g = q.g",
            key="id",
            window=sb.sliding(world.size, every=every, on="t"),
            backfill=backfill,
            algorithm=algorithm,
        )
        session, said, time, known = query.open(ROWS), [], draw.choice([0, -7]), 0
        for _ in range(draw.randint(3, 24)):
            a, g = float(draw.randint(0, 2)), draw.choice(VALUES)
            event = draw.choice(["rows", "rows", "add", "add", "change", "remove", "stop"])
            if event == "rows":
                rows = []
                for i in range(draw.randint(1, 4)):
                    time += draw.choice([0, 0, 0, 1, 2])
                    rows.append((time, float(draw.randint(0, 4)), draw.choice(VALUES), len(world.rows) + i))
                world.push(rows)
                said.append(session.push(_table(rows, ROWS)))
            elif event == "add":
                fills = draw.choice([None, True, False])
                said.append(session.add(_table([(known, a, g)], QUERIES), backfill=fills))
                world.add(known, a, g, backfill=backfill if fills is None else fills)
                known += 1
            elif event == "stop":
                session = query.open(ROWS, session.snapshot())
            elif world.queries:
                id = draw.choice(list(world.queries))
                kind = "delete" if event == "remove" else draw.choice(["insert", "update_postimage"])
                said.append(session.change(_table([(id, a, g, kind)], CHANGES)))
                del world.queries[id]
                if event == "change":
                    world.add(id, a, g, backfill=backfill)
        said.append(session.finish())
        world.finish()
        told: dict[int, list[tuple[int, int, int]]] = {}
        for line in pa.concat_tables(said).to_pylist():
            told.setdefault(line["id"], []).append((line["window_end"], line["rank"], line["i"]))
        assert told == {id: lines for id, lines in world.told.items() if lines}


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
