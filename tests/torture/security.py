"""Line 14: what users write reaches no file, no network, no process and no pickle; what is not known is refused.

Python tells of all that it opens, starts, connects to and unpickles (`sys.addaudithook`). Expressions and statements
are made of every function that Spark and polars have, and of names that would do harm if somebody evaluated them.
"""

from __future__ import annotations

import inspect
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyspark.sql.functions as spark_functions
from numba.core import config

import skyband as sb
from torture.campaign import Result
from torture.corpus import MADE, stream

ROWS = stream(3, 30)
HARMFUL = (
    "__import__('os').system('touch {place}')",
    "open('{place}', 'w')",
    "exec('import os')",
    "java_method('java.lang.System', 'exit', 1)",
    "reflect('java.lang.Runtime', 'getRuntime')",
    "v.__class__.__base__",
    "read_csv('{place}')",
    "read_parquet('{place}')",
    "scan_parquet('{place}')",
    "load_extension('{place}')",
    "input_file_name()",
    "current_user()",
    "v; DROP TABLE rows",
    "v) FROM rows; COPY rows TO '{place}' --",
    "(SELECT v FROM read_csv('{place}'))",
    "{{place}}",
    "${{HOME}}",
    "$HOME",
    "%(place)s",
    "'a' || `v`",
    "lambda x: x",
    "[x for x in ().__class__.__mro__]",
    "v\u0000",
    "v /* */ ; --",
    "\\x41",
)
FORBIDDEN = ("os", "posix", "nt", "subprocess", "shutil", "sys", "socket", "importlib", "pathlib", "tempfile")
COSTS = tuple(f"costs-{problem}.json" for problem in MADE)
SOURCE = str(Path(sb.__file__).parent)
WATCHED = ("open", "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "ctypes.dlopen", "pickle.find_class")


@cache
def functions() -> tuple[str, ...]:
    """Every function of Spark's and of polars', by name."""
    spark = [name for name, value in vars(spark_functions).items() if inspect.isfunction(value)]
    polars = [name for name in (*dir(pl), *dir(pl.Expr)) if not name.startswith("_")]
    return tuple(sorted({*spark, *polars}))


_seen: list[str] = []
_watching = [False]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching[0] and event.startswith(WATCHED) and not _is_ours(event, arguments):
        _seen.append(f"{event} {arguments!r:.80}")


def _is_ours(event: str, arguments: tuple[Any, ...]) -> bool:
    """Compiled code and measured costs are read from their caches, and modules are imported late."""
    if event == "pickle.find_class":
        module, name = map(str, arguments)
        return module not in FORBIDDEN and (module != "builtins" or name in ("object", "slice", "complex"))
    if event == "open":
        path = str(arguments[0])
        return (
            path.startswith((config.CACHE_DIR or SOURCE, sys.prefix, sys.base_prefix, SOURCE))
            or Path(path).name in COSTS
        )
    return False


@contextmanager
def watched() -> Iterator[list[str]]:
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    _seen.clear()
    _watching[0] = True
    try:
        yield _seen
    finally:
        _watching[0] = False


_hooked: list[bool] = []


def expression(rng: np.random.Generator, place: Path) -> str | None:
    """A function of others, or something harmful, as score, condition and column."""
    names = functions()
    if rng.random() < 0.3:
        text = str(rng.choice(HARMFUL)).replace("{place}", str(place))
    else:
        arguments = ["", "v", "v, 1", "g", "g, 'a'", "'touch', 'x'", "v, x", "t, '1 day'"]
        text = f"{rng.choice(names)}({arguments[int(rng.integers(len(arguments)))]})"
    ways = (
        lambda: sb.top_k(ROWS, k=1, by=text, window=sb.tumbling(10)),
        lambda: sb.sql(f"SELECT {text} AS y FROM rows WHERE v > 0", rows=ROWS),
        lambda: sb.sql(f"SELECT g FROM rows [WINDOW 9 EVERY 9 ON t] WHERE {text} ORDER BY v LIMIT 1", rows=ROWS),
        lambda: sb.join_aggregate(ROWS, window=sb.tumbling(10, on="t"), aggregates={"s": f"SUM({text})"}),
        lambda: sb.top_k_pairs(ROWS, k=1, by=text, window=sb.tumbling(10)),
    )
    return _harmless(ways[int(rng.integers(len(ways)))], place, text)


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.place,)


def unpickled(rng: np.random.Generator, place: Path) -> str | None:
    """A pickle in the place of a snapshot, of a store's file, and among the rows."""
    bomb = pickle.dumps(Bomb(place))
    query = sb.TopK(k=1, by="v", window=sb.tumbling(10))
    good = query.open(ROWS.schema).snapshot()
    at = int(rng.integers(len(good)))
    states = (bomb, good[:at] + bomb, good[:16] + bomb + good[16:], good + bomb)
    state = states[int(rng.integers(len(states)))]
    return _harmless(lambda: query.open(ROWS.schema, state), place, f"a pickle at {at}")


def names(rng: np.random.Generator, place: Path) -> str | None:
    """Names of columns and tables that are code, quotes and paths."""
    name = str(rng.choice([*HARMFUL, "a`b", 'a"b', "a'b", "../x", "a\nb", "", " ", "a.b", "q.k", "rank"]))
    name = name.replace("{place}", str(place))
    table = ROWS.rename_columns(["t", "g", name, "n", "s", "x"])
    ways = (
        lambda: sb.top_k(table, k=1, by=name, window=sb.tumbling(10)),
        lambda: sb.top_k(table, k=1, by="x", per=name, window=sb.tumbling(10)),
        lambda: sb.sql("SELECT * FROM rows [WINDOW 9 EVERY 9 ON t] ORDER BY x LIMIT 1", rows=table),
        lambda: sb.sql(f"SELECT `{name}` FROM rows WHERE x > 0", rows=table),
    )
    return _harmless(ways[int(rng.integers(len(ways)))], place, f"a column called {name!r}")


def _harmless(ask: Any, place: Path, what: str) -> str | None:
    with watched() as seen:
        try:
            ask()
        except sb.SkybandError:
            pass
        except Exception as error:
            return f"{what}: {type(error).__name__}: {error}"
    if seen or place.exists():
        return f"{what}: {seen[:2]}"
    return None


CHECKS = (expression, unpickled, names)


def run(first: int, count: int) -> Result:
    result = Result()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            check, place = CHECKS[seed % len(CHECKS)], Path(folder, f"harm{seed}")
            wrong = check(np.random.default_rng(seed), place)
            result.note(seed, f"{check.__name__} harmless" if wrong is None else f"{check.__name__}: harm", wrong)
    return result
