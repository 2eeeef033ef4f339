"""Scores as operators compare them, float64, and as users see them: in their own type, none of them rounded.

Floats and whole numbers of up to 32 bits are float64 as they are. Numbers of 64 bits, and decimals, which are whole
numbers of their last digit, get keys in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.engines.rows import column_of
from skyband.errors import InvalidInput
from skyband.expressions import as_floats
from skyband.operators.protocol import Arrays, Floats
from skyband.structures.whole_keys import WholeKeys

_STATE = "score_keys"


class TakesOtherScores(Protocol):
    """An operator whose scores can be replaced by others in the same order."""

    def rescore(self, change: Callable[[Floats], Floats]) -> None: ...


class Scores:
    """The scores of one query: to keys as rows come, and back when they are shown."""

    def __init__(self, score_type: pa.DataType, text: str, *, ascending: bool) -> None:
        self.type = score_type
        self._text = text
        self._sign = -1 if ascending else 1
        self._keys = WholeKeys(unsigned=score_type == pa.uint64()) if is_wide(score_type) else None

    def read(self, values: pa.Array) -> Any:
        """Scores as they come, ready for `keys`; raises what is wrong with them."""
        if self._keys is None:
            return as_floats(values, len(values), self._text)
        return whole_numbers(values, self._text), missing(values)

    def keys(self, read: Any, operator: TakesOtherScores) -> Floats:
        """What an operator ranks by, the highest first. Now and then it gets other keys for the scores it holds."""
        if self._keys is None:
            floats: Floats = -read if self._sign < 0 else read
            return floats
        numbers, without = read
        keys = self._keys.keys(numbers)
        if keys is None:
            operator.rescore(lambda held: self._sign * self._rekeyed(self._sign * held, numbers))
            keys = self._keys.keys(numbers)
        assert keys is not None, "every number has a key now"
        if self._sign < 0:
            np.negative(keys, out=keys)
        if without is not None:
            keys[without] = np.nan
        return keys

    def _rekeyed(self, held: Floats, numbers: npt.NDArray[np.integer[Any]]) -> Floats:
        assert self._keys is not None
        return self._keys.rekey(held, numbers)

    def column(self, keys: Floats) -> pa.Array:
        """The scores behind what an operator ranked by."""
        keys = self._sign * keys if self._sign < 0 else keys
        if self._keys is None:
            plain = self.type.to_pandas_dtype()
            return column_of(keys, plain, self.type)
        numbers = self._keys.numbers(np.ascontiguousarray(keys))
        if not pa.types.is_decimal(self.type):
            return column_of(numbers, numbers.dtype.type, self.type)
        return _decimals(numbers.view(np.int64), self.type)

    def state(self) -> Arrays:
        return {} if self._keys is None else {_STATE: self._keys.state()}

    def restore(self, arrays: Arrays) -> None:
        """Take what `state` gave out of these arrays."""
        if self._keys is not None:
            self._keys.restore(arrays.pop(_STATE))


def is_wide(score_type: pa.DataType) -> bool:
    """Are there numbers of this type that are not float64?"""
    return pa.types.is_decimal(score_type) or (pa.types.is_integer(score_type) and score_type.bit_width == 64)


def missing(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which are null; None: none of them."""
    if not values.null_count:
        return None
    without: npt.NDArray[np.bool_] = pc.is_null(values).to_numpy(zero_copy_only=False)
    return without


def whole_numbers(values: pa.Array, text: str) -> npt.NDArray[np.integer[Any]]:
    """A column of 64-bit whole numbers, or of decimals by their last digit, as numbers; anything where it is null."""
    if pa.types.is_decimal(values.type):
        return _unscaled(values, text)
    if values.null_count:
        values = pc.fill_null(values, 0)
    numbers: npt.NDArray[np.integer[Any]] = values.to_numpy(zero_copy_only=True)
    return numbers


def _unscaled(values: pa.Array, text: str) -> npt.NDArray[np.int64]:
    kind = values.type
    try:
        wide = values.cast(pa.decimal128(38, kind.scale))  # of other widths, too, for fewer digits or for more
        limbs = np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 2)[wide.offset :][: len(wide)]
        low, high = limbs[:, 0], limbs[:, 1]
        fits = high == low >> 63
        if fits.all() or (values.null_count and (fits | missing(values)).all()):
            return np.ascontiguousarray(low)
    except pa.ArrowInvalid:  # more than 128 bits
        pass
    most = 2**63 - 1
    wrong = next(x for x in values.to_pylist() if x is not None and abs(int(x.scaleb(kind.scale))) > most)
    raise InvalidInput(
        f"{text} is {wrong} for a row: as {kind} that is a number of more than 64 bits, which cannot be ranked exactly. "
        f"Cast the column to a decimal of smaller scale (decimal128(18, 2), say), or to float64, which rounds."
    )


def _decimals(numbers: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    limbs = np.empty((len(numbers), 2), np.int64)
    limbs[:, 0], limbs[:, 1] = numbers, numbers >> 63
    widest = pa.decimal128(38, kind.scale)
    return pa.Array.from_buffers(widest, len(numbers), [None, pa.py_buffer(limbs)]).cast(kind)
