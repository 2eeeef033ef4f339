"""Aggregates over joins of windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skyband.core import query
from skyband.core.emit import Emit, mode_of
from skyband.core.query import Converted, Emits, Length, Names, Query, option
from skyband.core.registry import problem_of
from skyband.errors import InvalidQuery
from skyband.expressions.aggregates import Aggregate, Name, read_aggregate, read_equality, read_name
from skyband.windows import Span, Window, parse_span

if TYPE_CHECKING:
    from skyband.problems.joins.session import JoinSession

ONE_INPUT = "rows"  # the name of a single input if the user gives none
MOST_INPUTS = 8
MOST_AGGREGATES = 60
INNER, LEFT, SEMI, ANTI = HOWS = ("inner", "left", "semi", "anti")  # how an input is joined


@dataclass(frozen=True, slots=True)
class StreamInput:
    """A stream as an input: the rows of its window that meet `where`."""

    window: Window
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as an input: it is complete from the start and does not change."""

    where: str | None = None


def stream_input(window: Window, *, where: str | None = None) -> StreamInput:
    """Make a stream an input of a join: the rows of `window` that meet `where`.

    Parameters
    ----------
    window
        The window of this input.
    where
        A condition. The join ignores rows that do not meet it.

    Returns
    -------
    A stream, for `inputs` of a join.

    Raises
    ------
    InvalidQuery
        `window` is not a window, or `where` is not a string.

    Examples
    --------
    >>> import skyband as sb
    >>> bids = sb.stream_input(sb.sliding("1 hour", on="ts"), where="price > 0")
    >>> bids.where
    'price > 0'
    """
    return StreamInput(query.check_window(window), _text("where")(where))


def relation(*, where: str | None = None) -> Relation:
    """Make a table an input of a join: its rows that meet `where` are in the join from the start and stay.

    Parameters
    ----------
    where
        A condition. The join ignores rows that do not meet it.

    Returns
    -------
    A table, for `inputs` of a join.

    Raises
    ------
    InvalidQuery
        `where` is not a string.

    Examples
    --------
    >>> import skyband as sb
    >>> sb.relation(where="state = 'CA'")
    Relation(where="state = 'CA'")
    """
    return Relation(_text("where")(where))


Inputs = Mapping[str, StreamInput | Relation | Window]


def _check_inputs(inputs: Any) -> tuple[tuple[str, StreamInput | Relation], ...]:
    if isinstance(inputs, (StreamInput, Window)):
        inputs = {ONE_INPUT: inputs}
    inputs = query.by_name(inputs)
    possible = "stream_input(window), relation() or a window"
    if not isinstance(inputs, Mapping) or not inputs:
        raise InvalidQuery(f"inputs must be, by name, {possible}; got {inputs!r}.")
    found = []
    for name, given in inputs.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidQuery(f"An input needs a name to call its columns by, such as 'bids'; got {name!r}.")
        if isinstance(given, Window):
            given = StreamInput(given)
        if not isinstance(given, (StreamInput, Relation)):
            raise InvalidQuery(f"Input {name!r} must be {possible}; got {given!r}.")
        if isinstance(given, StreamInput) and given.window.order is not None and not given.window.by_count:
            raise InvalidQuery(
                f"The window of {name} has order={given.window.order!r}, but aggregates over a window by value do not "
                "depend on the order of rows: leave it out."
            )
        found.append((name, given))
    if not any(isinstance(given, StreamInput) for _, given in found):
        raise InvalidQuery("At least one input must be a stream: relations alone do not change.")
    if len(found) > MOST_INPUTS:
        raise InvalidQuery(f"At most {MOST_INPUTS} inputs can be joined, got {len(found)}.")
    return tuple(found)


def _texts(option: str) -> Callable[[object], tuple[str, ...]]:
    """Make the check of an option that takes a text or a list of texts."""

    def check_texts(given: object) -> tuple[str, ...]:
        found = query.several(given)
        for each in found:
            if not isinstance(each, str) or not each.strip():
                raise InvalidQuery(f"{option} must be a text or a list of texts, got {given!r}.")
        if len(set(found)) != len(found):
            raise InvalidQuery(f"{option} has a name twice: {', '.join(found)}.")
        return found

    return check_texts


def _check_how(how: Any, inputs: tuple[tuple[str, StreamInput | Relation], ...]) -> tuple[tuple[str, str], ...]:
    how, kinds = query.by_name(how), dict(inputs)
    possible = "how= says, by name, how an input is joined: 'inner', 'left', 'semi' or 'anti'"
    if not isinstance(how, Mapping):
        raise InvalidQuery(f"{possible}; got {how!r}.")
    for name, kind in how.items():
        if name not in kinds:
            raise InvalidQuery(f"how= names no input: {name!r}. Inputs: {', '.join(kinds)}.")
        if kind not in HOWS:
            raise InvalidQuery(f"{possible}; got {kind!r} for {name!r}.")
        if kind != INNER and isinstance(kinds[name], Relation):
            raise InvalidQuery(f"{name!r} is a relation, which cannot be joined by how={kind!r}: only streams can.")
    return tuple((name, kind) for name, kind in how.items() if kind != INNER)


