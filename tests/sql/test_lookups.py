"""Oracle tests: joins of a stream with a table, row by row, as DuckDB answers them; and the same on Spark."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from sql.test_statements_duckdb import ordered
from sql.test_values import same as same_value

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")


def tables(seed: int, rows: int = 60) -> dict[str, pa.Table]:
    """A stream and two tables with nulls, NaN, both zeros, repeated keys, and keys that the other side has not."""
    chance = random.Random(seed)

    def some(values: list[Any], n: int, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if chance.random() < 0.15 else chance.choice(values) for _ in range(n)], kind)

    def keys(n: int, *, is_stream: bool) -> dict[str, pa.Array]:
        return {
            "i": some([1, 2, 3, 4, 9 if is_stream else 7], n, pa.int32() if is_stream else pa.int64()),
            "s": some(["a", "b", "", "A"], n),
            "x": some([0.0, -0.0, NAN, 1.5], n),
            "d": some([Decimal("1.50"), Decimal("-2.00")], n, pa.decimal128(9, 2)),
            "day": some([date(2026, 1, 1), date(2026, 1, 2)], n),
        }

    return {
        "t": pa.table({"ts": range(rows), "price": chance.sample(range(1000), rows), **keys(rows, is_stream=True)}),
        "r": pa.table({**keys(12, is_stream=False), "name": some(["n1", "n2"], 12), "price": list(range(12))}),
        "q": pa.table({"name": ["n1", "n1", None, "n3"], "weight": [1, 2, 3, 4]}),
    }


PLAIN = [
    "SELECT t.ts, r.name FROM t JOIN r ON t.i = r.i",
    "SELECT t.ts, r.name, r.price + t.price AS both FROM t JOIN r ON t.i = r.i AND r.s = t.s WHERE t.price > 200",
    "SELECT t.ts, t.x, r.x AS other FROM t JOIN r ON t.x = r.x",
    "SELECT ts, r.name FROM t, r WHERE t.d = r.d AND r.price < 6 AND (t.price > 500 OR r.name = 'n1')",
    "SELECT ts, name FROM t LEFT JOIN r ON t.day = r.day AND r.price > 8",
    "SELECT t.ts, r.name FROM t LEFT JOIN r ON r.i = t.i AND r.price % 2 = 0 WHERE r.price % 2 = 0",
    "SELECT ts, name FROM t LEFT JOIN r USING (i, s) WHERE name IS NULL OR name = 'n1'",
    "SELECT ts, COALESCE(r.name, 'none') AS n, weight FROM t LEFT JOIN r ON t.i = r.i LEFT JOIN q ON r.name = q.name",
    "SELECT ts, weight FROM t JOIN r ON t.s = r.s JOIN q ON q.name = r.name WHERE t.i > 1",
    "SELECT * FROM t LEFT SEMI JOIN r ON t.i = r.i AND r.name = 'n1'",
    "SELECT * FROM t LEFT ANTI JOIN r ON t.i = r.i AND r.name = 'n1'",
    "SELECT * FROM t SEMI JOIN r USING (s, day) WHERE price > 100",
    "SELECT ts FROM t ANTI JOIN r ON t.x = r.x",
    "SELECT ts FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.i = t.i AND r.s = t.s)",
    "SELECT ts FROM t WHERE NOT EXISTS (SELECT 1 FROM r WHERE i = t.i AND name = 'n2') AND price < 900",
    "SELECT ts FROM t WHERE i IN (SELECT i FROM r WHERE price > 5)",
    "SELECT ts FROM t WHERE EXISTS (SELECT * FROM r WHERE r.d = t.d) AND NOT EXISTS (SELECT 1 FROM q WHERE name = s)",
    "WITH big AS (SELECT i AS k, name FROM r WHERE price > 3) SELECT ts, b.name FROM t JOIN big AS b ON b.k = t.i",
    "SELECT t.ts, other.price AS p FROM t JOIN t AS other ON t.i = other.i AND other.price > 700",
]


def in_duckdb(statement: str, data: dict[str, pa.Table]) -> list[Any]:
    connection = duckdb.connect()
    for name, table in data.items():
        connection.register(name, table)
    statement = statement.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    return ordered(connection.execute(statement).fetchall())


def found(statement: str, data: dict[str, Any]) -> list[Any]:
    return ordered([tuple(row.values()) for row in sb.sql(statement, **data).to_pylist()])


def same(one: Any, other: Any) -> bool:
    return (one != one and other != other) or same_value(one, other)  # NaN is itself


def check_same(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert all(map(same, left, right)), (left, right)


@pytest.mark.parametrize("statement", PLAIN)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_are_what_duckdb_says(statement: str, seed: int) -> None:
    data = tables(seed)
    expected = in_duckdb(statement, data)
    check_same(found(statement, data), expected)
    if "other" not in statement:  # a reader can be read once
        in_pieces = data | {"t": data["t"].to_reader(max_chunksize=7)}
        answer = sb.sql(statement, **in_pieces)
        assert isinstance(answer, pa.RecordBatchReader)
        check_same(ordered([tuple(row.values()) for row in answer.read_all().to_pylist()]), expected)


def generated(chance: random.Random) -> str:
    """A join of t with r, and perhaps q, of any kind."""

    def condition(*columns: str) -> str:
        texts = {
            "price": chance.choice(["{} > 5", "{} < 400", "{} % 2 = 0"]),
            "name": chance.choice(["{} = 'n1'", "{} IS NULL", "{} <> 'n2'"]),
            "weight": chance.choice(["{} > 1", "{} IS NOT NULL"]),
        }
        column = chance.choice(columns)
        return texts[column.partition(".")[2]].format(column)

    def keys(table: str) -> str:
        same_names = chance.sample(["i", "s", "x", "d", "day"], chance.choice([1, 1, 2]))
        pairs = [chance.sample([f"t.{name}", f"{table}.{name}"], 2) for name in same_names]
        return " AND ".join(f"{one} = {other}" for one, other in pairs)

    shown, seen, joins, where = ["t.ts"], ["t.price"], [], []
    kind = chance.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "EXISTS", "NOT EXISTS"])
    more = f" AND {condition('r.price', 'r.name')}" if chance.random() < 0.5 else ""
    if kind.endswith("EXISTS"):
        where.append(f"{kind} (SELECT 1 FROM r WHERE {keys('r')}{more})")
    else:
        joins.append(f"{kind} r ON {keys('r')}{more}")
    if kind in ("JOIN", "LEFT JOIN"):
        shown += chance.sample(["r.name", "r.price AS rp", "t.price + r.price AS sum", "r.x"], 2)
        seen += ["r.price", "r.name"]
        if chance.random() < 0.4:
            second = chance.choice([kind, "LEFT JOIN"])
            joins.append(f"{second} q ON r.name = q.name")
            shown.append("q.weight")
            seen.append("q.weight")
    elif chance.random() < 0.4:
        joins.insert(0, f"{chance.choice(['JOIN', 'LEFT JOIN'])} q ON t.s = q.name")
        shown.append("q.weight")
    where += [condition(*seen) for _ in range(chance.randrange(3))]
    chance.shuffle(where)
    return f"SELECT {', '.join(shown)} FROM t {' '.join(joins)}{' WHERE ' if where else ''}{' AND '.join(where)}"


@pytest.mark.parametrize("seed", range(80))
def test_generated_joins_are_what_duckdb_says(seed: int) -> None:
    statement, data = generated(random.Random(seed)), tables(seed)
    check_same(found(statement, data), in_duckdb(statement, data))


def test_rows_stay_in_their_order_and_columns_in_their_types() -> None:
    data = tables(4)
    answer = sb.sql("SELECT t.*, r.name FROM t LEFT JOIN r ON t.i = r.i", **data)
    assert answer["ts"].to_pylist() == sorted(answer["ts"].to_pylist())
    assert answer.schema == data["t"].schema.append(pa.field("name", pa.string()))


@pytest.mark.parametrize("name", ["t", "r"])
def test_an_empty_input_is_an_input(name: str) -> None:
    for statement in PLAIN[:-1]:
        data = tables(5)
        data[name] = data[name].slice(0, 0)
        check_same(found(statement, data), in_duckdb(statement, data))


_W = "t.ts // 10 * 10 + 10 AS w"
WINDOWS: list[tuple[str, str]] = [
    (
        ("SELECT weight, COUNT(*) AS c FROM t [WINDOW 10 EVERY 10 ON ts] JOIN r ON t.i = r.i "
        "LEFT JOIN q ON q.name = r.name GROUP BY weight"),
        f"SELECT {_W}, weight, COUNT(*) FROM t JOIN r ON t.i = r.i LEFT JOIN q ON q.name = r.name GROUP BY w, weight",
    ),
    (
        ("SELECT t.price, name FROM t [WINDOW 10 EVERY 10 ON ts] JOIN r ON t.i = r.i "
        "ORDER BY t.price DESC, name NULLS LAST LIMIT 3"),
        (f"SELECT {_W}, ROW_NUMBER() OVER (PARTITION BY w ORDER BY t.price DESC, name NULLS LAST) AS n, t.price, name "
        "FROM t JOIN r ON t.i = r.i QUALIFY n <= 3"),
    ),
    (
        ("SELECT price FROM t [WINDOW 10 EVERY 10 ON ts] WHERE NOT EXISTS "
        "(SELECT 1 FROM r WHERE r.s = t.s AND r.i = t.i) ORDER BY price LIMIT 2"),
        (f"SELECT {_W}, ROW_NUMBER() OVER (PARTITION BY w ORDER BY price) AS n, price FROM t ANTI JOIN r "
        "ON r.s = t.s AND r.i = t.i QUALIFY n <= 2"),
    ),
    (
        ("SELECT name, COUNT(*) AS c, SUM(t.price) AS p, COUNT(DISTINCT r.s) AS d FROM t [WINDOW 10 EVERY 10 ON ts] "
        "LEFT JOIN r ON t.i = r.i GROUP BY name"),
        (f"SELECT {_W}, name, COUNT(*), SUM(t.price), COUNT(DISTINCT r.s) FROM t LEFT JOIN r ON t.i = r.i "
        "GROUP BY w, name"),
    ),
    (
        ("SELECT t.s, name, COUNT(*) AS c FROM t [WINDOW 10 EVERY 10 ON ts] JOIN r ON t.i = r.i WHERE t.day IN "
        "(SELECT day FROM r x WHERE x.price > 5) GROUP BY t.s, name"),
        (f"SELECT {_W}, t.s, name, COUNT(*) FROM t JOIN r ON t.i = r.i WHERE t.day IN "
        "(SELECT day FROM r x WHERE x.price > 5) GROUP BY w, t.s, name"),
    ),
]  # fmt: skip


def lines(statement: str, data: dict[str, Any]) -> list[Any]:
    """What windows show, without where they begin and what was ranked by."""
    answer = sb.sql(statement, **data)
    answer = answer.toArrow() if hasattr(answer, "toArrow") else answer
    kept = [name for name in answer.column_names if name not in ("window_start", "score")]
    return ordered([tuple(row.values()) for row in answer.select(kept).to_pylist()])


@pytest.mark.parametrize(("ours", "theirs"), WINDOWS)
@pytest.mark.parametrize("seed", [1, 2])
def test_windows_are_of_the_rows_that_the_join_gives(ours: str, theirs: str, seed: int) -> None:
    data = tables(seed)
    check_same(lines(ours, data), in_duckdb(theirs, data))
    assert sb.run_all({"a": ours, "b": ours}, **data)["b"].equals(sb.sql(ours, **data))


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    data = tables(6)
    there = {name: spark.createDataFrame(table) for name, table in data.items()}
    for statement in PLAIN:
        answer = sb.sql(statement, **there).toArrow()
        check_same(ordered([tuple(row.values()) for row in answer.to_pylist()]), in_duckdb(statement, data))
    for ours, theirs in WINDOWS:
        check_same(lines(ours, there), in_duckdb(theirs, data))
    # A stream of files, joined with a table as it goes by.
    for part in range(3):
        pq.write_table(data["t"].slice(20 * part, 20), tmp_path / f"{part}.parquet")
    stream = spark.readStream.schema(there["t"].schema).parquet(str(tmp_path))
    for number in (0, 5, 9, 10):
        answer = sb.sql(PLAIN[number], **(there | {"t": stream}))
        query = answer.writeStream.format("memory").queryName(f"lookup_{number}").trigger(availableNow=True).start()
        query.awaitTermination()
        rows = spark.table(f"lookup_{number}").toArrow().to_pylist()
        check_same(ordered([tuple(row.values()) for row in rows]), in_duckdb(PLAIN[number], data))
    with pytest.raises(sb.InvalidInput, match="'r' has no window, so it must be a table"):
        sb.sql("SELECT q.weight FROM q JOIN r ON q.name = r.s", q=there["q"], r=stream)


def test_explain_says_what_rows_are_joined_with() -> None:
    said = str(sb.sql(f"EXPLAIN {WINDOWS[2][0]}", **tables(1)))
    assert "rows with anti join r ON s = r.s AND i = r.i" in said


def test_a_reader_is_not_read_twice() -> None:
    data = tables(1)
    with pytest.raises(sb.InvalidInput, match="reads 't' twice"):
        sb.sql(PLAIN[-1], **(data | {"t": data["t"].to_reader()}))


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT t.ts FROM t, r", "No condition joins 'r' with 't'"),
        ("SELECT t.ts FROM t JOIN r ON t.i < r.i", "No condition joins 'r' with 't'"),
        ("SELECT t.ts FROM t LEFT JOIN r ON t.i = r.i AND t.price > 3", "must read columns of r alone"),
        ("SELECT t.ts FROM t ANTI JOIN r ON t.i = r.i AND t.price > r.price", "must read columns of r alone"),
        ("SELECT t.ts FROM t JOIN r ON t.i = r.s", "Joined columns must have the same type"),
        ("SELECT t.ts FROM t JOIN r ON t.i = r.u", "no column 'u'"),
        ("SELECT r.name FROM t SEMI JOIN r ON t.i = r.i", "There is no input 'r'"),
        ("SELECT ts FROM t WHERE i NOT IN (SELECT i FROM r)", "never true once the table contains a null"),
        ("SELECT ts FROM t WHERE price > 3 OR EXISTS (SELECT 1 FROM r WHERE r.i = t.i)", "EXISTS must be a condition"),
        ("SELECT ts FROM t WHERE EXISTS (SELECT COUNT(*) FROM r WHERE r.i = t.i)", "must read one input"),
        ("SELECT ts FROM t WHERE EXISTS (SELECT 1 FROM r JOIN q ON r.name = q.name)", "must read one input"),
        ("SELECT ts FROM t WHERE i IN (SELECT i, s FROM r)", "a query of one column"),
        ("SELECT ts FROM t RIGHT JOIN r ON t.i = r.i", "RIGHT JOIN is not supported"),
        ("SELECT ts FROM t RIGHT JOIN r ON t.i = r.i WHERE t.i > 1", "RIGHT JOIN is not supported with a table"),
        ("SELECT * FROM t JOIN r ON t.i = r.i", "Two columns of 'the answer' are called"),
    ],
)  # fmt: skip
def test_what_is_no_join_with_a_table_is_refused(statement: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why):
        sb.sql(statement, **tables(1))


@pytest.mark.parametrize("batch_rows", [1, 3])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_like_nan_however_the_stream_is_cut(batch_rows: int, kind: pa.DataType) -> None:
    nan = float("nan")
    rows = pa.table({"id": [0, 1, 2, 3], "p": pa.array([nan, -0.0, None, nan], kind)})
    for values, expected in (([nan], [0, 3]), ([0.0], [1]), ([None], []), ([nan, 0.0, None], [0, 1, 3])):
        table = pa.table({"p": pa.array(values, pa.float64())})
        for how, there in (("JOIN", expected), ("LEFT SEMI JOIN", expected)):
            statement = f"SELECT s.id FROM s {how} r ON s.p = r.p"
            batches = iter(rows.to_batches(max_chunksize=batch_rows))
            assert sb.sql(statement, s=batches, r=table).read_all()["id"].to_pylist() == there


@pytest.mark.parametrize("statement", PLAIN[:-1])  # the last one reads its stream twice
def test_a_batch_that_is_small_beside_its_table_finds_the_same(statement: str) -> None:
    """Such a batch is joined with the rows of the table that have its hashes, and not with all."""
    data = tables(3)
    data["r"] = pa.concat_tables([data["r"]] * 40)  # the last ones are far behind the first
    answers = []
    for rows in (1, 60):
        stream = iter(data["t"].to_batches(max_chunksize=rows))
        answers.append(sb.sql(statement, **{**data, "t": stream}).read_all())
    assert answers[0].num_rows
    assert repr(answers[0].to_pylist()) == repr(answers[1].to_pylist())
