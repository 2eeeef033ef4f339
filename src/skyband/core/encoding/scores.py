"""Scores as operators compare them (float64), and back in the user's own type, without rounding.

Floats and whole numbers of up to 32 bits are float64 exactly. For 64-bit numbers, decimals and several sort keys, this
module assigns float64 keys that have the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.decimals import FITTING_DIGITS, as_decimals, fit_in_64_bits, in_last_digits
from skyband.core.encoding.rows import column_of
from skyband.core.operator import Arrays, Floats, Ints
from skyband.errors import InvalidInput
from skyband.expressions import as_floats
from skyband.expressions.sort_keys import SortKeys
from skyband.kernels.whole_keys import NEAR, WholeKeys

FEWEST: Final = 1_024  # `OrderKeys` forgets values only when it has more than this
_STATE, _DIGITS = "score_keys", "score_digits"
_CAST = "Cast the column to a decimal of fewer digits, or to float64, which rounds."


class TakesOtherScores(Protocol):
    """An operator that lets its scores be replaced by others in the same order."""

    def rescore(self, change: Callable[[Floats], Floats]) -> None: ...


class Scores:
    """Converts the scores of one query to keys when rows come, and back when an answer shows them."""

    def __init__(self, score_type: pa.DataType, text: str, *, ascending: bool, is_fixed: bool = False) -> None:
        """`is_fixed`: the key of a score must never change."""
        self.type = score_type
        self._text = text
        self._sign = -1 if ascending else 1
        self._keys = WholeKeys(unsigned=score_type == pa.uint64()) if is_wide(score_type) else None
        # Decimals count in units of their last digit; those with many digits, of the last digit that was not 0 so far.
        self._digits = 0
        if pa.types.is_decimal(score_type):
            fits = is_fixed or score_type.precision <= FITTING_DIGITS
            self._digits = score_type.scale if fits else min(0, score_type.scale)

    def read(self, values: pa.Array) -> Any:
        """Validate the scores of a batch, for `keys`."""
        if self._keys is None:
            return as_floats(values, len(values), self._text)
        digits = self._digits
        if pa.types.is_decimal(values.type):
            values, digits = in_digits(values, digits)
        return whole_numbers(values, self._text), missing(values), digits

    def keys(self, read: Any, operator: TakesOtherScores) -> Floats:
        """The keys by which the operator ranks, the highest first. Sometimes this replaces the keys that it holds."""
        if self._keys is None:
            floats: Floats = -read if self._sign < 0 else read
            return floats
        numbers, without, digits = read
        keys = self._keys.keys(numbers)
        if keys is None or digits > self._digits:
            factor = 10 ** (digits - self._digits)
            operator.rescore(lambda held: self._sign * self._rekeyed(self._sign * held, numbers, factor))
            self._digits = digits
            keys = self._keys.keys(numbers)
        assert keys is not None, "every number has a key now"
        if self._sign < 0:
            np.negative(keys, out=keys)
        if without is not None:
            keys[without] = np.nan
        return keys

    def near_keys(self, values: pa.Array) -> Floats:
        """The keys of fixed scores, ascending with the score; NaN for null. Raises for a number that is too large."""
        assert self._keys is not None
        numbers, nothing = whole_numbers(values, self._text), missing(values)
        keys = self._keys.keys(numbers)
        if keys is None:
            largest = next(x for x in values.to_pylist() if x is not None and self._is_far(x))
            raise InvalidInput(
                f"{self._text} is {largest} for a row, too large a {self.type} to be ranked exactly for subscriptions: "
                f"up to ±{NEAR} is possible, for a decimal without its point. Cast the column to float64 to "
                "accept rounding. Skyband rejected the batch."
            )
        if nothing is not None:
            keys[nothing] = np.nan
        return keys

    def _is_far(self, number: Any) -> bool:
        return abs(int(number.scaleb(self.type.scale)) if pa.types.is_decimal(self.type) else number) > NEAR

    def _rekeyed(self, held: Floats, numbers: npt.NDArray[np.integer[Any]], factor: int) -> Floats:
        assert self._keys is not None
        try:
            return self._keys.rekey(held, numbers, factor=factor)
        except OverflowError:
            raise InvalidInput(
                f"{self._text} now has scores with more digits after the point than before. Together with the scores "
                f"that the session holds, they take more than 64 bits, so Skyband cannot rank them exactly. {_CAST}"
            ) from None

    def column(self, keys: Floats) -> pa.Array:
        """Convert keys back to scores."""
        keys = self._sign * keys if self._sign < 0 else keys
        if self._keys is None:
            plain = self.type.to_pandas_dtype()
            return column_of(keys, plain, self.type)
        numbers = self._keys.numbers(np.ascontiguousarray(keys))
        if not pa.types.is_decimal(self.type):
            return column_of(numbers, numbers.dtype.type, self.type)
        return as_decimals(numbers.view(np.int64), self._digits, self.type)

    def state(self) -> Arrays:
        if self._keys is None:
            return {}
        return {_STATE: self._keys.state(), _DIGITS: np.array([self._digits])}

    def restore(self, arrays: Arrays) -> None:
        """Continue from what `state` returned; removes it from these arrays."""
        if self._keys is not None:
            self._keys.restore(arrays.pop(_STATE))
            self._digits = int(arrays.pop(_DIGITS)[0])


class OrderKeys:
    """The scores of a query with several sort keys, of any type.

    `known` is a sorted table of the distinct values of the rows held and of the last batch; snapshots have it. A row's
    key is the place of its values in this table, the best last. If a batch brings values between the known ones, places
    change: the operator gets new keys for the scores that it holds, and the table drops values that no row has any
    more.
    """

    def __init__(self, sort: SortKeys, *, fewest: int | None = None) -> None:
        self._sort = sort
        self._room = self._fewest = FEWEST if fewest is None else fewest
        self._names = [(f"flag{number}", f"key{number}") for number in range(len(sort.keys))]
        fields = [
            field
            for (flag, key), kind in zip(self._names, sort.types, strict=True)
            for field in (pa.field(flag, pa.int8()), pa.field(key, kind))
        ]
        self.known = pa.table([pa.array([], field.type) for field in fields], schema=pa.schema(fields))

    def read(self, values: list[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """The values of a batch, and which rows are not ranked: those whose first key is null, unless the query says
        where nulls come."""
        columns = []
        for key, column in zip(self._sort.keys, values, strict=True):
            missing = pc.is_null(column)
            # The best come last, so a flag is larger where it is better to be null, or not to be.
            better = missing if key.nulls_first else pc.invert(missing)
            columns += [better.cast(pa.int8()), column]
        first = self._sort.keys[0]
        unranked = np.zeros(len(values[0]), np.bool_)
        if first.nulls is None and values[0].null_count:
            unranked = pc.is_null(values[0]).to_numpy(zero_copy_only=False)
        return pa.table(columns, schema=self.known.schema), unranked

    def keys(self, read: tuple[pa.Table, npt.NDArray[np.bool_]], operator: TakesOtherScores) -> Floats:
        """The keys by which the operator ranks, the highest first. Sometimes this replaces the keys that it holds."""
        batch, unranked = read
        count = len(self.known)
        distinct, places = self._merged(self.known, batch)
        if len(distinct) > self._room or (places[:count] != np.arange(count)).any():
            places = self._anew(batch, operator)
        else:
            self.known, places = distinct, places[count:]
        keys = places.astype(np.float64)
        keys[unranked] = np.nan
        return keys

    def column(self, keys: Floats, rows: pa.RecordBatch) -> pa.Array:
        """The value of the first sort key, for each of these keys; `rows` are the rows that have them."""
        if pa.types.is_floating(self._sort.type):  # 0.0 and -0.0, and NaN and null, share a key
            return self._sort.scores(rows)
        found = self.known.column(1).take(pa.array(keys.astype(np.int64))).combine_chunks()
        return found if found.type == self._sort.type else found.cast(self._sort.type)

    def state(self) -> Arrays:
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Nothing to do: the codec restores the table `known`."""

    def _anew(self, batch: pa.Table, operator: TakesOtherScores) -> Ints:
        """Forget values that no held row has, and give the others new keys. Returns the places of the batch's rows."""
        given: list[Ints] = []

        def change(held: Floats) -> Floats:
            changed, there = held.copy(), np.isfinite(held)
            # An unused entry of the operator may have any number. It has no meaning, but must stay in order.
            places = np.clip(np.floor(held[there]), 0, max(0, len(self.known) - 1)).astype(np.int64)
            used = np.unique(places) if len(self.known) else np.empty(0, np.int64)
            self.known, merged = self._merged(self.known.take(pa.array(used)), batch)
            if len(used):
                changed[there] = merged[: len(used)][np.searchsorted(used, places)]
            given.append(merged[len(used) :])
            return changed

        operator.rescore(change)
        self._room = max(self._fewest, 2 * len(self.known))
        return given[-1]

    def _merged(self, known: pa.Table, batch: pa.Table) -> tuple[pa.Table, Ints]:
        """The distinct values of both tables, the best last, and the place of each row among them."""
        both = pa.concat_tables([known, batch]).combine_chunks()
        if not len(both):
            return both, np.empty(0, np.int64)
        order = []
        for key, (flag, value) in zip(self._sort.keys, self._names, strict=True):
            order += [(flag, "ascending"), (value, "descending" if key.ascending else "ascending")]
        rows = pc.sort_indices(both, sort_keys=order)
        ordered = both.take(rows)
        differs = np.zeros(len(both), np.bool_)
        for column in ordered.columns:
            unequal = pc.not_equal(column.slice(1), column.slice(0, len(both) - 1))
            differs[1:] |= pc.fill_null(unequal, False).to_numpy(zero_copy_only=False)  # the flags tell nulls apart
        places = np.empty(len(both), np.int64)
        places[rows.to_numpy()] = np.cumsum(differs)
        differs[0] = True
        return ordered.filter(pa.array(differs)), places


