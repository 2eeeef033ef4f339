"""Queues of rows in order of time: a band (skyband.py) that is used from its two ends."""

from __future__ import annotations

from skyband.kernels.compiling import inlined, part
from skyband.kernels.skyband import first_row, rehouse


@part
def push_back(pool, queue, score, time, position, mark):
    """Add a row at the end, with `mark` in its field `last`. Returns its index in the pool."""
    if queue.gap + queue.length == queue.capacity:
        make_room(pool, queue, 8)
    i = first_row(queue) + queue.length
    row = pool.rows[i]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, mark, 0
    queue.length += 1
    return i


@part
def make_room(pool, queue, n):
    """Make room for n more rows at the end."""
    if not room_behind(pool, queue, n):
        rehouse(pool, queue, n)


@part
def room_behind(pool, queue, n):
    """Is there room for n more rows at the end of the slab? It may move the rows to the start of the slab."""
    if queue.gap + queue.length + n > queue.capacity and queue.gap > queue.length:
        # More rows have left than remain, so moving the others pays.
        start = first_row(queue)
        for j in range(queue.length):
            pool.rows[queue.offset + j] = pool.rows[start + j]
        queue.gap = 0
    return queue.gap + queue.length + n <= queue.capacity


@part
def push_in_order(pool, queue, score, time, position, mark):
    """Insert a row in order of time, then position: usually at the end."""
    i = push_back(pool, queue, score, time, position, mark)
    rows, start = pool.rows, first_row(queue)
    while i > start and (rows[i - 1].time > time or (rows[i - 1].time == time and rows[i - 1].position > position)):
        rows[i] = rows[i - 1]
        i -= 1
    row = rows[i]
    row.score, row.time, row.position, row.last, row.flag = score, time, position, mark, 0


@inlined
def pop_front(queue, n):
    """Remove the first n rows."""
    queue.gap += n
    queue.length -= n


@part
def find(pool, queue, time, position):
    """The index in the pool of the first row that is not before this (time, position)."""
    rows, start = pool.rows, first_row(queue)
    low, high = start, start + queue.length
    while low < high:
        middle = (low + high) >> 1
        row = rows[middle]
        if row.time < time or (row.time == time and row.position < position):
            low = middle + 1
        else:
            high = middle
    return low
