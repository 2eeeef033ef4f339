"""A join as a picture: a lane for each input with its own window, and in each the rows of the best groups as tracks.

A row counts as long as its input's window holds it. Rows of one group are at the same height in all lanes, so that one
sees which inputs give a group its rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa

from skyband.core.operator import Floats, Ints
from skyband.core.picture import MOST_DOTS, MOST_LIVE, Found, Picture, Plain, found, scattered
from skyband.core.seen import Row, SeenRows
from skyband.core.session import Session
from skyband.errors import SkybandError
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.columns import BoundInput
from skyband.problems.joins.query import ANTI, INNER, LEFT, JoinAggregate, StreamInput
from skyband.windows import Window

_MOST_TRACKS: Final = 10  # groups that have a track of their own
_MOST_GROUPS: Final = 1_000  # of an answer, that are looked through
_MOST_ROWS: Final = 5  # of a group, of each input

Key = tuple[Any, ...]


class Live(NamedTuple):
    """The rows of one input that its window has."""

    position: Ints
    place: Floats
    rows: pa.RecordBatch
    known: list[tuple[Any, ...]]  # of each row: what it says of the columns of the grouping; _ANY: nothing


class _Any:
    """Stands for each value of a column."""


_ANY: Final = _Any()


class JoinsPicture(Picture):
    """Rows as dots in lanes, one for each input."""

    form: ClassVar = "lanes"
    title: ClassVar = "The windows of the inputs"
    caption: ClassVar = "A lane for each input, over its own window. Rows of a group are at the same height everywhere."
    legend: ClassVar = ("of the best groups", "of other groups")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._query = cast(JoinAggregate, session.query)
        self._codec: JoinsCodec = session._codec  # type: ignore[assignment]
        self._bound = self._codec._bound
        self._columns = [name for _, _, name in self._bound.groups]
        streams = dict(self._query.streams)
        self._inputs = [
            SeenRows(self._codec.plain[name], _window(streams.get(name), self._query.every))
            for name in self._query.names
        ]
        self._answer: pa.Table | None = None  # the latest one

    def take(self, first: int, batch: pa.RecordBatch, source: Any) -> None:
        self._inputs[source].take(self._inputs[source].arrivals, batch)

    def rows_in_window(self) -> int | None:
        return None

    def show(self, answer: pa.Table) -> None:
        if set(self._columns) <= set(answer.schema.names):
            self._answer = answer.slice(0, _MOST_GROUPS)

    def draw(self) -> Found:
        tracks: dict[Key, int] = {}
        for row in self._listed()[:_MOST_TRACKS]:
            tracks.setdefault(self._key(row), len(tracks))
        ids, x, y, lane, state, group, lanes = [], [], [], [], [], [], []
        now = self._now()
        for i, source in enumerate(self._bound.inputs):
            live = self._live(i)
            lanes.append(self._lane(i, source, len(live.position)))
            most = MOST_DOTS // len(self._bound.inputs)
            of = [self._track(known, tracks) for known in live.known]
            heights = scattered(live.position).tolist()
            order = sorted(range(len(of)), key=lambda at: (of[at] < 0, -at))[:most]
            for at in sorted(order):
                ids.append(f"{i}-{live.position[at]}")
                x.append(round(float(live.place[at]), 6) if not source.is_relation else (at + 0.5) / len(of))
                y.append(1 - (of[at] + 0.5) / _MOST_TRACKS if of[at] >= 0 else heights[at])
                lane.append(i)
                state.append(2 if of[at] >= 0 else 1)
                group.append(of[at])
        kinds = {
            ("arrivals" if seen.window.on is None else "time" if seen.is_time else "number") for seen in self._streams()
        }
        return {
            "kind": kinds.pop() if len(kinds) == 1 else "number",
            "on": self._query.window.on,
            "now": now,
            "size": max((lane["size"] for lane in lanes if lane["size"] is not None), default=None),
            "every": None,
            "k": self._query.k,
            "rows_held": self.session.stats().rows_held,
            "lanes": lanes,
            "groups": [{"name": _named(key), "title": _named(key)} for key in tracks] if self._columns else [],
            "linked": False,
            "dots": {"id": ids, "x": x, "y": y, "lane": lane, "state": state, "group": group},
        }

    def why(self, id: str) -> Found | None:
        """Of a group, as a JSON list of its values, or of the group of a row, as "input-arrival"."""
        key = self._read_id(id)
        if key is None:
            return None
        listed = self._listed()
        rank = next((place for place, each in enumerate(listed, 1) if _id(self._key(each)) == _id(key)), None)
        row = None if rank is None else listed[rank - 1]
        facts: list[list[Any]] = (
            [] if row is None else [[n, v] for n, v in row.items() if n not in (*self._columns, "rank")]
        )
        better, empty = [], []
        for i, source in enumerate(self._bound.inputs):
            live = self._live(i)
            mine = [at for at, known in enumerate(live.known) if _fits(known, key)]
            facts.append([f"rows of {source.name}", f"{len(mine):,} of {len(live.known):,} in {self._said(i)}"])
            empty += [] if mine or source.how in (LEFT, ANTI) else [source.name]
            for at in mine[::-1][:_MOST_ROWS]:
                values = live.rows.slice(at, 1).to_pylist()[0]
                better.append(found("", None, {"input": source.name} | values))
        return {
            "id": id,
            "kind": "shown" if rank is not None else "",
            "verdict": self._verdict(rank, empty),
            "row": dict(zip(self._columns, key, strict=True)),
            "score": None,
            "rank": rank,
            "k": self._query.k,
            "facts": facts,
            "leaves": None,
            "better": better,
            "better_head": "Its newest rows",
        }

    def find(self, where: str, most: int = 20) -> list[Found]:
        """The groups of the newest rows, of any input, that meet the condition."""
        lines: dict[str, Found] = {}
        problem: SkybandError | None = None
        taken = False
        for i, seen in enumerate(self._inputs):
            try:
                rows = seen.find(where, 10 * most)
            except SkybandError as error:  # this input has no such columns
                problem = problem or error
                continue
            taken = True
            for row in rows:
                for key in self._keys_of(i, row)[:most]:
                    lines.setdefault(_id(key), found(_id(key), None, dict(zip(self._columns, key, strict=True))))
        if not taken and problem is not None:
            raise problem
        return [*lines.values()][:most]

    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        if not set(self._columns) <= set(row):
            return None
        listed = (each for each in self._listed() if all(plain(each[name]) == row[name] for name in self._columns))
        return _id(self._key(next(listed, row)))  # one that has left the answer since is found by its values

    # -- inside ------------------------------------------------------------------------------------------------------

    def _listed(self) -> list[dict[str, Any]]:
        """The groups of the latest answer."""
        return [] if self._answer is None else self._answer.to_pylist()

    def _key(self, row: Mapping[str, Any]) -> Key:
        return tuple(row[name] for name in self._columns)

    def _streams(self) -> list[SeenRows]:
        return [seen for seen, each in zip(self._inputs, self._bound.inputs, strict=True) if not each.is_relation]

    def _now(self) -> float:
        return max((seen.now() for seen in self._streams()), default=0.0)

    def _live(self, i: int) -> Live:
        """The rows of an input that count, and what each says of its group."""
        source, seen = self._bound.inputs[i], self._inputs[i]
        position, place, rows = seen.live(MOST_LIVE)
        if source.keep is not None and rows.num_rows:
            kept = np.flatnonzero(source.keep.evaluate(rows))
            position, place, rows = position[kept], place[kept], rows.take(pa.array(kept))
        columns = [self._says(i, column) for column in range(len(self._columns))]
        lists = [[_ANY] * rows.num_rows if name is None else rows.column(name).to_pylist() for name in columns]
        return Live(position, place, rows, list(zip(*lists, strict=True)) if lists else [()] * rows.num_rows)

    def _says(self, i: int, number: int) -> str | None:
        """The column of an input that has the values of this column of the grouping; None: none has."""
        of, column, _ = self._bound.groups[number]
        if of == i:
            return column
        theirs, mine = self._bound.inputs[of], self._bound.inputs[i]
        if column not in theirs.joined or theirs.how != INNER:  # which is null where the row has no partner
            return None
        variable = theirs.variables[theirs.joined.index(column)]
        return mine.joined[mine.variables.index(variable)] if variable in mine.variables else None

    def _track(self, known: Key, tracks: Mapping[Key, int]) -> int:
        if not self._columns:
            return 0 if tracks else -1
        if known in tracks:
            return tracks[known]
        if any(each is _ANY for each in known) and not all(each is _ANY for each in known):
            return next((place for key, place in tracks.items() if _fits(known, key)), -1)
        return -1

    def _lane(self, i: int, source: BoundInput, rows: int) -> Found:
        said = f"a table, {rows:,} rows" if source.is_relation else f"{rows:,} rows in {self._said(i)}"
        seen = self._inputs[i]
        return {
            "name": source.name,
            "note": said,
            "low": 0,
            "most": 1,
            "tall": True,
            "size": None if source.is_relation else seen.size(),
            "now": None if source.is_relation else seen.now(),
            "is_table": source.is_relation,
        }

    def _said(self, i: int) -> str:
        return "the table" if self._bound.inputs[i].is_relation else str(self._inputs[i].window)

    def _keys_of(self, i: int, row: Row) -> list[Key]:
        known = tuple(row.values[name] if (name := self._says(i, c)) else _ANY for c in range(len(self._columns)))
        if all(each is not _ANY for each in known):
            return [known]
        return [key for each in self._listed() if _fits(known, key := self._key(each))]

    def _read_id(self, id: str) -> Key | None:
        number, _, arrival = id.partition("-")
        if number.isdecimal() and arrival.isdecimal() and int(number) < len(self._inputs):
            row = self._inputs[int(number)].row(int(arrival))
            return None if row is None else next(iter(self._keys_of(int(number), row)), None)
        try:
            given = json.loads(id)
        except (ValueError, RecursionError):
            return None
        if not isinstance(given, list) or len(given) != len(self._columns):
            return None
        return next((self._key(each) for each in self._listed() if _id(self._key(each)) == id), tuple(given))

    def _verdict(self, rank: int | None, empty: list[str]) -> str:
        if rank is not None:
            of = f"Rank {rank} of {self._query.k}" if self._query.k else "In the answer"
            return f"{of}: its rows in the windows of all inputs are below."
        if empty:
            return f"Not in the answer: no row of {' and none of '.join(empty)} belongs to it in the window now."
        if self._query.k:
            return f"Not among the best {self._query.k}: others rank before it, or its window has not closed."
        return "Not in the answer yet: its window has not closed, or a condition on groups keeps it out."


def _window(stream: StreamInput | None, every: Any) -> Window:
    """Of a table, the whole of it counts."""
    return Window(size=None, every=1) if stream is None else replace(stream.window, every=every)


def _fits(known: Key, key: Key) -> bool:
    return all(mine is _ANY or mine == theirs for mine, theirs in zip(known, key, strict=True))


def _id(key: Key) -> str:
    return json.dumps(key, default=str, ensure_ascii=False)


def _named(key: Key) -> str:
    return " · ".join(map(str, key))
