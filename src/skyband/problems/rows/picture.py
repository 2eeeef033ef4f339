"""The skyband as a picture, and the answer to "why is this row here, and why is that one not?".

A row is a dot in the window's measure (time, a number, or arrivals) and in score. A row that ranks before another one
and outlives it dominates it. A row with k dominators can never be shown again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.encoding.schemas import plain_schema
from skyband.core.explain import readable
from skyband.core.operator import Floats, Ints
from skyband.core.picture import MOST_HELD, Found, Picture, Plain, found, is_better, leaves, sample, window_of
from skyband.core.seen import Piece, Row, SeenRows
from skyband.core.session import Session
from skyband.expressions import Score, bind
from skyband.problems.rows.query import TopK

_MOST_LISTED: Final = 25  # of the rows that keep another one out


def picture_of(session: Session) -> RowsPicture | None:
    """None: there is no one score to draw, or each group counts its own arrivals."""
    query: Any = session.query
    if isinstance(query.by, tuple) or (query.per and not query.window.is_same_for_groups):
        return None
    return RowsPicture(session, bind(query.by, plain_schema(session.schema)))


class RowsPicture(Picture):
    """Rows as dots in time and score."""

    form: ClassVar = "dots"
    title: ClassVar = "The skyband"
    caption: ClassVar = "Each dot is a row. Only the lit ones can still be shown, so Skyband holds only these."
    legend: ClassVar = ("shown", "held", "ruled out", "k-th score")

    def __init__(self, session: Session, score: Score) -> None:
        super().__init__(session)
        self._query: TopK = session.query  # type: ignore[assignment]
        self._score = score
        self.seen = SeenRows(
            plain_schema(session.schema),
            self._query.window,
            held=lambda: session._operator.held(),
            score=score.evaluate,
        )

    def step(self, now: Any, score: float) -> None:
        self.seen.step(now, score)

    def draw(self) -> Found:
        seen, held = self.seen, self.session.held()
        window = window_of(seen)
        pieces = self.seen.pieces()  # once: rows come meanwhile
        position, place, score = _together(pieces)
        live = np.isfinite(score) & np.isfinite(place)
        if window["size"] is not None:
            live &= place > window["now"] - 1.15 * window["size"]  # some that have just left
        position, place, score = position[live], place[live], score[live]
        is_held = np.isin(position, held)
        shown = np.union1d(
            sample(np.flatnonzero(is_held), position, MOST_HELD), sample(np.flatnonzero(~is_held), position)
        )
        return window | {
            "by": readable(self._score.text),
            "k": self._query.k,
            "ascending": bool(self._query.ascending),
            "rows_held": len(held),
            "rows_in_window": seen.rows_in_window(),
            "kth": [[at, each] for at, each in seen.stairs()],
            "dots": {
                "id": position[shown].tolist(),
                "x": np.round(place[shown], 6).tolist(),
                "y": score[shown].tolist(),
                "held": is_held[shown].astype(int).tolist(),
            }
            | ({"shown": self._listed_now(pieces, position[shown])} if self._query.per else {}),
        }

    def describe(self) -> Found:
        """With groups there are many k-th scores, and so no line."""
        described = super().describe()
        return described | {"legend": described["legend"][:3]} if self._query.per else described

    def why(self, id: str) -> Found | None:
        """Ranks are those of the window that is open now."""
        seen, row = self.seen, self.seen.row(int(id)) if id.isdecimal() else None
        if row is None:
            return None
        now, k = seen.now(), self._query.k
        better, outlive = self._better(row, now)
        is_held = bool(np.isin(row.position, self.session.held()))
        has_left = bool(seen.ends(np.array([row.place]))[0] <= now)
        rank = None if has_left or math.isnan(row.score) else len(better) + 1
        return {
            "position": row.position,
            "row": row.values,
            "score": row.score,
            "by": readable(self._score.text),
            "terms": [{"name": name, "value": row.values[name]} for name in self._score.columns],
            "computed": self._with_values(row),
            "rank": rank,
            "k": k,
            "is_shown": rank is not None and rank <= k,
            "is_held": is_held,
            "has_left": has_left,
            "dominators": len(outlive),
            "leaves": leaves(seen, row.place),
            "verdict": _verdict(k, rank, len(outlive), is_held, has_left),
            "better": [
                {"outlives": bool(each in outlive), **_listed(row)}
                for each in better[: min(k, _MOST_LISTED)].tolist()
                if (row := seen.row(each)) is not None
            ],
        }

    def find(self, where: str, most: int = 20) -> list[Found]:
        held = self.session.held()
        return [{"is_held": bool(np.isin(row.position, held)), **_listed(row)} for row in self.seen.find(where, most)]

    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        position = self.seen.showing(row, plain)
        return None if position is None else str(position)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _better(self, row: Row, now: float) -> tuple[Ints, Ints]:
        """The arrivals of the window that rank before a row, best first: a better score, or the same and more recent;
        and those of them that outlive it."""
        seen, pieces = self.seen, self.seen.pieces()
        position, place, score = _together(pieces)
        key, own = (-score, -row.score) if self._query.ascending else (score, row.score)
        ends = seen.ends(place)
        with np.errstate(invalid="ignore"):
            later = (place > row.place) | ((place == row.place) & (position > row.position))
            before = ((key > own) | ((key == own) & later)) & (ends > now)
        if self._query.per:
            before &= self._same_group(row, pieces)
        which = np.flatnonzero(before)
        which = which[np.lexsort((-position[which], -place[which], -key[which]))]
        return position[which], position[which[ends[which] >= seen.ends(np.array([row.place]))[0]]]

    def _listed_now(self, pieces: Sequence[Piece], among: Ints) -> list[int]:
        """Of these arrivals, which one of the k best of its group in the open window is: 1, else 0."""
        position, place, score = _together(pieces)
        rows = pa.Table.from_batches([piece.rows for piece in pieces]).select([*self._query.per])
        window = np.flatnonzero((self.seen.ends(place) > self.seen.now()) & np.isfinite(score))
        group = np.zeros(len(window), np.int64)
        for column in rows.take(pa.array(window)).columns:
            codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
            group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        key = score[window] if self._query.ascending else -score[window]
        order = np.lexsort((-position[window], -place[window], key, group))
        first = np.searchsorted(group[order], group[order])
        best = position[window[order[np.arange(len(order)) - first < self._query.k]]]
        return np.isin(among, best).astype(int).tolist()

    def _same_group(self, row: Row, pieces: Sequence[Piece]) -> npt.NDArray[np.bool_]:
        """Which rows of these pieces are of a row's group."""
        masks = []
        for piece in pieces:
            mask = np.ones(len(piece.position), bool)
            for name in self._query.per:
                mask &= np.array([value == row.values[name] for value in piece.rows.column(name).to_pylist()], bool)
            masks.append(mask)
        return np.concatenate(masks)

    def _with_values(self, row: Row) -> str:
        """The score's text with the row's values in place of its columns."""
        text = readable(self._score.text)
        for name in sorted(self._score.columns, key=len, reverse=True):
            given = row.values[name]
            shown = f"{given:g}" if isinstance(given, float) else str(given)
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", lambda _, shown=shown: shown, text)  # type: ignore[misc]
        return text


def _together(pieces: Sequence[Piece]) -> tuple[Ints, Floats, Floats]:
    """The arrivals, places and scores of all rows."""
    return (
        np.concatenate([piece.position for piece in pieces]),
        np.concatenate([piece.place for piece in pieces if piece.place is not None]),
        np.concatenate([piece.score for piece in pieces if piece.score is not None]),
    )


def _verdict(k: int, rank: int | None, dominators: int, is_held: bool, has_left: bool) -> str:
    if has_left:
        return "Gone: the window has moved past it."
    if rank is None:
        return "Never ranked: its score is not a number."
    if rank <= k:
        return f"Rank {rank} of {k}: {is_better(rank - 1, 'row')}."
    if dominators < k:
        return (
            f"Not shown, but held. Better rows that outlive it: {dominators}, and k is {k}. It can still move up when "
            "others leave."
        )
    why = f"Ruled out: {dominators:,} better rows outlive it, and k is {k}. Whatever comes, it can never be shown again"
    return f"{why}. It is swept out next." if is_held else f"{why}, so it is not held."


def _listed(row: Row) -> Found:
    return found(str(row.position), row.score, row.values, position=row.position)
