"""Aggregates over joins, as users ask for them: each question gets the same answer from every engine."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from conformance.asked import Asked
from engines.spark.streams import INSTANTS, START_US

import skyband as sb

ROWS, SECONDS = 240, 60
WORDS = [None, "", "a", "A", "ab", "é", "日本", "\U0001f600", "O'Brien", None, "\uffff"]
DAYS = [None, *(date(1969, 12, 29) + timedelta(days=n) for n in range(8))]
PEOPLE = pa.table({"id": [0, 1, 2], "state": ["VT", "NH", "VT"]})
STREAMED = {
    "ranked",
    "one stream, one group",
    "different values of one stream",
    "left, added up",
    "anti",
    "strings of one stream",
}  # others stop and go on as they are streamed: tests/spark/test_joins.py


def stream(seed: int) -> pa.Table:
    """Rows of a minute, in order."""
    rng = np.random.default_rng(seed)
    at = START_US + np.sort(rng.integers(0, SECONDS * 1_000_000, ROWS))
    return pa.table(
        {
            "ts": pa.array(at, INSTANTS),
            "item": pa.array([None if n == 9 else n for n in rng.integers(0, 10, ROWS).tolist()], pa.int64()),
            "who": rng.integers(0, 4, ROWS),
            "price": rng.integers(0, 400, ROWS) / 4,
            "cost": _decimals(rng.integers(-(10**15), 10**15, ROWS), pa.decimal128(18, 3)),
            "wide": _decimals(rng.integers(-50, 10**9, ROWS), pa.decimal128(38, 4)),
            "word": [WORDS[n] for n in rng.integers(0, len(WORDS), ROWS).tolist()],
            "is_new": [[True, False, None][n] for n in rng.integers(0, 3, ROWS).tolist()],
            "day": [DAYS[n] for n in rng.integers(0, len(DAYS), ROWS).tolist()],
        }
    )


def _decimals(numbers: Any, kind: pa.DataType) -> pa.Array:
    """Whole numbers of the last digit; one in seven is missing."""
    return pa.array([None if n % 7 == 0 else Decimal(n).scaleb(-kind.scale) for n in numbers.tolist()], kind)


DATA = {"a": stream(1), "b": stream(2)}
JOIN: dict[str, Any] = {
    "inputs": {
        "a": sb.sliding("30 seconds", on="ts"),
        "b": sb.stream_input(sb.sliding("10 seconds", on="ts"), where="price > 5"),
    },
    "on": "a.item = b.item",
    "group_by": ["a.item", "b.who"],
    "aggregates": {"n": "COUNT(*)", "total": "SUM(b.price)", "low": "MIN(a.price)"},
}
WITH_PEOPLE: dict[str, Any] = {
    **JOIN,
    "inputs": {**JOIN["inputs"], "p": sb.relation(where="state = 'VT'")},
    "on": ["a.item = b.item", "a.who = p.id"],
    "group_by": "p.state",
}
LEFT: dict[str, Any] = {
    "inputs": {**JOIN["inputs"], "b": sb.stream_input(sb.sliding("5 seconds", on="ts"), where="price > 70")},
    "on": "a.item = b.item",
    "every": "5 seconds",
    "how": {"b": "left"},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "left, by the key": {
        **LEFT,
        "group_by": "a.item",
        "aggregates": {
            "n": "COUNT(*)",
            "m": "COUNT(b.*)",
            "total": "SUM(b.price)",
            "filled": "SUM(COALESCE(b.who, -1))",
        },
    },
    "left, added up": {
        **LEFT,
        "group_by": ["b.item", "a.who"],
        "aggregates": {"n": "COUNT(*)", "m": "COUNT(b.who)", "total": "SUM(b.who)"},
        "having": "n > 2",
    },
    "left, ranked, not added up": {
        **LEFT,
        "group_by": "b.who",
        "aggregates": {"n": "COUNT(DISTINCT a.item)", "mean": "AVG(b.price)"},
        "order_by": ["n", "mean"],
        "k": 2,
    },
    "semi": {**LEFT, "group_by": "a.who", "aggregates": {"n": "COUNT(*)", "total": "SUM(a.who)"}, "how": {"b": "semi"}},
    "anti": {**LEFT, "group_by": "a.item", "aggregates": {"n": "COUNT(*)"}, "how": {"b": "anti"}},
    "anti, changes": {
        **LEFT,
        "every": None,
        "group_by": "a.item",
        "aggregates": {"n": "COUNT(*)", "mean": "AVG(a.price)"},
        "how": {"b": "anti"},
    },
    "spread by the key": {**JOIN, "every": "5 seconds"},
    "with a relation": {**WITH_PEOPLE, "every": "5 seconds"},
    "ranked": {**JOIN, "every": "5 seconds", "group_by": "a.item", "order_by": "n", "k": 2},
    "changes": {**JOIN, "group_by": "a.item", "aggregates": {"n": "COUNT(*)"}},
    "added up": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"n": "COUNT(*)", "total": "SUM(a.who)", "low": "MIN(a.price)", "late": "MAX(b.ts)"},
        "having": "n > 10",
        "order_by": ["total", "n ASC"],
        "k": 2,
    },
    "decimals, added up": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"total": "SUM(a.cost)", "low": "MIN(b.cost)", "high": "MAX(b.cost)", "n": "COUNT(a.wide)"},
        "order_by": "total",
        "k": 3,
    },
    "decimals, by the key": {
        **JOIN,
        "every": "5 seconds",
        "aggregates": {"total": "SUM(b.wide)", "low": "MIN(a.wide)", "mean": "AVG(a.cost)", "whole": "AVG(b.who)"},
    },
    "different values, by the key": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "a.item",
        "aggregates": {"n": "COUNT(DISTINCT b.who)", "costs": "COUNT(DISTINCT a.cost)", "low": "MIN(b.price)"},
        "order_by": "n",
        "k": 4,
    },
    "different values, not by the key": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"items": "COUNT(DISTINCT a.item)", "n": "COUNT(*)"},
    },
    "different values of one stream": {
        "inputs": {"a": sb.sliding("30 seconds", on="ts")},
        "every": "5 seconds",
        "group_by": "who",
        "aggregates": {"items": "COUNT(DISTINCT item)", "prices": "COUNT(DISTINCT price)", "n": "COUNT(*)"},
    },
    "different values, changes": {
        **JOIN,
        "group_by": "a.item",
        "aggregates": {"n": "COUNT(DISTINCT b.who)"},
    },
    "strings, by the key": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "a.item",
        "aggregates": {"low": "MIN(a.word)", "high": "MAX(b.word)", "new": "MAX(b.is_new)", "first": "MIN(b.day)"},
        "having": "high > 'a' OR high IS NULL",
        "order_by": "high",
        "k": 4,
    },
    "strings, added up": {
        **JOIN,
        "every": "5 seconds",
        "group_by": "b.who",
        "aggregates": {"low": "MIN(a.word)", "high": "MAX(a.word)", "old": "MIN(b.is_new)", "total": "SUM(a.who)"},
    },
    "strings of one stream": {
        "inputs": {"a": sb.sliding("30 seconds", on="ts")},
        "every": "5 seconds",
        "aggregates": {
            "low": "MIN(word)",
            "high": "MAX(word)",
            "new": "MAX(is_new)",
            "last": "MAX(day)",
            "n": "COUNT(*)",
        },
    },
    "strings, changes": {**JOIN, "group_by": "a.item", "aggregates": {"low": "MIN(b.word)"}},
    "sums of floats, not by the key": {**JOIN, "every": "5 seconds", "group_by": "b.who"},
    "one stream, ranked": {
        "inputs": {"a": sb.stream_input(sb.sliding("30 seconds", on="ts"), where="price > 5")},
        "every": "5 seconds",
        "group_by": ["item", "who"],
        "aggregates": {"n": "COUNT(*)", "mean": "AVG(price)"},
        "order_by": ["n", "mean"],
        "k": 3,
    },
    "a filter of the user's, ranked": {
        "inputs": {"a": sb.stream_input(sb.sliding("30 seconds", on="ts"), where="half_of(price) > 5")},
        "every": "5 seconds",
        "group_by": "who",
        "aggregates": {"n": "COUNT(*)"},
        "order_by": "n",
        "k": 2,
    },
    # Rows of one cell go to several buckets, and some of them, without an item, come late in each.
    "one stream, one group": {
        "inputs": {"a": sb.sliding("32 seconds", on="ts")},
        "every": "5 seconds",
        "aggregates": {"n": "COUNT(item)", "total": "SUM(who)", "low": "MIN(price)", "high": "MAX(price)"},
    },
}


def _dropped(options: dict[str, Any]) -> int:
    """How many rows of b Spark drops before it counts them."""
    where = getattr(options["inputs"].get("b"), "where", None)
    if where is None:
        return 0
    least = float(where.removeprefix("price > "))
    return sum(price <= least for price in DATA["b"]["price"].to_pylist())


def asked(name: str, options: dict[str, Any]) -> Asked:
    return Asked(
        sb.join_aggregate,
        {name: {**DATA, "p": PEOPLE}[name] for name in options["inputs"]},
        options,
        streams=name in STREAMED,
        when_streamed={"lateness": "15 seconds"},  # two streams are not at the same time at the same moment
        tables=("p",),
        buckets=3,  # enough for rows to be spread
        filtered=_dropped(options),
        least=5,
        reference={"plan": "recompute"},
    )


QUESTIONS = {name: asked(name, options) for name, options in OPTIONS.items()}
