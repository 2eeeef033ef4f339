"""Oracle tests: LEFT, RIGHT, SEMI and ANTI joins of windows, EXISTS and IN, as DuckDB has them, window by window."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from sql.test_lookups import check_same
from sql.test_statements_duckdb import ordered

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
SLIDE, END = 5, 80


def tables(seed: int, rows: int = 40) -> dict[str, pa.Table]:
    """Streams with null keys, NaN, both zeros, repeated rows, long pauses, and times that come twice; and a table."""
    chance = random.Random(seed)

    def some(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if chance.random() < 0.12 else chance.choice(values) for _ in range(rows)], kind)

    def times() -> list[int]:
        first, last = chance.choice([(0, 40), (0, 40), (20, 60)])
        return sorted(t for t in (chance.randrange(first, last) for _ in range(rows)))

    def stream(keys: list[int], zero: float) -> pa.Table:
        return pa.table(
            {
                "t": times(),
                "k": some(keys, pa.int64()),
                "s": some(["x", "y", "Z"]),
                "f": some([1.5, NAN, zero], pa.float64()),
                "n": some([1, 2, 2**40], pa.int64()),
            }
        )

    return {
        "a": stream([1, 2, 3, 4], 0.0),
        "b": stream([1, 2, 3, 5], -0.0).slice(0, chance.choice([rows, rows, 12, 2])),
        "c": stream([1, 4], 0.0),
        "p": pa.table({"s": ["x", "x", "y", None], "name": ["n1", "n2", None, "n4"]}),
    }


class Asked(NamedTuple):
    """A statement; {a}, {b} and {c} stand for the windows, the last two of which have one size."""

    text: str
    sizes: tuple[int, int]

    def ours(self, lateness: str = "") -> str:
        windows = (f"[WINDOW {size} EVERY {SLIDE} ON t{lateness}]" for size in (*self.sizes, self.sizes[1]))
        inputs = {name: f"{name} {window}" for name, window in zip("abc", windows, strict=True)}
        return self.text.format(**inputs).replace("SELECT", "SELECT window_end AS w,", 1)

    def in_duckdb(self, data: dict[str, pa.Table]) -> list[Any]:
        """The same of the rows that each window holds."""
        connection = duckdb.connect()
        for name, table in data.items():
            connection.register(name if name == "p" else f"all_{name}", table)
        text = self.text.replace("COUNT(b.*)", "COUNT(b.t)").replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
        found = []
        for end in range(SLIDE, END, SLIDE):
            inputs = {
                name: f"(SELECT * FROM all_{name} WHERE t >= {end - size} AND t < {end}) AS {name}"
                for name, size in zip("abc", (*self.sizes, self.sizes[1]), strict=True)
            }
            rows = connection.execute(text.format(**inputs)).fetchall()
            # Where no row is left, SQL without GROUP BY has a line, and Skyband has none.
            found += [(end, *row) for row in rows if "GROUP BY" in text or "c0" not in text or row[0]]
        return ordered(found)


def lines(answer: Any) -> list[Any]:
    answer = answer.read_all() if isinstance(answer, pa.RecordBatchReader) else answer
    table = answer.toArrow() if hasattr(answer, "toArrow") else answer
    kept = [name for name in table.column_names if name not in ("window_start", "window_end", "rank", "score")]
    return ordered([tuple(row.values()) for row in table.select(kept).to_pylist()])


class Statements:
    """Statements by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._of = lambda *texts: chance.choice(texts)
        self._some = chance.random

    def one(self) -> Asked:
        kind = self._of("LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI", "ANTI")
        joined, where = self._joined(kind)
        is_outer = kind.endswith("JOIN")
        if is_outer and self._some() < 0.5:
            where.append(self._of(*AFTER))
        if self._some() < 0.3 and kind != "RIGHT JOIN":
            where.append(self._of("a.t % 3 > 0", "(a.s IS NULL OR a.k > 1)"))
        body = f"FROM {joined}{' WHERE ' if where else ''}{' AND '.join(where)}"
        shape = self._of(self._rows, self._groups, self._groups)
        return Asked(shape(body, is_outer), self._of((10, 10), (10, 5), (5, 20)))

    def _joined(self, kind: str) -> tuple[str, list[str]]:
        """What stands in FROM, and what in WHERE."""
        on = [self._of("a.k = b.k", "b.k = a.k", "a.k = b.k AND a.s = b.s", "a.f = b.f", *EXPRESSIONS)]
        on += [self._of(*OF_RIGHT)] if self._some() < 0.5 else []
        on += [self._of(*OF_LEFT)] if self._some() < 0.3 else []
        whole = " AND ".join(on)
        if kind.endswith("JOIN"):
            return f"{{a}} {kind} {{b}} ON {whole}", []
        if self._some() < 0.5:
            return f"{{a}} {self._of('', 'LEFT ')}{kind} JOIN {{b}} ON {whole}", []
        if kind == "SEMI" and self._some() < 0.4:
            return "{a}", [f"a.k IN (SELECT b.k FROM {{b}} WHERE {whole})"]
        return "{a}", [f"{'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT 1 FROM {{b}} WHERE {whole})"]

    def _rows(self, body: str, is_outer: bool) -> str:
        columns = ["a.k", "a.s || '!'", "a.t", "a.f"]
        columns += ["b.s", "b.t", "COALESCE(b.n, -1)", "a.t + b.t", "b.n", "b.k"] if is_outer else []
        shown = [f"{self._of(*columns)} AS v{i}" for i in range(3)]
        if self._some() < 0.4:
            keys = ", ".join(f"v{i}{self._of('', ' DESC')} NULLS LAST" for i in range(3))
            # A row with NaN is as one without a value when rows are ranked.
            shown = [one.replace("a.f", "a.n") for one in shown]
            return f"SELECT {', '.join(shown)} {body} ORDER BY {keys} LIMIT {self._of(1, 3)}"
        return f"SELECT {', '.join(shown)} {body}"

    def _groups(self, body: str, is_outer: bool) -> str:
        keys = ["a.k", "a.s, a.k", "a.t % 3", ""]
        keys += ["b.s", "a.s, b.s", "COALESCE(b.s, 'none')", "b.k", "b.t - 1"] if is_outer else []
        key = self._of(*keys)
        some = ["SUM(a.t)", "COUNT(a.n)", "AVG(a.t)", "COUNT(DISTINCT a.s)", "MAX(a.t)"]
        some += OF_PARTNERS if is_outer else []
        shown = [f"COUNT(*) AS c{0}", *(f"{self._of(*some)} AS c{i}" for i in (1, 2))]
        listed = [f"{one} AS g{i}" for i, one in enumerate(key.split(", ") if "(" not in key else [key]) if one]
        having = self._of("", "", " HAVING COUNT(*) > 1", " HAVING COUNT(b.t) = 0" if is_outer else "")
        grouped = f" GROUP BY {key}{having}" if key else ""
        order = f" ORDER BY c0 DESC, {', '.join(f'g{i} NULLS LAST' for i in range(len(listed)))} LIMIT 2"
        order = order.replace(" NULLS LAST", "") if listed else ""
        asked = f"SELECT {', '.join([*shown, *listed])} {body}{grouped}"
        return asked + (order if listed and self._some() < 0.3 and "g1" not in asked else "")


