"""Binds a join query to columns, and raises all errors about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from skyband.core.encoding.output import free_name
from skyband.core.encoding.schemas import is_key
from skyband.core.encoding.value_types import common_key_type
from skyband.dialect.reading import quoted
from skyband.errors import InvalidQuery, UnknownColumn
from skyband.expressions import functions
from skyband.expressions.aggregates import COUNT_DISTINCT, Aggregate, Argument, Name, bind_argument, bind_filter
from skyband.expressions.extremes import labelled_column
from skyband.expressions.scores import Condition
from skyband.problems.joins.query import ANTI, INNER, LEFT, SEMI, JoinAggregate, Relation, StreamInput
from skyband.windows import Ticks, Window, size_ticks

LEAD: Final = frozenset({"window_end", "at", "change", "rank"})  # columns that the answer adds itself


@dataclass(frozen=True, slots=True)
class BoundInput:
    """An input, and the roles of its columns."""

    name: str
    schema: pa.Schema
    is_relation: bool
    on: str | None  # its time column
    size: int  # the size of its window, in ticks
    keep: Condition | None  # its filter
    variables: tuple[int, ...]  # the join variables of its columns
    joined: tuple[str, ...]  # the columns of these variables
    grouped: tuple[str, ...]  # its grouping columns
    arguments: tuple[Argument, ...]
    distinct: tuple[str, ...] = ()  # its columns that COUNT(DISTINCT x) counts
    labelled: tuple[str, ...] = ()  # its columns of which MIN or MAX takes labels, which are its last arguments
    how: str = INNER  # how it is joined
    matching: tuple[str, ...] = ()  # the join columns without which a row matches nothing and is not kept

    @property
    def absent(self) -> tuple[tuple[int, ...], int]:
        """The arguments of a row without values, and a bit for each that has one nevertheless. Null has no label."""
        if self.how != LEFT:
            return (0,) * (len(self.arguments) + len(self.labelled)), 0
        schema = pa.schema([field.with_nullable(True) for field in self.schema])
        nulls = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        read = [argument.evaluate(nulls) for argument in self.arguments]
        valid = sum(int(there[0]) << a for a, (_, there) in enumerate(read))
        return (*(int(numbers[0]) for numbers, _ in read), *(0 for _ in self.labelled)), valid

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose combinations of values are its cells."""
        return tuple(dict.fromkeys((*self.joined, *self.grouped, *self.distinct, *self.labelled)))

    @property
    def scales(self) -> tuple[int, ...]:
        """The digits behind the point of each argument; empty if no argument is a decimal."""
        has_decimals = any(pa.types.is_decimal(each.type) for each in self.arguments)
        return tuple(each.scale for each in self.arguments) if has_decimals else ()


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """An aggregate with the type of its result."""

    name: str
    function: str
    input: int  # -1: COUNT(*)
    argument: int  # the number of the argument in its input; for COUNT(DISTINCT x), of the counted column
    type: pa.DataType
    is_labelled: bool = False  # is its argument a label?


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A join query over the columns of its inputs."""

    inputs: tuple[BoundInput, ...]
    variable_types: tuple[pa.DataType, ...]
    groups: tuple[tuple[int, str, str], ...]  # for each grouping column: input, column, name in the answer
    aggregates: tuple[BoundAggregate, ...]
    slide: Ticks  # the slide of all windows; each window has its own size
    time_type: pa.DataType  # the type of the answer's times

    @property
    def every(self) -> int:
        """The slide in ticks; 0: an answer with each arrival."""
        return self.slide.every


def bind(query: JoinAggregate, schemas: Mapping[str, pa.Schema]) -> BoundJoin:
    """Bind `query` to inputs with these schemas. The result is cached: on Spark every bucket needs it in every
    micro-batch."""
    return _bind(query, tuple(schemas.items()), functions.meaning())


@lru_cache(maxsize=64)
def _bind(query: JoinAggregate, columns: tuple[tuple[str, pa.Schema], ...], _meaning: object) -> BoundJoin:
    schemas, names = dict(columns), query.names
    groups = [_resolve(name, schemas, "group_by") for name in query.parsed_group_by()]
    if len(set(groups)) != len(groups):
        raise InvalidQuery(f"group_by names a column twice: {', '.join(query.group_by)}.")
    variables, types = _variables(query, schemas)
    arguments: dict[str, list[Argument]] = {name: [] for name in names}
    distinct: dict[str, list[str]] = {name: [] for name in names}
    labelled: dict[str, list[str]] = {name: [] for name in names}
    aggregates = [
        _bind_distinct(name, aggregate, query, schemas, distinct)
        if aggregate.function == COUNT_DISTINCT
        else _bind_labelled(name, aggregate, query, schemas, labelled)
        or _bind_aggregate(name, aggregate, query, schemas, arguments)
        for name, aggregate in query.parsed_aggregates()
    ]
    slide, time_type = _times(query, schemas)
    matching = _matching(query, variables)
    inputs = tuple(
        replace(
            _bind_input(query, i, schemas[name], variables[i], groups, tuple(arguments[name])),
            distinct=tuple(distinct[name]),
            labelled=tuple(labelled[name]),
            matching=matching[i],
        )
        for i, name in enumerate(names)
    )
    behind = [
        replace(each, argument=each.argument + len(inputs[each.input].arguments)) if each.is_labelled else each
        for each in aggregates
    ]
    for source in inputs:
        _check_keys(source)
        _check_shown(source)
    shown = _group_names(groups, query)
    return BoundJoin(inputs, types, shown, tuple(behind), slide, time_type)


def _resolve(name: Name, schemas: Mapping[str, pa.Schema], what: str) -> tuple[int, str]:
    """Find the input and the column with this name."""
    inputs = list(schemas)
    if name.input:
        if name.column not in schemas[name.input].names:
            raise UnknownColumn.named(name.column, schemas[name.input].names, used_as=f"{what} of {name.input}")
        return inputs.index(name.input), name.column
    having = [i for i, each in enumerate(inputs) if name.column in schemas[each].names]
    if not having:
        every = [column for each in schemas.values() for column in each.names]
        raise UnknownColumn.named(name.column, dict.fromkeys(every), used_as=what)
    if len(having) > 1:
        which = " or ".join(f"{inputs[i]}.{name.column}" for i in having)
        raise InvalidQuery(f"{what}: {name.column!r} could be {which}. Say which.")
    return having[0], name.column


def _variables(
    query: JoinAggregate, schemas: Mapping[str, pa.Schema]
) -> tuple[list[dict[int, str]], tuple[pa.DataType, ...]]:
    """For each input its column of each join variable, and the types of the variables.

    Columns that join conditions set equal, directly or through others, share a variable.
    """
    classes: list[set[tuple[int, str]]] = []
    for condition, (left, right) in zip(query.on, query.parsed_on(), strict=True):
        both = {_resolve(side, schemas, f"on={condition!r}") for side in (left, right)}
        if left.input == right.input:
            raise InvalidQuery(f"on={condition!r} compares columns of one input. Write it as where= of {left.input}.")
        touched = [each for each in classes if each & both]
        classes = [each for each in classes if not each & both] + [both.union(*touched)]
    classes.sort(key=lambda each: min(each))
    found: list[dict[int, str]] = [{} for _ in schemas]
    for variable, columns in enumerate(classes):
        for i, column in sorted(columns):
            if variable in found[i]:
                name = query.names[i]
                raise InvalidQuery(
                    f"The join conditions set {name}.{found[i][variable]} and {name}.{column} equal, both of one "
                    f"input. Write that as where= of {name}."
                )
            found[i][variable] = column
    _check_connected(query, found)
    types = tuple(
        common_key_type(
            {f"{query.names[i]}.{name}": schemas[query.names[i]].field(name).type for i, name in sorted(each)}
        )
        for each in classes
    )
    return found, types


def _check_connected(query: JoinAggregate, variables: list[dict[int, str]]) -> None:
    reached, before = {0}, set[int]()
    while reached != before:
        before = set(reached)
        known = {variable for i in reached for variable in variables[i]}
        reached |= {i for i, each in enumerate(variables) if known & set(each)}
    if len(reached) < len(variables):
        apart = ", ".join(name for i, name in enumerate(query.names) if i not in reached)
        raise InvalidQuery(
            f"No join condition connects {apart} with {query.names[0]}: every row would match every other. Add it to "
            "on=."
        )


def _matching(query: JoinAggregate, variables: list[dict[int, str]]) -> list[tuple[str, ...]]:
    """For each input the join columns without which a row of it is not kept; raises if an input that is not joined by
    an inner join has no input on its left."""
    needed: list[set[str]] = [set() for _ in variables]
    for i, name in enumerate(query.names):
        how = query.how_of(name)
        lefts = [j for j, other in enumerate(query.names) if query.how_of(other) == INNER and j != i]
        if how == INNER:
            needed[i] = {column for v, column in variables[i].items() if any(v in variables[j] for j in lefts)}
            continue
        needed[i] = set(variables[i].values())
        streams = dict(query.streams)
        if not any(query.names[j] in streams and variables[i].keys() <= variables[j].keys() for j in lefts):
            raise InvalidQuery(
                f"how={how!r} of {name!r}: all its join conditions must be with one other stream, which is joined by "
                "an inner join."
            )
    return [tuple(c for c in mine.values() if c in wanted) for mine, wanted in zip(variables, needed, strict=True)]


def _bind_aggregate(
    name: str,
    aggregate: Aggregate,
    query: JoinAggregate,
    schemas: Mapping[str, pa.Schema],
    arguments: dict[str, list[Argument]],
) -> BoundAggregate:
    if aggregate.argument is None and query.how_of(aggregate.of) == LEFT:
        # COUNT(b.*) counts rows of b, so not those in place of them, whose key is null.
        key = _variables(query, schemas)[0][query.names.index(aggregate.of)]
        column = next(iter(key.values()))
        there = f"CASE WHEN {quoted(column)} IS NOT NULL THEN 1 END"
        aggregate = replace(aggregate, argument=there, columns=(Name(aggregate.of, column),))
    if aggregate.argument is None:
        return BoundAggregate(name, "COUNT", -1, -1, pa.int64())
    inputs = {_resolve(column, schemas, repr(aggregate.text))[0] for column in aggregate.columns}
    if len(inputs) != 1:
        which = ", ".join(map(str, aggregate.columns)) or "no column"
        raise InvalidQuery(f"{aggregate.text!r} must be about columns of one input, but reads {which}.")
    (i,) = inputs
    source = query.names[i]
    bound = bind_argument(aggregate, schemas[source])
    known = arguments[source]
    same = [a for a, each in enumerate(known) if _key(each) == _key(bound)]
    if not same:
        known.append(bound)
    argument = same[0] if same else len(known) - 1
    if aggregate.function == "COUNT":
        kind = pa.int64()
    elif aggregate.function == "AVG" or (aggregate.function == "SUM" and bound.is_float):
        kind = pa.float64()
    elif aggregate.function == "SUM" and pa.types.is_decimal(bound.type):
        # The widest decimal, as in Spark, because a sum has more digits than its terms.
        kind = pa.decimal128(38, bound.scale) if bound.scale <= 38 else pa.decimal256(76, bound.scale)
    else:
        kind = bound.type
    return BoundAggregate(name, aggregate.function, i, argument, kind)


def _bind_labelled(
    name: str,
    aggregate: Aggregate,
    query: JoinAggregate,
    schemas: Mapping[str, pa.Schema],
    labelled: dict[str, list[str]],
) -> BoundAggregate | None:
    """MIN or MAX of a column of strings; None: it is something else. Its argument counts from the first label."""
    if aggregate.function not in ("MIN", "MAX") or len(aggregate.columns) != 1:
        return None
    i, _ = _resolve(aggregate.columns[0], schemas, repr(aggregate.text))
    source = query.names[i]
    column, kind = labelled_column(aggregate, schemas[source]) or ("", pa.null())
    if not column:
        return None
    known = labelled[source]
    if column not in known:
        known.append(column)
    return BoundAggregate(name, aggregate.function, i, known.index(column), kind, is_labelled=True)


def _bind_distinct(
    name: str,
    aggregate: Aggregate,
    query: JoinAggregate,
    schemas: Mapping[str, pa.Schema],
    distinct: dict[str, list[str]],
) -> BoundAggregate:
    (column,) = aggregate.columns
    i, column_name = _resolve(column, schemas, repr(aggregate.text))
    known = distinct[query.names[i]]
    if column_name not in known:
        known.append(column_name)
    return BoundAggregate(name, COUNT_DISTINCT, i, known.index(column_name), pa.int64())


def _key(argument: Argument) -> tuple[Any, ...]:
    function, _, inside = argument.text.partition("(")
    extreme = function.strip().upper() if function.strip().upper() in ("MIN", "MAX") else ""
    return extreme, inside, argument.is_float, argument.type, argument.is_number


def _times(query: JoinAggregate, schemas: Mapping[str, pa.Schema]) -> tuple[Ticks, pa.DataType]:
    """The slide of the windows, in ticks, and the type of the answer's times."""
    kinds: dict[str, pa.DataType] = {}
    for name, stream in query.streams:
        stream.window.check_columns(schemas[name].names)
        if stream.window.on is not None:
            kinds[f"{name}.{stream.window.on}"] = schemas[name].field(stream.window.on).type
    whole = all(pa.types.is_integer(kind) for kind in kinds.values())
    if not whole and len(set(kinds.values())) > 1:
        said = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
        raise InvalidQuery(
            f"All windows of a join must measure the same type of time, in one unit, but {said}. Cast one of them."
        )
    kind = pa.int64() if whole else next(iter(kinds.values()))
    first, _ = query.streams[0]
    slide = Window(None, query.every, query.window.on).ticks(schemas[first], query.lateness)
    if not whole and not pa.types.is_timestamp(kind):
        raise InvalidQuery(f"A window needs a timestamp or integer column, but {next(iter(kinds))} is {kind}.")
    return slide, kind


