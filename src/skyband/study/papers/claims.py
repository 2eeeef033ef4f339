"""Judges of claims: each looks at readings, and says whether the claim holds and by which figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import geometric_mean

from skyband.study.papers.experiments import Readings, Verdict
from skyband.study.papers.points import COST
from skyband.study.papers.printed import called

Judge = Callable[[Readings], Verdict]


def faster(
    algorithm: str,
    than: str | Sequence[str],
    *,
    at_least: float = 1.0,
    since: float = 0.0,
    until: float = math.inf,
    measure: str = COST,
) -> Judge:
    """At each x, `algorithm` costs `at_least` times less than `than`; of several, than the cheapest one measured."""
    others = (than,) if isinstance(than, str) else tuple(than)

    def judge(readings: Readings) -> Verdict:
        ours = readings.curve(measure, algorithm)
        theirs = {other: readings.curve(measure, other) for other in others}
        cheapest = {
            x: min((curve[x], other) for other, curve in theirs.items() if x in curve)
            for x in ours
            if since <= x <= until and any(x in curve for curve in theirs.values())
        }
        ratios = {x: cost / ours[x] for x, (cost, _) in cheapest.items()}
        if not ratios:
            return _not_measured(readings, measure, (algorithm,), others)
        worst = min(ratios, key=lambda x: ratios[x])
        cost, other = cheapest[worst]
        return Verdict(
            ratios[worst] >= at_least,
            f"{measure}: {_number(ours[worst])} against {_number(cost)} of {other} ({_where(readings, worst)}), "
            f"{_times(ratios[worst])} at least and {_times(geometric_mean(ratios.values()))} on average; "
            f"asked: {_times(at_least)}",
        )

    return judge


def does_not_grow(
    algorithm: str, *, at_most: float = 1.3, measure: str = COST, backwards: bool = False, since: float = -math.inf
) -> Judge:
    """From the first x on, or `backwards` from the last, `measure` never is over `at_most` times what it is there."""

    def judge(readings: Readings) -> Verdict:
        found = _relative(readings, measure, algorithm, backwards, since=since)
        if len(found) < 2:
            return _not_measured(readings, measure, (algorithm,), ())
        worst = max(found, key=lambda x: found[x])
        return Verdict(
            found[worst] <= at_most,
            f"{_course(readings, measure, algorithm, list(found))}; at most {_times(found[worst])} of the first "
            f"({_where(readings, worst)}), allowed: {_times(at_most)}",
        )

    return judge


def grows(
    algorithm: str, *, at_least: float, measure: str = COST, backwards: bool = False, since: float = -math.inf
) -> Judge:
    """From the first x to the last, `measure` grows by `at_least`; `backwards`: from the last to the first."""

    def judge(readings: Readings) -> Verdict:
        found = _relative(readings, measure, algorithm, backwards, since=since)
        if len(found) < 2:
            return _not_measured(readings, measure, (algorithm,), ())
        growth = found[list(found)[-1]]
        return Verdict(
            growth >= at_least,
            f"{_course(readings, measure, algorithm, list(found))}: {_times(growth)}; asked: {_times(at_least)}",
        )

    return judge


def in_groups(groups: Sequence[Sequence[str]], *, since: float = 0.0, measure: str = COST) -> Judge:
    """At each x, every algorithm of a group costs less than every one of the next group."""

    def judge(readings: Readings) -> Verdict:
        curves = {name: readings.curve(measure, name) for group in groups for name in group}
        places = [x for x in max(curves.values(), key=len) if x >= since]
        pairs = [(a, b, x) for one, other in pairwise(groups) for a in one for b in other for x in places]
        if not pairs or any(x not in curve for curve in curves.values() for x in places):
            return _not_measured(readings, measure, list(curves), ())
        a, b, x = min(pairs, key=lambda pair: curves[pair[1]][pair[2]] / curves[pair[0]][pair[2]])
        ratio = curves[b][x] / curves[a][x]
        return Verdict(
            ratio > 1,
            f"{measure}: {a} {_number(curves[a][x])} against {b} {_number(curves[b][x])} where groups are closest "
            f"({_where(readings, x)}), {_times(ratio)}; asked: more than 1x",
        )

    return judge


def grows_less(algorithm: str, than: str | Sequence[str], *, measure: str = COST) -> Judge:
    """From the first x to the last, `measure` of `algorithm` grows by a smaller factor than that of each other."""
    others = (than,) if isinstance(than, str) else tuple(than)

    def judge(readings: Readings) -> Verdict:
        curves = {name: _relative(readings, measure, name, backwards=False) for name in (algorithm, *others)}
        if any(len(curve) < 2 for curve in curves.values()):
            return _not_measured(readings, measure, (algorithm, *others), ())
        growth = {name: curve[max(curve)] for name, curve in curves.items()}
        slowest = min(others, key=lambda name: growth[name])
        return Verdict(
            growth[algorithm] < growth[slowest],
            f"{_course(readings, measure, algorithm, list(curves[algorithm]))}: {_times(growth[algorithm])}; "
            f"{slowest}: {_times(growth[slowest])}",
        )

    return judge


def grows_by_less(algorithm: str, than: Sequence[str], *, measure: str = COST) -> Judge:
    """From the first x to the last, `measure` of `algorithm` grows by less, in its unit, than that of each other."""

    def judge(readings: Readings) -> Verdict:
        curves = {name: readings.curve(measure, name) for name in (algorithm, *than)}
        if any(len(curve) < 2 for curve in curves.values()):
            return _not_measured(readings, measure, (algorithm, *than), ())
        more = {name: curve[max(curve)] - curve[min(curve)] for name, curve in curves.items()}
        slowest = min(than, key=lambda name: more[name])
        return Verdict(
            more[algorithm] < more[slowest],
            f"{measure}: {algorithm} by {_number(more[algorithm])}, {slowest} by {_number(more[slowest])}",
        )

    return judge


def steady(algorithm: str, *, within: float, measure: str = COST) -> Judge:
    """The largest value of `measure` is at most so many times the least."""

    def judge(readings: Readings) -> Verdict:
        curve = readings.curve(measure, algorithm)
        if len(curve) < 2:
            return _not_measured(readings, measure, (algorithm,), ())
        low, high = (found(curve, key=lambda x: curve[x]) for found in (min, max))
        ratio = curve[high] / curve[low] if curve[low] else math.inf
        return Verdict(
            ratio <= within,
            f"{measure}: {_number(curve[low])} ({_where(readings, low)}) to {_number(curve[high])} "
            f"({_where(readings, high)}): {_times(ratio)}; allowed: {_times(within)}",
        )

    return judge


def falls(algorithm: str, *, at_most: float = 1.0, measure: str = COST, until: float = math.inf) -> Judge:
    """At the last x, `measure` is at most this share of what it is at the first; what lies between may vary."""

    def judge(readings: Readings) -> Verdict:
        found = _relative(readings, measure, algorithm, backwards=False, until=until)
        if len(found) < 2:
            return _not_measured(readings, measure, (algorithm,), ())
        left = found[list(found)[-1]]
        return Verdict(
            left <= at_most,
            f"{_course(readings, measure, algorithm, list(found))}: {_times(left)}; allowed: {_times(at_most)}",
        )

    return judge


def below(measure: str, algorithm: str, reference: str, *, times: float = 1.0) -> Judge:
    """At each x, `measure` of `algorithm` is at most so many times that of `reference`."""

    def judge(readings: Readings) -> Verdict:
        ours, theirs = readings.curve(measure, algorithm), readings.curve(measure, reference)
        both = {x: (ours[x], theirs[x]) for x in ours if x in theirs}
        if not both:
            return _not_measured(readings, measure, (algorithm,), (reference,))
        worst = max(both, key=lambda x: both[x][0] / max(both[x][1], 1e-300))
        mine, limit = both[worst]
        return Verdict(
            all(a <= times * b for a, b in both.values()),
            f"{measure}: {_number(mine)} against {_number(limit)} of {reference} where it comes closest "
            f"({_where(readings, worst)}); allowed: {_times(times)}",
        )

    return judge


def near(
    measure: str, algorithm: str, reference: str, *, within: float, since: float = -math.inf, until: float = math.inf
) -> Judge:
    """At each x, `measure` of `algorithm` differs from that of `reference` by at most this share of it."""

    def judge(readings: Readings) -> Verdict:
        ours, theirs = readings.curve(measure, algorithm), readings.curve(measure, reference)
        off = {x: abs(ours[x] - theirs[x]) / theirs[x] for x in ours if since <= x <= until and theirs.get(x)}
        if not off:
            return _not_measured(readings, measure, (algorithm,), (reference,))
        worst = max(off, key=lambda x: off[x])
        return Verdict(
            off[worst] <= within,
            f"{_number(ours[worst])} against {_number(theirs[worst])} where it is furthest off "
            f"({_where(readings, worst)}): {100 * off[worst]:.2g} %; allowed: {100 * within:.2g} %",
        )

    return judge


def in_proportion(measure: str, algorithm: str, to: str, *, within: float) -> Judge:
    """At each x, `measure` of `algorithm` is the same share of that of `to` as in the paper, up to this factor."""

    def judge(readings: Readings) -> Verdict:
        curves = [readings.curve(measure, label) for label in (algorithm, to, called(algorithm), called(to))]
        places = [x for x in curves[0] if all(curve.get(x) for curve in curves)]
        if not places:
            return _not_measured(readings, measure, (algorithm, to), (called(algorithm), called(to)))
        shares = {x: (curves[0][x] / curves[1][x], curves[2][x] / curves[3][x]) for x in places}
        off = {x: max(ours / theirs, theirs / ours) for x, (ours, theirs) in shares.items()}
        worst = max(off, key=lambda x: off[x])
        ours, theirs = shares[worst]
        return Verdict(
            off[worst] <= within,
            f"{measure}: {_number(ours)} of {to} against {_number(theirs)} in the paper where it is furthest off "
            f"({_where(readings, worst)}): {_times(off[worst])}; allowed: {_times(within)}",
        )

    return judge


def at(measure: str, algorithm: str, x: float, *, at_least: float = -math.inf, at_most: float = math.inf) -> Judge:
    """At this x, `measure` is within these limits."""

    def judge(readings: Readings) -> Verdict:
        curve = readings.curve(measure, algorithm)
        if x not in curve:
            return _not_measured(readings, measure, (algorithm,), ())
        limits = [f"at least {_number(at_least)}"] if at_least > -math.inf else []
        limits += [f"at most {_number(at_most)}"] if at_most < math.inf else []
        return Verdict(
            at_least <= curve[x] <= at_most,
            f"{measure}: {_number(curve[x])} ({_where(readings, x)}); asked: {' and '.join(limits)}",
        )

    return judge


def per_x(measure: str, algorithm: str, *, at_most: float, mean: bool = False) -> Judge:
    """`measure` divided by x is at most this, at each x; or on average."""

    def judge(readings: Readings) -> Verdict:
        shares = {x: value / x for x, value in readings.curve(measure, algorithm).items()}
        if not shares:
            return _not_measured(readings, measure, (algorithm,), ())
        label = readings.axis.label
        worst = max(shares, key=lambda x: shares[x])
        average = sum(shares.values()) / len(shares)
        return Verdict(
            (average if mean else shares[worst]) <= at_most,
            f"{measure}: {average:.3g} {label} on average, {shares[worst]:.3g} {label} at most "
            f"({_where(readings, worst)}); allowed: {at_most:.3g} {label}",
        )

    return judge


def _relative(
    readings: Readings,
    measure: str,
    algorithm: str,
    backwards: bool,
    *,
    since: float = -math.inf,
    until: float = math.inf,
) -> dict[float, float]:
    """The curve as multiples of its first value, from the first x on; or of its last one, from there back."""
    curve = {x: y for x, y in readings.curve(measure, algorithm).items() if since <= x <= until}
    order = sorted(curve, reverse=backwards)
    first = curve[order[0]] if order else 0.0
    return {x: curve[x] / first if first else math.inf if curve[x] else 1.0 for x in order}


def _course(readings: Readings, measure: str, algorithm: str, order: Sequence[float]) -> str:
    """From where to where the curve goes."""
    curve, start, end = readings.curve(measure, algorithm), order[0], order[-1]
    return (
        f"{measure}: from {_number(curve[start])} ({_where(readings, start)}) "
        f"to {_number(curve[end])} ({_where(readings, end)})"
    )


def _not_measured(readings: Readings, measure: str, needed: Sequence[str], one_of: Sequence[str]) -> Verdict:
    there = readings.algorithms(measure)
    gone = [name for name in needed if name not in there]
    if one_of and not any(name in there for name in one_of):
        gone += one_of
    what = f"not measured: {', '.join(gone)}" if gone else "too few points were measured"
    return Verdict(None, what)


def _where(readings: Readings, x: float) -> str:
    shown = readings.axis.show(x)
    return shown if readings.axis.names else f"{readings.axis.label} = {shown}"


def _times(ratio: float) -> str:
    return f"{ratio:.3g}x" if ratio < 1000 else f"{ratio:,.0f}x"


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
