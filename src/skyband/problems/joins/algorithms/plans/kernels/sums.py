"""Exact sums in whole numbers.

A number is one int64 if all sums of it fit, with room to spare. Otherwise it is a row of limbs of 31 bits, the least
significant first; the last one is signed.

A float64 is a whole number times a power of two, and so is a sum of float64. If the power of two is at or below the
lowest bit of every number so far, adding, subtracting and multiplying by counts are exact, in any order. Only the
result is rounded, once, to the nearest float64, as `math.fsum` of the live rows would. A mean is rounded once, too: the
exact quotient, not first the sum and then the quotient.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import kernel, part

BITS = 31
ONE_LIMB = 62  # bits that a number of one limb may have
LIMB = 1 << BITS
MASK = LIMB - 1
NO_LOW, NO_HIGH = 1 << 20, -(1 << 20)  # the lowest and highest bits if there is no number yet

EXPONENT = 0x7FF
MANTISSA = (1 << 52) - 1


@part
def add_scaled(target, row, to, source, source_row, start, plain, limbs, factor):
    """target += factor * source, for `plain` counts and a number of `limbs` limbs after them."""
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
            # The last limb belongs one above the target's last. The product fits, so this limb is only a sign.
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
    """Write the limbs of an int64 to row 0."""
    for c in range(limbs - 1):
        target[0, to + c] = value & MASK
        value >>= BITS
    target[0, to + limbs - 1] = value


@part
def add_int(value, sign, target, row, to, limbs):
    """Add an int64 times `sign`."""
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
    """Write the limbs of a finite float64, given as its bits, to row 0, in units of 2**low. Limbs may be negative."""
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
        mantissa >>= -at  # these bits are 0; otherwise `low` would be lower
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
    """The lowest bit that is set in any of these numbers, and one more than the highest."""
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


EXACT = 1 << 53  # every whole number up to here is a float64
LEAD = 62  # the leading bits that decide, with one more for the rest, which float64 is nearest
LEAST_NORMAL, LEAST_BIT = -1022, -1074  # exponents


@part
def mean_digits(limbs, scale):
    """How many limbs of scratch space `as_float` may need: for the number, a sign, and the digits of a quotient."""
    return limbs + 2 + 4 + (scale + 8) // 9


@part
def as_float(numbers, row, at, limbs, low, divisor, scale, scratch, free):
    """The float64 nearest to a number in units of 2**low, divided by `divisor` and 10**scale; on a tie, the even one.
    Scratch space is free from `free` on."""
    if limbs == 1 and low >= -900:
        whole, by = numbers[row, at], divisor
        for _ in range(scale):
            by = by * 10 if by < EXACT else by
        if -EXACT < whole < EXACT and by < EXACT:
            # Both are float64, so the quotient is rounded once, and multiplying it by a power of two is exact.
            return math.ldexp(float(whole) / float(by), low)
    # Enough limbs behind the point that the quotient has more than LEAD bits.
    more = 0 if divisor == 1 and scale == 0 else 2 + (1 if divisor < LIMB else 2) + (scale + 8) // 9
    negative, count = numbers[row, at + limbs - 1] < 0, limbs + 2 + more
    carry = np.int64(0)
    for c in range(count):
        digit = numbers[row, at + c - more] if more <= c < limbs + more else np.int64(0)
        total = (-digit if negative else digit) + carry
        scratch[free + c] = total & MASK
        carry = total >> BITS
    rest = np.int64(0)
    if divisor > 1:
        rest |= divide(scratch, free, count, divisor)
    for done in range(0, scale, 9):
        power = np.int64(1)
        for _ in range(min(9, scale - done)):
            power *= 10
        rest |= divide(scratch, free, count, power)
    value = nearest(scratch, free, count, rest, low - BITS * more)
    return -value if negative else value


@part
def divide(digits, free, count, divisor):
    """Divide a number of `count` limbs, which must not be negative, in place. Returns the remainder."""
    rest = np.int64(0)
    for c in range(free + count - 1, free - 1, -1):
        if rest == 0 and digits[c] == 0:
            continue
        if divisor < LIMB:
            total = rest << BITS | digits[c]
            digits[c] = total // divisor
            rest = total - digits[c] * divisor
            continue
        # Bit by bit, because twice the rest has at most 63 bits.
        quotient = np.int64(0)
        for bit in range(BITS - 1, -1, -1):
            rest = rest << 1 | (digits[c] >> bit & 1)
            quotient <<= 1
            if rest >= divisor:
                rest -= divisor
                quotient |= 1
        digits[c] = quotient
    return rest


@part
def nearest(digits, free, count, rest, low):
    """The float64 nearest to a number of `count` limbs in units of 2**low, or to a little more if there is a rest."""
    top = count - 1
    while top >= 0 and digits[free + top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    width = 0
    while digits[free + top] >> width > 0:
        width += 1
    # The leading bits. The bits below them only decide ties.
    second = digits[free + top - 1] if top >= 1 else np.int64(0)
    third = digits[free + top - 2] if top >= 2 else np.int64(0)
    taken = BITS - width
    lead = (digits[free + top] << (LEAD - width)) | (second << taken) | (third >> (BITS - taken))
    rest |= third & ((np.int64(1) << (BITS - taken)) - 1)
    for c in range(top - 2):
        rest |= digits[free + c]
    if rest:
        lead |= 1
    exponent = BITS * top + width - LEAD + low
    if exponent + LEAD <= LEAST_NORMAL:
        # A subnormal float64 has fewer bits, so the number is rounded here; `ldexp` would round a second time.
        lost = LEAST_BIT - exponent
        if lost > LEAD:
            return 0.0
        half, kept = np.int64(1) << (lost - 1), lead >> lost
        beyond = lead - (kept << lost)
        if beyond > half or (beyond == half and kept & 1):
            kept += 1
        return math.ldexp(float(kept), LEAST_BIT)
    return math.ldexp(float(lead), exponent)


@part
def as_int(numbers, row, at, limbs):
    """The number as an int64, and whether it fits."""
    high = numbers[row, at + limbs - 1]
    for c in range(limbs - 2, -1, -1):
        if high >= (1 << 32) or high < -(1 << 32):
            return np.int64(0), False
        high = (high << BITS) | numbers[row, at + c]
    return high, True
