"""What the experiments about answers from one K-skyband of pairs measure: figures 10 to 12.

All of it runs on the skyband as published, in compiled loops over the questions, so that the algorithms differ and what
calls them does not. Each writes down the pairs of an answer: in figure 12, `continuous` copies them into its lists.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from skyband.core.operator import Ints
from skyband.problems.pairs.operator import Spec
from skyband.streams.points import uniform_points
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import HELD
from skyband.study.baselines.pairs.staircase_published.kernels.continuous import follow, watching
from skyband.study.baselines.pairs.staircase_published.kernels.search_tree import copy_each, scan_each, search_each
from skyband.study.baselines.pairs.staircase_published.state import PublishedSkyband
from skyband.study.pairs import SUPREME, spec_of
from skyband.study.papers.experiments import Effort, Findings, Say
from skyband.study.papers.pair_points import ATTRIBUTES, WINDOW, Contender, K, points
from skyband.study.papers.points import COST

ANSWER_NS: Final = "ns per question"
UPDATE_NS: Final = "ns per question and row"
SNAPSHOT, CONTINUOUS, LINEAR = "snapshot", "continuous", "linear"
PUBLISHED: Final = "staircase_published"
NAIVE_KNOWING, SUPREME_KNOWING = "naive++", "supreme++"
SHORT: Final = 1_000  # rows: the window that figures 11 (a) to (c) ask for

Place = tuple[float, int, int, Ints, Ints]  # x, K and N of the skyband, and the k and n of each question


def _filled(k: int, n: int, effort: Effort, say: Say) -> Contender:
    say(f"filling a window of {n:,} rows, K = {k}")
    return Contender(PUBLISHED, spec_of("s1", ATTRIBUTES, n, k=k), points(uniform_points, ATTRIBUTES), effort)


# -- figure 11: one question after the other --------------------------------------------------------------------------


def snapshots_by_most_k(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    n = effort.rows(WINDOW)
    places = [(x, int(x), n, *_alike(min(K, int(x)), effort.rows(SHORT), effort)) for x in values]
    return _snapshots(places, algorithms, effort, say)


def snapshots_by_most_n(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    places = [(x, K, effort.rows(x), *_alike(K, effort.rows(SHORT), effort)) for x in values]
    return _snapshots(places, algorithms, effort, say)


def snapshots_by_k(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    most, n = int(max(values)), effort.rows(WINDOW)
    return _snapshots(
        [(x, most, n, *_alike(int(x), effort.rows(SHORT), effort)) for x in values], algorithms, effort, say
    )


def snapshots_by_n(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    places = [(x, 100, effort.rows(WINDOW), *_alike(K, effort.rows(x), effort)) for x in values]
    return _snapshots(places, algorithms, effort, say)


def _alike(k: int, size: int, effort: Effort) -> tuple[Ints, Ints]:
    return np.full(effort.questions, k), np.full(effort.questions, size)


def _snapshots(places: Sequence[Place], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings, operator, filled = Findings(), None, None
    for x, most, n, k, size in places:
        if operator is None or filled != (most, n):
            operator, filled = _filled(most, n, effort, say).operator, (most, n)
        answering = Answering(operator, k, size)
        for name in algorithms:
            say(f"{name}: {len(k)} questions")
            answering.seconds(name)  # compiles
            spent = min(answering.seconds(name) for _ in range(5 * effort.passes))
            findings.add(ANSWER_NS, name, x, 1e9 * spent / len(k))
    return findings


class Answering:
    """The ways to answer questions from the skyband as it is now.

    What is measured is the time of the processor, less what it takes to call a compiled loop without a question.
    """

    def __init__(self, operator: PublishedSkyband, k: Ints, size: Ints) -> None:
        self._operator, self._k, self._size = operator, k, size
        self._found = np.empty(0, np.int64)
        self._calling: dict[str, float] = {}  # seconds without a question

    def seconds(self, name: str) -> float:
        """How long all questions take, one after the other."""
        if name not in self._calling:
            self._calling[name] = min(self._timed(name, self._k[:0], self._size[:0]) for _ in range(20))
        return max(0.0, self._timed(name, self._k, self._size) - self._calling[name])

    def _timed(self, name: str, k: Ints, size: Ints) -> float:
        operator = self._operator
        band, tree, window = operator._band, operator._tree, operator._rows
        if len(self._found) < len(band.pairs):
            self._found = np.empty(len(band.pairs), np.int64)
        start, found = window.base + window.tail - size, self._found
        if name == SUPREME:
            answers, ends = self._known(start)
            started = time.thread_time()
            copy_each(answers, ends, found)
        elif name == SNAPSHOT:
            started = time.thread_time()
            search_each(tree, band.pairs, k, start, found)
        else:
            started = time.thread_time()
            scan_each(band.pairs, band.by_score, int(band.numbers[HELD]), k, start, found)
        return time.thread_time() - started

    def _known(self, start: Ints) -> tuple[Ints, Ints]:
        """The answers to as many questions, and where each begins."""
        slots = self._operator._held_slots()
        a = self._operator._band.pairs["a"][slots]
        answers = [slots[np.flatnonzero(a >= first)[:k]] for k, first in zip(self._k, start, strict=False)]
        return np.concatenate([slots[:0], *answers]), np.cumsum([0, *map(len, answers)])


# -- figure 12: answers that follow the rows --------------------------------------------------------------------------


def continuous_by_most_k(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    n = effort.rows(WINDOW)
    return _continuous([(x, int(x), n, *_random(int(x), n, effort.questions)) for x in values], algorithms, effort, say)


def continuous_by_count(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    n = effort.rows(WINDOW)
    return _continuous([(x, K, n, *_random(K, n, int(x))) for x in values], algorithms, effort, say)


def _random(most: int, n: int, count: int) -> tuple[Ints, Ints]:
    random = np.random.default_rng(1)
    return random.integers(1, most, count, endpoint=True), random.integers(1, n, count, endpoint=True)


class Following(PublishedSkyband):
    """The published skyband, which notes how long it takes to bring the answers up to date."""

    answers_seconds = 0.0
    _calling = 0.0  # seconds without a question

    def prepare(self) -> None:
        """Measure what calling takes."""
        none = watching(self._watched.k[:0], self._watched.size[:0])
        for attempt in range(20):
            started = time.thread_time()
            follow(none, none.size, self._band, self._tree, 0)
            spent = time.thread_time() - started
            self._calling = min(self._calling, spent) if attempt else spent

    def _follow(self, new: int) -> None:
        starts = self._starts()
        started = time.thread_time()
        follow(self._watched, starts, self._band, self._tree, new)
        self.answers_seconds = max(0.0, time.thread_time() - started - self._calling)


def _continuous(places: Sequence[Place], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings = Findings()
    stream = points(uniform_points, ATTRIBUTES)
    for x, most, n, k, size in places:
        filled = _filled(most, n, effort, say)
        operator, first = Following(filled.spec), filled.first
        operator.restore(filled.operator.state())
        operator.watch(k, size)
        operator.prepare()
        answering = Answering(operator, k, size)
        spent = dict.fromkeys(algorithms, 0.0)
        for name in set(algorithms) - {CONTINUOUS}:
            answering.seconds(name)  # compiles
        rows = max(3, effort.questions // 2)
        say(f"{len(k)} questions, with each of {rows} rows")
        for _ in range(rows):
            operator.push(stream.rows(1, first))
            first += 1
            for name in algorithms:
                spent[name] += operator.answers_seconds if name == CONTINUOUS else answering.seconds(name)
        for name in algorithms:
            findings.add(UPDATE_NS, name, x, 1e9 * spent[name] / rows / len(k))
    return findings


# -- figure 10: k and n known beforehand, or not ----------------------------------------------------------------------


def _known(
    at_x: Callable[[float, Effort], tuple[int, int]],
    values: Sequence[float],
    algorithms: Sequence[str],
    effort: Effort,
    say: Say,
) -> Findings:
    """One query for k pairs of n rows. Those with `++` keep what it needs; the skyband keeps what any K and N need."""
    findings = Findings()
    for x in values:
        k, n = at_x(x, effort)
        for name in algorithms:
            say(f"{name}: k = {k}, n = {n:,}")
            knows = name in (NAIVE_KNOWING, SUPREME_KNOWING)
            spec: Spec = spec_of("s1", ATTRIBUTES, *((n,) if knows else (effort.rows(WINDOW),)), k=k if knows else K)
            contender: Any = Contender(name.removesuffix("++"), spec, points(uniform_points, ATTRIBUTES), effort)
            if not knows:
                contender.operator.watch(np.array([k]), np.array([n]))
            for _ in range(effort.passes):
                contender.turn(effort)
            if contender.full and math.isfinite(contender.best):
                findings.add(COST, name, x, contender.best)
    return findings


known_by_k: Final = partial(_known, lambda k, effort: (int(k), effort.rows(WINDOW)))
known_by_n: Final = partial(_known, lambda n, effort: (K, effort.rows(n)))
