"""Loops over a column of times: are they in order, within bounds, and not so far ahead that they are probably wrong?"""

from __future__ import annotations

from skyband.kernels.compiling import kernel

_AT_ONCE = 4096  # how many numbers are compared before the loop looks whether one was out of order


@kernel
def ascends(values):
    """Is no number smaller than the one before it? The loop runs as fast as memory delivers the numbers."""
    for start in range(0, len(values) - 1, _AT_ONCE):
        part = values[start : start + _AT_ONCE + 1]  # one more: it is compared with the next ones, too
        smaller = 0
        for j in range(1, len(part)):
            smaller += part[j] < part[j - 1]
        if smaller:
            return False
    return True


@kernel
def all_within(values, limit):
    """Are all these numbers between -limit and limit, both excluded?"""
    beyond = 0
    for j in range(len(values)):
        beyond += (values[j] >= limit) | (values[j] <= -limit)
    return beyond == 0


# Two clocks: the largest time accepted, and the time of the row before if it was set aside.
LATEST, ASIDE = 0, 1
NO_TIME = -(2**63)


@kernel
def set_aside(time, most, clocks, kept):
    """Set aside rows that are more than `most` ahead of all accepted ones, and mark the others in `kept`.

    A row is accepted if the row just before it was set aside and its time is within `most`. So a single row never moves
    the clock far, but two in succession do. Returns the number of rows that are set aside.
    """
    aside = 0
    for i in range(len(time)):
        ahead = clocks[LATEST] != NO_TIME and time[i] - clocks[LATEST] > most
        again = clocks[ASIDE] != NO_TIME and abs(time[i] - clocks[ASIDE]) <= most
        kept[i] = not ahead or again
        clocks[ASIDE] = NO_TIME if kept[i] else time[i]
        if kept[i]:
            clocks[LATEST] = max(clocks[LATEST], time[i])
        else:
            aside += 1
    return aside
