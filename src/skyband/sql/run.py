"""A statement, run: on Arrow data in this process, or on Spark, wherever its inputs are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import repeat, tee
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyband import expressions
from skyband.core.encoding.schemas import fitted
from skyband.core.explain import analyzed, explained
from skyband.core.problem import Running
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import ONLY, QuerySpec, Rows, Shown, Turn
from skyband.dialect.reading import quoted
from skyband.dialect.statement import Statement, understand
from skyband.engines.data_kinds import is_spark
from skyband.engines.embedded.inputs import Source, in_batches, read
from skyband.engines.embedded.running import give
from skyband.errors import InvalidInput
from skyband.sql.analyze import draft_of, in_pieces, measure, measure_on_spark
from skyband.sql.recognise import recognise


def sql(text: str, *, spark: Any = None, **inputs: Any) -> Any:
    """The answer of a statement, as `top_k` and its like give it. docs/sql.md explains the language.

    Each input is given by the name the statement calls it: whatever `top_k` takes, but all of Spark or none. With
    `spark`, a session, names that are not given are its tables and views.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> trades = pa.table({"minute": [0, 1, 3], "symbol": ["OAK", "ELM", "FIR"], "price": [10, 20, 5]})
    >>> statement = "SELECT symbol FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
    >>> best = sb.sql(statement, trades=trades)
    >>> best.select(["window_end", "rank", "symbol"]).to_pylist()
    [{'window_end': 2, 'rank': 1, 'symbol': 'ELM'}, {'window_end': 4, 'rank': 1, 'symbol': 'FIR'}]
    """
    return _answer(understand(text), inputs, spark)


def _answer(statement: Statement, inputs: Mapping[str, Any], spark: Any) -> Any:
    data = _find(statement, inputs, spark)
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
    spec = recognise(statement, {one.alias: schemas[one.name] for one in statement.inputs})
    if statement.explain is not None:
        if not on_spark:
            spec, data = _with_queries(spec, data)
        draft = draft_of(spec, schemas, on_spark=bool(on_spark))
        if statement.explain == "PLAN":
            return explained(draft)
        if on_spark:
            return analyzed(draft, measure_on_spark(_run_on_spark(spec, data, schemas), data))
        pieces = {name: in_pieces(source) for name, source in data.items()}
        return analyzed(draft, measure(_start(spec, pieces)))
    if on_spark:
        return _run_on_spark(spec, data, schemas)
    return _given(_start(spec, data), spec)


def _given(running: Running, spec: QuerySpec) -> Any:
    """The answer with the columns that are shown of it, in the kind of the rows."""
    return give(_projected(running.collected(), spec.shown, spec.turn), running.like)


def ask(text: str, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """What a statement asks of inputs with these columns, by the names it calls them; nothing is read or run."""
    return _spec_of(understand(text), schemas)


def _spec_of(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    by_name = {name.lower(): schema for name, schema in schemas.items()}
    return recognise(statement, {one.alias: by_name[one.name.lower()] for one in statement.inputs})


def run_all(statements: Mapping[str, str], *, spark: Any = None, **inputs: Any) -> dict[str, Any]:
    """The answers of several statements, by the names they are given under. Each input is read once.

    Inputs are those of `sql`. Statements about rows share one skyband if they differ only in k, in how far they look
    back, in how often they are answered and in what they show; so do statements about pairs that are answered equally
    often. Of a reader or an iterator, every answer is a reader. Rows that one answer has read and another has not wait
    in memory, so take batches from all of them in turn. On Spark every answer is a DataFrame, and Spark decides how
    often it reads.

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
    used = {called: {one.name.lower() for one in statement.inputs} for called, statement in understood.items()}
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
            answers[group[0]] = _answer(understood[group[0]], given, spark)
    return {called: answers[called] for called in statements}


def _alike(statements: Mapping[str, Statement], sources: Mapping[str, Source]) -> list[list[str]]:
    """The names of statements, those together that one skyband can answer."""
    schemas = {name.lower(): source.schema for name, source in sources.items()}
    groups: dict[Any, list[str]] = {}
    for called, statement in statements.items():
        key = None
        if statement.explain is None and all(one.name.lower() in schemas for one in statement.inputs):
            spec = _spec_of(statement, schemas)
            columns = schemas[statement.inputs[0].name.lower()].names
            if (common := problem_of(spec.query).alike(spec.query, columns)) is not None:
                key = common, replace(spec.rows[ONLY], columns=None)
        groups.setdefault(key or called, []).append(called)
    return list(groups.values())