EXPRESSIONS = [
    "a.k = b.k AND a.n = b.k",
    "a.k = b.k AND b.n = a.k AND b.k = a.k",
    "a.k + 1 = b.k",
    "UPPER(a.s) = UPPER(b.s)",
    "a.t % 4 = b.t % 4 AND a.s = b.s",
    "a.s = LOWER(b.s)",
]
OF_RIGHT = ["b.n > 1", "NOT (b.n = 2)", "b.s IS NULL", "b.n IN (1, 7, NULL)", "b.t % 2 = 0", "b.f > 0"]
OF_LEFT = ["a.n > 1", "a.f > 0", "(a.s = 'x' OR a.n IS NULL)", "NOT (a.s = 'x')", "1 = 1", "1 = 0"]
AFTER = [
    "b.t IS NULL",
    "b.n > 1",
    "b.n IS NOT NULL OR a.s = 'x'",
    "COALESCE(b.n, 0) < 3",
    "a.t <= b.t",
    "(b.t IS NULL OR b.t >= a.t)",
    "NOT (b.s = 'x')",
    "a.s = b.s",
    "a.t IS NOT NULL",
]
OF_PARTNERS = [
    "COUNT(b.*)",
    "COUNT(b.n)",
    "SUM(b.t)",
    "AVG(b.t)",
    "COUNT(DISTINCT b.s)",
    "MIN(b.t)",
    "MAX(b.n)",
    "SUM(COALESCE(b.t, -1))",
    "SUM(CASE WHEN b.t IS NULL THEN 1 ELSE 0 END)",
    "COUNT(*) FILTER (WHERE b.t IS NULL)",
    "COUNT(DISTINCT COALESCE(b.s, 'none'))",
]


