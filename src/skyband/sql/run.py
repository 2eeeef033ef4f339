"""Run a statement where its inputs are: on Arrow data in this process, or on Spark."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import repeat, tee
from typing import Any, NamedTuple

import pyarrow as pa

from skyband.core.encoding.inputs import Held, Source, in_batches, read
from skyband.core.explain import analyzed, explained
from skyband.core.problem import Running
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import ONLY, QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.engines.data_kinds import is_spark, outside_table_functions
from skyband.engines.embedded.running import give
from skyband.errors import InvalidInput
from skyband.sql.analyze import draft_of, in_pieces, measure, measure_on_spark
from skyband.sql.answers import Shower, projected
from skyband.sql.plain import plain_answer
from skyband.sql.recognise import recognise
from skyband.sql.rows import prepared, prepared_in_spark, reread, rereadable, where_in_spark
from skyband.sql.unions import united
from skyband.sql.variables import NO_VARIABLES, Variables, by_lower_name


def sql(text: str, /, *, spark: Any = None, **inputs: Any) -> Any:
    """Run an SQL statement. docs/sql.md explains the language.

    Pass each input under the name that the statement uses. An input may be anything that `top_k` takes, but either all
    inputs are on Spark or none. Skyband looks for a name that you do not pass, in this order:

    - a table or view in the Spark session `spark`, or in the session of the DataFrames that you pass;
    - a local variable of the caller, or one of its module, that is a pyarrow Table, RecordBatch, Dataset, Scanner or
      RecordBatchReader, or a DataFrame of pandas, polars or Spark;
    - a table or view in the running Spark session, if there is one.

    Parameters
    ----------
    text
        One statement.
    spark
        A Spark session, whose tables and views the statement may name.
    inputs
        The rows of each input, under the name that the statement uses.

    Returns
    -------
    The answer, as the same type of data as the inputs. For EXPLAIN, the plan; print it to read it.

    Raises
    ------
    InvalidSql
        The statement cannot be parsed, or Skyband cannot answer it. The message shows the place.
    UnknownColumn
        The statement names a column that its inputs do not have.
    InvalidInput
        An input is missing, has another type than the others, or does not fit.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> trades = pa.table({"minute": [0, 1, 3], "symbol": ["OAK", "ELM", "FIR"], "price": [10, 20, 5]})
    >>> statement = "SELECT symbol FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
    >>> best = sb.sql(statement, trades=trades)
    >>> best.select(["window_end", "rank", "symbol"]).to_pylist()
    [{'window_end': 2, 'rank': 1, 'symbol': 'ELM'}, {'window_end': 4, 'rank': 1, 'symbol': 'FIR'}]
    """
    return answer_found(text, inputs, Variables(sys._getframe(1), write="sb.sql(text, {name}=…)"), spark)


def answer_found(text: str, inputs: Mapping[str, Any], variables: Variables, spark: Any = None) -> Any:
    """The answer over inputs that are given, and over those of the variables that the statement names."""
    statement = understand(text)
    return _answer(statement, _with_variables([statement], inputs, spark, variables), spark, variables)


def answer_given(text: str, inputs: Mapping[str, Any], elsewhere: Variables = NO_VARIABLES) -> Any:
    """The same of inputs that are given: no variables are looked at. `elsewhere` says how others can be given."""
    return _answer(understand(text), inputs, None, elsewhere)


def plan(text: str, inputs: Mapping[str, Any], elsewhere: Variables = NO_VARIABLES) -> Any:
    """What EXPLAIN says of a statement, whether or not it stands in front of it."""
    statement = understand(text)
    return _answer(replace(statement, explain=statement.explain or "PLAN"), inputs, None, elsewhere)


@outside_table_functions()
def _answer(statement: Statement, inputs: Mapping[str, Any], spark: Any, variables: Variables = NO_VARIABLES) -> Any:
    data: Mapping[str, Any] = _find(statement, inputs, spark, variables)
    on_spark = {name for name, one in data.items() if is_spark(one)}
    if on_spark and len(on_spark) < len(data):
        raise InvalidInput(
            f"Inputs must all be of one kind, but of Spark are {', '.join(sorted(on_spark))}, and not "
            f"{', '.join(sorted(data.keys() - on_spark))}."
        )
    if on_spark:
        from skyband.engines.spark import schema_of

        schemas = {name: schema_of(df) for name, df in data.items()}
    else:
        data = {name: read(one).plain() for name, one in data.items()}
        schemas = {name: source.schema for name, source in data.items()}
    data, schemas = united(statement.innermost, data, schemas, on_spark=bool(on_spark))
    if statement.is_plain and statement.explain is None:
        return plain_answer(statement, data, schemas, on_spark=bool(on_spark))
    spec = recognise(statement, schemas)
    if statement.explain is not None:
        if not on_spark:
            spec, data = _with_queries(spec, data)
        sieve = problem_of(spec.query).sieve_on_spark(_in_spark(spec, data, schemas), spec.query) if on_spark else None
        draft = draft_of(spec, schemas, on_spark=bool(on_spark), sieve=sieve)
        if statement.explain == "PLAN":
            return explained(draft)
        if on_spark:
            return analyzed(draft, measure_on_spark(_run_on_spark(spec, data, schemas), data))
        pieces = {name: in_pieces(source) for name, source in data.items()}
        return analyzed(draft, measure(_start(spec, pieces), spec))
    if on_spark:
        return _run_on_spark(spec, data, schemas)
    return _given(_start(spec, data), spec)


def _given(running: Running, spec: QuerySpec) -> Any:
    """The answer with the columns that are shown of it, in the kind of the rows."""
    if spec.then is None or running.is_whole:
        return give(projected(running.collected(), spec), running.like)
    schema = projected(running.session.output_schema.empty_table(), spec).schema
    answers = (projected(answer, spec) for answer in running.answers)
    return pa.RecordBatchReader.from_batches(schema, (batch for answer in answers for batch in answer.to_batches()))


def ask(text: str, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """What a statement asks of inputs with these columns, by the names it calls them; nothing is read or run."""
    return recognise(understand(text), schemas)


class Started(NamedTuple):
    """A statement that runs over its inputs, batch by batch, as its answers are taken."""

    running: Running
    spec: QuerySpec

    def shown(self, answer: pa.Table) -> pa.Table:
        """What the statement shows of an answer, or of what `top` says of its session: that has no changes."""
        there = [one for one in self.spec.shown if not one.is_plain or one.text in answer.schema.names]
        return projected(answer, replace(self.spec, shown=tuple(there)))


def start(text: str, inputs: Mapping[str, Any], *, batch_rows: int) -> Started:
    """Begin a statement over Arrow data; tables are taken `batch_rows` at a time."""
    statement = understand(text)
    if statement.explain is not None:
        statement.refuse("EXPLAIN does not run a statement, but this call does", None, "Leave EXPLAIN out.")
    data = {name: _cut(read(one).plain(), batch_rows) for name, one in _find(statement, inputs, None).items()}
    spec = recognise(statement, {name: source.schema for name, source in data.items()})
    data, _ = united(statement.innermost, data, {name: source.schema for name, source in data.items()}, on_spark=False)
    return Started(_start(spec, data), spec)


def _cut(source: Source, batch_rows: int) -> Source:
    if not source.is_whole:
        return source
    table = pa.Table.from_batches(in_batches(source.batches), source.schema)
    return source._replace(batches=Held(table.to_batches(max_chunksize=batch_rows)))


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
    inputs = _with_variables(understood.values(), inputs, spark, variables)
    used = {called: {one.name.lower() for one in statement.leaves} for called, statement in understood.items()}
    inputs = {name: one if is_spark(one) else read(one).plain() for name, one in inputs.items()}
    groups = _alike(understood, {name: one for name, one in inputs.items() if isinstance(one, Source)})
    users = Counter(name for first, *_ in groups for name in used[first])
    shared = {
        name: _copies(one, users[name.lower()])
        for name, one in inputs.items()
        if not is_spark(one) and users[name.lower()]
    }
    answers: dict[str, Any] = {}
    for group in groups:
        given = {
            name: next(shared[name]) if name in shared else one
            for name, one in inputs.items()
            if name.lower() in used[group[0]]
        }
        if len(group) > 1:
            answers |= _together({called: understood[called] for called in group}, given)
        else:
            answers[group[0]] = _answer(understood[group[0]], given, spark, variables)
    return {called: answers[called] for called in statements}


def _alike(statements: Mapping[str, Statement], sources: Mapping[str, Source]) -> list[list[str]]:
    """The names of statements, those together that one skyband can answer."""
    schemas = {name.lower(): source.schema for name, source in sources.items()}
    groups: dict[Any, list[str]] = {}
    for called, statement in statements.items():
        key = None
        if (
            statement.explain is None
            and not statement.is_plain
            and all(one.name.lower() in schemas for one in statement.inputs)
        ):
            spec = recognise(statement, schemas)
            key = _shared_by(spec, schemas)
        groups.setdefault(key or called, []).append(called)
    return list(groups.values())


def _shared_by(spec: QuerySpec, schemas: Mapping[str, pa.Schema]) -> Any:
    """What queries have in common that one skyband can answer; None: it is for itself."""
    if ONLY not in spec.rows:
        return None
    rows = spec.rows[ONLY]
    common = problem_of(spec.query).alike(spec.query, rows.schema(schemas[rows.name.lower()]).names)
    return None if common is None else (common, replace(rows, columns=None))


def _together(statements: Mapping[str, Statement], inputs: Mapping[str, Source]) -> dict[str, Any]:
    """The answers of statements about the same rows that one skyband can answer, whatever they show of them."""
    specs = [recognise(one, {name: one.schema for name, one in inputs.items()}) for one in statements.values()]
    wanted = [one.rows[ONLY].columns for one in specs]
    columns = None if None in wanted else tuple(dict.fromkeys(name for names in wanted for name in names or ()))
    by_name = {name.lower(): source for name, source in inputs.items()}
    common = replace(specs[0].rows[ONLY], columns=columns)
    rows = prepared({name: by_name[name.lower()] for name in common.names}, common)
    running = problem_of(specs[0].query).start_together(rows, [one.query for one in specs])
    return {called: _given(one, spec) for called, one, spec in zip(statements, running, specs, strict=True)}


def _copies(source: Source, count: int) -> Iterator[Source]:
    """A source to be read so many times, whose rows are read once."""
    if source.is_whole:
        return repeat(source.held() if count > 1 else source, count)
    return (source._replace(batches=batches) for batches in tee(source.batches, count))


def _with_variables(
    statements: Iterable[Statement], inputs: Mapping[str, Any], spark: Any, variables: Variables
) -> dict[str, Any]:
    """The inputs, and the caller's data frames that the statements call by their names."""
    if spark is not None and not hasattr(spark, "catalog"):
        raise InvalidInput(f"spark= takes a Spark session, got {type(spark).__name__}. No input can be called 'spark'.")
    found = dict(inputs)
    given = {name.lower() for name in inputs}
    has_session = spark is not None or any(is_spark(one) for one in inputs.values())
    for one in (one for statement in statements for one in statement.leaves):
        if one.name.lower() in given or (has_session and _table(one.name, inputs, spark) is not None):
            continue
        if (value := variables.find(one.name)) is not None:
            found[one.name] = value
            given.add(one.name.lower())
    return found


