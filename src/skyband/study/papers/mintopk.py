"""Yang, Shastri, Rundensteiner, Ward, EDBT 2011: windows that slide by panes, figures 7 to 13.

The paper's moving objects are replaced by uniform scores in random order, which its analysis is about, and so are its
trades, but for one figure that is shown with made trades too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.problems.rows.operator import Batch, Spec
from skyband.streams.arrivals import uneven
from skyband.streams.orders import uniform
from skyband.streams.trades import trades
from skyband.study.papers.claims import at, does_not_grow, faster, grows, per_x
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Say
from skyband.study.papers.points import (
    BATCH_ROWS,
    BYTES,
    ENDLESS,
    HELD,
    MOST_HELD,
    Case,
    Contender,
    Feed,
    able,
    compile_for,
    sweep,
)
from skyband.windows import Ticks

PAPER: Final = "Yang and others, EDBT 2011"
PUBLISHED: Final = "mintopk_published"  # what the paper's claims are about; `mintopk` is ours
ALGORITHMS: Final = ("mintopk", PUBLISHED, "pretopk", "sma", "tma", "relaxed", "partitioned", "hybrid")
MEAN_MS, MOST_MS, LEAST = "ms per window, mean", "ms per window, most", "least / mean"
SPREAD = "standard deviation / mean"

_UNITS_PER_SECOND: Final = 400  # the paper's stream has about so many trades a second; ours, one row a unit of time


def _panes(k: float, size: float, slide: float, effort: Effort) -> Spec:
    return Spec(int(k), Ticks(effort.rows(size), effort.rows(slide), 0, by_count=True))


def _by_k(label: str, k: float, effort: Effort) -> Case:
    return Case(label, label, _panes(k, 1e6, 1e5, effort))


def _of_trades(label: str, k: float, effort: Effort) -> Case:
    return Case(label, label, _panes(k, 1e6, 1e5, effort), _turnover)


def _turnover() -> pa.RecordBatchReader:
    """Trades, ranked by what was paid in all."""
    schema = pa.schema([("score", pa.float64()), ("time", pa.int64())])

    def made() -> Iterator[pa.RecordBatch]:
        for block in trades(ENDLESS, batch_rows=BATCH_ROWS):
            paid = np.asarray(block.column("price")) * np.asarray(block.column("volume"))
            yield pa.record_batch([paid, block.column("ts").cast(pa.int64())], schema)

    return pa.RecordBatchReader.from_batches(schema, made())


def _by_window(label: str, size: float, effort: Effort) -> Case:
    return Case(label, label, _panes(1000, size, size / 10, effort))


def _by_slide(label: str, slide: float, effort: Effort) -> Case:
    return Case(label, label, _panes(1000, 1e6, slide, effort))


def _by_ratio(label: str, ratio: float, effort: Effort) -> Case:
    """The slide stays, so that as many answers are shown."""
    slide = effort.rows(10_000)
    return Case(label, label, Spec(100, Ticks(int(ratio) * slide, slide, 0, by_count=True)))


def measure_windows(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """How long each window takes, when now many rows arrive and now few: from its first row to its answer."""
    findings = Findings()
    size = effort.rows(1000 * _UNITS_PER_SECOND)
    for seconds in values:
        slide = effort.rows(seconds * _UNITS_PER_SECOND)
        spec = Spec(1000, Ticks(size, slide, 0, by_count=False))
        for case in able([Case(label, label, spec, _uneven_arrivals) for label in algorithms], findings):
            compile_for(case, say)
            say(f"{case.label}: windows of uneven streams")
            spent = _window_seconds(case, size, slide, effort)
            findings.add(MEAN_MS, case.label, seconds, 1e3 * float(np.mean(spent)))
            findings.add(MOST_MS, case.label, seconds, 1e3 * max(spent))
            findings.add(LEAST, case.label, seconds, min(spent) / float(np.mean(spent)))
            findings.add(SPREAD, case.label, seconds, float(np.std(spent) / np.mean(spent)))
    return findings


def _uneven_arrivals() -> pa.RecordBatchReader:
    return uneven(uniform(ENDLESS, batch_rows=BATCH_ROWS), batch_rows=BATCH_ROWS)


def _window_seconds(case: Case, size: int, slide: int, effort: Effort) -> list[float]:
    """Of each window after the first is full, for some turns."""
    contender = Contender.open(case)
    seconds: list[float] = []
    total, limit = 0.0, effort.turn_seconds * effort.passes * 2
    filling = 0.0
    for end, rows in enumerate(_slides(contender.feed, slide)):
        started = time.thread_time()
        contender.operator.push(rows)
        spent = time.thread_time() - started
        if end * slide > size or filling > effort.fill_seconds:
            seconds.append(spent)
            total += spent
            if total > limit and len(seconds) >= 10:
                return seconds
        else:
            filling += spent
    return seconds


def _slides(feed: Feed, slide: int) -> Iterator[Batch]:
    """The stream in batches that each end with the first row of the next slide, which closes a window."""
    score, time_, first = np.empty(0), np.empty(0, np.int64), 0
    end = slide
    while True:
        cut = int(np.searchsorted(time_, end)) + 1
        while cut > len(time_):
            more = feed.take(BATCH_ROWS)
            score, time_ = np.concatenate([score, more.score]), np.concatenate([time_, more.time])
            cut = int(np.searchsorted(time_, end)) + 1
        yield Batch(score[:cut], time_[:cut], np.empty(0, np.int32), first)
        score, time_, first = score[cut:], time_[cut:], first + cut
        end += slide


RECOMPUTED, GRID_SHARE = "recomputations per slide", "share of the time that the grid takes"
ANSWERS: Final = 60  # that are looked at, or more
TIGHT: Final = "sma, cut back after each answer"


def measure_sma(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """By k: how often SMA looks through the window anew, and what part of a row's cost the grid is.

    A row whose score is far below the threshold only enters the grid, and leaves it a window later.
    """
    findings = Findings()
    findings.notes.append(
        "Here the window starts empty, so the threshold rises until between k and 2k + 16 rows are above it. In random "
        "order as many rows come above it as leave: for a large k there are hardly ever fewer than k. If the k-th row "
        f"of each answer is the threshold ({TIGHT}), up to every second slide leaves fewer."
    )
    for k in values:
        for label in algorithms:
            case = _by_k("sma(tight=1)" if label == TIGHT else "sma", k, effort)
            compile_for(case, say)
            say(f"{label}: k = {k:g}")
            contender = Contender.open(case)
            contender.fill(effort)
            operator: Any = contender.operator
            before = operator.recomputed
            for _ in range(effort.passes):
                contender.take_turn(3 * effort.turn_seconds)
            while operator.recomputed[1] - before[1] < ANSWERS:
                contender.push()
            anew, answers = (after - since for after, since in zip(operator.recomputed, before, strict=True))
            findings.add(RECOMPUTED, label, k, anew / answers)
            low = [_low_rows_ns(contender) for _ in range(3)]
            findings.add(GRID_SHARE, label, k, min(low) / contender.ns_per_row)
    return findings


def _low_rows_ns(contender: Contender) -> float:
    """What a row costs that cannot be in an answer, as long as better ones are there."""
    batch = contender.feed.take(contender.batch_rows)
    low = batch._replace(score=batch.score / 2)
    started = time.thread_time()
    contender.operator.push(low)
    return 1e9 * (time.thread_time() - started) / len(low.score)


_FAR_FASTER: Final = Claim(
    "MinTopK saves at least 85 % of the CPU time of SMA: it is 6.7 times as fast, or more.",
    faster(PUBLISHED, "sma", at_least=1 / 0.15),
)
_OURS: Final = Claim("Ours: `mintopk` takes less time than MinTopK as published.", faster("mintopk", PUBLISHED))

EXPERIMENTS: Final = (
    Experiment(
        "mintopk-k",
        f"{PAPER}, figures 7 and 8",
        "Cost of a row and rows held, by k: window 1M rows, slide 100k",
        Axis("k", (10, 100, 1000, 10_000), quick=(10, 1000)),
        ALGORITHMS,
        sweep(_by_k),
        (
            _FAR_FASTER,
            Claim(
                "MinTopK takes less time than PreTopK for every k (23 % less on average).", faster(PUBLISHED, "pretopk")
            ),
            Claim(
                "MinTopK takes less memory than PreTopK (33 % less on average).",
                faster(PUBLISHED, "pretopk", measure=BYTES),
            ),
            Claim(
                "MinTopK holds 2.4 k rows on average (2 k by its theorem).",
                per_x(HELD, PUBLISHED, at_most=2.4, mean=True),
            ),
            Claim(
                "Ours: in random order it holds k (1 + 1/2 + … + 1/9) = 2.83 k, for ten slides a window.",
                per_x(HELD, "mintopk", at_most=2.83 * 1.05, mean=True),
            ),
            Claim("MinTopK never holds more than 3.5 k rows.", per_x(MOST_HELD, PUBLISHED, at_most=3.5)),
            _OURS,
        ),
    ),
    Experiment(
        "mintopk-sma",
        f"{PAPER}, section 6.1",
        "How often SMA recomputes, and what its grid costs, by k: window 1M rows, slide 100k",
        Axis("k", (10, 100, 1000, 10_000), quick=(10, 1000, 10_000)),
        ("sma", TIGHT),
        measure_sma,
        (
            Claim("SMA recomputes in 23 % of the slides for k = 10.", at(RECOMPUTED, "sma", 10, at_least=0.1)),
            Claim("It recomputes more often as k grows.", grows("sma", measure=RECOMPUTED, at_least=1.5)),
            Claim("For k = 10,000 it recomputes in 56 % of the slides.", at(RECOMPUTED, "sma", 10_000, at_least=0.4)),
            Claim(
                "Cut back after each answer, it recomputes more often as k grows.",
                grows(TIGHT, measure=RECOMPUTED, at_least=1.2),
            ),
            Claim("Cut back so, in a fifth of the slides or more for k = 10.", at(RECOMPUTED, TIGHT, 10, at_least=0.2)),
            Claim("Cut back so, in nearly half of them for k = 10,000.", at(RECOMPUTED, TIGHT, 10_000, at_least=0.4)),
            Claim(
                "The grid takes around 60 % of the time (at least two fifths of it) for k up to 1000.",
                at(GRID_SHARE, "sma", 1000, at_least=0.4),
            ),
        ),
    ),
    Experiment(
        "mintopk-trades",
        f"{PAPER}, figure 7, with trades as in the paper",
        "Cost of a row, by k, of trades by price * volume: window 1M rows, slide 100k",
        Axis("k", (10, 100, 1000, 10_000), quick=(10, 1000)),
        ("mintopk", PUBLISHED, "sma"),
        sweep(_of_trades),
        (_FAR_FASTER,),
    ),
    Experiment(
        "mintopk-window",
        f"{PAPER}, figures 9 and 10",
        "Cost of a row and rows held, by window: k = 1000, slide a tenth of the window",
        Axis("window in rows", (1000, 10_000, 100_000, 1_000_000), quick=(10_000, 1_000_000)),
        ALGORITHMS,
        sweep(_by_window),
        (
            Claim("The cost of MinTopK does not depend on the window.", does_not_grow(PUBLISHED)),
            Claim("Nor do the rows that MinTopK holds.", does_not_grow(PUBLISHED, measure=HELD, at_most=1.5)),
            Claim("Nor does its memory.", does_not_grow(PUBLISHED, measure=BYTES, at_most=1.5)),
            Claim("The rows that SMA holds grow with the window: all of it.", grows("sma", at_least=50, measure=HELD)),
            _FAR_FASTER,
        ),
    ),
    Experiment(
        "mintopk-slide",
        f"{PAPER}, figures 11 and 12",
        "Cost of a row and rows held, by slide: window 1M rows, k = 1000",
        Axis("slide in rows", (100, 1000, 10_000, 100_000), quick=(1000, 100_000)),
        ALGORITHMS,
        sweep(_by_slide),
        (
            Claim("The cost of MinTopK does not grow with window / slide.", does_not_grow(PUBLISHED, backwards=True)),
            Claim(
                "The cost of PreTopK grows with window / slide: it keeps every future window apart.",
                grows("pretopk", at_least=10, backwards=True),
            ),
            Claim(
                "Where a window has thousands of slides, PreTopK is slower even than SMA.",
                faster("sma", "pretopk", until=1000),
            ),
            Claim(
                "The memory of PreTopK grows with window / slide.",
                grows("pretopk", at_least=10, measure=BYTES, backwards=True),
            ),
            Claim("MinTopK is faster than SMA for every slide.", faster(PUBLISHED, "sma")),
        ),
    ),
    Experiment(
        "mintopk-ratio",
        f"{PAPER}, figures 11 and 12, with as many answers at each ratio",
        "Cost of a row and rows held, by window / slide: slide 10,000 rows, k = 100",
        Axis("window / slide", (10, 100, 1000), quick=(10, 1000)),
        ("mintopk", PUBLISHED, "pretopk"),
        sweep(_by_ratio),
        (
            Claim("The cost of MinTopK does not grow with window / slide.", does_not_grow(PUBLISHED)),
            Claim("Nor do the rows it holds.", does_not_grow(PUBLISHED, measure=HELD)),
            _OURS,
            Claim("The cost of PreTopK does.", grows("pretopk", at_least=10)),
        ),
    ),
    Experiment(
        "mintopk-uneven",
        f"{PAPER}, figure 13",
        "Time to answer a window of an uneven stream, by slide: window 1000 s, k = 1000, 400 rows a second on average",
        Axis("slide in seconds", (1, 10, 100), quick=(1, 100)),
        ("mintopk", PUBLISHED, "pretopk", "sma", "tma"),
        measure_windows,
        (
            Claim("MinTopK answers sooner than SMA for every slide.", faster(PUBLISHED, "sma", measure=MEAN_MS)),
            Claim("MinTopK answers sooner than PreTopK.", faster(PUBLISHED, "pretopk", measure=MEAN_MS)),
            Claim(
                "With slides of a second some windows take next to no time: a tenth of the mean, or less.",
                at(LEAST, PUBLISHED, 1, at_most=0.1),
            ),
            Claim(
                "The times of windows vary less when the slide is longer.",
                does_not_grow(PUBLISHED, measure=SPREAD, at_most=1.0),
            ),
        ),
    ),
)
