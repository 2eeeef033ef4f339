"""A database table as a sink: rows are inserted or, by their key, replaced, all those of a micro-batch at once.

Spark writes them to a table beside, in parallel, with its own types; one statement then moves them, in one transaction.
A restart does the same once more, and finds the table as it left it. What changed (groups of a join that come and go)
is applied as such: the last change of a key in a micro-batch counts. What leaves, or is deleted, is taken away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

from skyband.errors import EnvironmentProblem, PipelineFailed
from skyband.pipelines.answers import GONE, Answers
from skyband.pipelines.checking import check_address, check_key
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.secrets import resolve
from skyband.pipelines.session import POSTGRESQL

_LONGEST_NAME: Final = 63  # of PostgreSQL


class JdbcTarget:
    """A table of PostgreSQL."""

    def __init__(self, pipeline: Pipeline, query: str, sink: Sink, key: tuple[str, ...] | None) -> None:
        self._url = resolve(str(sink.url))
        check_address(pipeline, replace(sink, url=self._url))
        self._key = check_key(pipeline, sink, key)
        self._table = resolve(str(sink.table)).replace("{query}", query)
        self._beside = f"{self._table[: _LONGEST_NAME - 8]}_skyband"
        self._options = {name: resolve(value) for name, value in sink.options.items()}

    def write(self, answers: Answers, batch: int) -> None:
        rows = answers.frame
        changed = "change" in answers.columns
        if changed:
            latest = Window.partitionBy(*self._key).orderBy(sf.col("at").desc(), sf.col("change"))
            rows = rows.withColumn("__nth", sf.row_number().over(latest)).where("__nth = 1").drop("__nth")
        writer = rows.coalesce(1).write.format("jdbc").mode("overwrite").options(**self._options)
        writer = writer.option("url", self._url).option("driver", "org.postgresql.Driver")
        writer.option("dbtable", _quoted(self._beside)).save()
        self._execute(rows, self._statements(answers.columns, changed))

    def _statements(self, columns: list[str], changed: bool) -> list[str]:
        """From the table beside to the one that people read."""
        table, beside = _quoted(self._table), _quoted(self._beside)
        key = ", ".join(map(_quoted, self._key))
        kept = [name for name in columns if name != "change"]
        listed = ", ".join(map(_quoted, kept))
        others = [name for name in kept if name not in self._key]
        update = ", ".join(f"{_quoted(name)} = EXCLUDED.{_quoted(name)}" for name in others)
        made = f"CREATE TABLE IF NOT EXISTS {table} AS SELECT {listed} FROM {beside} WHERE false"
        index = f"CREATE UNIQUE INDEX IF NOT EXISTS {_quoted(f'{self._table}_key')} ON {table} ({key})"
        gone = ", ".join(f"'{change}'" for change in GONE)
        there = f" WHERE change NOT IN ({gone})" if changed else ""
        action = f"DO UPDATE SET {update}" if update else "DO NOTHING"
        statements = [
            made,
            index,
            f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {beside}{there} ON CONFLICT ({key}) {action}",
        ]
        if changed:
            same = " AND ".join(f"t.{_quoted(name)} = b.{_quoted(name)}" for name in self._key)
            statements.append(f"DELETE FROM {table} t USING {beside} b WHERE b.change IN ({gone}) AND {same}")
        return [*statements, f"DROP TABLE {beside}"]

    def _execute(self, rows: DataFrame, statements: list[str]) -> None:
        """All of them or none."""
        jvm: Any = rows.sparkSession._jvm
        properties = jvm.java.util.Properties()
        for name, value in self._options.items():
            properties.setProperty(name, value)
        try:
            driver = jvm.org.postgresql.Driver()
        except TypeError as error:
            raise EnvironmentProblem(
                f'Spark has no driver for PostgreSQL. Take it from Maven: "spark.jars.packages" = "{POSTGRESQL}".'
            ) from error
        connection = driver.connect(self._url, properties)
        try:
            connection.setAutoCommit(False)
            statement = connection.createStatement()
            for text in statements:
                statement.execute(text)
            connection.commit()
        except Exception as error:
            said = str(getattr(error, "java_exception", error)).partition("\n")[0]
            raise PipelineFailed(f"PostgreSQL refused the rows for {self._table!r}: {said}") from error
        finally:
            connection.close()


def _quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
