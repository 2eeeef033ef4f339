"""Ad-hoc questions about the rows that an operator holds: one by one with a search tree, or many in one pass.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 (Algorithms 1 and 2) and 6.3 (Algorithm 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skyband.core.emit import ENTER
from skyband.core.operator import Answer, AnswersMany, Codes, Floats, Ints, Operator
from skyband.kernels.codes import order_by_code
from skyband.kernels.compiling import allocating, kernel
from skyband.kernels.ranking import Rows, is_best_first, sort_best_first
from skyband.kernels.search_tree import HEIGHT, build, leaves_for, search
from skyband.windows import NEVER

NEXT_WINDOW = 0  # the size that stands for the window that closes next
NOTHING = -2 * NEVER  # the end of that window if no window will close


class Spans(NamedTuple):
    """The times [start, end) that questions cover, and the `at` of their answers; by group, then by question."""

    start: Ints
    end: Ints
    at: Ints

    @classmethod
    def room(cls, groups: int, questions: int) -> Spans:
        return cls(*np.empty((3, groups, questions), np.int64))


class Index(NamedTuple):
    """Rows by group, each group's best first, and a search tree for each group."""

    codes: Ints  # of the groups that have rows
    first: Ints  # where the rows of each group begin, and where the last one's end
    score: Floats
    time: Ints
    position: Ints
    root: Ints  # by group: node i of its tree is at root + i
    node_time: Ints
    node_row: Codes


class HeldIndex:
    """The rows that an operator holds, sorted and indexed for questions. It is valid until the operator changes.

    It sorts the given rows in place.
    """

    def __init__(self, group: Ints, rows: Rows) -> None:
        count = int(group.max(initial=-1)) + 1
        start = np.array([0, len(rows)])
        if count > 1:
            order, start = order_by_code(group, count)
            rows = rows[order]
        codes = np.flatnonzero(np.diff(start))
        self.codes: Ints = codes
        self._index = Index(codes, *index_rows(rows, np.append(start[codes], len(rows))))
        self.time: Ints = self._index.time

    def best(self, k: int, spans: Spans) -> Answer:
        """Answer one question: the k best rows of each group."""
        first = self._index.first
        room = min(k, len(self._index.score)) if len(first) == 2 else int(np.minimum(np.diff(first), k).sum())
        columns = _columns(room)
        n = best_of_each(k, spans, self._index, columns)
        return _answer(n, columns)

    def best_of_many(self, k: Ints, spans: Spans) -> tuple[Answer, Ints]:
        """Answer many questions: the answers one after the other, and the offsets at which each begins and the last
        one ends."""
        room, begin = rooms(k, self._index.first)
        found, got = best_of_all(k, spans, self._index, begin, room)
        n = int(got.sum())
        columns = _columns(n)
        ends = write_all(found, got, begin, spans, self._index, columns)
        return _answer(n, columns), ends


_ENTERING = np.full(1024, ENTER, np.int8)  # made once, because an answer takes only microseconds


class Columns(NamedTuple):
    """The columns of an answer, as the compiled loops write them."""

    at: Ints
    group: Codes
    rank: Codes
    score: Floats
    position: Ints


def _columns(room: int) -> Columns:
    return Columns(
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
    )


def _answer(n: int, columns: Columns) -> Answer:
    if n < len(columns.at):
        at, group, rank, score, position = columns
        columns = Columns(at[:n], group[:n], rank[:n], score[:n], position[:n])
    return Answer(*columns, _ENTERING[:n] if n <= len(_ENTERING) else np.full(n, ENTER, np.int8))


def top_many(operator: Operator[Any, Any, Any], k: Ints, size: Ints) -> tuple[Any, Ints]:
    """`AnswersMany.top_many` for any operator."""
    return operator.top_many(k, size) if isinstance(operator, AnswersMany) else one_by_one(operator, k, size)


def one_by_one(operator: Operator[Any, Any, Any], k: Ints, size: Ints) -> tuple[Any, Ints]:
    """`AnswersMany.top_many` by asking `Operator.top` each question."""
    answers = [operator.top(int(a), None if b == NEXT_WINDOW else int(b)) for a, b in zip(k, size, strict=True)]
    ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
    if not answers:
        return _joined([operator.top(1, None)], slice(0, 0)), ends
    return _joined(answers, slice(None)), ends


def _joined(answers: Sequence[Any], which: slice) -> Any:
    """Concatenate answers, whose fields are columns, and select these rows."""
    columns: Iterable[Sequence[Any]] = zip(*answers, strict=True)
    return type(answers[0])(*(np.concatenate(column)[which] for column in columns))


# -- compiled --------------------------------------------------------------------------------------------------------


@allocating
def index_rows(rows, first):  # type: ignore[no-untyped-def]
    """Rank the rows of each group, and build its tree. Returns the fields of an Index except `codes`."""
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
        if not is_best_first(rows, low, high):
            sort_best_first(rows, low, high)
        for r in range(low, high):
            score[r], time[r], position[r] = rows[r].score, rows[r].time, rows[r].position
        build(time, low, high - low, root[g], node_time, node_row)
    return first, score, time, position, root, node_time, node_row


