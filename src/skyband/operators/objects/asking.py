"""Ad-hoc questions to the rows an operator holds: one by one from a search tree, or many in one pass.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 (Algorithms 1 and 2) and 6.3 (Algorithm 7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.operators.protocol import ENTER, Answer, AnswersMany, Codes, Floats, Ints, Operator
from skyband.structures.codes import order_by_code
from skyband.structures.ranking import Rows, ranks_before, sort_best_first
from skyband.structures.search_tree import HEIGHT, build, leaves_for, search

NEXT_WINDOW = 0  # as a size: the window that closes next


class Asked(NamedTuple):
    """What questions cover, as times [start, end), and what to call it; by group, then by question."""

    start: Ints
    end: Ints
    at: Ints


class Index(NamedTuple):
    """Rows, group after group, each group's best first, and their search trees."""

    codes: Ints  # of the groups that have rows
    first: Ints  # where the rows of each of these groups start, and where the last one ends
    score: Floats
    time: Ints
    position: Ints
    root: Ints  # by group: its tree's node i is at root + i
    node_time: Ints
    node_row: Codes


class Held:
    """The rows an operator holds, ready for any number of questions until it holds others. Sorts the rows it is given."""

    def __init__(self, group: Ints, rows: Rows) -> None:
        count = int(group.max(initial=-1)) + 1
        start = np.array([0, len(rows)])
        if count > 1:
            order, start = order_by_code(group, count)
            rows = rows[order]
        codes = np.flatnonzero(np.diff(start))
        self.codes: Ints = codes
        self._index = Index(codes, *index_rows(rows, np.append(start[codes], len(rows))))

    def best(self, k: int, asked: Asked) -> Answer:
        """The answer to one question: for each group its k best rows."""
        n, *columns = best_of_each(k, asked, self._index)
        return _answer(n, columns)

    def best_of_many(self, k: Ints, asked: Asked) -> tuple[Answer, Ints]:
        """The answers to many questions, one after the other, and where each starts and the last one ends."""
        room, begin = rooms(k, self._index.first)
        columns = best_of_all(k, asked, self._index, room, begin)
        ends, *columns = joined(begin, *columns)
        return _answer(int(ends[-1]), columns), ends


def _answer(n: int, columns: list[npt.NDArray[np.generic]]) -> Answer:
    at, group, rank, score, position = (column[:n] for column in columns)
    return Answer(at, group, rank, score, position, np.full(n, ENTER, np.int8))


def top_many(operator: Operator, k: Ints, size: Ints) -> tuple[Answer, Ints]:
    """As AnswersMany.top_many, of any operator."""
    if isinstance(operator, AnswersMany):
        return operator.top_many(k, size)
    answers = [operator.top(int(a), None if b == NEXT_WINDOW else int(b)) for a, b in zip(k, size, strict=True)]
    ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
    return Answer(*(np.concatenate(columns) for columns in zip(*answers, strict=True))), ends


# -- compiled --------------------------------------------------------------------------------------------------------


@njit(cache=True)
def index_rows(rows, first):  # type: ignore[no-untyped-def]
    """Rank the rows of each group, and build its tree; returns the fields of an Index but the first."""
    n, groups = len(rows), len(first) - 1
    score, time, position = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    root = np.empty(groups, np.int64)
    nodes = 0
    for g in range(groups):
        root[g] = nodes
        nodes += 2 * leaves_for(first[g + 1] - first[g])
    node_time, node_row = np.empty(nodes, np.int64), np.empty(nodes, np.int32)
    for g in range(groups):
        low, high = first[g], first[g + 1]
        for r in range(low + 1, high):
            if ranks_before(rows[r], rows[r - 1]):
                sort_best_first(rows, low, high)
                break
        for r in range(low, high):
            score[r], time[r], position[r] = rows[r].score, rows[r].time, rows[r].position
        build(time, low, high - low, root[g], node_time, node_row)
    return first, score, time, position, root, node_time, node_row


@njit(cache=True)
def best_of_each(k, asked, index):  # type: ignore[no-untyped-def]
    """Algorithm 2: search the tree of each group. Returns how many rows were found, and columns of an answer."""
    room = 0
    for g in range(len(index.codes)):
        room += min(k, index.first[g + 1] - index.first[g])
    at, group, rank = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    score, position, found = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
    stack = np.empty((HEIGHT, 3), np.int64)
    n = 0
    for g in range(len(index.codes)):
        low, high = index.first[g], index.first[g + 1]
        count = search(
            high - low,
            index.root[g],
            index.node_time,
            index.node_row,
            asked.start[g, 0],
            asked.end[g, 0],
            min(k, high - low),
            found,
            n,
            stack,
        )
        for r in range(count):
            row = low + found[n + r]
            at[n + r], group[n + r], rank[n + r] = asked.at[g, 0], index.codes[g], r + 1
            score[n + r], position[n + r] = index.score[row], index.position[row]
        n += count
    return n, at, group, rank, score, position


@njit(cache=True)
def rooms(k, first):  # type: ignore[no-untyped-def]
    """By question and group, where to write its answer, and how many rows all can have at most."""
    begin, room = np.empty((len(k), len(first) - 1), np.int64), 0
    for q in range(len(k)):
        for g in range(len(first) - 1):
            begin[q, g] = room
            room += min(k[q], first[g + 1] - first[g])
    return room, begin


@njit(cache=True)
def best_of_all(k, asked, index, room, begin):  # type: ignore[no-untyped-def]
    """Algorithm 7: hand each row, best first, to all questions that cover it, the longest windows first.

    Returns how many rows each question and group got, and the columns of their answers, with room between them.
    """
    questions, groups = begin.shape
    got = np.zeros((questions, groups), np.int64)
    at, group, rank = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    score, position = np.empty(room), np.empty(room, np.int64)
    following = np.empty(questions + 1, np.int64)
    order = np.argsort(asked.start[0]) if groups else np.empty(0, np.int64)
    for g in range(groups):
        start, end = asked.start[g], asked.end[g]
        for q in range(1, questions):
            if start[order[q - 1]] > start[order[q]]:
                order = np.argsort(start)
                break
        # The questions that want more rows, as a linked list, in order of their starts; its head is the last entry.
        for q in range(questions):
            following[q] = q + 1
        following[questions] = 0
        for r in range(index.first[g], index.first[g + 1]):
            before, q = questions, following[questions]
            if q == questions:
                break
            time, code = index.time[r], index.codes[g]
            row_score, row_position = index.score[r], index.position[r]
            while q < questions and start[order[q]] <= time:
                i = order[q]
                if time < end[i]:
                    n = got[i, g]
                    to = begin[i, g] + n
                    at[to], group[to], rank[to] = asked.at[g, i], code, n + 1
                    score[to], position[to] = row_score, row_position
                    got[i, g] = n + 1
                    if n + 1 == k[i]:
                        following[before] = following[q]
                        q = following[q]
                        continue
                before, q = q, following[q]
    return got, at, group, rank, score, position


@njit(cache=True)
def joined(begin, got, at, group, rank, score, position):  # type: ignore[no-untyped-def]
    """The same columns without the room between answers, and where each question's rows start and the last ones end."""
    questions, groups = begin.shape
    ends = np.zeros(questions + 1, np.int64)
    n = 0
    for q in range(questions):
        for g in range(groups):
            for r in range(begin[q, g], begin[q, g] + got[q, g]):
                if n != r:
                    at[n], group[n], rank[n], score[n], position[n] = at[r], group[r], rank[r], score[r], position[r]
                n += 1
        ends[q + 1] = n
    return ends, at, group, rank, score, position