@pytest.mark.parametrize("seed", range(60))
def test_windows_are_joined_as_duckdb_joins_them(seed: int) -> None:
    statements, data = Statements(random.Random(seed)), tables(seed)
    for _ in range(3):
        asked = statements.one()
        expected = asked.in_duckdb(data)
        try:
            check_same(lines(sb.sql(asked.ours(), **data)), expected)
        except AssertionError as error:
            raise AssertionError(asked) from error


OTHERS = [
    "SELECT a.k, b.t AS bt, c.t AS ct FROM {a} LEFT JOIN {b} ON a.k = b.k LEFT JOIN {c} ON a.k = c.k AND c.n > 1",
    ("SELECT a.k, COUNT(*) AS c0, COUNT(b.*) AS c1, COUNT(DISTINCT c.s) AS c2 FROM {a} LEFT JOIN {b} ON a.k = b.k "
    "LEFT JOIN {c} ON a.s = c.s GROUP BY a.k"),
    ("SELECT a.k, COUNT(*) AS c0, SUM(c.t) AS c1 FROM {a} JOIN {b} ON a.k = b.k LEFT JOIN {c} ON b.s = c.s GROUP "
    "BY a.k"),
    ("SELECT a.t, b.t AS bt FROM {a} JOIN {b} ON a.k = b.k WHERE EXISTS (SELECT 1 FROM {c} WHERE c.k = a.k) AND "
    "NOT EXISTS (SELECT 1 FROM p WHERE p.s = a.s)"),
    "SELECT a.t, b.s, p.name FROM {a} LEFT JOIN {b} ON a.k = b.k LEFT JOIN p ON p.s = b.s",
    "SELECT a.t, b.s, p.name FROM {a} LEFT JOIN p ON p.s = a.s LEFT JOIN {b} ON a.k = b.k AND p.name = 'n1'",
    ("SELECT p.name, COUNT(*) AS c0, COUNT(b.n) AS c1 FROM {a} JOIN p ON p.s = a.s LEFT JOIN {b} ON a.k = b.k "
    "GROUP BY p.name"),
    "SELECT a.t, b.s FROM {a} LEFT JOIN {b} ON a.k = b.k JOIN p ON p.s = b.s",
    ("SELECT a.s, COUNT(*) AS c0 FROM {a} SEMI JOIN {b} ON a.k = b.k ANTI JOIN {c} ON a.s = c.s AND c.n = 2 GROUP "
    "BY a.s"),
    ("SELECT a.k, SUM(CASE WHEN b.t > a.t THEN 1 ELSE 0 END) AS c1, COUNT(*) AS c0 FROM {a} JOIN {b} ON a.k = b.k "
    "AND b.t >= a.t SEMI JOIN {c} ON c.k = a.k GROUP BY a.k"),
    "SELECT a.k, a.t, b.t AS bt FROM {a} LEFT JOIN {b} USING (k) WHERE a.t < 9 OR b.t > 30",
    "SELECT k, COUNT(*) AS c0, COUNT(b.*) AS c1 FROM {a} LEFT JOIN {b} USING (k, s) GROUP BY k",
    "SELECT a.k, a.t - AVG(a.t) OVER (PARTITION BY b.s) AS x FROM {a} LEFT JOIN {b} ON a.k = b.k",
    "SELECT a.k, a.t, COUNT(*) OVER (PARTITION BY a.k) AS n FROM {a} WHERE a.s IN (SELECT b.s FROM {b})",
    "SELECT a.k, b.t AS bt FROM {a} LEFT JOIN {b} ON a.k = b.k AND b.n = 1 WHERE COALESCE(b.t, 0) + a.t > 20",
    ("SELECT d.k, e.n, e.t FROM (SELECT k, n + 1 AS n FROM {a} WHERE k > 1) d LEFT JOIN (SELECT k, n, t FROM {b} "
    "WHERE t > 9) e ON d.k = e.k AND d.n = e.n + 1"),
]  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_other_joins_beside_them(text: str, seed: int) -> None:
    asked, data = Asked(text, (10, 5)), tables(seed)
    expected = asked.in_duckdb(data)
    assert expected
    check_same(lines(sb.sql(asked.ours(), **data)), expected)


