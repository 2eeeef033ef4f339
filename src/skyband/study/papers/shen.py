"""Shen, Cheema, Lin, Zhang, Wang, TKDE 2014: top-k objects for any k and window, rows out of order; figures 14 to 18.

Its SCASE, which keeps what any question needs, is `staircase` here; its No-PST, which answers one query only, is a
skyband alone, `strict` or `relaxed`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.core.emit import ENTRIES
from skyband.problems.rows.operator import Spec
from skyband.streams.arrivals import late
from skyband.streams.orders import uniform
from skyband.study.papers.claims import does_not_grow, falls, faster, grows_less
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Say
from skyband.study.papers.points import BATCH_ROWS, ENDLESS, HELD, Case, Contender, able, compile_for, sweep
from skyband.windows import Ticks

PAPER: Final = "Shen and others, TKDE 2014"
ALGORITHMS: Final = ("staircase", "sma", "tma", "strict", "relaxed", "partitioned")
ASKING: Final = "µs per question"
TOGETHER: Final = "staircase, all at once"
K: Final = 20  # the paper's default
WINDOW: Final = 1_000_000

Question = tuple[int, int]  # k, size


def _by_count(k: float, size: int, *, ad_hoc: bool = False) -> Spec:
    return Spec(int(k), Ticks(size, 0, 0, by_count=True), emit=ENTRIES, ad_hoc=ad_hoc)


def _by_k(label: str, k: float, effort: Effort) -> Case:
    return Case(label, label, _by_count(k, effort.rows(WINDOW)))


def _by_window(label: str, size: float, effort: Effort) -> Case:
    return Case(label, label, _by_count(K, effort.rows(size)))


def _by_lateness(label: str, percent: float, effort: Effort) -> Case:
    """Late rows are as old as the window at most, each age as likely as another."""
    size = effort.rows(100_000)
    spec = Spec(K, Ticks(size, 0, 0, by_count=False), emit=ENTRIES)
    return Case(label, label, spec, partial(_out_of_order, percent / 100, size))


def _out_of_order(share: float, at_most: int) -> pa.RecordBatchReader:
    rows = uniform(ENDLESS, batch_rows=BATCH_ROWS)
    return late(rows, share=share, at_most=at_most, batch_rows=BATCH_ROWS) if share else rows


# -- questions --------------------------------------------------------------------------------------------------------


def _asked(
    at_x: Callable[[float, Effort], tuple[int, int, int]],
    values: Sequence[float],
    algorithms: Sequence[str],
    effort: Effort,
    say: Say,
) -> Findings:
    """The time of one question, for random k up to K and random sizes up to N; a row comes before them.

    At each x: K, N and the number of questions. Each algorithm is asked the same ones.
    """
    findings = Findings()
    for x in values:
        k, n, count = at_x(x, effort)
        cases = [Case(label, label.partition(",")[0], _by_count(k, n, ad_hoc=True)) for label in algorithms]
        for case in able(cases, findings):
            contender = _filled(case, effort, say)
            ask = together if case.label == TOGETHER else one_by_one
            say(f"{case.label}: {count} questions")
            spent = _seconds_per_question(ask, contender, questions(k, n, count), effort)
            if spent is None:
                findings.missing[case.label] = "has no top_many"
            else:
                findings.add(ASKING, case.label, x, 1e6 * spent)
    return findings


asked_by_k: Final = partial(_asked, lambda k, effort: (int(k), effort.rows(WINDOW), effort.questions))
asked_by_window: Final = partial(_asked, lambda size, effort: (K, effort.rows(size), effort.questions))
asked_by_count: Final = partial(_asked, lambda count, effort: (K, effort.rows(WINDOW), int(count)))


def questions(k: int, n: int, count: int) -> list[Question]:
    random = np.random.default_rng(1)
    asked = zip(random.integers(1, k, count, endpoint=True), random.integers(1, n, count, endpoint=True), strict=True)
    return [(int(k_asked), int(size)) for k_asked, size in asked]


def _filled(case: Case, effort: Effort, say: Say) -> Contender:
    compile_for(case, say)
    say(f"{case.label}: filling the window")
    contender = Contender.open(case)
    contender.fill(effort)
    return contender


Ask = Callable[[Any, Sequence[Question], float], float | None]  # the seconds a question took, or None


def one_by_one(operator: Any, asked: Sequence[Question], limit_seconds: float) -> float:
    """As many of the questions as there is time for."""
    answered = 0
    started = time.thread_time()
    for k, size in asked:
        operator.top(k, size)
        answered += 1
        if time.thread_time() - started > limit_seconds:
            break
    return (time.thread_time() - started) / answered


def together(operator: Any, asked: Sequence[Question], _: float) -> float | None:
    """All of the questions in one call, if the operator can do that."""
    if not hasattr(operator, "top_many"):
        return None
    k, size = (np.array(numbers, np.int64) for numbers in zip(*asked, strict=True))
    started = time.thread_time()
    operator.top_many(k, size)
    return (time.thread_time() - started) / len(asked)


def _seconds_per_question(ask: Ask, contender: Contender, asked: Sequence[Question], effort: Effort) -> float | None:
    """The best of some passes, each after another row has come, as in the paper; the first call compiles.

    What has to be made anew for questions when a row has come is part of them.
    """
    ask(contender.operator, asked[:1], math.inf)
    contender.batch_rows = 1
    passes = []
    for _ in range(effort.passes):
        contender.push()
        passes.append(ask(contender.operator, asked, 4 * effort.turn_seconds))
    return None if None in passes else min(spent for spent in passes if spent is not None)


_ANSWERED: Final = ("staircase", "sma", "tma", "relaxed", "strict", "partitioned")

EXPERIMENTS: Final = (
    Experiment(
        "shen-k",
        f"{PAPER}, figures 14 and 16",
        "Cost of a row and rows held, by K: one query, an answer with each arrival, window 1M rows",
        Axis("K", (1, 5, 10, 20, 50, 100), quick=(5, 100)),
        ALGORITHMS,
        sweep(_by_k),
        (
            Claim("A skyband alone (No-PST: strict, relaxed) is faster than SMA.", faster("relaxed", "sma")),
            Claim(
                "Keeping what any question needs costs more than SMA when only one is asked.",
                faster("sma", "staircase"),
            ),
            Claim(
                "A skyband holds far fewer rows than SMA, which holds them all.",
                faster("strict", "sma", measure=HELD, at_least=10),
            ),
        ),
    ),
    Experiment(
        "shen-window",
        f"{PAPER}, figures 14 and 16",
        "Cost of a row and rows held, by window: one query, an answer with each arrival, K = 20",
        Axis("window in rows", (100_000, 1_000_000, 5_000_000), quick=(100_000, 1_000_000)),
        ALGORITHMS,
        sweep(_by_window),
        (
            Claim("A skyband alone (No-PST: strict, relaxed) is faster than SMA.", faster("relaxed", "sma")),
            Claim(
                "The rows a skyband holds hardly grow with the window.",
                does_not_grow("strict", measure=HELD, at_most=2.0),
            ),
        ),
    ),
    Experiment(
        "shen-questions-k",
        f"{PAPER}, figure 15",
        "Time of a question for the best k of the last n, any k up to K and n up to 1M rows, by K",
        Axis("K", (1, 5, 10, 20, 50, 100), quick=(5, 100)),
        (*_ANSWERED, TOGETHER),
        asked_by_k,
        (
            Claim(
                "Questions to a staircase are answered sooner than by SMA.", faster("staircase", "sma", measure=ASKING)
            ),
        ),
    ),
    Experiment(
        "shen-questions-window",
        f"{PAPER}, figure 15",
        "Time of a question for the best k of the last n, any k up to 20 and n up to N rows, by N",
        Axis("window in rows", (100_000, 1_000_000, 5_000_000), quick=(100_000, 1_000_000)),
        (*_ANSWERED, TOGETHER),
        asked_by_window,
        (
            Claim(
                "Questions to a staircase scale better with N than those to SMA.",
                grows_less("staircase", "sma", measure=ASKING),
            ),
            Claim(
                "The time of a question to a staircase hardly grows with N.",
                does_not_grow("staircase", measure=ASKING, at_most=1.5),
            ),
        ),
    ),
    Experiment(
        "shen-batch",
        f"{PAPER}, figure 18 (a)",
        "Time of a question, by how many are asked at once: any k up to 20 and n up to 1M rows",
        Axis("questions", (1, 10, 100, 1000, 10_000), quick=(1, 100, 10_000)),
        ("staircase", TOGETHER, "relaxed"),
        asked_by_count,
        (
            Claim(
                "Many questions are answered sooner together than one by one.",
                faster(TOGETHER, "staircase", measure=ASKING, since=1000),
            ),
        ),
    ),
    Experiment(
        "shen-late",
        f"{PAPER}, figure 17 (b)",
        "Cost of a row and rows held, by how many come late: an answer with each arrival, window 100,000 units, K = 20",
        Axis("% of rows late", (0, 10, 20, 40, 80), quick=(0, 20, 80), log=False),
        ALGORITHMS,
        sweep(_by_lateness),
        (
            Claim("The staircase costs less the more rows come late.", falls("staircase")),
            Claim("So does the skyband, row by row.", falls("strict")),
            Claim(
                "Ours: taking rows in blocks (`relaxed`) costs no more when they come late.",
                does_not_grow("relaxed", at_most=1.3),
            ),
        ),
    ),
)