def _text(option: str) -> Callable[[object], str | None]:
    """Make the check of an option that takes a text or None."""

    def check_text(given: object) -> str | None:
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise InvalidQuery(f"{option} must be a text, got {given!r}.")
        return given

    return check_text


def _check_aggregates(aggregates: Any) -> tuple[tuple[str, str], ...]:
    aggregates = query.by_name(aggregates)
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise InvalidQuery(
            f"aggregates must be, by the name of their column, such as {{'n': 'COUNT(*)'}}; got {aggregates!r}."
        )
    for name in aggregates:
        if not isinstance(name, str) or not name:
            raise InvalidQuery(f"An aggregate needs the name of its column, got {name!r}.")
    if len(aggregates) > MOST_AGGREGATES:
        raise InvalidQuery(f"At most {MOST_AGGREGATES} aggregates, got {len(aggregates)}.")
    return tuple((name, read_aggregate(text).text) for name, text in aggregates.items())


def _check_k(k: object, order_by: tuple[str, ...]) -> int | None:
    if k is None:
        return None
    number = query.check_k(k)
    if not order_by:
        raise InvalidQuery(f"k={number} needs order_by=, the columns that rank the groups.")
    return number


def _check_every(every: Span | None, streams: tuple[tuple[str, StreamInput], ...]) -> int | timedelta | None:
    given = {} if every is None else {"every=": parse_span(every, "every")}
    given |= {f"the window of {name}": s.window.every for name, s in streams if s.window.every is not None}
    if len(set(given.values())) > 1:
        said = "; ".join(f"{where} says {span}" for where, span in given.items())
        raise InvalidQuery(f"All windows of a join slide together: {said}.")
    slide = next(iter(given.values()), None)
    _check_measures(streams)
    for name, stream in streams:
        _check_slide(slide, name, stream.window)
    return slide


def _check_measures(streams: tuple[tuple[str, StreamInput], ...]) -> None:
    counted = [name for name, stream in streams if stream.window.by_count]
    measured = [name for name, stream in streams if not stream.window.by_count]
    if counted and measured:
        raise InvalidQuery(
            f"The window of {counted[0]} counts arrivals, but that of {measured[0]} measures a column. The windows of "
            "a join all count arrivals, or all measure a column."
        )


def _check_slide(slide: int | timedelta | None, name: str, window: Window) -> None:
    if slide is None:
        return
    if isinstance(slide, timedelta) and window.on is None:
        raise InvalidQuery(f"every={slide} is a duration, but the window of {name} counts arrivals.")
    if window.size is None:
        return
    if isinstance(window.size, timedelta) != isinstance(slide, timedelta):
        raise InvalidQuery(f"every={slide} and the window of {name} must both be durations or both be numbers.")
    if slide > window.size:  # type: ignore[operator]
        raise InvalidQuery(
            f"every={slide} is larger than the window of {name}, {window.size}: some rows would be in no window."
        )


def _check_emit(emit: object, every: int | timedelta | None) -> Emit:
    return mode_of(emit, slides=every is not None, no_entries="a group changes with its rows")


