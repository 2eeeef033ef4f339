"""Asks every algorithm of a problem with every option at hostile values, and writes down what came of each.

Run by test_options.py in a process of its own: what never ends is found by its last line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.core.options import AlgorithmOption, declared
from skyband.core.registry import Algorithm, every_algorithm_of

HOSTILE = ["0", "-0", "-1", "1", "2", "3", "1.5", "1e-3", ".5", "1_000", "1e300", "-1e300", "nan", "inf", "-inf"]
HOSTILE += ["9" * 30, "-" + "9" * 30, "9" * 5_000, "text", "0x10", "True", "None", "1+1", "1j", "'1'"]

RANDOM = np.random.default_rng(13)
N = 60
T = np.arange(N) // 2
ROWS = pa.table({"t": T, "g": T % 3, "x": RANDOM.integers(0, 9, N) / 2, "y": RANDOM.random(N)})
QUERIES = pa.table({"id": [0, 1, 2], "x": [0.0, 2.5, 9.0], "y": [0.5, 0.1, 0.9]})
# Each object comes once to a stream.
OBJECTS_OF = {"r": np.arange(N) * 7 % N, "s": np.arange(N) * 11 % N}
STREAMS = {name: pa.table({"t": T, "id": ids, "v": RANDOM.random(N)}) for name, ids in OBJECTS_OF.items()}

Ask = Callable[[str], Any]


def rows(k: int, window: sb.Window, emit: Any = None, ties: Any = None) -> Ask:
    return lambda name: sb.top_k(ROWS, k=k, by="x", window=window, emit=emit, ties=ties, algorithm=name)


def pairs(**more: Any) -> Ask:
    asked = {"k": 3, "by": "abs(a.x - b.x) + abs(a.y - b.y)", "window": sb.sliding(12, every=3), **more}
    return lambda name: sb.top_k_pairs(ROWS, algorithm=name, **asked)


def across(repeat: Any, k: int = 3, recall: float | None = None) -> Ask:
    window = sb.sliding(18, every=3, on="t")
    asked = {"k": k, "id": "id", "value": "v", "window": window, "repeat": repeat, "recall": recall}
    return lambda name: sb.top_k_across(STREAMS, algorithm=name, **asked)


def many(by: str, window: sb.Window, emit: Any = None, k: int = 2) -> Ask:
    return lambda name: sb.top_k(ROWS, k=k, by=by, window=window, emit=emit, for_each=QUERIES, algorithm=name)


# Of each problem, questions of which every algorithm can answer one; those that may miss rows are exact where k is so
# large that all are shown.
EACH = "abs(x - q.x) + abs(y - q.y)"
PROBLEMS: dict[str, tuple[Mapping[str, Algorithm[Any, Any]], list[Ask]]] = {
    "rows": (
        every_algorithm_of("rows"),
        [rows(3, sb.sliding(9)), rows(3, sb.sliding(9), ties="rank"), rows(3, sb.sliding(12, every=3)),
         rows(9, sb.sliding(9))],
    ),
    "pairs": (every_algorithm_of("pairs"), [pairs(), pairs(same="g")]),
    "across": (
        every_algorithm_of("across"),
        [across(None), across("last"), across("sum"), across(None, recall=0.9), across("last", k=60)],
    ),
    "subscriptions": (
        every_algorithm_of("subscriptions"),
        [many(EACH, sb.sliding(9)), many(EACH, sb.sliding(9), "entries"), many("x", sb.sliding(12, every=3)),
         many(EACH, sb.sliding(9), k=9)],
    ),
}  # fmt: skip


def values_of(option: AlgorithmOption, problem: str, name: str) -> list[str]:
    kept = [str(option.kind(bound)) for bound in option.range]
    # Once for each query: what it does with its options was seen with one query.
    return (
        [*HOSTILE, *kept]
        if problem != "subscriptions" or name not in every_algorithm_of("rows")
        else ["0", "-1", "1.5", "nan", kept[0]]
    )


def outcome(name: str, asks: list[Ask], expected: list[Any], exact: bool) -> str:
    """What an algorithm with an option says of the questions that it can answer."""
    answered = 0
    for ask, right in zip(asks, expected, strict=True):
        try:
            answer = ask(name)
        except sb.InvalidQuery as error:
            if "cannot answer" in str(error):
                continue
            return str(error)
        answered += 1
        if ask is not asks[-1] and not exact:
            continue
        # Lines of several queries that became known at once may come in any order.
        if sorted(map(str, answer.to_pylist())) != sorted(map(str, right.to_pylist())):
            return "wrong"
    return "right" if answered else "not asked"


def main(problem: str) -> None:
    algorithms, asks = PROBLEMS[problem]
    expected = [ask("recompute") for ask in asks]
    for name, algorithm in algorithms.items():
        for option in declared(algorithm.open).values():
            for value in values_of(option, problem, name):
                asked = f"{name}({option.name}={value})"
                print(json.dumps([name, option.name, option.possible, value, "asked"]), flush=True)
                said = outcome(asked, asks, expected, algorithm.exact)
                print(json.dumps([name, option.name, option.possible, value, said]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
