"""Example and oracle: statements without a window over tables say what DuckDB says; over streams they are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skyband as sb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 400


def tables() -> dict[str, pa.Table]:
    random = np.random.default_rng(5)
    group = random.integers(0, 7, ROWS)
    x = random.random(ROWS)
    trades = pa.table(
        {
            "id": np.arange(ROWS),
            "g": pa.array(["abcdefg"[i] for i in group], mask=group == 3),
            "v": random.permutation(ROWS),
            "x": pa.array(x, mask=x > 0.9),
            "window_end": random.integers(0, 3, ROWS),  # no bound of a window: a column like others
            "ts": pa.array(random.integers(0, 10**10, ROWS) * 1000, pa.timestamp("us")),
        }
    )
    return {"trades": trades, "venues": pa.table({"g": ["a", "b", "c", "z"], "w": [1, 2, 3, 4]})}


STATEMENTS = (
    "SELECT id, v FROM trades ORDER BY v DESC LIMIT 3",
    "SELECT * FROM trades ORDER BY v LIMIT 2",
    "SELECT id FROM trades ORDER BY v DESC LIMIT 3 OFFSET 2",
    "SELECT id FROM trades ORDER BY window_end DESC, v LIMIT 5",
    "SELECT id FROM trades ORDER BY x DESC NULLS LAST, id LIMIT 390",
    "SELECT id FROM trades WHERE v > 390 LIMIT 100",
    "SELECT g, COUNT(*) AS n FROM trades GROUP BY g",
    "SELECT g, COUNT(*) AS n, SUM(v) AS s, MAX(x) AS m FROM trades GROUP BY g ORDER BY n DESC, s LIMIT 3",
    "SELECT g, COUNT(*) AS n FROM trades GROUP BY g HAVING COUNT(*) > 55 ORDER BY g",
    "SELECT DISTINCT g FROM trades",
    "SELECT COUNT(*) AS n, AVG(v) AS a FROM trades",
    "SELECT COUNT(*) AS n, COUNT(DISTINCT g) AS d, SUM(v) AS s FROM trades WHERE v < 0",
    "SELECT COUNT(*) + 1 AS n FROM trades WHERE v < 0",
    "SELECT MAX(n) AS m FROM (SELECT COUNT(*) AS n FROM trades WHERE v < 0)",
    "SELECT COUNT(*) AS n FROM trades HAVING COUNT(*) > 1000",
    "SELECT COUNT(*) AS n FROM trades HAVING COUNT(*) > 100",
    "SELECT COUNT(*) AS n FROM trades WHERE v < 0 HAVING COUNT(*) = 0",
    "SELECT COUNT(*) AS n FROM trades WHERE v < 0 HAVING COUNT(*) > 0",
    "SELECT SUM(v) AS s FROM trades HAVING MAX(v) > 100 AND COUNT(*) > 100 ORDER BY s LIMIT 1",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM trades) WHERE n > 1000",
    "SELECT c FROM (SELECT SUM(v) AS c FROM trades WHERE v < 0) WHERE c IS NOT NULL",
    "SELECT COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM trades WHERE v < 0) WHERE n > 0",
    "SELECT MAX(n) AS m FROM (SELECT COUNT(*) AS n FROM trades HAVING COUNT(*) > 1000)",
    "SELECT id FROM trades WHERE v > 390 FETCH FIRST 100 ROWS ONLY",
    "SELECT AVG(n) AS a FROM (SELECT g, COUNT(*) AS n FROM trades GROUP BY g)",
    "SELECT AVG(n) AS a FROM (SELECT g, COUNT(*) AS n FROM trades GROUP BY g HAVING COUNT(*) > 10000)",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM trades GROUP BY g) WHERE n > 55",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC) AS rn FROM trades) WHERE rn <= 2",
    "SELECT id, g, v FROM trades QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY v) <= 1",
    "SELECT id, SUM(v) OVER (PARTITION BY g) AS s FROM trades WHERE id < 9",
    "WITH c AS (SELECT id, v * 2 AS d FROM trades WHERE v > 100) SELECT id, d FROM c ORDER BY d DESC LIMIT 3",
    "SELECT t.id, p.w FROM trades t JOIN venues p ON t.g = p.g ORDER BY t.v DESC LIMIT 4",
    "SELECT t.id, p.w FROM trades t LEFT JOIN venues p ON t.g = p.g ORDER BY t.v DESC LIMIT 4",
    "SELECT p.w, SUM(t.v) AS s FROM trades t JOIN venues p ON t.g = p.g GROUP BY p.w",
    "SELECT t.id FROM trades t WHERE EXISTS (SELECT 1 FROM venues p WHERE p.g = t.g) ORDER BY v LIMIT 3",
    "SELECT a.id AS i, b.id AS j FROM trades a, trades b WHERE a.id < b.id ORDER BY abs(a.x - b.x) LIMIT 2",
    "SELECT u.id FROM (SELECT id, v FROM trades UNION ALL SELECT w AS id, -w AS v FROM venues) u ORDER BY v LIMIT 9",
    "SELECT date_trunc('hour', ts) AS h, COUNT(*) AS n FROM trades GROUP BY date_trunc('hour', ts)",
)


def lines(table: Any) -> list[str]:
    return sorted(str([round(value, 9) if isinstance(value, float) else value for value in row]) for row in table)


def expected(statement: str, given: dict[str, pa.Table]) -> list[str]:
    with duckdb.connect() as connection:
        for name, table in given.items():
            connection.register(name, table)
        return lines(connection.sql(statement).fetchall())


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_table_without_a_window_is_answered_as_a_whole(statement: str) -> None:
    given = tables()
    answer = sb.sql(statement, **given)
    assert lines(row.values() for row in answer.to_pylist()) == expected(statement, given)


def test_an_answer_has_the_columns_of_its_select_list_and_its_order() -> None:
    answer = sb.sql("SELECT id, v FROM trades ORDER BY v DESC LIMIT 5", **tables())
    assert answer.column_names == ["id", "v"]
    assert answer["v"].to_pylist() == [399, 398, 397, 396, 395]


def test_frames_datasets_and_empty_tables_are_tables() -> None:
    trades = tables()["trades"]
    statement = "SELECT g, SUM(v) AS s FROM trades GROUP BY g ORDER BY s DESC LIMIT 2"
    frame = trades.to_pandas()
    assert sb.sql(statement, trades=frame).to_dict("list") == sb.sql(statement, trades=trades).to_pydict()
    empty = trades.slice(0, 0)
    assert sb.sql(statement, trades=empty).num_rows == 0
    assert sb.sql("SELECT id FROM trades ORDER BY v LIMIT 3", trades=empty).num_rows == 0
    assert sb.sql("SELECT COUNT(*) AS n FROM trades", trades=empty).to_pylist() == [{"n": 0}]


def test_a_stream_has_to_say_its_window() -> None:
    trades = tables()["trades"]
    for statement, why in {
        "SELECT id FROM trades ORDER BY v LIMIT 3": "'trades' has no window",
        "SELECT g, COUNT(*) FROM trades GROUP BY g": "No input has a window",
        "SELECT id, SUM(v) OVER () FROM trades": "No input has a window",
    }.items():
        with pytest.raises(sb.InvalidSql, match=why):
            sb.sql(statement, trades=trades.to_reader())


def test_some_rows_of_a_stream_are_taken_without_reading_on() -> None:
    taken = []

    def batches() -> Any:
        for number in range(10):
            taken.append(number)
            yield pa.record_batch({"id": [3 * number, 3 * number + 1, 3 * number + 2]})

    answer = sb.sql("SELECT id FROM rows LIMIT 4 OFFSET 1", rows=batches())
    assert answer.read_all()["id"].to_pylist() == [1, 2, 3, 4]
    assert len(taken) < 5
    later = sb.sql("SELECT id FROM rows LIMIT 2 OFFSET 7", rows=batches()).read_all()
    assert later["id"].to_pylist() == [7, 8]
    assert sb.sql("SELECT id FROM rows LIMIT 2 OFFSET 100", rows=batches()).read_all().num_rows == 0


def test_the_window_is_not_seen() -> None:
    given = tables()
    assert sb.sql("SELECT * FROM trades ORDER BY v LIMIT 1", **given).column_names == given["trades"].column_names
    with pytest.raises(sb.InvalidSql, match="There is no column 'window_start'"):
        sb.sql("SELECT COUNT(*) AS n, window_start FROM trades", **given)
    for statement in ("SELECT id FROM trades ORDER BY v LIMIT 1", "SELECT g, COUNT(*) AS n FROM trades GROUP BY g"):
        plan = str(sb.sql(f"EXPLAIN {statement}", **given))
        assert "on the whole table" in plan
        assert "the whole table int64" not in plan
        assert "measured" in str(sb.sql(f"EXPLAIN ANALYZE {statement}", **given))


def test_a_column_of_the_window_s_name_is_refused_where_there_is_such_a_window() -> None:
    rows = pa.table({"id": [1, 2], "the whole table": [3, 4]})
    with pytest.raises(sb.InvalidInput, match="rename it"):
        sb.sql("SELECT COUNT(*) AS n FROM rows", rows=rows)
    plain = sb.sql("SELECT `the whole table` AS x FROM rows WHERE id = 2", rows=rows)
    assert plain.to_pylist() == [{"x": 4}]


def test_several_statements_about_tables_run_together() -> None:
    given = tables()
    asked = {
        "all": "SELECT COUNT(*) AS n FROM trades",
        "best": "SELECT v FROM trades ORDER BY v DESC LIMIT 1",
        "some": "SELECT id FROM trades LIMIT 2",
    }
    answers = {name: answer.to_pylist() for name, answer in sb.run_all(asked, **given).items()}
    assert answers == {"all": [{"n": 400}], "best": [{"v": 399}], "some": [{"id": 0}, {"id": 1}]}


def test_a_pandas_column_keeps_its_type_only_if_it_is_the_same_column() -> None:
    frame = pd.DataFrame(
        {
            "id": pd.array([1, 2], dtype="int64[pyarrow]"),
            "small": pd.array([1, None], dtype="Int8"),
            "flag": pd.array([True, None], dtype="boolean"),
            "kind": pd.Categorical(["u", "v"]),
            "word": ["a", "b"],
            "x": [0.5, 1.5],
        }
    )
    same = sb.sql("SELECT kind, small, flag, id FROM frame", frame=frame)
    assert same.dtypes.to_dict() == frame[["kind", "small", "flag", "id"]].dtypes.to_dict()
    assert sb.sql("SELECT word AS id FROM frame", frame=frame)["id"].tolist() == ["a", "b"]
    assert sb.sql("SELECT x AS id FROM frame", frame=frame)["id"].tolist() == [0.5, 1.5]
    assert sb.sql("SELECT id * 100 AS small FROM frame", frame=frame)["small"].tolist() == [100, 200]
    assert sb.sql("SELECT COUNT(*) AS flag FROM frame", frame=frame)["flag"].tolist() == [2]
    assert sb.sql("SELECT x / 2 AS word FROM frame", frame=frame)["word"].tolist() == [0.25, 0.75]


def test_on_spark_too(spark: SparkSession) -> None:
    given = tables()
    frames = {name: spark.createDataFrame(table.to_pandas()) for name, table in given.items()}
    frames["trades"] = frames["trades"].select("id", "v", "g")
    given["trades"] = given["trades"].select(["id", "v", "g"])
    for statement in (
        "SELECT id, v FROM trades ORDER BY v DESC LIMIT 3",
        "SELECT g, SUM(v) AS s FROM trades GROUP BY g ORDER BY s DESC LIMIT 2",
        "SELECT COUNT(*) AS n, SUM(v) AS s FROM trades WHERE v < 0",
        "SELECT COUNT(*) AS n FROM trades HAVING COUNT(*) > 1000",
        "SELECT COUNT(*) AS n FROM trades WHERE v < 0 HAVING COUNT(*) = 0",
        "SELECT t.id, p.w FROM trades t JOIN venues p ON t.g = p.g ORDER BY t.v DESC LIMIT 4",
    ):
        assert lines(map(tuple, sb.sql(statement, **frames).collect())) == expected(statement, given), statement
    assert sb.sql("SELECT id FROM trades LIMIT 7", **frames).count() == 7
