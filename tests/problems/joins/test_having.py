"""Oracle: what a condition on groups tells, and in which order, worked out from the rows alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.int64()})
CONDITIONS = {
    "n > 1": lambda n, s: n > 1,
    "s >= 3": lambda n, s: s >= 3,
    "n = 1 OR s < 0": lambda n, s: n == 1 or s < 0,
    "n <> 2": lambda n, s: n != 2,
}

Row = tuple[int, str | None, int]
Groups = dict[str | None, tuple[int, int]]


def groups_of(rows: list[Row]) -> Groups:
    found: Groups = {}
    for _, group, value in rows:
        n, s = found.get(group, (0, 0))
        found[group] = n + 1, s + value
    return found


def moments(rows: list[Row], size: int, every: int | None) -> list[tuple[int, Groups]]:
    """After each arrival, or at the end of each window that holds a row: the groups."""
    if every is None:
        seen = [(row[0], [each for each in rows[: i + 1] if each[0] > row[0] - size]) for i, row in enumerate(rows)]
    else:
        last = max(row[0] + size for row in rows) // every * every
        ends = range((rows[0][0] // every + 1) * every, last + 1, every)
        seen = [(end, [row for row in rows if end - size <= row[0] < end]) for end in ends]
    return [(at, groups_of(live)) for at, live in seen]


def told(rows: list[Row], size: int, every: int | None, meets: Any) -> list[tuple[Any, ...]]:
    """Of one moment: what goes, then what comes or is different; each in the order of the groups, null last."""
    lines: list[tuple[Any, ...]] = []
    shown: Groups = {}
    for at, groups in moments(rows, size, every):
        met = {group: values for group, values in groups.items() if meets(*values)}
        in_order = sorted({*shown, *met}, key=lambda group: (group is None, group or ""))
        lines += [(at, "delete", group, None, None) for group in in_order if group not in met]
        lines += [
            (at, "upsert", group, *met[group]) for group in in_order if group in met and shown.get(group) != met[group]
        ]
        shown = met
    return lines


@pytest.mark.parametrize("plan", ["late", "early:rows", "recompute"])
@pytest.mark.parametrize("seed", range(6))
def test_groups_that_meet_a_condition_come_and_go_as_the_rows_say(seed: int, plan: str) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        size, every = draw.randint(2, 7), draw.choice([None, None, 1, 2])
        times = sorted(draw.choices(range(-5, 25), k=draw.randint(1, 25)))
        rows: list[Row] = [(t, draw.choice(["a", "b", "c", "d", None]), draw.randint(-2, 3)) for t in times]
        having = draw.choice(list(CONDITIONS))
        session = sb.JoinAggregate(
            inputs={"rows": sb.sliding(size, on="t")},
            group_by="g",
            aggregates={"n": "COUNT(*)", "s": "SUM(v)"},
            having=having,
            every=every,
            emit="changes",
            plan=plan,
        ).open({"rows": SCHEMA})
        table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)
        cut = draw.randint(0, len(rows))
        said = [session.push(table.slice(0, cut), "rows"), session.push(table.slice(cut), "rows"), session.finish()]
        lines = [tuple(line.values()) for line in pa.concat_tables(said).to_pylist()]
        assert lines == told(rows, size, every, CONDITIONS[having]), (having, size, every, rows)
