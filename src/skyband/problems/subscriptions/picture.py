"""Subscriptions as a picture: a lane for each query with the rows that it shows, over one lane with all rows.

The rows are held once, for all queries. A row that several queries show is one dot below, and one in each of their
lanes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.emit import WHOLE
from skyband.core.encoding.schemas import plain_schema
from skyband.core.explain import readable
from skyband.core.operator import Answer, Ints
from skyband.core.picture import (
    MOST_DOTS,
    MOST_HELD,
    MOST_LIVE,
    Found,
    Picture,
    Plain,
    found,
    is_better,
    leaves,
    sample,
    scattered,
    unranked,
    window_of,
)
from skyband.core.query import replace_unchecked
from skyband.core.seen import Row, SeenRows
from skyband.core.session import Session
from skyband.problems.subscriptions.codec import SubscriptionsCodec
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import sliding

_MOST_LANES: Final = 11  # queries that are drawn
_MOST_LISTED: Final = 25
_QUERIES_FOUND: Final = 6  # of a search, for each row
_TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # of a second


class SubscriptionsPicture(Picture):
    """Rows as dots in lanes, one for each query."""

    form: ClassVar = "lanes"
    title: ClassVar = "Queries over one set of rows"
    caption: ClassVar = "A lane for each query, with the rows that it shows. Below are all rows: they are held once."
    legend: ClassVar = ("shown to somebody", "held", "not held")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._query = cast(TopKForEach, session.query)
        self._codec: SubscriptionsCodec = session._codec  # type: ignore[assignment]
        self._by = readable(self._query.by)
        self.seen = SeenRows(plain_schema(session.schema), self._query.window, held=lambda: session._operator.held())

    def draw(self) -> Found:
        with self.session._turn:
            answer: Answer = self.answer_now()
            held, keys = self.session._operator.held(), self._codec.keys.slice(0, _MOST_LANES).to_pylist()
            queries, sizes = len(self._codec.keys), self._codec.sizes[:_MOST_LANES]
        position, place, _ = self.seen.live(MOST_LIVE)
        where = dict(zip(position.tolist(), np.round(place, 6).tolist(), strict=True))
        lanes = [
            {"name": _named(key), "low": 0, "most": 1, "size": self._span(int(size))}
            for key, size in zip(keys, sizes, strict=True)
        ]
        ids, x, y, lane, state = [], [], [], [], []
        drawn = answer.group < len(lanes)
        last = {
            group: int(answer.rank[answer.group == group].max()) for group in np.unique(answer.group[drawn]).tolist()
        }
        for group, rank, row in zip(answer.group[drawn], answer.rank[drawn], answer.position[drawn], strict=True):
            if int(row) in where:
                ids.append(f"{group}-{row}")
                x.append(where[int(row)])
                y.append(1 - (int(rank) - 1) / max(1, last[int(group)] - 1) if last[int(group)] > 1 else 0.5)
                lane.append(int(group))
                state.append(2)
        is_held, is_shown = np.isin(position, held), np.isin(position, answer.position)
        below = np.union1d(
            sample(np.flatnonzero(is_held), position, MOST_HELD), sample(np.flatnonzero(~is_held), position, MOST_DOTS)
        )
        ids += [f"-{row}" for row in position[below].tolist()]
        x += np.round(place[below], 6).tolist()
        y += scattered(position[below]).tolist()
        lane += [len(lanes)] * len(below)
        state += np.where(is_shown[below], 2, is_held[below].astype(int)).tolist()
        note = f"of {queries:,} queries, {len(lanes)} above" if queries > len(lanes) else "held once for all"
        lanes.append({"name": "all rows", "note": note, "tall": True, "low": 0, "most": 1, "size": self.seen.size()})
        rows = [int(id.rpartition("-")[2]) for id in ids]
        return window_of(self.seen) | {
            "k": self._query.k if isinstance(self._query.k, int) else None,
            "rows_held": len(held),
            "rows_in_window": self.seen.rows_in_window(),
            "lanes": lanes,
            "groups": [],
            "linked": False,
            "dots": {"id": ids, "x": x, "y": y, "lane": lane, "state": state, "group": rows},
        }

    def why(self, id: str) -> Found | None:
        """For one query, as "number-arrival"; of a row alone, as "-arrival", for the query that ranks it best."""
        number, _, arrival = id.rpartition("-")
        row = self.seen.row(int(arrival)) if arrival.isdecimal() else None
        if row is None or (number and not number.isdecimal()):
            return None
        shown_by = self._shown_by(row)
        group = int(number) if number else next(iter(shown_by), 0)
        if group >= len(self._codec.keys):
            return None
        key = self._codec.keys.slice(group, 1).to_pylist()[0]
        asked = self._parameters(key)
        facts: list[list[Any]] = [["query", _named(key)]]
        facts += [[f"q.{name}", value] for name, value in (asked or {}).items() if name not in key]
        others = [_named(self._codec.keys.slice(each, 1).to_pylist()[0]) for each in shown_by if each != group]
        if others:
            facts.append(
                ["also shown to", ", ".join(others[:8]) + (f" and {len(others) - 8:,} more" if others[8:] else "")]
            )
        ranking, k = self._ranking(group, key), self._k_of(asked)
        told = {"id": f"{group}-{row.position}", "row": row.values, "k": k, "leaves": leaves(self.seen, row.place)}
        at = next((place for place, (position, _) in enumerate(ranking) if position == row.position), None)
        has_left = bool(self.seen.ends(np.array([row.place]))[0] <= self.seen.now())
        is_held = bool(np.isin(row.position, self.session.held()))
        if at is None:
            why = self._why_unranked(row, group, has_left, asked)
            return unranked(f"{group}-{row.position}", why, row.values, k, facts) | {"leaves": told["leaves"]}
        rank, score = at + 1, ranking[at][1]
        facts[1:1] = [["score", f"{self._by} = {score:g}"], ["rank now", rank]]
        return told | {
            "kind": "shown" if k is not None and rank <= k else "held" if is_held else "",
            "verdict": _verdict(rank, k, is_held),
            "score": score,
            "rank": rank,
            "facts": facts,
            "better": [
                self._listed(group, other, each)
                for position, each in ranking[: min(at, k or at, _MOST_LISTED)]
                if (other := self.seen.row(position)) is not None
            ],
        }

    def find(self, where: str, most: int = 20) -> list[Found]:
        """The newest rows that meet the condition: for each query that shows them, or else alone."""
        held, lines = self.session.held(), []
        for row in self.seen.find(where, most):
            is_held = bool(np.isin(row.position, held))
            queries = self._shown_by(row)[:_QUERIES_FOUND]
            for group in queries:
                lines.append(self._listed(group, row, None) | {"is_held": is_held})
            if not queries:
                lines.append(found(f"-{row.position}", None, row.values, is_held=is_held))
        return lines[:most]

    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        names = [name for name in self._query.key if name in row]
        keys = self._codec.keys.select(names).to_pylist()
        group = next(
            (number for number, key in enumerate(keys) if all(plain(key[name]) == row[name] for name in names)), None
        )
        shown = {name: value for name, value in row.items() if name not in names and name not in ("rank", "score")}
        position = self.seen.showing(shown, plain)
        return None if group is None or position is None else f"{group}-{position}"

    # -- inside ------------------------------------------------------------------------------------------------------

    def _shown_by(self, row: Row) -> list[int]:
        answer: Answer = self.answer_now()
        groups: list[int] = answer.group[answer.position == row.position].tolist()
        return groups

    def _parameters(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The columns of a query; None: it was added later, and only what is computed of it is kept."""
        table = self._query.queries
        for name, value in key.items():
            table = table.filter(pc.equal(table.column(name), pa.scalar(value, table.schema.field(name).type)))
        rows: list[dict[str, Any]] = table.slice(0, 1).to_pylist()
        return rows[0] if rows else None

    def _k_of(self, asked: Mapping[str, Any] | None) -> int | None:
        k = self._query.k
        return k if isinstance(k, int) else None if asked is None else int(asked[k.removeprefix("q.")])

    def _ranking(self, group: int, key: Mapping[str, Any]) -> list[tuple[int, float]]:
        """All rows that one query sees, best first, by arrival and score: a session of its own ranks them."""
        position, rows = self._seen_by(group)
        asked = self._parameters(key)
        if asked is None or not len(position):
            return []
        alone = replace_unchecked(
            self._query,
            queries=pa.Table.from_pylist([asked], self._query.queries.schema),
            k=len(position),
            window=sliding(len(position) + 1, every=len(position) + 1),
            size=None,
            every=None,
            emit=WHOLE,
            algorithm=None,
        )
        session = alone.open(self.session.schema)
        session.push(rows)
        picture = SubscriptionsPicture(session)
        answer: Answer = picture.answer_now()
        sign = -1 if self._query.ascending else 1
        by_score = (sign * answer.score).tolist()
        return [(int(position[at]), score) for at, score in zip(answer.position.tolist(), by_score, strict=True)]

    def _seen_by(self, group: int) -> tuple[Ints, pa.RecordBatch]:
        """The rows of the query's own window, in their order."""
        position, place, rows = self.seen.live(MOST_LIVE)
        span = self._span(int(self._codec.sizes[group]))
        if span is None or span == self.seen.size():
            return position, rows
        which = np.flatnonzero(place > self.seen.now() - span)
        return position[which], rows.take(pa.array(which))

    def _span(self, ticks: int) -> float | None:
        if self.seen.size() is None:
            return None
        on_type = self._codec.on_type
        return ticks / _TICKS[on_type.unit] if on_type is not None and pa.types.is_timestamp(on_type) else float(ticks)

    def _why_unranked(self, row: Row, group: int, has_left: bool, asked: Mapping[str, Any] | None) -> str:
        if has_left:
            return "Gone: the window has moved past it."
        if asked is None:
            return "This query was added later: what it asks is not kept as it was written, so rows are not explained."
        span = self._span(int(self._codec.sizes[group]))
        if span is not None and row.place <= self.seen.now() - span:
            return "Gone for this query: its own window has moved past the row."
        return "Not for this query: the row does not meet its conditions, or its score is not a number."

    def _listed(self, group: int, row: Row, score: float | None) -> Found:
        key = self._codec.keys.slice(group, 1).to_pylist()[0]
        shown = None if score is None or math.isnan(score) else score
        return found(f"{group}-{row.position}", shown, {"query": _named(key)} | row.values)


def _verdict(rank: int, k: int | None, is_held: bool) -> str:
    if k is None:
        return f"Rank {rank} for this query."
    if rank <= k:
        return f"Rank {rank} of {k}: {is_better(rank - 1, 'row')} for this query."
    if is_held:
        return (
            f"Not shown to this query: {rank - 1:,} rows are better for it, and k is {k}. The row is held, because "
            "this query or another one may still show it."
        )
    return f"Ruled out for every query, so it is not held. For this one {rank - 1:,} rows are better, and k is {k}."


def _named(key: Mapping[str, Any]) -> str:
    return " · ".join(str(value) for value in key.values())
