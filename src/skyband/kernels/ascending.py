"""Whether numbers come in order."""

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
