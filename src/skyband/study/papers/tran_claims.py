"""What Tran and Lee, JCSE 2009, say of their figures 4 to 6, as judges of what was measured of their plans."""

from __future__ import annotations

from typing import Final

from skyband.study.papers.claims import does_not_grow, faster, grows, grows_by_less
from skyband.study.papers.experiments import Claim, Readings, Verdict

MEASURED, ESTIMATED = "ms per second of stream", "the same, estimated"
AS_PRINTED: Final = "the same, by the paper's equations, tuned to all points"
CHOSEN = "measured cost of the plan chosen / of the best"
PLANNER, OF_THE_PAPER = "the planner", "the planner, without multiply"
PLANS_OF_TWO: Final = ("LAP", "EAP10", "EAP01", "EAP11", "multiply")
PLANS_OF_THREE: Final = ("LAP", "EAP100", "EAP010", "EAP001", "EAP110", "EAP101", "EAP011", "EAP111", "multiply")


def _early_wins(readings: Readings) -> Verdict:
    """The late plan against the best early one of the paper, where it is most behind."""
    late = readings.curve(MEASURED, "LAP")
    early = [readings.curve(MEASURED, name) for name in readings.algorithms(MEASURED) if name.startswith("EAP")]
    if not late or not early:
        return Verdict(None, "not measured")
    ratios = [late[x] / min(curve[x] for curve in early) for x in late]
    multiplied = readings.curve(MEASURED, "multiply")
    more = f"; multiply up to {max(late[x] / multiplied[x] for x in late):.0f}x" if multiplied else ""
    return Verdict(
        min(ratios) >= 1 / 1.1, f"the best early plan is {min(ratios):.1f}x to {max(ratios):.1f}x faster{more}"
    )


def _same_ranking(readings: Readings, estimate: str = ESTIMATED) -> Verdict:
    """How often two plans that differ by more than a fifth are estimated in the order in which they were measured."""
    right = wrong = 0
    names = readings.algorithms(estimate)
    for i, a in enumerate(names):
        for b in names[:i]:
            one, other = readings.curve(MEASURED, a), readings.curve(MEASURED, b)
            first, second = readings.curve(estimate, a), readings.curve(estimate, b)
            for x in one:
                if max(one[x], other[x]) > 1.2 * min(one[x], other[x]):
                    agrees = (one[x] < other[x]) == (first[x] < second[x])
                    right, wrong = right + agrees, wrong + (not agrees)
    if right + wrong == 0:
        return Verdict(None, "not measured")
    share = right / (right + wrong)
    return Verdict(share >= 0.9, f"{share:.0%} of {right + wrong} pairs that differ by more than a fifth are in order")


def _well_chosen(readings: Readings) -> Verdict:
    """The best, or as good, in nine of ten settings, and never worse than 1.2 times: with and without our own plan."""
    said, holds = [], []
    for who in (PLANNER, OF_THE_PAPER):
        if regret := readings.curve(CHOSEN, who).values():
            best, worst = sum(each <= 1.05 for each in regret), max(regret)
            holds.append(worst <= 1.2 and best >= 0.9 * len(regret))
            said.append(
                f"{who}: best, or within 5 %, in {best} of {len(regret)} settings, at worst {worst:.2f}x the best"
            )
    return Verdict(all(holds), "; ".join(said)) if said else Verdict(None, "not measured")


CLAIMS: Final = (
    Claim("Aggregating early is never slower than aggregating late.", _early_wins),
    Claim("The cost function puts the plans into the order in which they are measured.", _same_ranking),
    Claim("Choosing by the cost function is good enough for an optimizer.", _well_chosen),
)
IN_ORDER: Final = Claim(
    "The paper's own equations, tuned, put its plans into the order in which they are measured.",
    lambda readings: _same_ranking(readings, AS_PRINTED),
)


_EARLY_THERE: Final = ("EAP10", "EAP11")  # of the first stream, whose parameters vary
# What section 7.2.2 says of each panel of figure 4.
TRENDS: Final = {
    "window": (
        *(
            Claim(f"{name} grows with the window.", grows(name, measure=MEASURED, at_least=1.2))
            for name in ("LAP", "EAP01")
        ),
        *(
            Claim(f"{name} stays constant once the window exceeds 2000 rows.",
                  does_not_grow(name, measure=MEASURED, at_most=1.2, since=2000))
            for name in _EARLY_THERE
        ),
    ),
    "groups": (
        *(
            Claim(f"{name} grows with the groups.", grows(name, measure=MEASURED, at_least=1.2))
            for name in _EARLY_THERE
        ),
        Claim("EAP10 loses its advantage: with 19,683 groups it is no faster than LAP.",
              faster("LAP", "EAP10", measure=MEASURED, at_least=0.85, since=3**9)),
        Claim("EAP11 loses its advantage over EAP01 likewise.",
              faster("EAP01", "EAP11", measure=MEASURED, at_least=0.85, since=3**9)),
    ),
    "rate": (
        *(
            Claim(f"{name} grows with the rate.", grows(name, measure=MEASURED, at_least=1.05))
            for name in ("LAP", "EAP10", "EAP01", "EAP11")
        ),
        Claim("EAP01 grows less than LAP and EAP10.", grows_by_less("EAP01", ("LAP", "EAP10"), measure=MEASURED)),
        Claim("EAP11 grows less than LAP and EAP10.", grows_by_less("EAP11", ("LAP", "EAP10"), measure=MEASURED)),
    ),
    "selectivity": tuple(
        Claim(f"{name} rises with σ.", grows(name, measure=MEASURED, at_least=1.2))
        for name in ("LAP", "EAP10", "EAP01", "EAP11")
    ),
}  # fmt: skip
