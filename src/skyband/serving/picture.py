"""The skyband as a picture, and the answer to "why is this row here, and why is that one not?".

A row is a dot in the window's measure (time, a number, or arrivals) and in score. A row that ranks before another one
and outlives it dominates it. A row with k dominators can never be shown again.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from skyband.serving import formats
from skyband.serving.seen import MOST_DOTS, MOST_HELD, Floats, Ints, Row, SeenRows
from skyband.serving.watching import Watched

_MOST_LISTED: Final = 25  # of the rows that keep another one out


def picture(watched: Watched) -> dict[str, Any]:
    """What the page draws, as JSON: columns of dots, the window, the k-th score so far."""
    seen = _seen(watched)
    held, now, size = seen.held(), seen.now(), seen.size()
    position, place, score = _all(seen)
    live = np.isfinite(score) & np.isfinite(place)
    if size is not None:
        live &= place > now - 1.15 * size  # some that have just left
    position, place, score = position[live], place[live], score[live]
    is_held = np.isin(position, held)
    shown = np.union1d(np.flatnonzero(is_held)[-MOST_HELD:], _sample(np.flatnonzero(~is_held), position))
    return {
        "kind": "arrivals" if seen.window.on is None else "time" if seen.is_time else "number",
        "on": seen.window.on,
        "by": formats.readable(seen.score.text),
        "now": now,
        "size": size,
        "every": seen.every(),
        "k": seen.query.k,
        "ascending": bool(seen.query.ascending),
        "rows_held": len(held),
        "rows_in_window": seen.rows_in_window(),
        "kth": [[at, each] for at, each in seen.stairs()],
        "dots": {
            "id": position[shown].tolist(),
            "x": np.round(place[shown], 6).tolist(),
            "y": score[shown].tolist(),
            "held": is_held[shown].astype(int).tolist(),
        },
    }


def why(watched: Watched, position: int) -> dict[str, Any] | None:
    """Why a row is shown, or is not; None: it is not remembered. Ranks are those of the window that is open now."""
    seen = _seen(watched)
    row = seen.row(position)
    if row is None:
        return None
    now, k = seen.now(), seen.query.k
    better, outlive = _better(seen, row, now)
    is_held = bool(np.isin(position, seen.held()))
    has_left = bool(seen.ends(np.array([row.place]))[0] <= now)
    rank = None if has_left or math.isnan(row.score) else len(better) + 1
    return {
        "position": position,
        "row": formats.value(row.values),
        "score": formats.value(row.score),
        "by": formats.readable(seen.score.text),
        "terms": [{"name": name, "value": formats.value(row.values[name])} for name in seen.score.columns],
        "computed": _with_values(seen, row),
        "rank": rank,
        "k": k,
        "is_shown": rank is not None and rank <= k,
        "is_held": is_held,
        "has_left": has_left,
        "dominators": len(outlive),
        "leaves": _leaves(seen, row, now),
        "verdict": _verdict(k, rank, len(outlive), is_held, has_left),
        "better": [
            {"outlives": bool(each in outlive), **_listed(found)}
            for each in better[: min(k, _MOST_LISTED)].tolist()
            if (found := seen.row(each)) is not None
        ],
    }


def search(watched: Watched, where: str, most: int = 20) -> list[dict[str, Any]]:
    """The newest rows that meet a condition, as JSON."""
    seen = _seen(watched)
    held = seen.held()
    return [{"is_held": bool(np.isin(row.position, held)), **_listed(row)} for row in seen.find(where, most)]


# -- inside ----------------------------------------------------------------------------------------------------------


def _seen(watched: Watched) -> SeenRows:
    assert watched.seen is not None, "asked only of queries that rank rows"
    return watched.seen


def _all(seen: SeenRows) -> tuple[Ints, Floats, Floats]:
    pieces = seen.pieces()
    return (
        np.concatenate([piece.position for piece in pieces]),
        np.concatenate([piece.place for piece in pieces if piece.place is not None]),
        np.concatenate([piece.score for piece in pieces if piece.score is not None]),
    )


def _sample(which: Ints, position: Ints) -> Ints:
    """Some of the rows, the same from one picture to the next: by a number that is made of the row's own."""
    if len(which) <= MOST_DOTS:
        return which
    mixed = (position[which].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return which[mixed < np.uint64(int(MOST_DOTS / len(which) * 2**24))]


def _better(seen: SeenRows, row: Row, now: float) -> tuple[Ints, Ints]:
    """The arrivals of the window that rank before a row, best first: a better score, or the same and more recent; and
    those of them that outlive it."""
    position, place, score = _all(seen)
    key, own = (-score, -row.score) if seen.query.ascending else (score, row.score)
    ends = seen.ends(place)
    with np.errstate(invalid="ignore"):
        later = (place > row.place) | ((place == row.place) & (position > row.position))
        before = ((key > own) | ((key == own) & later)) & (ends > now)
    if seen.query.per:
        before &= seen.same_group(row)
    which = np.flatnonzero(before)
    which = which[np.lexsort((-position[which], -place[which], -key[which]))]
    return position[which], position[which[ends[which] >= seen.ends(np.array([row.place]))[0]]]


def _leaves(seen: SeenRows, row: Row, now: float) -> dict[str, Any] | None:
    """When the window moves past a row; None: never."""
    ends = float(seen.ends(np.array([row.place]))[0])
    if math.isinf(ends):
        return None
    return {"at": ends, "in": ends - now, "unit": "s" if seen.is_time else "rows" if seen.window.on is None else ""}


def _verdict(k: int, rank: int | None, dominators: int, is_held: bool, has_left: bool) -> str:
    if has_left:
        return "Gone: the window has moved past it."
    if rank is None:
        return "Never ranked: its score is not a number."
    if rank <= k:
        above = "no row of the window is better" if rank == 1 else f"rows of the window that are better: {rank - 1}"
        return f"Rank {rank} of {k}: {above}."
    if dominators < k:
        return (
            f"Not shown, but held. Better rows that outlive it: {dominators}, and k is {k}. It can still move up when "
            "others leave."
        )
    why = f"Ruled out: {dominators:,} better rows outlive it, and k is {k}. Whatever comes, it can never be shown again"
    return f"{why}. It is swept out next." if is_held else f"{why}, so it is not held."


def _with_values(seen: SeenRows, row: Row) -> str:
    """The score's text with the row's values in place of its columns."""
    text = formats.readable(seen.score.text)
    for name in sorted(seen.score.columns, key=len, reverse=True):
        given = row.values[name]
        shown = f"{given:g}" if isinstance(given, float) else str(given)
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", lambda _, shown=shown: shown, text)  # type: ignore[misc]
    return text


def _listed(row: Row) -> dict[str, Any]:
    return {"position": row.position, "score": formats.value(row.score), "row": formats.value(row.values)}
