"""Several statements at once: each input is read once, and statements that are alike share a skyband."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import repeat, tee
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import Source, read
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import ONLY, QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.dialect.whole_tables import names_no_window
from skyband.engines import is_spark
from skyband.errors import InvalidInput
from skyband.sql.embedded import answer_of
from skyband.sql.inputs import with_variables
from skyband.sql.recognise import recognise
from skyband.sql.rows import prepared
from skyband.sql.run import answer_to
from skyband.sql.variables import Variables


def run_all(statements: Mapping[str, str], *, spark: Any = None, **inputs: Any) -> dict[str, Any]:
    """Run several statements in one pass: Skyband reads each input once.

    Inputs work as for `sql`, including variables. Statements on rows share one skyband if they differ only in k, size,
    slide and selected columns; statements on pairs do if they also have the same slide. If an input is a reader or an
    iterator, every answer is a reader. Rows that one answer has read and another has not wait in memory, so take
    batches from all of them in turn. On Spark every answer is a DataFrame, and Spark decides how often it reads.

    Parameters
    ----------
    statements
        A mapping from names of your choice to statements.
    spark
        A Spark session, whose tables and views the statements may name.
    inputs
        The rows of each input, under the name that the statements use.

    Returns
    -------
    The answer of each statement, by its name.

    Raises
    ------
    InvalidSql
        A statement cannot be parsed, or Skyband cannot answer it.
    InvalidInput
        An input is missing, or does not fit.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> ask = "SELECT x FROM rows [WINDOW 2 ROWS EVERY 2 ROWS] ORDER BY x {} LIMIT 1"
    >>> answers = sb.run_all({"best": ask.format("DESC"), "worst": ask.format("ASC")}, rows=pa.table({"x": [3, 7]}))
    >>> {name: answer["score"].to_pylist() for name, answer in answers.items()}
    {'best': [7], 'worst': [3]}
    """
    if not isinstance(statements, Mapping):
        raise InvalidInput(f"Statements are given by name, such as {{'best': 'SELECT …'}}; got {statements!r}.")
    understood = {called: understand(text) for called, text in statements.items()}
    variables = Variables(sys._getframe(1), write="sb.run_all(statements, {name}=…)")
    found = with_variables(understood.values(), inputs, spark, variables)
    rows = {name: one if is_spark(one) else read(one).plain() for name, one in found.items()}
    groups = _alike(understood, rows)
    copies = _copies(rows, groups)
    answers: dict[str, Any] = {}
    for group in groups:
        given = {name: next(copies[name]) for name in rows if group[0].reads(name)}
        if len(group) > 1:
            answers |= _together(group, given)
        else:
            (one,) = group
            answers[one.called] = answer_to(one.statement, given, spark, variables, one.spec)
    return {called: answers[called] for called in statements}


@dataclass(frozen=True)
class _Asked:
    """One of the statements."""

    called: str
    statement: Statement
    spec: QuerySpec | None  # what it asks; None: that is found out where it runs

    def reads(self, name: str) -> bool:
        return any(one.name.lower() == name.lower() for one in self.statement.leaves)


def _alike(statements: Mapping[str, Statement], rows: Mapping[str, Any]) -> list[list[_Asked]]:
    """The statements, those together that one skyband can answer."""
    schemas = {name.lower(): source.schema for name, source in rows.items() if isinstance(source, Source)}
    groups: dict[Any, list[_Asked]] = {}
    for called, statement in statements.items():
        is_known = all(one.name.lower() in schemas for one in statement.inputs)
        spec, key = None, None
        is_alone = statement.explain is not None or statement.is_plain or statement.takes_any
        if is_known and not is_alone and not names_no_window(statement):
            spec = recognise(statement, schemas)
            key = _shared_by(spec, schemas)
        groups.setdefault(key or called, []).append(_Asked(called, statement, spec))
    return list(groups.values())


def _shared_by(spec: QuerySpec, schemas: Mapping[str, pa.Schema]) -> Any:
    """What queries have in common that one skyband can answer; None: it is for itself."""
    if ONLY not in spec.rows:
        return None
    rows = spec.rows[ONLY]
    common = problem_of(spec.query).alike(spec.query, rows.schema(schemas[rows.name.lower()]).names)
    return None if common is None else (common, replace(rows, columns=None))


def _copies(rows: Mapping[str, Any], groups: list[list[_Asked]]) -> dict[str, Iterator[Any]]:
    """Each input as often as groups read it; its rows are read once. Spark's go their own way."""
    users = Counter(name for first, *_ in groups for name in rows if first.reads(name))
    return {name: repeat(one) if is_spark(one) else _shared(one, users[name]) for name, one in rows.items()}


def _shared(source: Source, count: int) -> Iterator[Source]:
    if source.is_whole:
        return repeat(source.held() if count > 1 else source, count)
    return (source._replace(batches=batches) for batches in tee(source.batches, count))


def _together(group: list[_Asked], inputs: Mapping[str, Source]) -> dict[str, Any]:
    """The answers of statements about the same rows that one skyband can answer, whatever they show of them."""
    specs = [one.spec for one in group if one.spec is not None]
    wanted = [spec.rows[ONLY].columns for spec in specs]
    columns = None if None in wanted else tuple(dict.fromkeys(name for names in wanted for name in names or ()))
    by_name = {name.lower(): source for name, source in inputs.items()}
    common = replace(specs[0].rows[ONLY], columns=columns)
    rows = prepared({name: by_name[name.lower()] for name in common.names}, common)
    running = problem_of(specs[0].query).start_together(rows, [spec.query for spec in specs])
    return {one.called: answer_of(each, spec) for one, each, spec in zip(group, running, specs, strict=True)}
