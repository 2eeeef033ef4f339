"""Aggregates over joins of windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skyband.core.checks import Emit, check_k, check_window, columns_of, fingerprint
from skyband.errors import InvalidQuery
from skyband.expressions.aggregates import Aggregate, Name, read_aggregate, read_equality, read_name
from skyband.windows import Span, Window, parse_span

if TYPE_CHECKING:
    from skyband.problems.joins.session import JoinSession

ONE_INPUT = "rows"  # the name of an input that was given none
MOST_INPUTS = 8
MOST_AGGREGATES = 60


@dataclass(frozen=True, slots=True)
class StreamInput:
    """A stream, by its window; `where` drops rows before anything else is done with them."""

    window: Window
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that is there from the start and does not change."""

    where: str | None = None


def stream_input(window: Window, *, where: str | None = None) -> StreamInput:
    """A stream as an input of a join: the rows of `window`, those that meet `where`."""
    check_window(window)
    return StreamInput(window, _check_text(where, "where"))


def relation(*, where: str | None = None) -> Relation:
    """A table as an input of a join: its rows, those that meet `where`, are there from the start and for good."""
    return Relation(_check_text(where, "where"))


@dataclass(frozen=True)
class JoinAggregate:
    """Aggregates by group over a join of windows, as they slide; or over one window.

    inputs      by name: `stream_input(window, where=…)` or `relation(where=…)`; a Window is a stream without a filter.
                One input alone needs no name.
    on          join conditions, "a.id = b.id"; any that connect all inputs. A null never matches.
    group_by    columns, "a.id", or "id" where only one input has it; none: one group of all rows.
    aggregates  by the name of their column: COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x), MAX(x), where x is an
                expression over the columns of one input.
    having      a condition on the columns of the answer: only groups that meet it are shown.
    order_by    what to rank groups by: a column of the answer or an expression over them, the largest first; "x ASC":
                the smallest. Of several, the next decides where the first are equal; last of all the group's columns.
    k           only the best so many groups.
    every       how often the windows slide; None: with each arrival. It may also be given with the windows.
    emit        "windows": the groups of each closed window (default with `every`);
                "changes": groups that are new or have other values, and groups that are gone (default without).
    lateness    how long windows wait for rows that come out of order.
    plan        by name, for study: "late", "early:a,b", "multiply" or "recompute"; None: the planner chooses.
    """

    inputs: tuple[tuple[str, StreamInput | Relation], ...]
    on: tuple[str, ...]
    group_by: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    having: str | None = None
    order_by: tuple[str, ...] = ()
    k: int | None = None
    every: int | timedelta | None = None
    emit: Emit | None = None
    lateness: int | timedelta | None = None
    plan: str | None = None

    def __init__(
        self,
        *,
        inputs: Mapping[str, StreamInput | Relation | Window] | StreamInput | Window,
        aggregates: Mapping[str, str],
        on: str | Sequence[str] = (),
        group_by: str | Sequence[str] = (),
        having: str | None = None,
        order_by: str | Sequence[str] = (),
        k: int | None = None,
        every: Span | None = None,
        emit: Emit | None = None,
        lateness: Span | None = None,
        plan: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "inputs", _check_inputs(inputs))
        put(self, "on", _check_texts(on, "on"))
        put(self, "group_by", _check_texts(group_by, "group_by"))
        put(self, "aggregates", _check_aggregates(aggregates))
        put(self, "having", _check_text(having, "having"))
        put(self, "order_by", _check_texts(order_by, "order_by"))
        if k is not None:
            k = check_k(k)
            if not self.order_by:
                raise InvalidQuery(f"k={k} needs order_by=: what the best groups are best by.")
        put(self, "k", k)
        put(self, "every", self._check_every(every))
        put(self, "emit", self._check_emit(emit))
        put(self, "lateness", self._check_lateness(lateness))
        put(self, "plan", _check_text(plan, "plan"))
        for condition in self.on:
            for name in read_equality(condition):
                self._check_input(name, f"on={condition!r}")
        for column in self.group_by:
            self._check_input(read_name(column, "group_by"), "group_by")
        for _, text in self.aggregates:
            for name in read_aggregate(text).columns:
                self._check_input(name, repr(text))

    # -- what others ask of it -------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.inputs)

    @property
    def streams(self) -> tuple[tuple[str, StreamInput], ...]:
        return tuple((name, given) for name, given in self.inputs if isinstance(given, StreamInput))

    @property
    def window(self) -> Window:
        """The window of the first stream, sliding as the query does."""
        window = self.streams[0][1].window
        return Window(window.size, self.every, window.on, window.order)

    @property
    def algorithm(self) -> None:
        """A snapshot is not bound to the plan that took it."""
        return None

    def parsed_aggregates(self) -> tuple[tuple[str, Aggregate], ...]:
        return tuple((name, read_aggregate(text)) for name, text in self.aggregates)

    def parsed_on(self) -> tuple[tuple[Name, Name], ...]:
        return tuple(read_equality(condition) for condition in self.on)

    def parsed_group_by(self) -> tuple[Name, ...]:
        return tuple(read_name(column, "group_by") for column in self.group_by)

    def open(self, schema: Mapping[str, pa.Schema] | pa.Schema, state: bytes | None = None) -> JoinSession:
        """An operator for rows of these schemas, fed by `push`; from a snapshot, exactly where that one stopped."""
        from skyband.problems.joins.session import JoinSession

        return JoinSession(self, self.schemas(schema), state)

    def schemas(self, schema: Mapping[str, pa.Schema] | pa.Schema) -> dict[str, pa.Schema]:
        """The schema of each input, by name."""
        given: Any = {self.names[0]: schema} if isinstance(schema, pa.Schema) and len(self.inputs) == 1 else schema
        if not isinstance(given, Mapping) or set(given) != set(self.names):
            got = ", ".join(given) if isinstance(given, Mapping) else type(given).__name__
            raise InvalidQuery(f"Give a schema for each input: {', '.join(self.names)}; got {got}.")
        return {name: given[name] for name in self.names}

    def fingerprint(self, schema: Mapping[str, pa.Schema] | pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        return fingerprint(
            inputs=repr(self.inputs),
            on=self.on,
            group_by=self.group_by,
            aggregates=self.aggregates,
            having=self.having,
            order_by=self.order_by,
            k=self.k,
            every=repr(self.every),
            emit=self.emit,
            lateness=repr(self.lateness),
            columns={name: columns_of(each) for name, each in self.schemas(schema).items()},
        )

    # -- checks ----------------------------------------------------------------------------------------------------

    def _check_input(self, name: Name, what: str) -> None:
        if name.input and name.input not in self.names:
            raise InvalidQuery(
                f"{what} names {name}, but there is no input {name.input!r}. Inputs: {', '.join(self.names)}."
            )

    def _check_every(self, every: Span | None) -> int | timedelta | None:
        given = {} if every is None else {"every=": parse_span(every, "every")}
        given |= {f"the window of {name}": s.window.every for name, s in self.streams if s.window.every is not None}
        if len(set(given.values())) > 1:
            said = "; ".join(f"{where} says {span}" for where, span in given.items())
            raise InvalidQuery(f"All windows of a join slide together: {said}.")
        slide = next(iter(given.values()), None)
        for name, stream in self.streams:
            window = stream.window
            if window.on is None and len(self.streams) > 1:
                raise InvalidQuery(
                    f"The window of {name} counts arrivals, which only a query over one stream can: streams are joined "
                    "by time. Give it on='…', the column that holds the time."
                )
            if slide is None:
                continue
            if isinstance(slide, timedelta) and window.on is None:
                raise InvalidQuery(f"every={slide} is a duration, but the window of {name} counts arrivals.")
            if window.size is not None:
                if isinstance(window.size, timedelta) != isinstance(slide, timedelta):
                    raise InvalidQuery(
                        f"every={slide} and the window of {name} must both be durations or both be numbers."
                    )
                if slide > window.size:  # type: ignore[operator]
                    raise InvalidQuery(
                        f"every={slide} is larger than the window of {name}, {window.size}: rows between two windows "
                        "would never be seen."
                    )
        return slide

    def _check_emit(self, emit: object) -> Emit:
        if emit is None:
            return "changes" if self.every is None else "windows"
        if emit not in ("windows", "changes"):
            raise InvalidQuery(f"emit must be windows or changes, got {emit!r}.")
        if emit == "windows" and self.every is None:
            raise InvalidQuery(
                "emit='windows' gives the groups of each closed window, but windows without `every` close with each "
                "row. Use emit='changes', or give an `every`."
            )
        return emit

    def _check_lateness(self, lateness: Span | None) -> int | timedelta | None:
        from skyband.core.checks import check_lateness

        return check_lateness(lateness, self.window)


def _check_inputs(inputs: Any) -> tuple[tuple[str, StreamInput | Relation], ...]:
    if isinstance(inputs, (StreamInput, Window)):
        inputs = {ONE_INPUT: inputs}
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
        if isinstance(given, StreamInput) and given.window.order is not None:
            raise InvalidQuery(
                f"The window of {name} has order={given.window.order!r}, but aggregates do not depend on the order of "
                "rows: leave it out."
            )
        found.append((name, given))
    if not any(isinstance(given, StreamInput) for _, given in found):
        raise InvalidQuery("At least one input must be a stream: relations alone do not change.")
    if len(found) > MOST_INPUTS:
        raise InvalidQuery(f"At most {MOST_INPUTS} inputs can be joined, got {len(found)}.")
    return tuple(found)


def _check_text(text: object, what: str) -> Any:
    if text is not None and (not isinstance(text, str) or not text.strip()):
        raise InvalidQuery(f"{what} must be a text, got {text!r}.")
    return text


def _check_texts(texts: object, what: str) -> tuple[str, ...]:
    given = (texts,) if isinstance(texts, str) else tuple(texts) if isinstance(texts, (list, tuple)) else (texts,)
    for text in given:
        if not isinstance(text, str) or not text.strip():
            raise InvalidQuery(f"{what} must be a text or a list of texts, got {texts!r}.")
    if len(set(given)) != len(given):
        raise InvalidQuery(f"{what} says the same twice: {', '.join(given)}.")
    return given


def _check_aggregates(aggregates: object) -> tuple[tuple[str, str], ...]:
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