def _together(statements: Mapping[str, Statement], inputs: Mapping[str, Source]) -> dict[str, Any]:
    """The answers of statements about the same rows that one skyband can answer, whatever they show of them."""
    (source,) = inputs.values()
    specs = [_spec_of(one, {name: one.schema for name, one in inputs.items()}) for one in statements.values()]
    wanted = [one.rows[ONLY].columns for one in specs]
    columns = None if None in wanted else tuple(dict.fromkeys(name for names in wanted for name in names or ()))
    rows = _prepared(source, replace(specs[0].rows[ONLY], columns=columns))
    running = problem_of(specs[0].query).start_together(rows, [one.query for one in specs])
    return {called: _given(one, spec) for called, one, spec in zip(statements, running, specs, strict=True)}


def _copies(source: Source, count: int) -> Iterator[Source]:
    """A source to be read so many times, whose rows are read once."""
    if source.is_whole:
        return repeat(source.held() if count > 1 else source, count)
    return (source._replace(batches=batches) for batches in tee(source.batches, count))


def _find(statement: Statement, inputs: Mapping[str, Any], spark: Any) -> dict[str, Any]:
    """The data behind each input of the statement, by the name it was given as."""
    by_name = {name.lower(): one for name, one in inputs.items()}
    found = {}
    for one in statement.inputs:
        if one.name.lower() in by_name:
            found[one.name] = by_name[one.name.lower()]
        elif spark is not None:
            found[one.name] = spark.table(one.name)
        else:
            given = f"Given: {', '.join(inputs)}." if inputs else "None was given."
            statement.refuse(f"There is no input {one.name!r}", one.node, f"{given} Write sb.sql(text, {one.name}=…).")
    return found


def _start(spec: QuerySpec, sources: Mapping[str, Source]) -> Running:
    shared = Counter(rows.name for rows in spec.rows.values())
    sources = {name: _reread(source, name) if shared[name] > 1 else source for name, source in sources.items()}
    prepared: dict[str, Any] = {name: _prepared(sources[rows.name], rows) for name, rows in spec.rows.items()}
    if spec.queries is not None:
        spec = spec.of(_whole(sources[spec.queries]))
    return problem_of(spec.query).start(prepared.get(ONLY, prepared), spec.query)


def _with_queries(spec: QuerySpec, sources: dict[str, Source]) -> tuple[QuerySpec, dict[str, Source]]:
    """The same of the queries there are, where these are a table: what suits them depends on how many they are."""
    if spec.queries is None or not sources[spec.queries].is_whole:
        return spec, sources
    queries = _reread(sources[spec.queries], spec.queries)
    return spec.of(_whole(queries)), {**sources, spec.queries: queries}


def _whole(source: Source) -> pa.Table:
    """All rows of a source."""
    return pa.Table.from_batches(in_batches(source.batches), source.schema)


def _reread(source: Source, name: str) -> Source:
    """A source that can be read more than once."""
    if not source.is_whole:
        raise InvalidInput(f"The statement reads {name!r} twice, but a reader can be read once. Give a table.")
    return source.held()


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
        queries[name] = sharing.SharedQuery(
            one.query,
            _where_in_spark(rows, schemas[given[called]]),
            rows.columns,
            called,
            {
                other: _rows_in_spark(data[given[other]], its, schemas[given[other]])
                for other, its in one.rows.items()
                if other != called
            },
        )
    shared = sharing.multi_query(data[stream.lower()], queries)
    answers = {name: partial(_then, shared.answers[name], _Shower(one)) for name, one in specs.items()}
    tables = {
        name: partial(_then, shared.tables[name], partial(_projected, shown=one.shown, turn=one.turn))
        for name, one in specs.items()
    }
    return shared._replace(answers=answers, tables=tables)


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> Any:
    return second(first(value))


def _run_on_spark(spec: QuerySpec, data: Mapping[str, Any], schemas: Mapping[str, pa.Schema]) -> Any:
    """The same with DataFrames: what is done to single rows, before and behind the query, is Spark's own work."""
    prepared = {name: _rows_in_spark(data[rows.name], rows, schemas[rows.name]) for name, rows in spec.rows.items()}
    queries = None if spec.queries is None else data[spec.queries]
    answer = problem_of(spec.query).run_on_spark(prepared.get(ONLY, prepared), spec.query, queries)
    return _Shower(spec)(answer)


def _rows_in_spark(df: Any, rows: Rows, schema: pa.Schema) -> Any:
    if (condition := _where_in_spark(rows, schema)) is not None:
        df = df.where(condition)
    if rows.columns is not None:
        renamed = [*((name, name) for name in rows.columns), *rows.renamed]
        df = df.selectExpr(*(f"{quoted(column)} AS {quoted(called)}" for called, column in renamed))
    return df


