"""Labels: whole numbers in the order of strings, for compiled loops, which see only numbers.

A new string gets a label between those of its neighbours. If no number is free there, all strings of that stretch get
new, evenly spaced labels, and the owner is told the old and the new ones. String literals of a query have labels that
never change, because compiled code contains them. Strings are ordered by their bytes, as in Spark.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.kernels.whole_scores import NULL

Labels = npt.NDArray[np.int64]
Moved = Callable[[Labels, Labels], None]  # receives the old labels, ascending, and the new ones

_STEP: Final = 2**32  # the distance between labels of strings that come in order
_FEW: Final = 32  # up to this many new strings are inserted one by one


class TextLabels:
    """Assigns labels to strings. `fixed` are the literals, in order, with their labels; `moved` is called before labels
    change."""

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