def _find(
    statement: Statement, inputs: Mapping[str, Any], spark: Any, variables: Variables = NO_VARIABLES
) -> dict[str, Any]:
    """The data behind each input of the statement, by the name it was given as."""
    by_name, found = by_lower_name(inputs), {}
    for one in statement.leaves:
        if one.name.lower() in by_name:
            found[one.name] = by_name[one.name.lower()]
        elif (table := _table(one.name, inputs, spark)) is not None:
            found[one.name] = table
        else:
            statement.refuse(f"There is no input {one.name!r}", one.node, variables.advice(one.name, inputs))
    return found


def _table(name: str, inputs: Mapping[str, Any], spark: Any) -> Any:
    """The table or view of this name, in the session given, that of other inputs, or the one that runs."""
    if spark is None and "pyspark" not in sys.modules:
        return None
    from skyband.engines.spark.tables import find_table

    return find_table(name, spark, [one for one in inputs.values() if is_spark(one)])


def _start(spec: QuerySpec, sources: Mapping[str, Source]) -> Running:
    sources = rereadable(sources, spec.rows.values())
    ready: dict[str, Any] = {name: prepared(sources, rows) for name, rows in spec.rows.items()}
    if spec.queries is not None:
        spec = spec.of(_whole(prepared(sources, spec.queries)))
    return problem_of(spec.query).start(ready.get(ONLY, ready), spec.query)


