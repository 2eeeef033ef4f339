"""Oracle tests: what is asked of the lines of each window, as DuckDB answers it window by window; and on Spark."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from sql.test_join_rows import lines, tables
from sql.test_lookups import check_same
from sql.test_statements_duckdb import ordered

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOINED = "FROM {a} JOIN {b} ON a.k = b.k"
KEYS = "b.n DESC NULLS LAST, a.t, b.t, a.s NULLS FIRST, b.s NULLS LAST, a.k"
GROUPED = f"SELECT a.s AS g, a.k AS k, COUNT(*) AS c, MAX(b.n) AS m, SUM(b.t) AS u {JOINED} GROUP BY a.s, a.k"

# {end} is the end of the window, which DuckDB is not asked for.
RANKED = [
    f"SELECT {{end}}a.t, b.n, b.s {JOINED} ORDER BY {KEYS} LIMIT 3",
    f"SELECT {{end}}b.n, a.t + b.t AS two {JOINED} WHERE a.t <= b.t ORDER BY two DESC, {KEYS} LIMIT 4 OFFSET 2",
    f"SELECT {{end}}a.k, b.n, a.t, b.t {JOINED} QUALIFY ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY {KEYS}) = 1",
    (
        "SELECT {end}a.s, b.n FROM {a}, {b} WHERE a.k = b.k AND b.t BETWEEN a.t AND a.t + 4 "
        "QUALIFY RANK() OVER (PARTITION BY a.s ORDER BY b.n NULLS FIRST) <= 2"
    ),
    (
        f"SELECT {{end}}q.n, q.rn FROM (SELECT {{end}}b.n, ROW_NUMBER() OVER (PARTITION BY b.s ORDER BY {KEYS}) AS rn "
        f"{JOINED}) q WHERE rn <= 2 AND q.n > 1"
    ),
    f"SELECT {{end}}p.name, a.t, b.n {JOINED} JOIN p ON p.s = b.s ORDER BY p.name NULLS LAST, {KEYS} LIMIT 5",
]
COMPARED = [
    f"SELECT {{end}}a.s, COUNT(*) AS c, SUM(b.n) AS n {JOINED} AND b.t BETWEEN a.t AND a.t + 3 GROUP BY a.s",
    (
        f"SELECT {{end}}a.k, AVG(b.t - a.t) AS d, COUNT(DISTINCT b.s) AS s {JOINED} WHERE a.t < b.t GROUP BY a.k "
        "HAVING COUNT(*) > 2"
    ),
    (
        f"SELECT {{end}}COUNT(b.n) AS n, MIN(a.t) AS f, a.s || b.s AS two {JOINED} WHERE a.s <> b.s GROUP BY a.s || "
        "b.s ORDER BY n DESC, two NULLS LAST LIMIT 2"
    ),
    "SELECT {end}a.k, COUNT(*) AS n FROM {a} JOIN {a2} ON a.k = a2.k AND a.t < a2.t GROUP BY a.k",
]
GROUPS = [
    (
        f"SELECT {{end}}a.s, a.k, COUNT(*) AS n {JOINED} GROUP BY a.s, a.k "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY a.s ORDER BY COUNT(*) DESC, a.k) <= 2"
    ),
    (
        "SELECT {end}k, s, SUM(t) AS n FROM {a} WHERE t > 3 GROUP BY k, s HAVING COUNT(*) < 4 "
        "QUALIFY RANK() OVER (PARTITION BY k ORDER BY SUM(t), s NULLS LAST) BETWEEN 2 AND 3"
    ),
    (
        "SELECT {end}k % 2 AS odd, s, MAX(t) - MIN(t) AS d FROM {a} GROUP BY k % 2, s "
        "QUALIFY DENSE_RANK() OVER (ORDER BY MAX(t) - MIN(t)) = 1"
    ),
    (
        "SELECT {end}s, n, rn FROM (SELECT {end}s, k, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY s ORDER BY "
        "COUNT(*) DESC, k NULLS LAST) AS rn FROM {a} GROUP BY s, k) WHERE rn <= 1 AND n > 1"
    ),
    (
        f"SELECT {{end}}a.s, b.s AS o, COUNT(*) AS n {JOINED} WHERE a.t < b.t GROUP BY a.s, b.s "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY b.s ORDER BY COUNT(*) DESC, a.s NULLS LAST) = 1"
    ),
]
AROUND = [
    f"SELECT {{end}}g, AVG(m) AS mean, SUM(c) AS n FROM ({GROUPED}) GROUP BY g",
    f"SELECT {{end}}k, MIN(u) AS u FROM ({GROUPED}) AS q WHERE q.c > 1 GROUP BY k HAVING COUNT(*) > 1",
    f"WITH q AS ({GROUPED}) SELECT {{end}}MAX(c) - MIN(c) AS spread, COUNT(*) AS n, k % 2 AS odd FROM q GROUP BY k % 2",
    f"SELECT {{end}}g, k, c FROM ({GROUPED}) ORDER BY c DESC, k, g NULLS FIRST LIMIT 2",
    f"SELECT {{end}}g, top FROM (SELECT {{end}}g, MAX(c) AS top FROM ({GROUPED}) GROUP BY g) WHERE top > 2",
    "SELECT {end}s, SUM(t) AS t FROM (SELECT s, t FROM {a} ORDER BY t DESC, s NULLS LAST LIMIT 4) GROUP BY s",
    "SELECT {end}k, AVG(c) AS mean FROM (SELECT k, s, COUNT(*) AS c FROM {a} GROUP BY k, s) GROUP BY k",
    # The best row of each, of those the last two of another, and of these a mean: Nexmark's sixth question.
    (
        f"SELECT {{end}}s, AVG(n) AS mean FROM (SELECT s, n, ROW_NUMBER() OVER (PARTITION BY s ORDER BY t DESC, n, k) "
        f"rn FROM (SELECT a.s, a.k, b.n, b.t {JOINED} WHERE b.n IS NOT NULL QUALIFY ROW_NUMBER() OVER (PARTITION BY "
        f"a.k ORDER BY {KEYS}) = 1)) WHERE rn <= 2 GROUP BY s"
    ),
]
ASKED = RANKED + COMPARED + GROUPS + AROUND


def inputs(text: str, data: dict[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: table for name, table in data.items() if f"{{{name}}}" in text or f"JOIN {name} " in text}


def ours(text: str) -> str:
    streams = {name: f"{name} [WINDOW 10 EVERY 5 ON t]" for name in "ab"}
    return text.format(end="window_end, ", **streams, a2="a AS a2 [WINDOW 10 EVERY 5 ON t]")


def in_duckdb(text: str, data: dict[str, pa.Table]) -> list[Any]:
    connection, found = duckdb.connect(), []
    for name, table in data.items():
        connection.register(name if name == "p" else f"all_{name}", table)
    for end in range(5, 80, 5):
        part = f"(SELECT * FROM all_{{}} WHERE t >= {end - 10} AND t < {end}) AS {{}}"
        windows = {"a": part.format("a", "a"), "b": part.format("b", "b"), "a2": part.format("a", "a2")}
        found += [(end, *row) for row in connection.execute(text.format(end="", **windows)).fetchall()]
    return ordered(found)


@pytest.mark.parametrize("text", ASKED)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_window_has_what_duckdb_says_of_its_rows(text: str, seed: int) -> None:
    data = tables(seed)
    expected = in_duckdb(text, data)
    assert expected
    given = inputs(text, data)
    check_same(lines(sb.sql(ours(text), **given)), expected)
    if "{a2}" not in text:  # a reader can be read once
        streams = given | {name: table.to_reader(max_chunksize=7) for name, table in given.items() if name != "p"}
        check_same(lines(sb.sql(ours(text), **streams).read_all()), expected)


def test_what_ranked_rows_of_a_join_look_like() -> None:
    a = pa.table({"t": [0, 1, 12], "k": [1, 2, 1], "x": ["p", "q", "r"]})
    b = pa.table({"t": [2, 3, 13, 14], "k": [1, 2, 1, 1], "n": [5, 5, None, 4]})
    asked = "SELECT x, n FROM a JOIN b USING (k) ORDER BY n DESC LIMIT 2 WINDOW [10 EVERY 10 ON t]"
    # Of equal rows that with the smaller values comes first; a row without a score is not ranked.
    assert sb.sql(asked, a=a, b=b).to_pylist() == [
        {"window_start": 0, "window_end": 10, "rank": 1, "score": 5, "x": "p", "n": 5},
        {"window_start": 0, "window_end": 10, "rank": 2, "score": 5, "x": "q", "n": 5},
        {"window_start": 10, "window_end": 20, "rank": 1, "score": 4, "x": "r", "n": 4},
    ]
    landmark = "SELECT x FROM a [WINDOW UNTIL NOW EVERY 10 ON t] JOIN b [WINDOW 10 ON t] USING (k) ORDER BY n LIMIT 1"
    assert sb.sql(landmark, a=a, b=b).to_pylist() == [
        {"window_end": 10, "rank": 1, "score": 5, "x": "p"},
        {"window_end": 20, "rank": 1, "score": 4, "x": "p"},
    ]
    shown = "SELECT window_start, window_end, MAX(n) AS n FROM (SELECT k, SUM(n) AS n FROM b [WINDOW 20 EVERY 10 ON t]"
    assert sb.sql(f"{shown} GROUP BY k)", b=b).to_pylist() == [
        {"window_start": -10, "window_end": 10, "n": 5},
        {"window_start": 0, "window_end": 20, "n": 9},
        {"window_start": 10, "window_end": 30, "n": 4},
    ]


def test_the_best_groups_of_each_value_and_equal_ones() -> None:
    rows = pa.table({"t": [0, 1, 2, 3, 14], "g": ["a", "b", "b", "c", "a"], "h": [1, 1, 1, 2, 2]})
    asked = "SELECT h, g, COUNT(*) AS n FROM rows [WINDOW 20 EVERY 10 ON t] GROUP BY g, h ORDER BY n DESC LIMIT 1 BY h"
    found = sb.sql(asked, rows=rows).sort_by([("window_end", "ascending"), ("h", "ascending")])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (-10, 10, 1, 1, 2, "b", 2),
        (-10, 10, 2, 1, 1, "c", 1),
        (0, 20, 1, 1, 2, "b", 2),
        (0, 20, 2, 1, 1, "a", 1),
        (10, 30, 2, 1, 1, "a", 1),
    ]
    tied = "SELECT g FROM rows [WINDOW 10 EVERY 10 ON t] GROUP BY g, h ORDER BY SUM(h) FETCH FIRST 1 ROWS WITH TIES"
    assert sb.sql(tied, rows=rows)["g"].to_pylist() == ["a", "a"]
    both = "SELECT g FROM rows [WINDOW 10 EVERY 10 ON t] GROUP BY g ORDER BY SUM(h) DESC FETCH FIRST 1 ROWS WITH TIES"
    assert sb.sql(both, rows=rows)["g"].to_pylist() == ["b", "c", "a"]


def test_windows_of_timestamps_and_of_arrivals_can_be_asked_about() -> None:
    moments = pa.array([datetime(2026, 3, 1) + timedelta(seconds=7 * i) for i in range(12)], pa.timestamp("ms", "UTC"))
    rows = pa.table({"ts": moments, "g": [1, 2, 1, 3] * 3, "x": range(12)})
    inner = "SELECT g, MAX(x) AS x FROM rows {} GROUP BY g"
    timed = sb.sql(f"SELECT SUM(x) AS x FROM ({inner.format('[WINDOW 28 SECONDS EVERY 28 SECONDS]')})", rows=rows)
    known = sb.sql(inner.format("[WINDOW 28 SECONDS EVERY 28 SECONDS]"), rows=rows)
    assert timed["window_end"].to_pylist() == sorted(set(known["window_end"].to_pylist()))
    assert timed["x"].to_pylist() == [sum(part) for part in ((2, 1, 3), (6, 5, 7), (10, 9, 11))]
    counted = sb.sql(f"SELECT SUM(x) AS x FROM ({inner.format('[WINDOW 8 ROWS EVERY 4 ROWS]')})", rows=rows)
    assert counted.to_pylist() == [{"window_end": 4, "x": 6}, {"window_end": 8, "x": 18}, {"window_end": 12, "x": 30}]


def test_tumbling_windows_of_others_can_be_asked_about() -> None:
    rows = pa.table({"t": [1, 2, 3, 11, 12], "g": [1, 1, 2, 2, 2], "x": [5, 6, 7, 8, 9]})
    asked = "SELECT window_start, AVG(n) AS n FROM (SELECT g, COUNT(*) AS n, window_start FROM TUMBLE(rows, t, 10) "
    answer = sb.sql(f"{asked} GROUP BY g, window_start) GROUP BY window_start", rows=rows)
    assert answer.to_pylist() == [{"window_start": 0, "n": 1.5}, {"window_start": 10, "n": 2.0}]
    with pytest.raises(sb.InvalidSql, match="Nothing separates the windows of TUMBLE"):
        sb.sql(
            "SELECT AVG(n) AS n FROM (SELECT g, COUNT(*) AS n FROM TUMBLE(rows, t, 10) GROUP BY g, window_end)",
            rows=rows,
        )


def test_explain_says_what_is_asked_then() -> None:
    said = str(sb.sql(f"EXPLAIN {ours(AROUND[4])}", **inputs(AROUND[4], tables(1))))
    assert "a join of 2 inputs" in said
    assert "then" in said.split()
    assert "MAX(c) AS top for each" in said


@pytest.mark.spark
@pytest.mark.parametrize(
    "text", [RANKED[0], RANKED[2], RANKED[5], COMPARED[0], GROUPS[0], GROUPS[4], *AROUND[:2], AROUND[5], AROUND[7]]
)
def test_the_same_on_spark(spark: SparkSession, text: str) -> None:
    data = tables(4)
    there = {name: spark.createDataFrame(table) for name, table in inputs(text, data).items()}
    check_same(lines(sb.sql(ours(text), **there)), in_duckdb(text, data))


@pytest.mark.spark
def test_a_stream_on_spark_gives_the_windows_that_its_watermark_has_passed(spark: SparkSession, tmp_path: Path) -> None:
    start = datetime(2026, 3, 1)
    times = pa.array([start + timedelta(seconds=i) for i in range(60)], pa.timestamp("us", "UTC"))
    data = {
        "a": pa.table({"ts": times, "k": [i % 5 for i in range(60)], "x": [i % 7 for i in range(60)]}),
        "b": pa.table({"ts": times, "k": [i % 3 for i in range(60)], "n": [i * 37 % 60 for i in range(60)]}),
    }
    streams = {}
    for name, table in data.items():
        for number, part in enumerate((table.slice(0, 30), table.slice(30))):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(part, tmp_path / name / f"{number}.parquet")
            os.utime(tmp_path / name / f"{number}.parquet", (number, number))
        schema = spark.createDataFrame(table).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        streams[name] = reader.parquet(str(tmp_path / name))
    asked = {
        "ranked": "SELECT window_end, a.x, b.n FROM a JOIN b USING (k) ORDER BY b.n DESC, a.x, a.k LIMIT 2",
        "around": "SELECT window_end, AVG(m) AS m FROM (SELECT k, MAX(n) AS m FROM a JOIN b USING (k) GROUP BY k)",
    }
    for name, text in asked.items():
        text = f"{text} WINDOW [20 SECONDS EVERY 10 SECONDS ON ts]"
        query = sb.sql(text, **streams).writeStream.format("memory").queryName(name).outputMode("append")
        running = query.option("checkpointLocation", str(tmp_path / f"state {name}")).trigger(availableNow=True).start()
        running.awaitTermination(600)
        answer, expected = spark.table(name).toArrow(), sb.sql(text, **data)
        closed = expected.filter(pc.less_equal(expected["window_end"], times[-1]))
        assert closed.num_rows
        check_same(_plain(answer), _plain(closed))


def _plain(table: pa.Table) -> list[Any]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return ordered([tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row) for row in rows])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT a.s FROM a JOIN b ON a.k = b.k ORDER BY a.t LIMIT 3 WINDOW [10 ON t]", "when a window closes"),
        ("SELECT a.s FROM a JOIN b ON a.k = b.k ORDER BY a.t LIMIT 3 WINDOW [10 EVERY 5 ON t] EMIT CHANGES", "close"),
        ("SELECT a.s FROM a JOIN b ON a.k < b.k ORDER BY a.t LIMIT 3 WINDOW [10 EVERY 5 ON t]", "equality of columns"),
        ("SELECT a.s FROM a JOIN b ON a.k = b.k ORDER BY a.zz LIMIT 3 WINDOW [10 EVERY 5 ON t]", "no column 'zz'"),
        ("SELECT a.s FROM a JOIN b ON a.k = b.k ORDER BY a.t WINDOW [10 EVERY 5 ON t]", "There is no LIMIT"),
        ("SELECT a.k, COUNT(*) FROM a JOIN b ON a.k = b.k AND a.t < b.t GROUP BY a.k WINDOW [10 ON t]", "close"),
        ("SELECT MAX(c) FROM (SELECT k, COUNT(*) AS c FROM a [WINDOW 10 ON t] GROUP BY k)", "needs whole answers"),
        ("SELECT MAX(c) FROM (SELECT COUNT(*) AS c FROM a [WINDOW 10 EVERY 5 ON t]) EMIT CHANGES", "Leave EMIT out"),
        ("SELECT MAX(d) FROM (SELECT k, COUNT(*) AS c FROM a [WINDOW 10 EVERY 5 ON t] GROUP BY k)", "no column 'd'"),
        (
            "SELECT SUM(t) FROM (SELECT k, t FROM a [WINDOW 10 ROWS EVERY 5 ROWS] ORDER BY t LIMIT 1 BY k)",
            "counts its own arrivals",
        ),
        (
            ("SELECT SUM(a_t) FROM (SELECT a.t, b.t FROM a, a b WHERE a.t < b.t ORDER BY a.t LIMIT 1) "
            "WINDOW [10 EVERY 5 ON t]"),
            "An outer query can read only",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why) as caught:
        sb.sql(text, **tables(1))
    assert "^" in str(caught.value)
