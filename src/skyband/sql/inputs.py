"""The data behind the names in a statement: given, a variable of the caller, or a table of a Spark session."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import Source, read
from skyband.dialect.nodes import WHOLE_TABLE
from skyband.dialect.statement import Statement
from skyband.dialect.whole_tables import names_no_window, numbered, over_all_rows, windowed
from skyband.engines import is_spark
from skyband.errors import InvalidInput
from skyband.sql.rows import prepared, prepared_in_spark
from skyband.sql.unions import united
from skyband.sql.variables import NO_VARIABLES, Variables, by_lower_name


@dataclass(frozen=True)
class Inputs:
    """The inputs of a statement, by the names it reads them under: all in this process, or all on Spark."""

    data: Mapping[str, Any]  # of each, a `Source` or a DataFrame
    schemas: Mapping[str, pa.Schema]
    on_spark: bool

    @property
    def are_tables(self) -> bool:
        """Do all of them end?"""
        return all(one.is_whole if isinstance(one, Source) else not one.isStreaming for one in self.data.values())


def open_inputs(
    statement: Statement, given: Mapping[str, Any], spark: Any = None, variables: Variables = NO_VARIABLES
) -> Inputs:
    """The inputs of a statement, none of whose rows is read yet. `variables` say what else could have been given."""
    data = find(statement, given, spark, variables)
    on_spark = {name for name, one in data.items() if is_spark(one)}
    if on_spark and len(on_spark) < len(data):
        raise InvalidInput(
            f"Either all inputs must be on Spark or none, but on Spark are {', '.join(sorted(on_spark))}, and not "
            f"{', '.join(sorted(data.keys() - on_spark))}."
        )
    if on_spark:
        from skyband.engines.spark import schema_of

        schemas = {name: schema_of(df) for name, df in data.items()}
    else:
        data = {name: read(one).plain() for name, one in data.items()}
        schemas = {name: source.schema for name, source in data.items()}
    return Inputs(*united(statement.innermost, data, schemas, on_spark=bool(on_spark)), on_spark=bool(on_spark))


def as_one_window(statement: Statement, inputs: Inputs) -> tuple[Statement, Inputs]:
    """A statement about tables that names no window, with a window for all rows."""
    if not names_no_window(statement) or not inputs.are_tables:
        return statement, inputs
    for name, schema in inputs.schemas.items():
        if WHOLE_TABLE in schema.names:
            why = f"{name!r} has a column {WHOLE_TABLE!r}, as Skyband calls the window of a table"
            raise InvalidInput(f"{why}: rename it.")
    statement = over_all_rows(statement)
    data, schemas = dict(inputs.data), dict(inputs.schemas)
    for name in windowed(statement):
        rows = numbered(name, schemas[name])
        data[name] = prepared_in_spark(inputs.data, rows, schemas) if inputs.on_spark else prepared(inputs.data, rows)
        schemas[name] = rows.views[-1].schema
    return statement, Inputs(data, schemas, inputs.on_spark)


def find(
    statement: Statement, given: Mapping[str, Any], spark: Any = None, variables: Variables = NO_VARIABLES
) -> dict[str, Any]:
    """The data behind each input of the statement, as it was given."""
    by_name, found = by_lower_name(given), {}
    for one in statement.leaves:
        if one.name.lower() in by_name:
            found[one.name] = by_name[one.name.lower()]
        elif (table := _table(one.name, given, spark)) is not None:
            found[one.name] = table
        else:
            statement.refuse(f"There is no input {one.name!r}", one.node, variables.advice(one.name, given))
    return found


def with_variables(
    statements: Iterable[Statement], given: Mapping[str, Any], spark: Any, variables: Variables
) -> dict[str, Any]:
    """What is given, and the caller's data frames that the statements call by their names."""
    if spark is not None and not hasattr(spark, "catalog"):
        raise InvalidInput(f"spark= takes a Spark session, got {type(spark).__name__}. No input can be called 'spark'.")
    found, names = dict(given), {name.lower() for name in given}
    has_session = spark is not None or any(is_spark(one) for one in given.values())
    for one in (one for statement in statements for one in statement.leaves):
        if one.name.lower() in names or (has_session and _table(one.name, given, spark) is not None):
            continue
        if (value := variables.find(one.name)) is not None:
            found[one.name] = value
            names.add(one.name.lower())
    return found


def _table(name: str, given: Mapping[str, Any], spark: Any) -> Any:
    """The table or view of this name, in the session given, that of other inputs, or the one that runs."""
    if spark is None and "pyspark" not in sys.modules:
        return None
    from skyband.engines.spark.tables import find_table

    return find_table(name, spark, [one for one in given.values() if is_spark(one)])