class Comparable(NamedTuple):
    """Scores as floats in the same order, NaN for no score. The conversion never changes, so that floats of different
    batches can be compared."""

    scores: Floats
    without: npt.NDArray[np.bool_] | None  # a few 64-bit numbers that have no such float; their entry is NaN

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray, text: str) -> Comparable:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not is_wide(values.type):
            return cls(as_floats(values, len(values), text), None)
        keys = WholeKeys(unsigned=values.type == pa.uint64(), near=False)
        too_wide = None if values.type.bit_width <= 64 else ~fit_in_64_bits(values)
        if too_wide is not None and too_wide.any():
            values = pc.if_else(pa.array(too_wide), pa.scalar(None, values.type), values)
        scores, without = keys.some_keys(whole_numbers(values, text))
        nothing = missing(values)
        if nothing is not None:
            scores[nothing], without = np.nan, without & ~nothing
        if too_wide is not None:
            without |= too_wide
        return cls(scores, without if without.any() else None)

    def without_rows(self, rows: npt.NDArray[np.bool_]) -> Comparable:
        """Remove the scores of these rows."""
        without = None if self.without is None else self.without & ~rows
        return Comparable(np.where(rows, np.nan, self.scores), without)

    @property
    def known(self) -> Floats:
        """The floats, NaN only where there is no score."""
        return self.scores if self.without is None else np.where(self.without, 0.0, self.scores)


