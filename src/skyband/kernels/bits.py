"""Sets of small numbers as bits, 64 to a word: how many there are before one, and which is next to it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skyband.kernels.compiling import inlined

NONE = -1
_WORD = 64
_SHIFT = 6  # a number's word, and its bit in that
_MASK = _WORD - 1


@intrinsic
def ones(_: Any, word: Any) -> Any:
    """How many bits are set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), codegen


@intrinsic
def lowest(_: Any, word: Any) -> Any:
    """The first bit that is set, of a word that has one."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def highest(_: Any, word: Any) -> Any:
    """The last bit that is set, of a word that has one."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), _WORD - 1), above)

    return types.int64(types.int64), codegen


@inlined
def fill(bits, count):
    """The set of all numbers below `count`, of which there are some."""
    last = (count - 1) >> _SHIFT
    for word in range(last):
        bits[word] = -1
    bits[last] = -1 if count & _MASK == 0 else (1 << (count & _MASK)) - 1


@inlined
def insert(bits, x):
    bits[x >> _SHIFT] |= 1 << (x & _MASK)


@inlined
def delete(bits, x):
    bits[x >> _SHIFT] &= ~(1 << (x & _MASK))


@inlined
def count_below(bits, x):
    """How many numbers are less than x, which is below the end."""
    found = ones(bits[x >> _SHIFT] & ((1 << (x & _MASK)) - 1))
    for word in range(x >> _SHIFT):
        found += ones(bits[word])
    return found


@inlined
def next_from(bits, x, count):
    """The least number that is x or more and below `count`, or NONE."""
    if x >= count:
        return NONE
    word, rest = x >> _SHIFT, bits[x >> _SHIFT] & -(1 << (x & _MASK))
    while rest == 0:
        word += 1
        if word << _SHIFT >= count:
            return NONE
        rest = bits[word]
    return (word << _SHIFT) + lowest(rest)


@inlined
def last_until(bits, x):
    """The largest number that is x or less, or NONE; x may be NONE, too."""
    if x < 0:
        return NONE
    word, bit = x >> _SHIFT, 1 << (x & _MASK)
    rest = bits[word] & (bit | (bit - 1))
    while rest == 0:
        word -= 1
        if word < 0:
            return NONE
        rest = bits[word]
    return (word << _SHIFT) + highest(rest)
