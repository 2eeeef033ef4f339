"""The columns of rows as loops over pairs read them, 64 bits each: floats, whole numbers or labels of strings."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.rows import column_of
from skyband.core.encoding.value_types import as_values
from skyband.core.operator import Floats, Ints
from skyband.errors import InvalidInput
from skyband.expressions import as_floats
from skyband.expressions import exact_values as exact
from skyband.expressions.exact_values import Column
from skyband.expressions.pairs import PairScore
from skyband.kernels.whole_scores import NULL, from_keys
from skyband.problems.pairs.operator import PairOperator

_RECOUNT: Final = 1024


class PairColumns:
    """Encodes batches, and sees that 64 bits suffice for what is computed from whole numbers."""

    def __init__(self, score: PairScore, operator: PairOperator, *, step: int | None = None) -> None:
        """`step`: between labels of strings that come in order."""
        self._score = score
        self._operator = operator
        self._texts = [number for number, column in enumerate(score.kept) if column.kind == exact.TEXT]
        self.labels = TextLabels(score.labels, self._move, **({} if step is None else {"step": step}))
        self._recount_at = _RECOUNT
        # By column: the least and the largest whole number seen, if there was one.
        self._bounds: list[tuple[int, int] | None] = [None] * len(score.kept)

    def read(self, batch: pa.RecordBatch, live: Callable[[], pa.RecordBatch]) -> Floats:
        """By column that the score reads, then by row; strings have yet to get labels. `live`: the rows that those of
        the batch may meet. Raises for numbers that cannot be taken."""
        columns = np.empty((len(self._score.kept), batch.num_rows))
        for number, column in enumerate(self._score.kept):
            values = batch.column(column.name)
            if column.kind == exact.FLOAT:
                columns[number] = as_floats(plain(values), batch.num_rows, column.name)
            elif column.kind == exact.WHOLE:
                columns[number] = whole_numbers(values, column).view(np.float64)
            elif column.kind != exact.TEXT:
                columns[number] = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), np.nan, 0.0)
        if self._score.checks:
            self._check(columns, live)
        return columns

    def label(self, batch: pa.RecordBatch, columns: Floats) -> None:
        """Write the labels of strings to the columns that `read` gave."""
        for number in self._texts:
            values = batch.column(self._score.kept[number].name)
            columns[number] = self.labels.encode(values).view(np.float64)

    def load(self, labels: pa.Table, live: pa.RecordBatch) -> None:
        """Go on with these labels, and these rows."""
        self.labels.load(labels)
        for number, column in enumerate(self._score.kept):
            if column.kind == exact.WHOLE:
                self._bounds[number] = _widened(None, whole_numbers(live.column(column.name), column))

    def forget(self) -> None:
        """Drop strings that no live row has, when there are enough of them to pay for the work."""
        if self._texts and len(self.labels) >= self._recount_at:
            live = np.unique(np.concatenate([self._operator.live_values(which) for which in self._texts]))
            self.labels.keep(live)
            self._recount_at = max(_RECOUNT, 2 * len(self.labels))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _move(self, old: Labels, new: Labels) -> None:
        for which in self._texts:
            self._operator.relabel(which, old, new)

    def _check(self, columns: Floats, live: Callable[[], pa.RecordBatch]) -> None:
        """Raise if some part of the score may not fit into 64 bits; nothing is remembered of such a batch."""
        bounds = list(self._bounds)
        for number, column in enumerate(self._score.kept):
            if column.kind == exact.WHOLE:
                bounds[number] = _widened(bounds[number], columns[number].view(np.int64))
        if not self._fits(bounds):
            # These are of all rows so far: once more, of those that are still there.
            rows = live()
            for number, column in enumerate(self._score.kept):
                if column.kind == exact.WHOLE:
                    held = whole_numbers(rows.column(column.name), column)
                    bounds[number] = _widened(_widened(None, held), columns[number].view(np.int64))
            if not self._fits(bounds):
                self._refuse(bounds)
        self._bounds = bounds

    def _fits(self, bounds: list[tuple[int, int] | None]) -> bool:
        known = [bound or (0, 0) for bound in bounds]
        return all(max(map(abs, check.bound(known))) <= check.most for check in self._score.checks)

    def _refuse(self, bounds: list[tuple[int, int] | None]) -> None:
        for check in self._score.checks:
            low, high = check.bound([bound or (0, 0) for bound in bounds])
            if max(-low, high) > check.most:
                raise InvalidInput(
                    f"{check.text!r} can be from {low} to {high} over these rows, and {check.why}: at most "
                    f"{check.most}. Skyband rejected the batch. 1.0 * column computes with float64."
                )


def _widened(bound: tuple[int, int] | None, numbers: Ints) -> tuple[int, int] | None:
    known = numbers[numbers != NULL]
    if not len(known):
        return bound
    low, high = int(known.min()), int(known.max())
    return (low, high) if bound is None else (min(bound[0], low), max(bound[1], high))


def score_column(ranked: Floats, score: PairScore, ascending: bool) -> pa.Array:
    """Scores as they are shown, from those that were ranked."""
    if score.type == pa.float64():
        return column_of(-ranked if ascending else ranked, np.float64, score.type)
    sign = -1 if ascending else 1
    numbers = sign * (from_keys(ranked) if score.is_key else ranked.astype(np.int64))
    return pa.array(numbers) if score.type == pa.int64() else _decimals(numbers, score.type)


def _decimals(numbers: Ints, kind: pa.DataType) -> pa.Array:
    words = np.stack([numbers, numbers >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(words))])


def plain(column: pa.Array) -> pa.Array:
    """The column in the type of its values, not as a dictionary."""
    return as_values(column)


def whole_numbers(column: pa.Array, kept: Column) -> npt.NDArray[np.int64]:
    """A column of whole numbers, decimals or times as 64 bits, NULL for null."""
    column = plain(column)
    try:
        if pa.types.is_decimal(column.type):
            return _unscaled(column, kept)
        numbers = _counted(column, kept.unit) if kept.unit else column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"Column {kept.name!r} does not fit in 64 bits with a sign: {error}") from None
    found = numbers.fill_null(NULL).to_numpy(zero_copy_only=False) if numbers.null_count else numbers.to_numpy()
    return _without_null(found, numbers.null_count, kept.name)


def _without_null(numbers: npt.NDArray[np.int64], nulls: int, name: str) -> npt.NDArray[np.int64]:
    if int((numbers == NULL).sum()) != nulls:
        raise InvalidInput(f"Column {name!r} has the value {NULL}, which pairs cannot tell from null.")
    return numbers


def _counted(column: pa.Array, unit: str) -> pa.Array:
    """Times as numbers of microseconds or nanoseconds."""
    if pa.types.is_duration(column.type):
        return column.cast(pa.duration(unit)).view(pa.int64())
    if pa.types.is_time(column.type):
        return column.cast(pa.time64(unit)).view(pa.int64())
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    return column.cast(pa.timestamp(unit, zone)).view(pa.int64())


def _unscaled(column: pa.Array, kept: Column) -> npt.NDArray[np.int64]:
    wide = column.cast(pa.decimal128(38, kept.scale))
    words = np.frombuffer(wide.buffers()[1] or b"", np.int64).reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
    numbers = words[:, 0].copy()
    missing = pc.is_null(wide).to_numpy(zero_copy_only=False)
    if ((words[:, 1] != numbers >> 63) & ~missing).any():
        raise InvalidInput(
            f"Column {kept.name!r} has values of more than 18 digits: Skyband ranks pairs in 64 bits. "
            "Cast it to float64 or to a decimal with fewer digits after the point."
        )
    numbers[missing] = NULL
    return _without_null(numbers, int(missing.sum()), kept.name)


Labels = npt.NDArray[np.int64]
Moved = Callable[[Labels, Labels], None]  # receives the old labels, ascending, and the new ones

_STEP: Final = 2**32  # the distance between labels of strings that come in order
_FEW: Final = 32  # up to this many new strings are inserted one by one


class TextLabels:
    """Assigns labels to strings: whole numbers in the order of their bytes, because compiled loops see only numbers.

    A new string gets a label between those of its neighbours. If no number is free there, all strings of that stretch
    get new, evenly spaced labels, and `moved` is told the old and the new ones before they change. `fixed` are the
    literals of the query, in order, with their labels, which never change, because compiled code contains them.
    """

    def __init__(self, fixed: Sequence[tuple[bytes, int]], moved: Moved, *, step: int = _STEP) -> None:
        self._fixed = list(fixed)
        self._ends = [NULL, *(label for _, label in self._fixed), 2**63]  # a stretch lies between two of these
        self._moved = moved
        self._step = step
        self._label = dict(self._fixed)
        self._texts = [text for text, _ in self._fixed]  # all known strings, in order

    def __len__(self) -> int:
        return len(self._texts)

    def encode(self, column: pa.Array) -> Labels:
        """The label of each string; NULL for null."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        encoded = column.cast(pa.large_binary()).dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        self._learn(sorted({text for text in texts if text not in self._label}))
        labels = np.array([*(self._label[text] for text in texts), NULL], np.int64)
        return labels[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]

    def keep(self, live: Labels) -> None:
        """Forget all strings but literals and those with these labels, which ascend."""
        kept = set(live.tolist()) | {label for _, label in self._fixed}
        self._texts = [text for text in self._texts if self._label[text] in kept]
        self._label = {text: self._label[text] for text in self._texts}

    @property
    def table(self) -> pa.Table:
        """The strings and their labels, for a snapshot."""
        labels = [self._label[text] for text in self._texts]
        return pa.table({"text": pa.array(self._texts, pa.large_binary()), "label": pa.array(labels, pa.int64())})

    def load(self, table: pa.Table) -> None:
        self._texts = table.column("text").to_pylist()
        self._label = dict(zip(self._texts, table.column("label").to_pylist(), strict=True))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _learn(self, new: list[bytes]) -> None:
        """Give labels to new strings, which are sorted."""
        i = 0
        while i < len(new):
            # Strings between the same two neighbours get their labels together.
            place = bisect_left(self._texts, new[i])
            above = self._texts[place] if place < len(self._texts) else None
            j = i + 1
            while j < len(new) and (above is None or new[j] < above):
                j += 1
            self._label_run(new[i:j], place)
            i = j

    def _label_run(self, run: list[bytes], place: int) -> None:
        low = self._label[self._texts[place - 1]] if place else NULL
        is_last = place == len(self._texts)
        high = 2**63 if is_last else self._label[self._texts[place]]
        step = (high - low) // (len(run) + 1)
        # At either end, labels advance by one step rather than to the middle, so that strings in order find room.
        at_start = (place == 0 or low in self._ends) and high not in self._ends
        at_end = (is_last or high in self._ends) and low not in self._ends
        if at_end and step > self._step:
            step = self._step
        elif at_start and step > self._step:
            low = high - (len(run) + 1) * self._step
            step = self._step
        if step:
            for i, text in enumerate(run):
                self._label[text] = low + (i + 1) * step
        self._insert(run, place)
        if not step:
            self._spread(run[0])

    def _insert(self, run: list[bytes], place: int) -> None:
        if len(run) <= _FEW:
            for text in run:
                insort(self._texts, text)
        else:
            self._texts[place:place] = run

    def _spread(self, text: bytes) -> None:
        """Give new labels to all strings of this string's stretch."""
        fixed = [one for one, _ in self._fixed]
        stretch = bisect_left(fixed, text)
        low, high = self._ends[stretch], self._ends[stretch + 1]
        start = bisect_left(self._texts, fixed[stretch - 1]) + 1 if stretch else 0
        stop = bisect_left(self._texts, fixed[stretch]) if stretch < len(fixed) else len(self._texts)
        texts = self._texts[start:stop]
        step = (high - low) // (len(texts) + 1)
        assert step, "there are fewer strings than labels"
        labels = [low + (i + 1) * step for i in range(len(texts))]
        old = [(self._label[one], label) for one, label in zip(texts, labels, strict=True) if one in self._label]
        moved = np.array(old, np.int64).reshape(-1, 2)
        self._moved(moved[:, 0].copy(), moved[:, 1].copy())
        self._label.update(zip(texts, labels, strict=True))
