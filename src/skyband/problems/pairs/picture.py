"""Pairs as a picture: each one a line at the height of its score, from its older row to its younger one.

A pair leaves the window with its older row, the left end of its line. So a pair dominates another one if it ranks
before it and its left end is not further left; a pair with k dominators can never be shown again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple, cast

import numpy as np

from skyband.core.encoding.schemas import plain_schema
from skyband.core.explain import readable
from skyband.core.operator import Floats, Ints
from skyband.core.picture import (
    MOST_HELD,
    MOST_LIVE,
    Found,
    Picture,
    Plain,
    found,
    is_better,
    leaves,
    sample,
    window_of,
)
from skyband.core.seen import Row, SeenRows
from skyband.core.session import Session
from skyband.problems.pairs.codec import PairsCodec
from skyband.problems.pairs.columns import score_column
from skyband.problems.pairs.operator import PAIR, Answer, Pairs, best_first
from skyband.problems.pairs.query import TopKPairs

_MOST_OTHERS: Final = 400  # pairs that are not held, in a picture
_MOST_LISTED: Final = 25
_ROWS_FOUND: Final = 4  # of a search, and of each of them
_PAIRS_OF_EACH: Final = 5


class Live(NamedTuple):
    """The window's rows in their order, with what the score reads of them."""

    position: Ints
    place: Floats
    columns: Floats
    colours: Floats


