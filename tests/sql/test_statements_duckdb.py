"""Oracle tests: generated statements over windows side by side, and the same asked of DuckDB, window by window."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from sql.test_values import same

import skyband as sb

SIZE = 10
WINDOWED = f"(SELECT *, (t // {SIZE} + 1) * {SIZE} AS w FROM {{}}) AS r"


def trades(chance: random.Random, rows: int = 70) -> pa.Table:
    """Few values, so that scores tie; times that all differ, since what ties in both comes in an order of its own."""

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if chance.random() < 0.15 else chance.choice(values) for _ in range(rows)], kind)

    return pa.table(
        {
            "id": pa.array(range(rows)),
            "t": pa.array(sorted(chance.sample(range(90), rows))),
            "g": column(["a", "b", "C"], pa.string()),
            "Half": column([True, False], pa.bool_()),
            "i": column([-3, 0, 1, 2, 7], pa.int64()),
            "x": column([-1.5, 0.0, 0.25, 3.0, 8.5], pa.float64()),
        }
    )


class Pair(NamedTuple):
    """A statement, and what it says of all windows at once in DuckDB's words; both give window, …"""

    ours: str
    duckdb: str


class Statements:
    """Statements by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def one(self) -> Pair:
        return self._chance.choice([self._ranked, self._ranked, self._grouped])()

    def _of(self, *texts: str) -> str:
        return self._chance.choice(texts)

    def _cased(self, text: str) -> str:
        """Names in any case."""
        return self._of(text, text.upper(), text.lower()) if "'" not in text else text

    def _source(self) -> tuple[str, str]:
        """What stands in front of SELECT, and in FROM: an input, or what WITH or FROM makes of it."""
        made = self._of(
            "SELECT * FROM trades",
            "SELECT id, t, g, half, 10 - x AS x, i FROM trades",
            "SELECT id, t, g, half, x, i * 2 + 1 AS i FROM trades WHERE i > 0 OR half",
            "SELECT * EXCEPT (x), i + 0.5 AS x FROM trades",
            "SELECT id, t, CASE WHEN half THEN 'half' ELSE g END AS g, half, i AS x, id % 4 AS i FROM trades",
        )
        return self._chance.choice(
            [("", "trades"), (f"WITH c AS ({made}) ", "c"), ("", f"({made})"), self._twice(made)],
        )

    def _twice(self, made: str) -> tuple[str, str]:
        return f"WITH c AS ({made}), trades AS (SELECT *, x AS y FROM c WHERE id > 3) ", "trades"

    def _number(self) -> str:
        return self._cased(
            self._of("x", "i", "x + i", "r.x * 2 - i", "COALESCE(x, 1)", "ABS(i)", "CASE WHEN half THEN x ELSE i END")
        )

    def _where(self) -> str:
        condition = self._of(
            *("x > 0", "half", "NOT half", "half IS NOT TRUE", "g = 'a'", "g <> 'b' OR i > 1", "x IS NOT NULL"),
            *("i IN (1, 2, NULL)", "i NOT IN (1, 2)", "x BETWEEN 0 AND 3", "g LIKE 'C%'", "g IS DISTINCT FROM 'a'"),
        )
        return self._of("", f"WHERE {self._cased(condition)} ", f"WHERE ({condition}) AND (id <> 7 AND TRUE) ")

    def _ranked(self) -> Pair:
        (front, source), where, k = self._source(), self._where(), self._chance.randint(1, 3)
        shown, by, way = self._number(), self._number(), self._of("", " DESC", " ASC")
        per = self._of("", "", "g", "half", "id % 3")
        order = self._of(by, "2" if by == shown else by, "v" if by == shown else by)
        ends = [f"ORDER BY {order}{way} LIMIT {k}{f' BY {per}' if per else ''}"]
        if not per:
            ends.append(f"ORDER BY {order}{way} FETCH FIRST {k} ROWS ONLY")
        parts = f"PARTITION BY {per} " if per else ""
        ends.append(f"QUALIFY ROW_NUMBER() OVER ({parts}ORDER BY {by}{way}) <= {k}")
        ours = f"SELECT id, {shown} AS v FROM {source} AS r [WINDOW {SIZE} EVERY {SIZE} ON t] {where}{self._of(*ends)}"
        numbered = f"ROW_NUMBER() OVER (PARTITION BY w{', ' + per if per else ''} ORDER BY {by}{way}, t DESC)"
        inner = f"SELECT w, {numbered} AS n, id, {shown} AS v FROM {WINDOWED.format(source)} "
        inner += f"WHERE ({where.removeprefix('WHERE ') or 'TRUE'}) AND ({by}) IS NOT NULL"
        return Pair(front + ours, f"{front}SELECT w, n, id, v FROM ({inner}) WHERE n <= {k}")

    def _grouped(self) -> Pair:
        (front, source), where = self._source(), self._where()
        key = self._cased(self._of("g", "half", "i", "i % 2", "CASE WHEN half THEN 'yes' ELSE g END", "r.g"))
        number = self._number()
        some = self._of("SUM({})", "COUNT({})", "MIN({})", "MAX({})", "AVG({})").format(number)
        having = self._of("", "", " HAVING n > 1", " HAVING COUNT(*) > 1", " HAVING a > 0", f" HAVING {some} < 5")
        grouped = self._of(key, "k", "1")
        lists = f"{key} AS k, COUNT({self._of('*', '1')}) AS n, {some} AS a"
        ours = f"SELECT {lists} FROM {source} AS r [WINDOW {SIZE} EVERY {SIZE} ON t] {where}GROUP BY {grouped}{having}"
        theirs = f"SELECT w, {lists} FROM {WINDOWED.format(source)} {where}GROUP BY w, {key}{having}"
        return Pair(front + ours, front + theirs)


def found(answer: pa.Table) -> list[tuple[Any, ...]]:
    kept = [name for name in ("window_end", "rank", "id", "v", "k", "n", "a") if name in answer.column_names]
    return [tuple(row.values()) for row in answer.select(kept).to_pylist()]


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


@pytest.mark.parametrize("seed", range(6))
def test_statements_give_the_answers_that_duckdb_gives(seed: int) -> None:
    chance = random.Random(seed)
    rows, statements = trades(chance), Statements(chance)
    connection = duckdb.connect()
    connection.register("trades", rows)
    for _ in range(20):
        asked = statements.one()
        expected = connection.execute(asked.duckdb).fetchall()
        answer = ordered(found(sb.sql(asked.ours, trades=rows)))
        expected = ordered(expected)
        assert len(answer) == len(expected), asked
        for one, other in zip(answer, expected, strict=True):
            assert all(map(same, one, other)), (asked, one, other)