class JoinAggregate(Query):
    """Aggregates by group over a join of windows, as they slide, or over one window.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.JoinAggregate(
    ...     inputs={"auction": sb.landmark(on="t"), "bid": sb.sliding(60, on="t")},
    ...     on="auction.id = bid.id", group_by="auction.id", aggregates={"bids": "COUNT(*)"}, every=60,
    ... )
    >>> auctions = pa.table({"t": [1, 2], "id": [7, 8]})
    >>> bids = pa.table({"t": [5, 6, 7], "id": [7, 8, 7]})
    >>> session = query.open({"auction": auctions.schema, "bid": bids.schema})
    >>> _ = session.push(auctions, "auction"), session.push(bids, "bid")
    >>> session.finish().sort_by("id").to_pylist()
    [{'window_end': 60, 'id': 7, 'bids': 2}, {'window_end': 60, 'id': 8, 'bids': 1}]

    References
    ----------
    Tran, Lee: Transformation of continuous aggregation join queries over data streams. JCSE 2009.
    """

    problem = "joins"

    inputs: Converted[Inputs | StreamInput | Window, tuple[tuple[str, StreamInput | Relation], ...]] = option(
        _check_inputs,
        "A mapping from the inputs' names to `stream_input(window, where=…)` or `relation(where=…)`; a window alone is "
        "a stream without a filter. A single input needs no name.",
        sql="FROM a [WINDOW …], b [WINDOW …], c",
    )
    aggregates: Converted[Mapping[str, str], tuple[tuple[str, str], ...]] = option(
        _check_aggregates,
        "A mapping from the names of output columns to COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x) or MAX(x), where x "
        "is an expression over the columns of one input; or to COUNT(DISTINCT x), where x is a column.",
        sql="SELECT …, COUNT(*) AS n",
    )
    on: Names = option(
        _texts("on"),
        'Join conditions such as "a.id = b.id", which must connect all inputs. A null never matches.',
        default=(),
        sql="WHERE a.id = b.id",
    )
    group_by: Names = option(
        _texts("group_by"),
        'Columns such as "a.id", or "id" if only one input has it. None: all rows form one group.',
        default=(),
        sql="GROUP BY group_by",
    )
    having: str | None = option(
        _text("having"),
        "A condition on the columns of the answer. The answer has only groups that meet it.",
        default=None,
        sql="HAVING having",
    )
    order_by: Names = option(
        _texts("order_by"),
        'Columns of the answer, or expressions over them, that rank the groups, the largest first; "x ASC" puts the '
        "smallest first. If groups are equal in all of them, the group's own columns decide.",
        default=(),
        sql="ORDER BY order_by",
    )
    k: int | None = option(
        _check_k, "How many groups a window shows: the best k. None: all.", default=None, sql="LIMIT k"
    )
    every: Length = option(
        _check_every,
        "How often the windows slide. None: by the slide of the windows, or else with each arrival. Windows of "
        "arrivals slide after so many arrivals of all streams together.",
        default=None,
        sql="[WINDOW … EVERY every]",
    )
    emit: Emits = query.emit_option("the groups", "the groups that appear, change or disappear", check=_check_emit)
    lateness: Length = query.lateness_option()
    how: Converted[Mapping[str, str], tuple[tuple[str, str], ...]] = option(
        _check_how,
        "How an input is joined, by its name: 'left' keeps the rows on its left that have no partner, with nulls; "
        "'semi' keeps those that have a partner, once; 'anti' keeps those that have none. The others are joined by an "
        "inner join.",
        default=(),
        sql="a LEFT JOIN b",
        newer=True,
    )
    plan: str | None = option(
        _text("plan"),
        'The plan to run, for experiments: "late", "early:a,b", "multiply" or "recompute". None: the planner chooses.',
        default=None,
        fingerprint=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for condition in self.on:
            for name in read_equality(condition):
                self._check_input(name, f"on={condition!r}")
        for column in self.group_by:
            self._check_input(read_name(column, "group_by"), "group_by")
        for _, aggregate in self.aggregates:
            for name in read_aggregate(aggregate).columns:
                self._check_input(name, repr(aggregate))
            if self.how and read_aggregate(aggregate).function in ("MIN", "MAX"):
                raise InvalidQuery(
                    f"{aggregate!r}: beside how=, aggregates are COUNT, SUM and AVG, because a row that leaves has to "
                    "be subtracted. In SQL, MIN and MAX work, too."
                )

    def _check_input(self, name: Name, what: str) -> None:
        if name.input and name.input not in self.names:
            raise InvalidQuery(
                f"{what} names {name}, but there is no input {name.input!r}. Inputs: {', '.join(self.names)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.inputs)

    @property
    def streams(self) -> tuple[tuple[str, StreamInput], ...]:
        return tuple((name, given) for name, given in self.inputs if isinstance(given, StreamInput))

    def how_of(self, name: str) -> str:
        return dict(self.how).get(name, INNER)

    @property
    def window(self) -> Window:
        """The window of the first stream, with the slide of the query."""
        window = self.streams[0][1].window
        return Window(window.size, self.every, window.on, window.order)

    @property
    def algorithm(self) -> None:
        """None: a session may continue a snapshot with another plan."""
        return None

    def parsed_aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        return tuple((name, read_aggregate(text)) for name, text in self.aggregates)

    def parsed_on(self) -> tuple[tuple[Name, Name], ...]:
        return tuple(read_equality(condition) for condition in self.on)

    def parsed_group_by(self) -> tuple[Name, ...]:
        return tuple(read_name(column, "group_by") for column in self.group_by)

    def open(self, schema: Mapping[str, pa.Schema] | pa.Schema, state: bytes | None = None) -> JoinSession:
        """Open a session for rows of `schema`. With a snapshot as `state`, it continues where that session stopped."""
        return problem_of(self).open(self, schema, state)

    def schemas(self, schema: Mapping[str, pa.Schema] | pa.Schema) -> dict[str, pa.Schema]:
        """The schema of each input, by name; raises unless there is one for each."""
        given: Any = {self.names[0]: schema} if isinstance(schema, pa.Schema) and len(self.inputs) == 1 else schema
        if not isinstance(given, Mapping) or set(given) != set(self.names):
            got = ", ".join(given) if isinstance(given, Mapping) else type(given).__name__
            raise InvalidQuery(f"Give a schema for each input: {', '.join(self.names)}; got {got}.")
        return {name: given[name] for name in self.names}

    def fingerprint(self, schema: Mapping[str, pa.Schema] | pa.Schema) -> str:
        return super().fingerprint(self.schemas(schema))