def _with_queries(spec: QuerySpec, sources: dict[str, Source]) -> tuple[QuerySpec, dict[str, Source]]:
    """The same of the queries there are, where these are a table: what suits them depends on how many they are."""
    if spec.queries is None or not sources[spec.queries.name].is_whole:
        return spec, sources
    queries = reread(sources[spec.queries.name], spec.queries.name)
    sources = {**sources, spec.queries.name: queries}
    return spec.of(_whole(prepared(sources, spec.queries))), sources


def _whole(source: Source) -> pa.Table:
    """All rows of a source."""
    return pa.Table.from_batches(in_batches(source.batches), source.schema)


def multi_query(specs: Mapping[str, QuerySpec], stream: str, data: Mapping[str, Any]) -> Any:
    """Statements about one Spark stream, and tables beside it, by name, in one pass over it."""
    from skyband.engines.spark import schema_of, sharing

    data = {name.lower(): df for name, df in data.items()}
    schemas = {name: schema_of(df) for name, df in data.items()}
    queries = {}
    for name, one in specs.items():
        given = {called: rows.name.lower() for called, rows in one.rows.items()}
        (called,) = (called for called, name in given.items() if name == stream.lower())
        rows = one.rows[called]
        assert not rows.renamed
        assert not rows.views
        queries[name] = sharing.SharedQuery(
            one.query,
            where_in_spark(rows, schemas[given[called]]),
            rows.columns,
            called,
            {
                other: prepared_in_spark(data, replace(its, name=given[other]), schemas)
                for other, its in one.rows.items()
                if other != called
            },
        )
    shared = sharing.multi_query(data[stream.lower()], queries)
    answers = {name: partial(_then, shared.answers[name], Shower(one)) for name, one in specs.items()}
    tables = {name: partial(_then, shared.tables[name], partial(projected, spec=one)) for name, one in specs.items()}
    return shared._replace(answers=answers, tables=tables)


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> Any:
    return second(first(value))


def _run_on_spark(spec: QuerySpec, data: Mapping[str, Any], schemas: Mapping[str, pa.Schema]) -> Any:
    """The same with DataFrames: what is done to single rows, before and behind the query, is Spark's own work."""
    queries = spec.queries
    if queries is not None:
        queries = prepared_in_spark(data, queries, schemas)
    answer = problem_of(spec.query).run_on_spark(_in_spark(spec, data, schemas), spec.query, queries)
    return Shower(spec)(answer)


def _in_spark(spec: QuerySpec, data: Mapping[str, Any], schemas: Mapping[str, pa.Schema]) -> Any:
    """The rows that the query is about: one DataFrame, or one for each name."""
    ready = {name: prepared_in_spark(data, rows, schemas) for name, rows in spec.rows.items()}
    return ready.get(ONLY, ready)