@kernel
def cover(now, size, numbered, every, whole, closing, spans):  # type: ignore[no-untyped-def]
    """Write the times that questions of these sizes cover to `spans`.

    `now` and `closing`, the end of the window that closes next, are by group. `every` is 0 without a slide; `whole` is
    the window's size. If no window will close, a question about it covers nothing.
    """
    for g in range(len(now)):
        for q in range(len(size)):
            if size[q] != NEXT_WINDOW or every == 0:
                spans.end[g, q] = now[g] if numbered else now[g] + 1
                spans.start[g, q] = spans.end[g, q] - (size[q] if size[q] != NEXT_WINDOW else whole)
                spans.at[g, q] = now[g]
            elif closing[g] == NOTHING:
                spans.start[g, q] = spans.end[g, q] = spans.at[g, q] = 0
            else:
                spans.start[g, q], spans.end[g, q], spans.at[g, q] = closing[g] - whole, closing[g], closing[g]


@allocating
def best_of_each(k, spans, index, out):  # type: ignore[no-untyped-def]
    """Algorithm 2: search the tree of each group. Returns the number of rows found."""
    found, stack = np.empty(len(out.at), np.int64), np.empty((HEIGHT, 3), np.int64)
    n = 0
    for g in range(len(index.codes)):
        low, rows = index.first[g], index.first[g + 1] - index.first[g]
        start, end, at = spans.start[g, 0], spans.end[g, 0], spans.at[g, 0]
        count = search(rows, index.root[g], index.node_time, index.node_row, start, end, min(k, rows), found, n, stack)
        for r in range(n, n + count):
            row = low + found[r]
            out.at[r], out.group[r], out.rank[r] = at, index.codes[g], r - n + 1
            out.score[r], out.position[r] = index.score[row], index.position[row]
        n += count
    return n


@allocating
def rooms(k, first):  # type: ignore[no-untyped-def]
    """The most rows that all answers together can have, and by question and group where to write them."""
    begin, room = np.empty((len(k), len(first) - 1), np.int64), 0
    for q in range(len(k)):
        for g in range(len(first) - 1):
            begin[q, g] = room
            room += min(k[q], first[g + 1] - first[g])
    return room, begin


@allocating
def best_of_all(k, spans, index, begin, room):  # type: ignore[no-untyped-def]
    """Algorithm 7: give each row, best first, to all questions that cover it, the longest windows first.

    Returns the rows by question and group, from `begin` on, and how many each got.
    """
    questions, groups = begin.shape
    got, found = np.zeros((questions, groups), np.int64), np.empty(room, np.int32)
    order = np.argsort(spans.start[0]) if groups else np.empty(0, np.int64)
    # For each question, in this order: its times [start, end), where its next row goes, and where its room ends.
    start, end, to, full = (
        np.empty(questions, np.int64),
        np.empty(questions, np.int64),
        np.empty(questions, np.int64),
        np.empty(questions, np.int64),
    )
    following = np.empty(questions + 1, np.int64)
    for g in range(groups):
        for q in range(1, questions):
            if spans.start[g, order[q - 1]] > spans.start[g, order[q]]:
                order = np.argsort(spans.start[g])
                break
        rows = index.first[g + 1] - index.first[g]
        for q in range(questions):
            i = order[q]
            start[q], end[q], to[q] = spans.start[g, i], spans.end[g, i], begin[i, g]
            full[q] = begin[i, g] + min(k[i], rows)
            following[q] = q + 1
        # The questions that need more rows form a linked list; its head is the last entry.
        following[questions] = 0
        for r in range(index.first[g], index.first[g + 1]):
            before, q, time = questions, following[questions], index.time[r]
            if q == questions:
                break
            while q < questions and start[q] <= time:
                if time < end[q]:
                    found[to[q]] = r
                    to[q] += 1
                    if to[q] == full[q]:
                        q = following[before] = following[q]
                        continue
                before, q = q, following[q]
        for q in range(questions):
            got[order[q], g] = to[q] - begin[order[q], g]
    return found, got


@allocating
def write_all(found, got, begin, spans, index, out):  # type: ignore[no-untyped-def]
    """Write the answers one after the other. Returns the offsets at which each begins and the last one ends."""
    questions, groups = begin.shape
    ends = np.zeros(questions + 1, np.int64)
    n = 0
    for q in range(questions):
        for g in range(groups):
            at, code, low = spans.at[g, q], index.codes[g], begin[q, g]
            for r in range(got[q, g]):
                row = found[low + r]
                out.at[n], out.group[n], out.rank[n] = at, code, r + 1
                out.score[n], out.position[n] = index.score[row], index.position[row]
                n += 1
        ends[q + 1] = n
    return ends
