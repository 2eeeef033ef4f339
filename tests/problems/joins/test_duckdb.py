"""Oracle tests: the answers of joins equal those of DuckDB, which recomputes each window from the same rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skyband as sb


class Asked(NamedTuple):
    """A query and, in SQL, the same question about one window."""

    inputs: dict[str, Any]
    on: tuple[str, ...]
    group_by: tuple[str, ...]
    aggregates: dict[str, str]
    having: str | None = None
    order_by: tuple[str, ...] = ()
    k: int | None = None


PRICES = {
    "n": "COUNT(*)",
    "total": "SUM(b.price * b.qty)",
    "mean": "AVG(b.qty)",
    "low": "MIN(b.price)",
    "top": "MAX(a.size)",
}
SLIDING, LANDMARK = sb.sliding(20, on="ts"), sb.landmark(on="ts")

QUESTIONS = {
    "one input": Asked({"b": SLIDING}, (), ("b.item",), {"n": "COUNT(*)", "q": "COUNT(b.qty)", "s": "SUM(b.qty)"}),
    "no grouping": Asked({"b": sb.tumbling(5, on="ts")}, (), (), {"n": "COUNT(*)", "s": "SUM(b.price)"}),
    "two inputs": Asked({"a": SLIDING, "b": sb.sliding(10, on="ts")}, ("a.item = b.item",), ("a.item",), PRICES),
    "groups of both": Asked({"a": LANDMARK, "b": SLIDING}, ("a.item = b.item",), ("a.kind", "b.who"), PRICES),
    "two columns": Asked({"a": SLIDING, "b": SLIDING}, ("a.item = b.item", "a.kind = b.who"), ("b.who",), PRICES),
    "a filter": Asked(
        {"a": sb.stream_input(SLIDING, where="size > 2"), "b": sb.stream_input(SLIDING, where="b.who <> 'y'")},
        ("a.item = b.item",),
        ("a.kind",),
        PRICES,
    ),
    "a relation": Asked(
        {"a": LANDMARK, "b": SLIDING, "p": sb.relation(where="state = 'VT'")},
        ("a.item = b.item", "a.kind = p.id"),
        ("a.item",),
        {"bids": "COUNT(*)", "s": "SUM(p.weight)"},
    ),
    "a chain": Asked(
        {"a": SLIDING, "b": SLIDING, "c": SLIDING},
        ("a.item = b.item", "b.who = c.who"),
        ("a.kind", "c.item"),
        {"n": "COUNT(*)", "s": "SUM(c.qty)", "m": "MIN(a.size)"},
    ),
    "a triangle": Asked(
        {"a": SLIDING, "b": SLIDING, "c": SLIDING},
        ("a.item = b.item", "b.who = c.who", "a.kind = c.who"),
        ("b.who",),
        {"n": "COUNT(*)", "s": "SUM(a.size)"},
    ),
    "different values": Asked(
        {"a": SLIDING, "b": SLIDING},
        ("a.item = b.item",),
        ("a.kind",),
        {"n": "COUNT(DISTINCT b.who)", "p": "COUNT(DISTINCT b.price)", "s": "SUM(a.size)", "t": "COUNT(DISTINCT a.ts)"},
    ),
    "different values, ranked": Asked(
        {"b": SLIDING}, (), ("b.item",), {"n": "COUNT(DISTINCT b.who)"}, order_by=("n",), k=2
    ),
    "different values of all": Asked({"b": SLIDING}, (), (), {"n": "COUNT(DISTINCT b.item)", "s": "SUM(b.price)"}),
    "different values, with a relation": Asked(
        {"a": LANDMARK, "b": SLIDING, "p": sb.relation(where="weight < 1000")},
        ("a.item = b.item", "a.kind = p.id"),
        ("p.state", "b.who"),
        {"n": "COUNT(DISTINCT a.item)", "w": "COUNT(DISTINCT p.weight)", "low": "MIN(b.price)"},
    ),
    "having": Asked({"b": SLIDING}, (), ("b.item", "b.who"), {"n": "COUNT(*)"}, having="n > 1 AND item <> 3"),
    "ranked": Asked({"b": SLIDING}, (), ("b.item",), {"n": "COUNT(*)", "s": "SUM(b.qty)"}, order_by=("n",), k=2),
    "ranked by more": Asked(
        {"b": SLIDING}, (), ("b.item",), {"n": "COUNT(*)", "s": "SUM(b.qty)"}, order_by=("n ASC", "s"), k=3
    ),
}


def tables(seed: int, rows: int = 60) -> dict[str, pa.Table]:
    """Rows out of order by up to 3, with nulls, and fractions that sums of any order are exact for."""
    random = np.random.default_rng(seed)

    def times() -> pa.Array:
        return pa.array(np.sort(random.integers(0, 60, rows)) + random.integers(-3, 1, rows))

    def some(values: list[Any], nulls: float = 0.1) -> pa.Array:
        chosen = [values[i] for i in random.integers(0, len(values), rows)]
        return pa.array([None if random.random() < nulls else value for value in chosen])

    bids = {
        "ts": times(),
        "item": some([1, 2, 3, 4]),
        "who": some(["x", "y", "z"]),
        "price": some([0.25, 1.5, -2.0, 8.75]),
    }
    return {
        "a": pa.table(
            {"ts": times(), "item": some([1, 2, 3, 4]), "kind": some(["x", "y"]), "size": some([1, 2, 3, 5])}
        ),
        "b": pa.table({**bids, "qty": some([1, 2, 3])}),
        "c": pa.table({"ts": times(), "item": some([1, 2]), "who": some(["x", "y", "z"]), "qty": some([1, 2, 3])}),
        "p": pa.table({"id": ["x", "y", "y", None], "state": ["VT", "VT", "NH", "VT"], "weight": [1, 10, 100, 1000]}),
    }


def windows_in_sql(asked: Asked, data: dict[str, pa.Table], every: int) -> list[tuple[Any, ...]]:
    """The groups of every window, each computed from scratch."""
    connection = duckdb.connect()
    for name in asked.inputs:
        connection.register(f"{name}_all", data[name])
    select = ", ".join([*asked.group_by, *(f"{text} AS {name}" for name, text in asked.aggregates.items())])
    order = ", ".join(f"{by if by.endswith('ASC') else by + ' DESC'} NULLS LAST" for by in asked.order_by)
    names = [column.partition(".")[2] for column in asked.group_by]
    found = []
    for end in range(-every, 100, every):
        sources = []
        for name, given in asked.inputs.items():
            window = getattr(given, "window", given)
            size = getattr(window, "size", None)
            wheres = [] if not hasattr(window, "size") else [f"ts < {end}"]
            wheres += [] if size is None else [f"ts >= {end - size}"]
            wheres += [f"({given.where})"] if getattr(given, "where", None) else []
            where = " AND ".join(wheres) or "TRUE"
            sources.append(f"(SELECT * FROM {name}_all AS {name} WHERE {where}) AS {name}")
        text = f"SELECT {select} FROM {', '.join(sources)} WHERE {' AND '.join(asked.on) or 'TRUE'}"
        text += f" GROUP BY {', '.join(asked.group_by)}" if asked.group_by else " HAVING COUNT(*) > 0"
        text += f" HAVING {asked.having}" if asked.having else ""
        places = ", ".join(f"{i + 1} NULLS LAST" for i in range(len(names)))
        text += f" ORDER BY {', '.join(filter(None, [order, places]))}" if order or places else ""
        text += f" LIMIT {asked.k}" if asked.k else ""
        for rank, row in enumerate(connection.execute(text).fetchall(), start=1):
            found.append((end, *((rank,) if asked.order_by else ()), *row))
    return found


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_window_is_what_duckdb_says(name: str, seed: int) -> None:
    asked, every, data = QUESTIONS[name], 5, tables(seed)
    landmark = all(getattr(getattr(given, "window", given), "size", 0) is None for given in asked.inputs.values())
    assert not landmark, "the last window is where rows end"
    expected = windows_in_sql(asked, data, every)
    some = ["late", "early", *(["multiply"] if not any(text[0] == "M" for text in asked.aggregates.values()) else [])]
    for plan in [*some, f"early:{next(iter(asked.inputs))}", None]:
        answer = sb.join_aggregate(
            {name: data[name] for name in asked.inputs},
            inputs=asked.inputs,
            on=asked.on,
            group_by=asked.group_by,
            aggregates=asked.aggregates,
            having=asked.having,
            order_by=asked.order_by,
            k=asked.k,
            every=every,
            lateness=6,
            plan=plan,
        )
        assert [tuple(row.values()) for row in answer.to_pylist()] == expected
