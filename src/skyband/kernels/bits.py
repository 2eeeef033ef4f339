"""Sets of small numbers as bits, 64 to a word, with fast counts and neighbours."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skyband.kernels.compiling import inlined

NONE = -1
_WORD = 64
_SHIFT = 6  # x >> _SHIFT is the word of x, and x & _MASK its bit there
_MASK = _WORD - 1


@intrinsic
def ones(_: Any, word: Any) -> Any:
    """The number of bits that are set."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), codegen


@intrinsic
def lowest(_: Any, word: Any) -> Any:
    """The index of the lowest bit that is set; the word must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def highest(_: Any, word: Any) -> Any:
    """The index of the highest bit that is set; the word must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), _WORD - 1), above)

    return types.int64(types.int64), codegen


@inlined
def fill(bits, count):
    """Make it the set of all numbers below `count`, which must be positive."""
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
    """How many numbers of the set are less than x. There must be a word for x."""
    found = ones(bits[x >> _SHIFT] & ((1 << (x & _MASK)) - 1))
    for word in range(x >> _SHIFT):
        found += ones(bits[word])
    return found


@inlined
def next_from(bits, x, count):
    """The smallest number of the set from x on and below `count`; NONE if there is none."""
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
    """The largest number of the set up to x; NONE if there is none, or if x is NONE."""
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