@pytest.mark.parametrize("seed", range(6))
def test_streams_in_pieces_and_rows_out_of_order(seed: int) -> None:
    """A row comes at most 4 later than a newer one, and windows wait for 5: nothing is late."""
    chance = random.Random(100 + seed)
    asked, data = Statements(chance).one(), tables(seed)
    expected = asked.in_duckdb(data)
    comes = {name: [t + chance.randrange(5) for t in data[name]["t"].to_pylist()] for name in "ab"}
    late = {name: data[name].take(sorted(range(len(data[name])), key=comes[name].__getitem__)) for name in "ab"}
    readers = {name: late[name].to_reader(max_chunksize=chance.randint(1, 9)) for name in "ab"}
    check_same(lines(sb.sql(asked.ours(" LATENESS 5"), **late)), expected)
    check_same(lines(sb.sql(asked.ours(" LATENESS 5"), **readers)), expected)


def last(name: str, size: int, until: int) -> str:
    return f"(SELECT * FROM all_{name} WHERE place <= {until} ORDER BY place DESC LIMIT {size}) AS {name}"


@pytest.mark.parametrize(
    ("joined", "where"),
    [
        ("{a} LEFT JOIN {b} ON a.k = b.k AND b.n > 1 AND a.s <> 'y'", ""),
        ("{a} LEFT JOIN {b} ON a.k = b.k", " WHERE b.n > 1"),
        ("{a} ANTI JOIN {b} ON a.k = b.k AND NOT (b.n = 2)", ""),
        ("{a} SEMI JOIN {b} ON a.k = b.k AND b.n > 1", ""),
    ],
)
def test_what_a_join_asks_for_drops_no_row_from_a_window_of_arrivals(joined: str, where: str) -> None:
    data, order = {name: tables(7)[of].slice(0, 12) for name, of in (("a", "a"), ("b", "c"))}, list(range(24))
    random.Random(7).shuffle(order)
    data = {name: data[name].append_column("place", pa.array(sorted(order[i::2]))) for i, name in enumerate("ab")}
    windows = {"a": "a [WINDOW 6 ROWS EVERY 4 ROWS ORDER BY place]", "b": "b [WINDOW 4 ROWS ORDER BY place]"}
    shown = "a.k, a.t, b.t AS bt" if "LEFT" in joined else "a.k, a.t"
    answer = sb.sql(f"SELECT window_end AS w, {shown} FROM {joined.format(**windows)}{where}", **data)
    connection, found = duckdb.connect(), []
    for name in "ab":
        connection.register(f"all_{name}", data[name])
    for due in range(4, 25, 4):
        rows = {name: last(name, size, due - 1) for name, size in (("a", 6), ("b", 4))}
        found += [
            (due, *row) for row in connection.execute(f"SELECT {shown} FROM {joined.format(**rows)}{where}").fetchall()
        ]
    assert found
    check_same(lines(answer), ordered(found))


def test_one_side_may_be_empty() -> None:
    data = tables(3)
    for empty in "ab":
        less = data | {empty: data[empty].slice(0, 0)}
        for seed in range(12):
            asked = Statements(random.Random(seed)).one()
            check_same(lines(sb.sql(asked.ours(), **less)), asked.in_duckdb(less))


def test_explain_says_how_windows_are_joined_and_when_rows_are_collected() -> None:
    data = tables(1)

    def explained(aggregate: str, where: str = "") -> str:
        text = f"SELECT a.k, {aggregate} AS x FROM {{a}} LEFT JOIN {{b}} ON a.k = b.k AND b.n > 1 {where} GROUP BY a.k"
        return str(sb.sql(f"EXPLAIN {Asked(text, (10, 5)).ours()}", **data))

    said = explained("SUM(b.n)")
    assert "joined by LEFT JOIN: for each key, its rows or a row of nulls, where (n > 1)" in said
    assert "COUNT(*)" not in said
    assert "COUNT(*) AS count for each a.k, b.n" in explained("MAX(b.n)")
    said = explained("MAX(b.n)", "WHERE b.t > 3")
    assert "LEFT" not in said, "WHERE drops all rows without a partner: this is an inner join"
    assert "MAX(b.n)" in said


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession) -> None:
    data = tables(4)
    there = {name: spark.createDataFrame(table) for name, table in data.items()}
    statements = Statements(random.Random(4))
    for asked in [*(statements.one() for _ in range(8)), *(Asked(text, (10, 5)) for text in OTHERS[:9:3])]:
        try:
            check_same(lines(sb.sql(asked.ours(), **there)), asked.in_duckdb(data))
        except AssertionError as error:
            raise AssertionError(asked) from error
