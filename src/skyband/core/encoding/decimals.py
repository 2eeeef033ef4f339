"""Decimals as int64, in units of their last digit, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

FITTING_DIGITS = 18  # a decimal with at most this many digits fits in 64 bits


def fit_in_64_bits(values: pa.Array) -> npt.NDArray[np.bool_]:
    """For each decimal: does it fit in 64 bits, in units of its last digit? Null counts as fitting."""
    try:
        limbs = _limbs(values)
        fits: npt.NDArray[np.bool_] = limbs[:, 1] == limbs[:, 0] >> 63
    except pa.ArrowInvalid:  # one has more than 38 digits
        most = 2**63 - 1
        fits = np.array([x is None or abs(int(x.scaleb(values.type.scale))) <= most for x in values.to_pylist()])
    if values.null_count:
        fits = fits | pc.is_null(values).to_numpy(zero_copy_only=False)
    return fits


def in_last_digits(values: pa.Array) -> npt.NDArray[np.int64]:
    """Convert decimals that fit in 64 bits to units of their last digit. Nulls give arbitrary numbers."""
    return np.ascontiguousarray(_limbs(values)[:, 0])


def _limbs(values: pa.Array) -> npt.NDArray[np.int64]:
    """Decimals of any width as 128 bits each: the lower 64 bits, then the upper."""
    wide = values.cast(pa.decimal128(38, values.type.scale))
    return np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 2)[wide.offset :][: len(wide)]


def as_decimals(numbers: npt.NDArray[np.int64], digits: int, kind: pa.DataType) -> pa.Array:
    """Convert whole numbers, in units of the given digit behind the point, to decimals of this type."""
    limbs = np.empty((len(numbers), 2), np.int64)
    limbs[:, 0], limbs[:, 1] = numbers, numbers >> 63
    decimals = pa.Array.from_buffers(pa.decimal128(38, digits), len(numbers), [None, pa.py_buffer(limbs)])
    return decimals.cast(kind)
