"""Example tests: a long statement runs, and one that is too long is refused: neither ends the process."""

from __future__ import annotations

import cProfile
from collections.abc import Callable

import pyarrow as pa
import pytest

import skyband as sb
from skyband.dialect.statement import understand
from skyband.expressions import bind_condition, bind_value, spark_text
from skyband.expressions.grammar import NESTED

ROWS = pa.table(
    {
        "t": range(8),
        "x": [float(i) for i in range(8)],
        "i": range(8),
        "s": list("abcdefgh"),
        "ts": pa.array([1_000_000 * i for i in range(8)], pa.timestamp("us", "UTC")),
    }
)
BEST = "SELECT i FROM rows [WINDOW 8 EVERY 8 ON t] {} ORDER BY {} LIMIT 1"


def best(where: str = "", by: str = "x DESC") -> list[int]:
    return sb.sql(BEST.format(where, by), rows=ROWS)["i"].to_pylist()


def test_long_conditions_and_lists_are_answered() -> None:
    assert best("WHERE " + " AND ".join(f"x > -{n}" for n in range(1, 151))) == [7]
    assert best("WHERE " + " OR ".join(f"i = -{n}" for n in range(1, 150)) + " OR i = 3") == [3]
    assert best(f"WHERE i IN ({', '.join(map(str, range(-1_000, 5)))})") == [4]
    assert best(f"WHERE s NOT IN ({', '.join(repr(f'{c}') for c in 'efghijklmnopqrstuvwxyz')})") == [3]
    assert best(f"WHERE x IN ({', '.join(f'{n}.5' for n in range(500))}, 2)") == [2]
    deep = " OR ".join(f"i = -{k}" for k in range(1, 1_010))  # more levels than Python calls itself
    assert best(f"WHERE {deep} OR i = 3") == [3]
    seconds = [f"'1970-01-01 00:{n // 60:02}:{n % 60:02}'" for n in range(3, 500)]
    assert best(f"WHERE ts IN ({', '.join(seconds)})", "x") == [3]
    assert best(f"WHERE ts NOT IN ({', '.join(seconds)})") == [2]
    assert best(by="+".join(f"x * {n}" for n in range(100)) + " DESC") == [7]


@pytest.mark.parametrize("opened", ["(1 + ", "ABS(", "(", "COALESCE(x, "])
def test_what_is_nested_as_deeply_as_is_said_is_answered(opened: str) -> None:
    batch = pa.record_batch({"x": [1.0]})
    text = opened * NESTED + "x" + ")" * NESTED
    assert bind_value(text, batch.schema).values(batch).to_pylist() == [21.0 if "+" in opened else 1.0]
    understand(BEST.format("", text))


@pytest.mark.parametrize(
    ("where", "by"),
    [
        ("WHERE " + " AND ".join(f"x > -{n}" for n in range(10_000)), "x"),
        ("", " + ".join(f"x * {n}" for n in range(8_000))),
        ("", "(" * 2_000 + "x" + ")" * 2_000),
        ("", "ABS(" * 500 + "x" + ")" * 500),
        ("WHERE " + "NOT " * 1_000 + "x > 1", "x"),
        (f"WHERE i IN ({', '.join(map(str, range(60_000)))})", "x"),
        ("", f"CASE {'WHEN x > 0 THEN 1 ' * 1_001}END"),
    ],
    ids=["ANDs", "terms", "parentheses", "calls", "NOTs", "list", "CASE"],
)
def test_what_is_too_large_is_refused(where: str, by: str) -> None:
    with pytest.raises(sb.InvalidSql, match=r"too large: .* at most 150 levels|nested too deeply") as caught:
        best(where, by)
    assert len(str(caught.value)) < 2_000


def test_what_is_not_in_a_long_list_with_a_null_is_unknown() -> None:
    batch = pa.record_batch({"i": pa.array([1, 99, None])})
    listed = ", ".join(map(str, range(30)))
    for text, met in (
        (f"i IN ({listed})", [True, False, False]),
        (f"i NOT IN ({listed})", [False, True, False]),
        (f"i NOT IN ({listed}, NULL)", [False, False, False]),
        (f"(i IN ({listed}, NULL)) IS NULL", [False, True, True]),
        (f"i IN (-1, {listed})", [True, False, False]),
    ):
        assert bind_condition(text, batch.schema, used_as="WHERE").evaluate(batch).tolist() == met, text


STATEMENTS: dict[str, Callable[[int], str]] = {
    "ORs": lambda n: BEST.format("WHERE " + " OR ".join(f"i = -{k}" for k in range(1, n)), "x"),
    "ANDs": lambda n: BEST.format("WHERE " + " AND ".join(f"x > -{k}" for k in range(1, n)), "x"),
    "divisions": lambda n: BEST.format("WHERE " + " OR ".join(f"x / {k} = 9" for k in range(1, n)), "x"),
    "CASE": lambda n: BEST.format("", f"CASE {' '.join(f'WHEN i = {k} THEN {k % 7}' for k in range(n))} ELSE 0 END"),
    "IN": lambda n: BEST.format(f"WHERE i IN ({', '.join(map(str, range(n)))})", "x"),
    "columns": lambda n: BEST.format("", "x").replace(
        "i FROM", f"{', '.join(f'x * {1000 * n + k} AS c{k}' for k in range(n))} FROM"
    ),
    "WITH": lambda n: (
        "WITH c0 AS (SELECT * FROM rows), "
        + ", ".join(f"c{k} AS (SELECT * FROM c{k - 1} WHERE x > -{k})" for k in range(1, n))
        + BEST.format("", "x").replace("FROM rows", f"FROM c{n - 1}").join((" ", ""))
    ),
}


def calls(statement: str) -> int:
    """How many functions are called to answer it: the work it takes, whatever else the machine does."""
    profile = cProfile.Profile()
    profile.runcall(sb.sql, statement, rows=ROWS)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("kind", STATEMENTS)
def test_twice_as_long_is_twice_the_work(kind: str) -> None:
    statement = STATEMENTS[kind]
    sb.sql(statement(10), rows=ROWS)  # what is imported and compiled once
    few, more, most = (calls(statement(n)) for n in (25, 50, 100))
    assert most - more <= 2.3 * (more - few), (few, more, most)


def test_as_many_queries_as_may_be_are_answered_and_one_more_is_refused() -> None:
    assert sb.sql(STATEMENTS["WITH"](299), rows=ROWS)["i"].to_pylist() == [0]
    with pytest.raises(sb.InvalidSql, match="a statement 300 queries"):
        sb.sql(STATEMENTS["WITH"](300), rows=ROWS)


def test_a_case_of_many_branches_is_answered() -> None:
    branches = " ".join(f"WHEN i = {n} THEN {n}" for n in range(7)) + " WHEN x < 0 THEN 1" * 200
    assert best(by=f"CASE {branches} END DESC") == [6]


def test_text_for_spark_is_made_for_spark_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise AssertionError("Nobody asked for it.")

    for name in ("to_spark", "condition_to_spark"):
        monkeypatch.setattr(spark_text, name, fail)
    assert best("WHERE x < 4.5 AND s LIKE '%'", "x * 2 + i DESC") == [4]
