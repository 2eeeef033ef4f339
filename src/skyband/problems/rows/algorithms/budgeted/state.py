"""The state of the budgeted k-skyband: that of `relaxed`, and how much of its error each group has spent.

If only poor scores follow, every row of the k-skyband is shown before it leaves the window. So an algorithm that lets
go of more than error * N / n of these rows breaks the promise on some stream. But if k better rows come while a row
that was let go is in the window, then no answer can show it, and its share of the budget is free again. On random order
this happens to nearly every row that ranks behind `limit`. While the skyband is larger than random order makes it,
scores fall, and the operator lets no row go.

The operator holds all scores, so it knows the exact answer. A row that was let go and belongs in the answer leaves a
gap there: the operator counts it at that moment, and shows no other row in its place. Each group has its own budget.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.emit import takes_back
from skyband.core.operator import Answer, Arrays, Ints
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery
from skyband.kernels import slabs
from skyband.kernels.emit import GONE, HOLE, OUT
from skyband.kernels.positions import ascending
from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates
from skyband.problems.rows.algorithms.relaxed.state import Relaxed
from skyband.problems.rows.operator import Spec


def usual_rows(n: int, k: int) -> int:
    """The size that the k-skyband of n rows hardly ever exceeds on random order: four deviations above its mean.

    The i-th newest row is in the skyband with probability min(1, k/i), independently of the others.
    """
    chances = np.log(max(1.0, n / k)), 1 / k - 1 / max(n, k)  # the sums of 1/i and of 1/i**2 over i from k to n
    return int(k * (1 + chances[0]) + 4 * np.sqrt(max(0.0, k * chances[0] - k * k * chances[1]))) + 1


class Budgeted(Relaxed):
    """A relaxed k-skyband that drops the columns of some rows, within a budget."""

    def __init__(self, spec: Spec, limit: int | None, block: int, slack: int, initial_room: int) -> None:
        n, k = spec.window.size, spec.k
        if limit is None:
            limit = candidates(n, k, spec.error) if spec.error else 0
        budget = (spec.error, k + limit, usual_rows(n, k))
        super().__init__(spec, block=block, slack=slack, initial_room=initial_room, budget=budget)

    @property
    def missed(self) -> int:
        """How many rows belonged in an answer and were not shown."""
        return int(self._state.spent["missed"].sum())

    def rows_held(self) -> int:
        # A row that was let go counts as gone until the band is pruned, even if it has left the window since.
        return max(0, super().rows_held() - int(self._state.spent["gone"].sum()))

    def held(self) -> Ints:
        rows = self._rows()[1]
        if takes_back(self.spec.emit):
            rows = np.concatenate([rows, slabs.pack(self._pool, self._state.shown)])
        return ascending(rows["position"][rows["flag"] < GONE])

    def top(self, k: int, size: int | None) -> Answer:
        answer = super().top(k, size)
        return answer.take(self._with_columns(answer))

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        answer, ends = super().top_many(k, size)
        shown = self._with_columns(answer)
        return answer.take(shown), np.append(0, np.cumsum(shown))[ends]

    def _by_group(self) -> Arrays:
        return super()._by_group() | {"spent": self._state.spent.copy()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._state.spent[:] = state["spent"]

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        spent = saved["spent"]
        saved.promise(
            len(spent) == (len(saved["arrivals"]) if self._config.error > 0 else 0), "'spent' is not by group"
        )
        for name in ("gone", "missed"):
            saved.counts(f"spent.{name}", spent[name])
        saved.numbers("spent.best", spent["best"])

    def check(self) -> None:
        super().check()
        config, saved = self._config, super().state()
        assert (saved["recent_rows"]["flag"] < GONE).all(), "only rows of a band are let go"
        ends = np.cumsum(saved["band_length"])
        for g, (end, spent) in enumerate(zip(ends, self._state.spent, strict=False)):
            band = saved["band_rows"][end - saved["band_length"][g] : end]
            gone = (band["flag"] >= GONE) & (band["flag"] < 2 * GONE)
            assert gone.sum() <= spent["gone"], "every row that is let go is counted"
            assert not (band["score"][gone] > spent["best"]).any(), "none of them is better than the best"
            allowed = config.error * saved["arrivals"][g] / config.size
            assert spent["gone"] + spent["missed"] <= allowed, "no more rows are let go than may be missed"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _take_answer(self) -> Answer:
        written = self._out[: self._clock[OUT]]
        if len(written) and (holes := abs(written["change"]) == HOLE).any():
            whole = written[~holes]
            self._out[: len(whole)] = whole
            self._clock[OUT] = len(whole)
        return super()._take_answer()

    def _with_columns(self, answer: Answer) -> npt.NDArray[np.bool_]:
        """For each row of an answer: does the session still have its columns?"""
        rows = self._rows()[1]
        return np.isin(answer.position, rows["position"][rows["flag"] >= GONE], invert=True)

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        part = size[(size != NEXT_WINDOW) & (size != self.spec.window.size)]
        if len(part):
            raise InvalidQuery(
                f"size={part[0]} is a part of the window. With error={self.spec.error:g} the session holds only rows "
                "that matter to the whole window. Leave out size, or open the query with ad_hoc=True for any size."
            )
        return super()._spans(groups, size)