def is_wide(score_type: pa.DataType) -> bool:
    """Does the type have numbers that float64 cannot represent?"""
    return pa.types.is_decimal(score_type) or (pa.types.is_integer(score_type) and score_type.bit_width == 64)


def missing(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values are null; None: none of them."""
    if not values.null_count:
        return None
    without: npt.NDArray[np.bool_] = pc.is_null(values).to_numpy(zero_copy_only=False)
    return without


def whole_numbers(values: pa.Array, text: str) -> npt.NDArray[np.integer[Any]]:
    """Convert 64-bit whole numbers, or decimals in units of their last digit. Nulls give arbitrary numbers."""
    if pa.types.is_decimal(values.type):
        return _unscaled(values, text)
    if values.null_count:
        values = pc.fill_null(values, 0)
    numbers: npt.NDArray[np.integer[Any]] = values.to_numpy(zero_copy_only=True)
    return numbers


def in_digits(values: pa.Array, digits: int) -> tuple[pa.Array, int]:
    """Reduce decimals to `digits` digits behind the point, or to as few more as they need; and their number."""
    kind = values.type
    while digits < kind.scale:
        try:
            return values.cast(pa.decimal128(38, digits)), digits
        except pa.ArrowInvalid:  # digits would be lost, or there are more than 38
            digits += 1
    return values, kind.scale


def _unscaled(values: pa.Array, text: str) -> npt.NDArray[np.int64]:
    fits = fit_in_64_bits(values)
    if not fits.all():
        wrong = values.filter(pa.array(~fits))[0]
        raise InvalidInput(
            f"{text} is {wrong} for a row, a decimal that takes more than 64 bits, so Skyband cannot rank it exactly. "
            f"{_CAST} Skyband rejected the batch."
        )
    return in_last_digits(values)