def _where_in_spark(rows: Rows, schema: pa.Schema) -> str | None:
    if rows.where is None:
        return None
    condition = expressions.bind_condition(rows.where, schema, used_as="WHERE")
    if condition.spark_sql is None:
        raise InvalidInput(f"On Spark, WHERE cannot call a function of yours: {rows.where}.")
    return condition.spark_sql


class _Shower:
    """From what a query answers to what its statement shows of it; told once how, however often it is called."""

    def __init__(self, spec: QuerySpec) -> None:
        self._spec = spec
        self._texts: list[str] | None = None

    def __call__(self, answer: Any) -> Any:
        if self._spec.turn is not None:
            answer = answer.selectExpr(*_turned_texts(answer.columns, self._spec.turn))
        if self._texts is None:
            from skyband.engines.spark import schema_of

            schema = schema_of(answer)
            self._texts = [f"{_in_spark(one, schema)} AS {quoted(one.name)}" for one in self._spec.shown]
        return answer.selectExpr(*self._texts)


def _in_spark(one: Shown, schema: pa.Schema) -> str:
    if one.is_plain:
        return quoted(one.text)
    text = expressions.bind(one.text, schema).spark_sql
    if text is None:
        raise InvalidInput(f"On Spark, the SELECT list cannot call a function of yours: {one.text}.")
    return text


def _prepared(source: Source, rows: Rows) -> Source:
    """The rows of a source that a query is asked of, with the columns it reads."""
    names = source.schema.names if rows.columns is None else list(rows.columns)
    renamed = [*((name, name) for name in names), *rows.renamed]
    schema = pa.schema([source.schema.field(column).with_name(name) for name, column in renamed])
    condition = None if rows.where is None else expressions.bind_condition(rows.where, source.schema, used_as="WHERE")

    def prepare(batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = fitted(batch, source.schema)
        kept = batch if condition is None else batch.filter(pa.array(condition.evaluate(batch)))
        return pa.record_batch([kept.column(column) for _, column in renamed], schema=schema)

    return source.mapped(schema, prepare, dict(renamed))


def _projected(
    answer: pa.Table | pa.RecordBatchReader, shown: tuple[Shown, ...], turn: Turn | None
) -> pa.Table | pa.RecordBatchReader:
    """The answer with the columns that are shown of it."""
    columns = [
        (one.name, None, one.text) if one.is_plain else (one.name, expressions.bind(one.text, answer.schema), one.text)
        for one in shown
    ]
    schema = pa.schema(
        [
            answer.schema.field(text).with_name(name) if score is None else pa.field(name, score.type)
            for name, score, text in columns
        ]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in answer.to_batches() if isinstance(answer, pa.Table) else answer:
            batch = batch if turn is None else _turned(batch, turn)
            arrays = [
                batch.column(text) if score is None else _without_nan(score.values(batch)) for _, score, text in columns
            ]
            yield pa.record_batch(arrays, schema=schema)

    if isinstance(answer, pa.Table):
        return pa.Table.from_batches(batches(), schema.with_metadata(answer.schema.metadata))
    return pa.RecordBatchReader.from_batches(schema, batches())


def _without_nan(numbers: pa.Array) -> pa.Array:
    """SQL's null for what is not a number."""
    if not pa.types.is_floating(numbers.type):
        return numbers
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, numbers.type), numbers)


def _turned_texts(names: list[str], turn: Turn) -> list[str]:
    """The same in Spark SQL."""
    order = "<" if turn.ascending else ">"
    straight = f"{quoted(f'a_{turn.column}')} {order} {quoted(f'b_{turn.column}')}"
    texts = []
    for name in names:
        other = {"a_": "b_", "b_": "a_"}.get(name[:2], "") + name[2:]
        turned = name[:2] in ("a_", "b_") and other in names
        text = f"CASE WHEN {straight} THEN {quoted(name)} ELSE {quoted(other)} END" if turned else quoted(name)
        texts.append(f"{text} AS {quoted(name)}")
    return texts


def _turned(batch: pa.RecordBatch, turn: Turn) -> pa.RecordBatch:
    """Pairs with their rows in the order that the statement asks for."""
    compare = pc.less if turn.ascending else pc.greater
    straight = compare(batch.column(f"a_{turn.column}"), batch.column(f"b_{turn.column}"))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    width = (len(columns) - next(i for i, name in enumerate(columns) if name.startswith("a_"))) // 2
    for name in [name.removeprefix("a_") for name in batch.schema.names[-2 * width : -width]]:
        a, b = columns[f"a_{name}"], columns[f"b_{name}"]
        columns[f"a_{name}"], columns[f"b_{name}"] = pc.if_else(straight, a, b), pc.if_else(straight, b, a)
    return pa.record_batch(list(columns.values()), schema=batch.schema)
