"""Objects across streams as a picture: a lane for each stream, in time and value, and a line that joins what an object
has in each of them.

Lit are objects that something is remembered of: what they have, or what may still come, can bring them into an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.explain import readable
from skyband.core.operator import Codes, Floats, Ints
from skyband.core.picture import (
    MOST_DOTS,
    MOST_LIVE,
    Found,
    Picture,
    Plain,
    found,
    is_better,
    leaves,
    unranked,
    window_of,
)
from skyband.core.seen import SeenRows
from skyband.core.session import Session
from skyband.problems.across.algorithms.recompute.state import Ranked, Recompute, Row
from skyband.problems.across.codec import AcrossCodec

_MOST_LISTED: Final = 25
_MOST_LANES: Final = 12
_MOST_LINKED: Final = 12  # objects whose values are joined by a line

Name = tuple[Any, ...]


class Live(NamedTuple):
    """The window's rows in their order."""

    position: Ints
    place: Floats
    stream: Codes
    value: Floats
    code: Codes  # of the object, in the order in which they first come here
    names: list[Name]  # by code


class AcrossPicture(Picture):
    """Objects as dots in lanes, one for each stream."""

    form: ClassVar = "lanes"
    title: ClassVar = "Streams and objects"
    caption: ClassVar = "A lane for each stream, values upwards. A line joins what one object has in several streams."
    legend: ClassVar = ("in the answer", "remembered", "ruled out")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._query: Any = session.query
        self._codec: AcrossCodec = session._codec  # type: ignore[assignment]
        self.seen = SeenRows(self._codec._arranged, self._query.window)

    def draw(self) -> Found:
        live, shown = self._live(), self._shown()
        held = self._held(live)
        objects = np.array([shown.get(name, -1) for name in live.names], np.int64)
        order = np.argsort(objects < 0, kind="stable") if len(objects) else objects  # those shown first
        chosen, rows_of = np.zeros(len(live.names), bool), np.bincount(live.code, minlength=len(live.names))
        for group in (order[objects[order] >= 0], np.flatnonzero(held)[::-1], np.flatnonzero(~held)[::-1]):
            room = MOST_DOTS - int(rows_of[chosen].sum())
            chosen[group[np.cumsum(rows_of[group]) <= room]] = True
        dots = np.flatnonzero(chosen[live.code] & (live.stream < _MOST_LANES))
        of = live.code[dots]
        rank = objects[of]
        state = np.where(rank >= 0, 2, held[of].astype(np.int64))
        best = dict(sorted((rank, name) for name, rank in shown.items()))
        return window_of(self.seen) | {
            "k": self._query.k,
            "rows_held": int(held.sum()),
            "rows_in_window": self.seen.rows_in_window(),
            "lanes": [self._lane(s, live) for s in range(min(len(self._query.streams), _MOST_LANES))],
            "groups": [{"name": _named(name), "title": _named(name)} for name in list(best.values())[:_MOST_LINKED]],
            "linked": True,
            "dots": {
                "id": live.position[dots].tolist(),
                "x": np.round(live.place[dots], 6).tolist(),
                "y": live.value[dots].tolist(),
                "lane": live.stream[dots].tolist(),
                "state": state.tolist(),
                "group": np.where(rank < _MOST_LINKED, rank, -1).tolist(),
            },
        }

    def why(self, id: str) -> Found | None:
        """Of the object of one row. Ranks are those of the window that is open now."""
        row = self.seen.row(int(id)) if id.isdecimal() else None
        if row is None:
            return None
        name = self._name_of(row.values)
        live = self._live()
        if name not in live.names:
            return unranked(id, "Gone: the window has moved past all it had.", self._as_row(name), self._query.k)
        ranking = self._ranking(live)
        code, k = live.names.index(name), self._query.k
        rank = next(number for number, each in enumerate(ranking, 1) if each.code == code)
        mine = ranking[rank - 1]
        is_held = bool(self._held(live)[code])
        last = {stream: i for i, stream in enumerate(live.stream.tolist()) if live.code[i] == code}
        return {
            "id": id,
            "kind": "shown" if rank <= k else "held" if is_held else "",
            "verdict": self._verdict(rank, is_held),
            "row": self._as_row(name),
            "score": mine.score,
            "rank": rank,
            "k": k,
            "facts": [
                ["score", f"{self._combine()} = {mine.score:g}"],
                ["rank now", rank],
                *(self._fact(s, value, last.get(s), live) for s, value in enumerate(mine.values)),
            ],
            "leaves": leaves(self.seen, float(live.place[max(last.values())])),
            "better": [self._listed(live, each, outlives=None) for each in ranking[: min(rank - 1, k, _MOST_LISTED)]],
        }

    def find(self, where: str, most: int = 20) -> list[Found]:
        live = self._live()
        held, by_code = self._held(live), {each.code: each for each in self._ranking(live)}
        codes = {name: code for code, name in enumerate(live.names)}
        lines: dict[Name, Found] = {}
        for row in self.seen.find(where, MOST_DOTS):
            name = self._name_of(row.values)
            if name in codes and name not in lines and len(lines) < most:
                code = codes[name]
                lines[name] = self._listed(live, by_code[code], is_held=bool(held[code]))
        return list(lines.values())

    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        position = self.seen.showing({name: row[name] for name in self._query.ids if name in row}, plain)
        return None if position is None else str(position)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _live(self) -> Live:
        position, place, rows = self.seen.live(MOST_LIVE)
        value = rows.column(self._codec._value).to_numpy(zero_copy_only=False)
        said = np.flatnonzero(~np.isnan(value))
        position, place, rows, value = position[said], place[said], rows.take(pa.array(said)), value[said]
        codes: dict[Name, int] = {}
        names = zip(*(rows.column(name).to_pylist() for name in self._query.ids), strict=True)
        code = np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)
        stream = rows.column(self._codec._stream).to_numpy(zero_copy_only=False)
        return Live(position, place, stream, value, code, list(codes))

    def _ranking(self, live: Live) -> list[Ranked]:
        """All objects of the window, best first: recomputed, as the reference algorithm does."""
        rows = [
            Row(int(stream), int(code), float(value), number, int(position))
            for number, (stream, code, value, position) in enumerate(
                zip(live.stream, live.code, live.value, live.position, strict=True)
            )
        ]
        return Recompute(self._codec._spec).ranked(rows)

    def _shown(self) -> dict[Name, int]:
        """The objects that are in the answer now, with their places from 0."""
        with self.session._turn:
            answer = self.answer_now()
            objects = self._codec._objects.take(answer.code)
        names = list(zip(*(column.to_pylist() for column in objects.columns), strict=True))
        return {name: int(rank) - 1 for name, rank in zip(names, answer.rank, strict=True)}

    def _held(self, live: Live) -> npt.NDArray[np.bool_]:
        """By object: is something remembered of it?"""
        with self.session._turn:
            self.session.held()
            known = np.asarray(self.session._operator.live_codes())  # type: ignore[attr-defined]
            keys = self._codec._objects.take(np.flatnonzero(known).astype(np.int32))
        names = set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
        return np.array([name in names for name in live.names], bool)

    def _lane(self, stream: int, live: Live) -> Found:
        low, high = self._codec._low[stream], self._codec._high[stream]
        values = live.value[live.stream == stream]
        top = float(high) if np.isfinite(high) else float(values.max(initial=low + 1))
        return {
            "name": self._query.streams[stream],
            "low": float(low),
            "most": top,
            "tall": True,
            "size": self.seen.size(),
        }

    def _combine(self) -> str:
        """The score in words: the name of a function, an expression over the streams, or weights."""
        combine = self._query.combine
        if not isinstance(combine, str):
            return " + ".join(f"{weight:g} * {name}" for name, weight in combine)
        return f"{combine} of {', '.join(self._query.streams)}" if combine.isidentifier() else readable(combine)

    def _fact(self, stream: int, value: float | None, at: int | None, live: Live) -> list[Any]:
        name, low = self._query.streams[stream], float(self._codec._low[stream])
        if value is None or at is None:
            return [name, f"nothing yet: counts as {low:g}"]
        goes = leaves(self.seen, float(live.place[at]))
        return [name, value] if goes is None else [name, value, goes]

    def _verdict(self, rank: int, is_held: bool) -> str:
        k = self._query.k
        if rank <= k:
            return f"Rank {rank} of {k}: {is_better(rank - 1, 'object')}."
        if is_held:
            return (
                f"Not shown, but remembered: {rank - 1:,} objects are better, and k is {k}. It can still move up, when "
                "a value of its own comes or values of others leave."
            )
        return (
            f"Ruled out: {rank - 1:,} objects are better, and k is {k}. Whatever comes on the other streams, at least "
            f"{k} of them stay better for as long as it lives, so nothing is remembered of it."
        )

    def _name_of(self, values: Mapping[str, Any]) -> Name:
        return tuple(values[name] for name in self._query.ids)

    def _as_row(self, name: Name) -> dict[str, Any]:
        return dict(zip(self._query.ids, name, strict=True))

    def _listed(self, live: Live, each: Ranked, **more: Any) -> Found:
        last = int(live.position[np.flatnonzero(live.code == each.code)[-1]])
        values = dict(zip(self._query.streams, each.values, strict=True))
        return found(str(last), each.score, self._as_row(live.names[each.code]) | values, **more)


def _named(name: Name) -> str:
    return " · ".join(map(str, name))