def _bind_input(
    query: JoinAggregate,
    i: int,
    schema: pa.Schema,
    variables: dict[int, str],
    groups: list[tuple[int, str]],
    arguments: tuple[Argument, ...],
) -> BoundInput:
    name, given = query.inputs[i]
    window = given.window if isinstance(given, StreamInput) else None
    on, size = (None, None) if window is None else (window.on, window.size)
    column_type = None if on is None else schema.field(on).type
    keep = None if given.where is None else bind_filter(given.where, schema, input=name)
    return BoundInput(
        name,
        schema,
        isinstance(given, Relation),
        on,
        size_ticks(size, on, column_type, f"the window of {name}"),
        keep,
        tuple(variables),
        tuple(variables.values()),
        tuple(column for source, column in groups if source == i),
        arguments,
        how=query.how_of(name),
    )


def _check_shown(source: BoundInput) -> None:
    if source.how in (SEMI, ANTI) and (source.grouped or source.arguments or source.distinct):
        raise InvalidQuery(
            f"{source.name!r} is joined by how={source.how!r}, so only whether it has rows matters: group_by and "
            "aggregates cannot read its columns."
        )


def _check_keys(source: BoundInput) -> None:
    for column in source.keys:
        kind = source.schema.field(column).type
        if not is_key(kind):
            raise InvalidQuery(
                f"{source.name}.{column} is {kind}, which can neither be joined, nor grouped by, nor "
                "counted with DISTINCT. Possible: numbers, strings, binary, booleans, dates, times."
            )


def _group_names(groups: list[tuple[int, str]], query: JoinAggregate) -> tuple[tuple[int, str, str], ...]:
    for name, _ in query.aggregates:
        if name in LEAD:
            raise InvalidQuery(f"An aggregate cannot be called {name!r}: the answer has a column of that name.")
    names = group_names([(query.names[i], column) for i, column in groups], {name for name, _ in query.aggregates})
    return tuple((i, column, name) for (i, column), name in zip(groups, names, strict=True))


def group_names(groups: list[tuple[str, str]], aggregates: set[str]) -> list[str]:
    """The names of the grouping columns in the answer: their own, or with their input's name if two are equal."""
    plain, taken, found = [column for _, column in groups], {*LEAD, *aggregates}, []
    for source, column in groups:
        found.append(free_name(column if plain.count(column) == 1 else f"{source}_{column}", taken))
        taken.add(found[-1])
    return found
