"""Loops over a column of times: are they in order, and which of them are so far ahead that they are likely wrong?"""

from __future__ import annotations

from skyband.kernels.compiling import kernel

_AT_ONCE = 4096  # numbers, after which it pays to ask whether one of them was out of order


@kernel
def ascends(values):
    """Is no number smaller than the one before it? Numbers are read once, as fast as memory gives them."""
    for start in range(0, len(values) - 1, _AT_ONCE):
        part = values[start : start + _AT_ONCE + 1]  # one more: it is compared with the next ones, too
        smaller = 0
        for j in range(1, len(part)):
            smaller += part[j] < part[j - 1]
        if smaller:
            return False
    return True


# The largest time that was taken, and that of the row before, if it was set aside.
LATEST, ASIDE = 0, 1
NO_TIME = -(2**63)


@kernel
def set_aside(time, most, clocks, kept):
    """Mark the rows whose time is at most `most` later than all before, or than the row before that was set aside.

    So one row alone never moves the clock far, but two in a row do: then the rows before them are old. Returns how many
    are set aside.
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
