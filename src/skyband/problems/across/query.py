"""The k best objects of a window, whose scores combine values from several streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from skyband.core import query
from skyband.core.emit import Emit, mode_of
from skyband.core.query import Converted, Emits, Length, Query, option
from skyband.core.registry import problem_of
from skyband.errors import InvalidQuery
from skyband.problems.across.combining import Combine, resolve
from skyband.windows import Span, Window, check_names, parse_span, whole_number

if TYPE_CHECKING:
    from skyband.problems.across.session import AcrossSession

Repeat = Literal["last", "max", "sum"]
Bounds = tuple[float, float]


def _column(option: str) -> Callable[[object], str]:
    def check_column(name: object) -> str:
        if not isinstance(name, str):
            raise InvalidQuery(f"{option} must be the name of a column, got {name!r}.")
        return name

    return check_column


def _check_id(id: object) -> str | tuple[str, ...]:
    """Return one column as a string, and several as a tuple."""
    if isinstance(id, (list, tuple)) and len(id) != 1:
        names = tuple(map(_column("id"), id))
        if not names or len(set(names)) != len(names):
            raise InvalidQuery(f"id must be a column, or several different ones, got {id!r}.")
        return names
    return _column("id")(id[0] if isinstance(id, (list, tuple)) else id)


def _check_value(value: Any) -> str | tuple[tuple[str, str], ...]:
    value = query.by_name(value)
    if isinstance(value, Mapping) and value:
        return tuple(sorted((name, _column(f"value of {name!r}")(column)) for name, column in value.items()))
    return _column("value")(value)


def _check_stream(stream: object) -> str | None:
    return None if stream is None else _column("stream")(stream)


def _check_combine(combine: Any) -> Any:
    return tuple(sorted(combine.items())) if isinstance(combine, Mapping) else combine


def _check_repeat(repeat: Any) -> Repeat | None:
    if repeat is not None and repeat not in get_args(Repeat):
        raise InvalidQuery(f"repeat must be one of {', '.join(get_args(Repeat))}, or None; got {repeat!r}.")
    return repeat


def _check_max_repeats(max_repeats: object, repeat: str | None) -> int | None:
    if max_repeats is None:
        return None
    number = whole_number(max_repeats)
    if number is None or number < 1:
        raise InvalidQuery(f"max_repeats must be a whole number, at least 1, or None; got {max_repeats!r}.")
    if repeat is None:
        raise InvalidQuery(
            f"max_repeats={max_repeats} limits how often an object may come again, but with repeat=None none does. "
            f"Set how to combine several values: repeat={', '.join(map(repr, get_args(Repeat)))}."
        )
    return number


def _check_streams(streams: Any, stream: str | None, value: Any, combine: Any, bounds: Any) -> tuple[str, ...]:
    values = None if isinstance(value, str) else dict(value)
    if streams is None:
        named_by = next((given for given in (combine, bounds, values) if isinstance(given, Mapping)), None)
        if named_by is None and stream is not None:
            raise InvalidQuery(
                f"stream={stream!r} names the stream of each row, but the answer has a column for each stream: name "
                "the streams, too, as in streams=('r1', 'r2')."
            )
        streams = (value,) if named_by is None else tuple(named_by)
    if isinstance(streams, str) or not isinstance(streams, Sequence) or not streams:
        raise InvalidQuery(f"streams must be a list of names, got {streams!r}.")
    if not all(isinstance(name, str) for name in streams):
        raise InvalidQuery(f"streams must be names, got {list(streams)!r}.")
    if len(set(streams)) != len(streams):
        raise InvalidQuery(f"streams has a name twice: {', '.join(streams)}.")
    if values is not None and set(values) != set(streams):
        raise InvalidQuery(
            f"value names a column for {', '.join(values)}, but the streams are {', '.join(streams)}: name one for "
            "each of them."
        )
    return tuple(streams)


def _check_bounds(bounds: Any, streams: tuple[str, ...], repeat: str | None) -> tuple[Bounds, ...]:
    if isinstance(bounds, Mapping):
        if unknown := [name for name in bounds if name not in streams]:
            raise InvalidQuery(f"bounds has {unknown[0]!r}, which is no stream. Streams: {', '.join(streams)}.")
        if missing := [name for name in streams if name not in bounds]:
            raise InvalidQuery(f"bounds has nothing for the stream {missing[0]!r}.")
        pairs = [bounds[name] for name in streams]
    elif isinstance(bounds, tuple) and len(bounds) == len(streams) and all(isinstance(each, tuple) for each in bounds):
        pairs = list(bounds)  # the form in which a query keeps them: `dataclasses.replace` passes it back
    else:
        pairs = [bounds] * len(streams)
    for pair in pairs:
        numbers = (
            isinstance(pair, (tuple, list))
            and len(pair) == 2
            and all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in pair)
        )
        if not numbers or not -math.inf < pair[0] < pair[1]:
            raise InvalidQuery(
                "bounds must be the smallest and the largest value, as in (0, 1), or such a pair for each stream; the "
                f"smallest must be finite. Got {pair!r}."
            )
        if repeat == "sum" and pair[0] != 0:
            raise InvalidQuery(
                f"repeat='sum' needs bounds that start at 0, got {pair!r}: a missing value counts as the smallest, and "
                "an empty sum is 0."
            )
    return tuple((float(low), float(high)) for low, high in pairs)


def _check_emit(emit: object, window: Window) -> Emit:
    return mode_of(emit, slides=window.every is not None, no_entries="an object comes and goes")


def _check_idle(idle_after: Span | None, window: Window) -> int | timedelta | None:
    if idle_after is None:
        return None
    if window.by_count or window.every is None:
        raise InvalidQuery(
            f"idle_after={idle_after!r} has no meaning here: only windows by value with `every` wait for anything."
        )
    return parse_span(idle_after, "idle_after")


def _check_recall(recall: object) -> float | None:
    if recall is None:
        return None
    if isinstance(recall, bool) or not isinstance(recall, (int, float)) or not 0 < recall < 1:
        raise InvalidQuery(
            f"recall must be a share below 1 of the objects that answers should show, such as 0.95; got {recall!r}."
        )
    return float(recall)


class TopKAcross(Query):
    """The k best objects of a window, whose scores combine values from several streams.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopKAcross(
    ...     k=1, id="flow", value="size", streams=["r1", "r2"], window=sb.tumbling(10, on="t"), bounds=(0, 9)
    ... )
    >>> rows = pa.table({"t": [1, 2], "flow": ["x", "y"], "size": [5.0, 4.0]})
    >>> session = query.open(rows.schema)
    >>> _ = session.push(rows, "r1"), session.push(rows.slice(1), "r2")
    >>> session.finish().select(["rank", "score", "flow", "r1", "r2"]).to_pylist()
    [{'rank': 1, 'score': 8.0, 'flow': 'y', 'r1': 4.0, 'r2': 4.0}]

    References
    ----------
    Haghani, Michel, Aberer: Evaluating top-k queries over incomplete data streams. CIKM 2009.
    """

    problem = "across"

    k: int = option(query.check_k, "How many objects a window shows.", sql="LIMIT k")
    id: Converted[str | Sequence[str], str | tuple[str, ...]] = option(
        _check_id,
        'The column with the id of a row\'s object, or several that identify it together, as in ("source", "target").',
        sql="FULL JOIN … USING (id)",
    )
    value: Converted[str | Mapping[str, str], str | tuple[tuple[str, str], ...]] = option(
        _check_value,
        "The column with the object's value in the row's stream, or a column for each stream. A null or NaN is no "
        "value.",
        sql="ORDER BY r1.value + r2.value DESC",
    )
    window: Window = option(
        query.check_window,
        "Which rows count: `sliding`, `tumbling` or `landmark`.",
        sql="WINDOW [size EVERY every ON on]",
    )
    streams: Converted[Sequence[str] | None, tuple[str, ...]] = option(
        _check_streams,
        "The names of the streams. None: those that `combine` or `bounds` name, or one stream with the name of "
        "`value`.",
        default=None,
        sql="FROM r1 FULL JOIN r2 …",
    )
    stream: str | None = option(
        _check_stream,
        "The column that names a row's stream. None: you pass the name to `push`, or there is only one stream.",
        default=None,
    )
    combine: Converted[str | Mapping[str, float], str | tuple[tuple[str, float], ...]] = option(
        _check_combine,
        'How to compute a score from the values: "sum", "mean", "max", "min" or "product"; a weight for each stream; '
        "or an expression over the streams' names that never falls when a value rises.",
        default="sum",
        sql="ORDER BY combine DESC",
    )
    bounds: Converted[Bounds | Mapping[str, Bounds], tuple[Bounds, ...]] = option(
        _check_bounds,
        "The smallest and the largest possible value, for all streams or for each. A missing value counts as the "
        "smallest. The largest may be math.inf, but then Skyband can drop few rows early.",
        default=(0.0, 1.0),
        sql="WITH BOUNDS (low, high)",
    )
    repeat: Repeat | None = option(
        _check_repeat,
        'How to combine several values of an object in one stream: "last", "max" or "sum". None: you promise that an '
        "object comes to a stream only once while any of its rows is in the window; Skyband can then drop rows early. "
        "(If it does come again, the last value counts, `rows_repeated` counts the row if Skyband notices it, and "
        "answers may miss objects.)",
        default=None,
    )
    max_repeats: int | None = option(
        _check_max_repeats,
        "With `repeat`: how often an object may come to a stream while any of its rows is in the window. If it comes "
        "more often, `rows_repeated` counts the rows, and answers stay exact, unless the algorithm is "
        "`early_aggregation` or `sorted_lists`: these rely on the limit. None: there is no limit.",
        default=None,
    )
    clip: bool = option(
        query.flag("clip"),
        "Move a value that is out of bounds to the bound, and count it; by default it raises an error.",
        default=False,
    )
    emit: Emits = query.emit_option("the ranking", "the objects that enter and leave", check=_check_emit)
    lateness: Length = query.lateness_option("WINDOW [… LATENESS lateness]")
    idle_after: Length = option(
        _check_idle,
        "Windows by value wait for the slowest stream, but not for one that is this far behind the fastest. So a "
        "silent stream does not stop the others. None: windows follow the fastest stream.",
        default=None,
    )
    max_jump: Length = query.max_jump_option()
    recall: float | None = option(
        _check_recall,
        "The share of an exact answer's objects that you require, such as 0.95. Skyband then keeps far fewer rows and "
        "takes about twice as long; the answer's column `recall` has the share. None: all objects.",
        default=None,
        sql="WITH RECALL recall",
    )
    algorithm: str | None = query.algorithm_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.combined()  # raises unless `combine` and `streams` fit together

    def combined(self) -> Combine:
        """How to compute an object's score from its values."""
        combine = dict(self.combine) if isinstance(self.combine, tuple) else self.combine
        low, high = zip(*self.bounds, strict=True)
        return resolve(combine, self.streams, low, high)

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify an object."""
        return (self.id,) if isinstance(self.id, str) else self.id

    @property
    def values(self) -> tuple[str, ...]:
        """The column with the value, for each stream."""
        if isinstance(self.value, str):
            return (self.value,) * len(self.streams)
        return tuple(dict(self.value)[name] for name in self.streams)

    def columns(self, values: Sequence[str]) -> list[str]:
        """The columns that the query reads: these values, and the columns for the object, the time and the stream."""
        read = *self.ids, *values, self.window.on, self.window.order, self.stream
        return list(dict.fromkeys(name for name in read if name is not None))

    def check_columns(self, columns: list[str], stream: str | None = None) -> None:
        """Raise `UnknownColumn` unless `columns` has all columns that this query names; for `stream`, those of its
        rows."""
        self.window.check_columns(columns)
        values = self.values if stream is None else (self.values[self.streams.index(stream)],)
        check_names(columns, (self.ids, "id="), (values, "value="), ([self.stream], "stream="))

    def open(self, schema: pa.Schema, state: bytes | None = None) -> AcrossSession:
        """Open a session for rows of `schema`. With a snapshot as `state`, it continues where that session stopped."""
        return problem_of(self).open(self, schema, state)
