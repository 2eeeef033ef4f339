"""64-bit whole numbers in code that stores and compares float64.

A float64 column can store the bits of whole numbers; `whole_of` reads them. A whole-number score is ranked by a float64
with the same order: the float that has the number's magnitude as its bits, moved up beyond the denormal floats, which
processors may treat as 0. So algorithms that rank floats rank whole numbers exactly.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from skyband.kernels.compiling import inlined, kernel

NULL: Final = -(2**63)
NEAR: Final = 2**52  # float64 has every whole number up to twice this
LIFT: Final = 2**52  # the bits of the smallest float that is not denormal


def _same_bits(result: Any, argument: Any) -> Any:
    def codegen(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(result))

    return result(argument), codegen


@intrinsic
def whole_of(_: Any, number: Any) -> Any:
    """The whole number with the bits of this float."""
    return _same_bits(types.int64, types.float64)


@intrinsic
def float_of(_: Any, number: Any) -> Any:
    """The float with the bits of this whole number."""
    return _same_bits(types.float64, types.int64)


@inlined
def rank_key(number):
    """The float64 by which a whole number is ranked; NaN for null."""
    magnitude = float_of(abs(number) + LIFT)
    return np.nan if number == NULL else (-magnitude if number < 0 else magnitude)


@inlined
def distance_from(number, origin):
    """The exact distance of a number from another, as a float; infinity if the number is null or too far away.

    The difference of two such distances is exact, too.
    """
    far = abs(1.0 * number - 1.0 * origin) > 2.0 * NEAR
    moved = number - origin
    return np.inf if (number == NULL) | far | (abs(moved) > NEAR) else 1.0 * moved


@kernel
def distances_from(bits, origin, out):
    """`distance_from` for a column."""
    for i in range(len(bits)):
        out[i] = distance_from(whole_of(bits[i]), origin)


def from_keys(keys: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Convert the floats of `rank_key` back to whole numbers.

    >>> from_keys(np.array([2.2250738585072014e-308, -2.225073858507202e-308])).tolist()
    [0, -1]
    """
    magnitude = np.abs(keys).view(np.int64) - LIFT
    return np.where(keys < 0, -magnitude, magnitude)
