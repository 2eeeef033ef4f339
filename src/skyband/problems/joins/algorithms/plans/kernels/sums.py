"""Exact sums in whole numbers: a number is one int64 if it and all its multiples fit there, with room to spare. Else it
is a row of limbs of 31 bits, least significant first, the last one signed.

A float64 is a whole number times a power of two, so a sum of float64 is one too. With the power of two chosen below
every number seen, adding, taking back and multiplying by counts are exact, in any order; only what is shown is rounded,
once, to the nearest float64, as `math.fsum` of the live rows would.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import kernel, part

BITS = 31
ONE_LIMB = 62  # bits that a number of one limb may have
LIMB = 1 << BITS
MASK = LIMB - 1
NO_LOW, NO_HIGH = 1 << 20, -(1 << 20)  # of no number: a lowest bit above, and a highest one below all others

EXPONENT = 0x7FF
MANTISSA = (1 << 52) - 1
SIGN = -(2**63)


@part
def add_scaled(target, row, to, source, source_row, start, plain, limbs, factor):
    """target += factor * source, for `plain` counts and a number of `limbs` limbs behind them."""
    counts = plain + limbs if limbs <= 1 else plain
    for c in range(counts):
        target[row, to + c] += source[source_row, start + c] * factor
    if limbs > 1:
        if -LIMB < factor < LIMB:
            _add_limbs(target, row, to + plain, source, source_row, start + plain, limbs, factor)
        else:
            # In two steps, so that no product exceeds 62 bits.
            low, high, top = factor & MASK, factor >> BITS, limbs - 1
            _add_limbs(target, row, to + plain, source, source_row, start + plain, limbs, low)
            _add_limbs(target, row, to + plain + 1, source, source_row, start + plain, top, high)
            # The last limb belongs one above the last of the target: there is room for the product, so it is a sign.
            target[row, to + plain + top] += (source[source_row, start + plain + top] * high) << BITS


@part
def _add_limbs(target, row, to, source, source_row, start, limbs, factor):
    carry = np.int64(0)
    for c in range(limbs - 1):
        total = target[row, to + c] + source[source_row, start + c] * factor + carry
        target[row, to + c] = total & MASK
        carry = total >> BITS
    if limbs > 0:
        target[row, to + limbs - 1] += source[source_row, start + limbs - 1] * factor + carry


@part
def write_int(value, target, to, limbs):
    """The limbs of an int64, in row 0."""
    for c in range(limbs - 1):
        target[0, to + c] = value & MASK
        value >>= BITS
    target[0, to + limbs - 1] = value


@part
def add_int(value, sign, target, row, to, limbs):
    """Add an int64, or take it off."""
    if limbs == 1:
        target[row, to] += sign * value
        return
    carry = np.int64(0)
    for c in range(limbs - 1):
        total = target[row, to + c] + sign * (value & MASK) + carry
        target[row, to + c] = total & MASK
        carry = total >> BITS
        value >>= BITS
    target[row, to + limbs - 1] += sign * value + carry


@part
def write_float(bits, target, to, limbs, low):
    """The limbs of a finite float64, given as its bits, in units of 2**low, in row 0. Limbs may be negative."""
    for c in range(limbs):
        target[0, to + c] = 0
    exponent = (bits >> 52) & EXPONENT
    mantissa = bits & MANTISSA
    if exponent > 0:
        mantissa |= 1 << 52
    else:
        exponent = 1
    if mantissa == 0:
        return
    at = exponent - 1075 - low
    if at < 0:
        mantissa >>= -at  # these bits are 0, or low would be lower
        at = 0
    sign = -1 if bits < 0 else 1
    if limbs == 1:
        target[0, to] = sign * (mantissa << at)
        return
    limb, shift = at // BITS, at % BITS
    first = (mantissa & (MASK >> shift)) << shift
    rest = mantissa >> (BITS - shift)
    target[0, to + limb] = sign * first
    if rest:
        target[0, to + limb + 1] = sign * (rest & MASK)
        rest >>= BITS
        if rest:
            target[0, to + limb + 2] = sign * rest


@kernel
def extent(values, valid, bit, is_float):
    """The lowest bit set in any of these numbers, and one more than the highest."""
    low, high = NO_LOW, NO_HIGH
    for i in range(len(values)):
        if not valid[i] >> bit & 1:
            continue
        value = values[i]
        if not is_float:
            magnitude = value if value >= 0 else ~value
            bits = 1
            while magnitude > 0:
                magnitude >>= 1
                bits += 1
            high = max(high, bits)
            low = 0
            continue
        exponent = (value >> 52) & EXPONENT
        mantissa = value & MANTISSA
        if exponent == EXPONENT or (exponent == 0 and mantissa == 0):
            continue
        if exponent > 0:
            mantissa |= 1 << 52
        else:
            exponent = 1
        start = exponent - 1075
        high = max(high, start + 53)
        if start < low:
            lowest = mantissa & -mantissa
            while lowest > 1:
                lowest >>= 1
                start += 1
            low = min(low, start)
    return low, high


@part
def as_float(numbers, row, at, limbs, low, scratch, free):
    """The float64 nearest to a number in units of 2**low; of two as near, the even one. Scratch is free from `free`."""
    negative = numbers[row, at + limbs - 1] < 0
    carry = np.int64(0)
    for c in range(limbs + 2):
        digit = numbers[row, at + c] if c < limbs else np.int64(0)
        total = (-digit if negative else digit) + carry
        scratch[free + c] = total & MASK
        carry = total >> BITS
    top = limbs + 1
    while top >= 0 and scratch[free + top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    width = 0
    while scratch[free + top] >> width > 0:
        width += 1
    # The leading 62 bits; what lies below them only says to which side of a tie the number falls.
    second = scratch[free + top - 1] if top >= 1 else np.int64(0)
    third = scratch[free + top - 2] if top >= 2 else np.int64(0)
    taken = BITS - width
    lead = (scratch[free + top] << (62 - width)) | (second << taken) | (third >> (BITS - taken))
    rest = third & ((np.int64(1) << (BITS - taken)) - 1)
    for c in range(top - 2):
        rest |= scratch[free + c]
    if rest:
        lead |= 1
    value = math.ldexp(float(lead), BITS * top + width - 62 + low)
    return -value if negative else value


@part
def as_int(numbers, row, at, limbs):
    """The number, if an int64 can hold it, and whether it can."""
    high = numbers[row, at + limbs - 1]
    for c in range(limbs - 2, -1, -1):
        if high >= (1 << 32) or high < -(1 << 32):
            return np.int64(0), False
        high = (high << BITS) | numbers[row, at + c]
    return high, True
