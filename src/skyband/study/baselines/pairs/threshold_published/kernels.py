"""The lists that rows are linked in: by value, one for each local score, and by age. Figures 6 (a) and 7.

Each list is a skip list, so that a row finds its place in O(log n). Links lead to the row before and behind; in lists
for rows of the same colour, colour after colour, also these are of that colour; in lists for different colours, two
more links lead to the nearest rows of another colour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.study.baselines.pairs.threshold_published.local_scores import DISTANCE, GREATEST, PRODUCT, SUM

HEAD, NONE = 0, -1  # as a node: before all others; behind the last one
LEVELS = 12  # of a skip list; a fourth of the nodes of a level are in the next one, too
LEFT, RIGHT = range(2)  # of a row in a list
FREE, WALKS, MET = range(3)  # in `numbers`: free nodes; new rows so far that met others, and how many they met


class Lists(NamedTuple):
    """By node: a row has the same one in all lists. By list: of each local score, then the one by age."""

    after: npt.NDArray[np.int32]  # by list, node and level
    before: npt.NDArray[np.int32]  # by list and node
    other_after: npt.NDArray[np.int32]  # by list and node: the nearest of another colour
    other_before: npt.NDArray[np.int32]
    value: Floats  # by list and node; in the list by age: the row's number
    number: Ints  # of the row
    group: Ints  # its colour in lists for rows of the same colour; otherwise 0
    colour: Ints  # its colour in lists for rows of different colours; otherwise 0
    met: Ints  # by which new row it was met last: they are counted
    free: Ints  # [0, FREE): nodes without a row
    numbers: Ints
    node_of: npt.NDArray[np.int32]  # by the number of a row, modulo the room: its node; NONE: it is in no list


def new_lists(local: int, room: int) -> Lists:
    lists = local + 1
    before, other_after, other_before = np.full((3, lists, room + 1), NONE, np.int32)
    number, group, colour, met = np.zeros((4, room + 1), np.int64)
    return Lists(
        np.full((lists, room + 1, LEVELS), NONE, np.int32),
        before,
        other_after,
        other_before,
        np.zeros((lists, room + 1)),
        number,
        group,
        colour,
        met,
        np.arange(1, room + 1)[::-1].copy(),
        np.array([room, 0, 0]),
        np.full(room, NONE, np.int32),
    )


@inlined
def comes_before(lists, c, x, y):
    if lists.group[x] != lists.group[y]:
        return lists.group[x] < lists.group[y]
    if lists.value[c, x] != lists.value[c, y]:
        return lists.value[c, x] < lists.value[c, y]
    return x < y


@inlined
def height_of(number):
    """The highest level of a row."""
    bits, height = (number + 1) * 6364136223846793005 >> 20, 0
    while (bits & 3) == 0 and height < LEVELS - 1:
        bits, height = bits >> 2, height + 1
    return height


@part
def link(lists, c, node, height):
    at = HEAD
    for level in range(LEVELS - 1, -1, -1):
        then = lists.after[c, at, level]
        while then != NONE and comes_before(lists, c, then, node):
            at, then = then, lists.after[c, then, level]
        if level <= height:
            lists.after[c, node, level], lists.after[c, at, level] = then, node
    then = lists.after[c, node, 0]
    lists.before[c, node] = at
    if then != NONE:
        lists.before[c, then] = node


@part
def unlink(lists, c, node):
    at = HEAD
    for level in range(LEVELS - 1, -1, -1):
        then = lists.after[c, at, level]
        while then != NONE and comes_before(lists, c, then, node):
            at, then = then, lists.after[c, then, level]
        if then == node:
            lists.after[c, at, level] = lists.after[c, node, level]
    then = lists.after[c, node, 0]
    if then != NONE:
        lists.before[c, then] = lists.before[c, node]


@part
def set_others(lists, c, left, right):
    """Two rows are neighbours now, or one of them is none: their runs of one colour get links across this place."""
    alike = left != HEAD and right != NONE and lists.colour[left] == lists.colour[right]
    after = NONE if right == NONE else lists.other_after[c, right] if alike else right
    before = HEAD if left == HEAD else lists.other_before[c, left] if alike else left
    at = left
    while at != HEAD and lists.colour[at] == lists.colour[left]:
        lists.other_after[c, at] = after
        at = lists.before[c, at]
    at = right
    while at != NONE and lists.colour[at] == lists.colour[right]:
        lists.other_before[c, at] = before
        at = lists.after[c, at, 0]


@kernel
def add(lists, columns, listed, index, number, group, colour, chromatic):
    """List the row at this index. `chromatic`: for pairs of different colours."""
    lists.numbers[FREE] -= 1
    node = lists.free[lists.numbers[FREE]]
    room, age = len(lists.node_of), len(listed)
    lists.node_of[number % room], lists.number[node] = node, number
    lists.group[node], lists.colour[node], lists.met[node] = group, colour, 0
    for c in range(age + 1):
        lists.value[c, node] = columns[listed[c], index] if c < age else number
        link(lists, c, node, height_of(number))
        if chromatic:
            # What the right side needs to know of the left one is known only then.
            set_others(lists, c, node, lists.after[c, node, 0])
            set_others(lists, c, lists.before[c, node], node)
            set_others(lists, c, node, lists.after[c, node, 0])


@kernel
def drop(lists, first, end, chromatic):
    """Rows numbered [first, end) leave."""
    room = len(lists.node_of)
    for number in range(first, end):
        node = lists.node_of[number % room]
        if node == NONE:
            continue
        for c in range(len(lists.value)):
            unlink(lists, c, node)
            if chromatic:
                set_others(lists, c, lists.before[c, node], lists.after[c, node, 0])
        lists.free[lists.numbers[FREE]] = node
        lists.numbers[FREE] += 1


@kernel
def make_place(lists, number, end):
    """The rows numbered [number, end) get the next numbers; the row of this number is listed later, if at all."""
    room, age = len(lists.node_of), len(lists.value) - 1
    for old in range(end - 1, number - 1, -1):
        node = lists.node_of[old % room]
        lists.node_of[(old + 1) % room] = node
        if node != NONE:
            lists.number[node], lists.value[age, node] = old + 1, old + 1
    lists.node_of[number % room] = NONE


# -- from a row, in the order of a local score -------------------------------------------------------------------------


@inlined
def local_score(kind, x, y):
    if kind == DISTANCE:
        return abs(x - y)
    if kind == SUM:
        return x + y
    if kind == PRODUCT:
        return x * y
    return max(x, y) if kind == GREATEST else min(x, y)


@inlined
def neighbour(lists, c, at, forward, node, chromatic):
    """The next row behind or before `at` that may be a partner of `node`."""
    then = lists.after[c, at, 0] if forward else lists.before[c, at]
    if chromatic and then > HEAD and lists.colour[then] == lists.colour[node]:
        then = lists.other_after[c, then] if forward else lists.other_before[c, then]
    return then


@inlined
def on_side(lists, c, at, side, node):
    """`at`, if it is a row on this side of `node`, of its group; otherwise NONE."""
    if at <= HEAD or at == node or lists.group[at] != lists.group[node]:
        return NONE
    return at if comes_before(lists, c, at, node) == (side == LEFT) else NONE


@part
def end_of_group(lists, c, node, side, chromatic):
    """The first or the last row that may be a partner of `node`; NONE or HEAD: there is none."""
    at = HEAD
    for level in range(LEVELS - 1, -1, -1):
        then = lists.after[c, at, level]
        while then != NONE and lists.group[then] < lists.group[node] + (side == RIGHT):
            at, then = then, lists.after[c, then, level]
    if side == LEFT:
        return neighbour(lists, c, at, True, node, chromatic)
    if chromatic and at > HEAD and lists.colour[at] == lists.colour[node]:
        return lists.other_before[c, at]
    return at


@part
def begin(lists, node, kinds, ways, chromatic, cursor, forward):
    """By list and side: where to begin and which way to go, so that local scores come best first; and by age."""
    age = len(kinds)
    lists.numbers[WALKS] += 1
    for c in range(age + 1):
        for side in range(2):
            outward = side == RIGHT
            near = on_side(lists, c, neighbour(lists, c, node, outward, node, chromatic), side, node)
            cursor[c, side], forward[c, side] = near, outward
            if c < age and near != NONE:
                far, x = end_of_group(lists, c, node, side, chromatic), lists.value[c, node]
                best = ways[c] * local_score(kinds[c], x, lists.value[c, far])
                if best > ways[c] * local_score(kinds[c], x, lists.value[c, near]):
                    cursor[c, side], forward[c, side] = far, not outward


@inlined
def better_side(lists, c, node, kinds, ways, cursor):
    """Where the next best row of this list is. Of the list by age: the younger ones first, all pairs alike in age."""
    left, right = cursor[c, LEFT], cursor[c, RIGHT]
    if left == NONE or right == NONE or c == len(kinds):
        return LEFT if right == NONE else RIGHT
    x = lists.value[c, node]
    of_left = ways[c] * local_score(kinds[c], x, lists.value[c, left])
    return RIGHT if ways[c] * local_score(kinds[c], x, lists.value[c, right]) > of_left else LEFT


@part
def take_next(lists, c, side, node, chromatic, cursor, forward):
    """The row there; the next one takes its place."""
    found = cursor[c, side]
    then = neighbour(lists, c, found, forward[c, side], node, chromatic)
    cursor[c, side] = on_side(lists, c, then, side, node)
    return found