class PairsPicture(Picture):
    """Pairs as lines in time and score."""

    form: ClassVar = "pairs"
    title: ClassVar = "The pairs that are held"
    caption: ClassVar = "Each line is a pair, from its older row to its younger one. It leaves with its left end."
    legend: ClassVar = ("shown", "held", "some that are ruled out", "k-th score")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._query = cast(TopKPairs, session.query)
        self._codec: PairsCodec = session._codec  # type: ignore[assignment]
        self._by = readable(self._query.by if isinstance(self._query.by, str) else self._codec._score.text)
        self.seen = SeenRows(plain_schema(session.schema), self._query.window, held=lambda: session._operator.held())

    def step(self, now: Any, score: float) -> None:
        self.seen.step(now, score)

    def draw(self) -> Found:
        seen = self.seen
        answer, held = self._answer_and_held()
        live = self._live()  # once: rows come while this is drawn
        position, place = live.position, live.place
        shown = set(zip(answer.a.tolist(), answer.b.tolist(), strict=True))
        known = np.isin(held["a_position"], position) & np.isin(held["b_position"], position)
        held = held[known & np.isfinite(held["score"])][:MOST_HELD]
        others = self._others(held, live)
        a = np.concatenate([held["a_position"], others["a_position"]])
        b = np.concatenate([held["b_position"], others["b_position"]])
        score = self._shown_scores(np.concatenate([held["score"], others["score"]]))
        names = list(zip(a.tolist(), b.tolist(), strict=True))
        where = dict(zip(position.tolist(), np.round(place, 6).tolist(), strict=True))
        return window_of(seen) | {
            "by": self._by,
            "k": self._query.k,
            "ascending": bool(self._query.ascending),
            "rows_held": len(position),
            "rows_in_window": seen.rows_in_window(),
            "pairs_held": len(held),
            "kth": [[at, each] for at, each in seen.stairs()],
            "dots": {
                "id": [f"{one}-{other}" for one, other in names],
                "x": [where[one] for one, _ in names],
                "to": [where[other] for _, other in names],
                "y": score,
                "held": [int(i < len(held)) for i in range(len(names))],
                "shown": [int(pair in shown) for pair in names],
            },
        }

    def why(self, id: str) -> Found | None:
        """Ranks are those of the window that is open now."""
        live, pair = self._live(), self._pair(id)
        if pair is None:
            return None
        a, b = pair
        if not np.isin([a.position, b.position], live.position).all():
            return self._told(a, b, math.nan, None, np.empty(0, PAIR), has_left=True)
        at = {int(position): i for i, position in enumerate(live.position)}
        if at[a.position] > at[b.position]:  # the older one is `a`, whichever came first
            a, b = b, a
        score = self._scores(live, at[a.position], at[b.position], at[b.position] + 1)[0]
        _, held = self._answer_and_held()
        names = {a.position, b.position}
        others = [{one, other} != names for one, other in zip(held["a_position"], held["b_position"], strict=True)]
        held = held[np.array(others, bool) & np.isin(held["a_position"], live.position)]
        own = np.zeros(1, PAIR)
        own["score"], own["a"], own["b"] = score, at[a.position], at[b.position]
        numbered = held.copy()
        for side in "ab":
            numbered[side] = [at.get(position, -1) for position in held[f"{side}_position"].tolist()]
        order = best_first(np.concatenate([numbered, own]))
        better = numbered[order[: int(np.flatnonzero(order == len(numbered))[0])]]
        return self._told(a, b, float(score), int(own["a"][0]), better)

    def find(self, where: str, most: int = 20) -> list[Found]:
        """The best pairs of the newest rows that meet the condition."""
        live, lines = self._live(), []
        at = {int(position): i for i, position in enumerate(live.position)}
        _, held = self._answer_and_held()
        kept = set(zip(held["a_position"].tolist(), held["b_position"].tolist(), strict=True))
        for row in self.seen.find(where, _ROWS_FOUND):
            if row.position not in at:
                continue
            scores = self._scores(live, at[row.position], 0, len(live.position))
            best = np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")[:_PAIRS_OF_EACH]
            for other in best[~np.isnan(scores[best])].tolist():
                a, b = sorted((at[row.position], other))
                names = int(live.position[a]), int(live.position[b])
                lines.append(self._listed(*names, float(scores[other]), is_held=names in kept))
        return lines[:most]

    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        sides = [
            {name.removeprefix(side): value for name, value in row.items() if name.startswith(side)}
            for side in ("a_", "b_")
        ]
        found = [self.seen.showing(side, plain) for side in sides]
        return None if None in found else f"{found[0]}-{found[1]}"

    # -- inside ------------------------------------------------------------------------------------------------------

    def _answer_and_held(self) -> tuple[Answer, Pairs]:
        """The pairs that are shown now, and all that are held, best first; an algorithm that keeps rows alone holds
        those that it shows."""
        with self.session._turn:
            answer: Answer = self.answer_now()
            pairs = np.zeros(len(answer.a), PAIR)
            pairs["score"], pairs["a_position"], pairs["b_position"] = answer.score, answer.a, answer.b
            held: Pairs = np.concatenate([pairs, self.session._operator.pairs_held()])  # type: ignore[attr-defined]
        _, first = np.unique(held[["a_position", "b_position"]], return_index=True)
        held = held[np.sort(first)]
        return answer, held[np.argsort(-held["score"], kind="stable")]

    def _live(self) -> Live:
        """With a codec of its own: reading rows would change what the session's remembers of them."""
        position, place, rows = self.seen.live(MOST_LIVE)
        codec, times = PairsCodec(self._query, self.session.schema), np.arange(rows.num_rows)
        Session(codec)  # gives the codec the operator that it reads rows for
        rows, numbers = codec.read(rows, times, None)
        batch = codec.encode(numbers, rows, times, 0)
        return Live(position, place, batch.columns, batch.colours)

    def _scores(self, live: Live, one: int, first: int, last: int) -> Floats:
        """Of the pairs of one row with those from `first` on: NaN where they make none."""
        out = np.empty(last - first)
        self._codec._spec.scoring.scores(live.columns, live.colours, one, first, last, out)
        return out

    def _others(self, held: Pairs, live: Live) -> Pairs:
        """Some pairs that are not held: of the rows of a sample, each with one that came a little before."""
        kept = set(zip(held["a_position"].tolist(), held["b_position"].tolist(), strict=True))
        lines = []
        for b in sample(np.arange(1, len(live.position)), live.position, _MOST_OTHERS).tolist():
            a = int(live.position[b]) * 7919 % b
            names = int(live.position[a]), int(live.position[b])
            score = self._scores(live, b, a, a + 1)[0]
            if np.isfinite(score) and names not in kept:
                lines.append((score, *names))
        others = np.zeros(len(lines), PAIR)
        for name, column in zip(("score", "a_position", "b_position"), zip(*lines, strict=True), strict=False):
            others[name] = column
        return others

    def _pair(self, id: str) -> tuple[Row, Row] | None:
        names = id.split("-")
        if len(names) != 2 or not all(name.isdecimal() for name in names) or names[0] == names[1]:
            return None
        a, b = (self.seen.row(int(name)) for name in names)
        return None if a is None or b is None else (a, b)

    def _told(
        self, a: Row, b: Row, score: float, number: int | None, better: Pairs, *, has_left: bool = False
    ) -> Found:
        k = self._query.k
        scores, shown = self._shown_scores(better["score"]), self._shown_scores(np.array([score]))[0]
        outlive = better["a"] >= (0 if number is None else number)
        rank = None if has_left or math.isnan(score) or len(better) >= k else len(better) + 1
        dominators = int(outlive.sum())
        is_held = rank is not None or (not has_left and not math.isnan(score) and dominators < k)
        return {
            "id": f"{a.position}-{b.position}",
            "kind": "shown" if rank is not None else "held" if is_held else "",
            "verdict": self._verdict(rank, dominators, has_left, math.isnan(score)),
            "row": self._columns(a, b),
            "score": None if has_left else shown,
            "rank": rank,
            "k": k,
            "facts": [
                ["score", f"{self._by} = {shown:g}" if not has_left and not math.isnan(score) else "none"],
                ["rank now", "none" if has_left else f"below {k}" if rank is None else rank],
                ["dominated by", f"{dominators:,} of the pairs held ({k} would rule it out)"],
                ["arrivals", f"{a.position:,} and {b.position:,}"],
            ],
            "leaves": leaves(self.seen, a.place),
            "better": [
                self._listed(int(pair["a_position"]), int(pair["b_position"]), each, outlives=bool(stays), ranked=False)
                for pair, each, stays in zip(better[:_MOST_LISTED], scores, outlive, strict=False)
            ],
        }

    def _verdict(self, rank: int | None, dominators: int, has_left: bool, is_no_pair: bool) -> str:
        k = self._query.k
        if has_left:
            return "Gone: the window has moved past one of its rows."
        if is_no_pair:
            return "No pair: its score is not a number, or the query's conditions keep these two rows apart."
        if rank is not None:
            return f"Rank {rank} of {k}: {is_better(rank - 1, 'pair')}."
        if dominators < k:
            return (
                f"Not shown, but held. Better pairs that outlive it: {dominators}, and k is {k}. It can still move up "
                "when others leave."
            )
        return (
            f"Ruled out: at least {k} better pairs have an older row that stays as long as its own. Whatever comes, it "
            "can never be shown again, so it is not held."
        )

    def _listed(self, a: int, b: int, score: float, *, ranked: bool = True, **more: Any) -> Found:
        one, other = self.seen.row(a), self.seen.row(b)
        values = {} if one is None or other is None else self._columns(one, other)
        return found(f"{a}-{b}", self._shown_scores(np.array([score]))[0] if ranked else score, values, **more)

    def _columns(self, a: Row, b: Row) -> dict[str, Any]:
        return {f"{side}_{name}": value for side, row in (("a", a), ("b", b)) for name, value in row.values.items()}

    def _shown_scores(self, ranked: Floats) -> list[float]:
        """As the answer shows them: a distance that is ranked as its negative is a distance again."""
        known = np.where(np.isfinite(ranked), ranked, 0.0)
        shown = score_column(known, self._codec._score, bool(self._query.ascending)).to_pylist()
        return [float(each) if fine else math.nan for each, fine in zip(shown, np.isfinite(ranked), strict=True)]
