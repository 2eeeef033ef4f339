"""Writes answers: the whole ranking, or the objects that entered and left it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import takes_back
from skyband.core.operator import Codes, Floats, Ints
from skyband.kernels.compiling import inlined, part
from skyband.problems.across.drivers.kernels.slots import is_later


class Shown(NamedTuple):
    """The last answer, and room for the next one; each has room for the most entries that there can be."""

    code: Codes
    score: Floats
    time: Ints
    values: Floats  # a row for each entry, a column for each stream
    top_code: Codes
    top_score: Floats
    top_time: Ints
    top_values: Floats
    mark: npt.NDArray[np.int8]  # scratch space by object, all 0 between answers
    number: Ints  # one entry: the number of entries of the last answer


class Out(NamedTuple):
    """The columns of answers, as the loops write them."""

    at: Ints
    rank: Codes
    score: Floats
    code: Codes
    change: npt.NDArray[np.int8]
    time: Ints
    values: Floats
    recall: Floats  # 1, unless an algorithm writes something else


def new_shown(entries: int, codes: int, streams: int) -> Shown:
    def some() -> tuple[Codes, Floats, Ints, Floats]:
        times = np.zeros(entries, np.int64)
        return np.zeros(entries, np.int32), np.zeros(entries), times, np.full((entries, streams), np.nan)

    return Shown(*some(), *some(), np.zeros(codes, np.int8), np.zeros(1, np.int64))


def new_out(entries: int, streams: int) -> Out:
    return Out(
        np.empty(entries, np.int64),
        np.empty(entries, np.int32),
        np.empty(entries),
        np.empty(entries, np.int32),
        np.empty(entries, np.int8),
        np.empty(entries, np.int64),
        np.empty((entries, streams)),
        np.ones(entries),
    )


@inlined
def rank_in_top(shown, latest, found, k, code, score, time, position):
    """Insert an object into the top, best first, if it is among the k best so far. Returns the size of the top.

    `latest` has the time and position of the most recent row of each object.
    """
    top_code, top_score = shown.top_code, shown.top_score
    i = found
    while i > 0 and (
        score > top_score[i - 1]
        or (score == top_score[i - 1] and is_later(time, position, latest[0, i - 1], latest[1, i - 1]))
    ):
        i -= 1
    if i == k:
        return found
    found = min(found + 1, k)
    for j in range(found - 1, i, -1):
        top_code[j], top_score[j] = top_code[j - 1], top_score[j - 1]
        latest[0, j], latest[1, j] = latest[0, j - 1], latest[1, j - 1]
    top_code[i], top_score[i], latest[0, i], latest[1, i] = code, score, time, position
    return found


@inlined
def _write(out, n, at, rank, change, code, score, time, values, i):
    out.at[n] = at
    out.rank[n] = rank
    out.change[n] = change
    out.code[n] = code[i]
    out.score[n] = score[i]
    out.time[n] = time[i]
    for s in range(out.values.shape[1]):
        out.values[n, s] = values[i, s]


@part
def show(at, found, emit, shown, out, n):
    """Emit the answer, which is the first `found` entries of the top; writes from entry n on, and returns the end."""
    if not takes_back(emit):
        for i in range(found):
            _write(out, n, at, i + 1, 1, shown.top_code, shown.top_score, shown.top_time, shown.top_values, i)
            n += 1
        return n
    before = shown.number[0]
    for i in range(before):
        shown.mark[shown.code[i]] = 1
    for i in range(found):
        shown.mark[shown.top_code[i]] |= 2
    for i in range(before):
        if shown.mark[shown.code[i]] == 1:
            _write(out, n, at, i + 1, -1, shown.code, shown.score, shown.time, shown.values, i)
            n += 1
        shown.mark[shown.code[i]] = 0
    return _enter(at, found, before, shown, out, n)


@part
def _enter(at, found, before, shown, out, n):
    """Write the objects that entered, and make the new answer the last one. Objects that stay have no mark any more."""
    for i in range(found):
        code = shown.top_code[i]
        if shown.mark[code]:
            _write(out, n, at, i + 1, 1, shown.top_code, shown.top_score, shown.top_time, shown.top_values, i)
            n += 1
            shown.mark[code] = 0
    for i in range(found):
        shown.code[i] = shown.top_code[i]
        shown.score[i], shown.time[i] = shown.top_score[i], shown.top_time[i]
        for s in range(shown.values.shape[1]):
            shown.values[i, s] = shown.top_values[i, s]
    shown.number[0] = found
    return n
