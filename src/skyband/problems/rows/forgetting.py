"""`forget_after`: in a window of arrivals, a group that was silent for this long starts anew.

A group's window has its last n rows, however old they are, so a session would have to keep every group for ever. With
`forget_after`, a group that returns after a long silence gets a new code, and the operator treats it as a new group.
When there are enough codes of silent groups, Skyband drops them with their rows.

A row counts as coming at the largest value of the stream so far, its own included. So a row out of order, or without a
value, comes no earlier than the rows before it. A silent group therefore stays silent until it starts anew, and it
changes no answer whether Skyband drops it sooner or later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.groups import Codes, GroupCodes, is_whole
from skyband.core.encoding.times import ticks_of
from skyband.core.operator import Ints
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery
from skyband.kernels.compiling import kernel, read_only
from skyband.problems.rows.drivers.row_kernels import running_maximum
from skyband.windows import Window, span_ticks

UNKNOWN: Final = -(2**63)  # before the first value of the order column
NONE: Final = -1


class Forgetting:
    """Gives groups the codes by which the operator knows them: a new one each time that a group starts."""

    def __init__(self, after: Any, window: Window, schema: pa.Schema) -> None:
        self._column = window.order
        measured = None if window.order is None else schema.field(window.order).type
        if measured is not None and not is_whole(measured):
            raise InvalidQuery(
                f"forget_after={after!r} measures order={window.order!r}, which is {measured}. It can measure a column "
                "of timestamps or of whole numbers, except uint64, or count arrivals if the window names no order."
            )
        self._limit = span_ticks(after, window.order, measured, "forget_after")
        self._code = np.empty(0, np.int32)  # by key: its present code; NONE: none yet
        self._last = np.empty(0, np.int64)  # by key: when its last row came
        self.codes = 0  # how many codes were given; some belong to no key any more
        self._now = UNKNOWN  # the largest value so far

    def encode(self, keys: Codes, batch: pa.RecordBatch, first: int, known: int) -> Codes:
        """The operator's code for each row. `keys` are the codes of their groups, of which there are `known`."""
        if known > len(self._code):
            more = known - len(self._code)
            self._code = np.append(self._code, np.full(more, NONE, np.int32))
            self._last = np.append(self._last, np.full(more, UNKNOWN, np.int64))
        codes = np.empty(len(keys), np.int32)
        if len(keys):
            now = running_maximum(read_only(self._measure(batch, first)), self._now)
            self.codes = _start_anew(keys, now, self._limit, self._code, self._last, self.codes, codes)
            self._now = int(now[-1])
        return codes

    def live(self) -> Ints:
        """The keys of groups that are not silent, ascending."""
        # The difference of two int64 fits in a uint64.
        silence = np.array(self._now).astype(np.uint64) - self._last.astype(np.uint64)
        return np.flatnonzero((self._last == UNKNOWN) | (silence <= self._limit))

    def compact(self, few: int, groups: GroupCodes, compact_operator: Callable[[Ints], None]) -> None:
        """Drop silent groups and their rows, if there are at least `few` codes and half of them can go."""
        if self.codes < max(few, groups.recount_at):
            return
        live = self.live()
        if 2 * len(live) <= self.codes:
            self._keep(live, groups, compact_operator)
        groups.recount_at = 2 * self.codes

    def settle(self, groups: GroupCodes, compact_operator: Callable[[Ints], None]) -> None:
        """Drop every silent group, so that an ad-hoc question does not see it."""
        live = self.live()
        if len(live) < self.codes:
            self._keep(live, groups, compact_operator)

    def _keep(self, live: Ints, groups: GroupCodes, compact_operator: Callable[[Ints], None]) -> None:
        codes = np.sort(self._code[live].astype(np.int64))  # in this order, because the operator emits groups by code
        compact_operator(codes)
        groups.keep(live)
        self._code = np.searchsorted(codes, self._code[live]).astype(np.int32)
        self._last, self.codes = self._last[live], len(live)

    # -- saved between two batches -------------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[Any]]:
        counted = np.array([self.codes, self._now], np.int64)
        return {"forget_code": self._code.copy(), "forget_last": self._last.copy(), "forget_counted": counted}

    def validate(self, saved: Saved, keys: int) -> None:
        saved.length(keys, "forget_code", "forget_last")
        saved.length(2, "forget_counted")
        code, codes = saved["forget_code"], int(saved["forget_counted"][0])
        saved.promise(keys <= codes < 2**31, f"'forget_counted' gives {codes} codes to {keys} groups")
        saved.indices("forget_code", code, codes)
        saved.distinct("forget_code", code)

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._code, self._last = arrays["forget_code"].copy(), arrays["forget_last"].copy()
        self.codes, self._now = (int(number) for number in arrays["forget_counted"])

    # -- inside --------------------------------------------------------------------------------------------------------

    def _measure(self, batch: pa.RecordBatch, first: int) -> Ints:
        if self._column is None:
            return np.arange(first, first + batch.num_rows, dtype=np.int64)
        ticks = ticks_of(batch.column(self._column), self._column)
        measured: Ints = pc.fill_null(ticks, UNKNOWN).to_numpy(zero_copy_only=False)
        return measured


@kernel
def _start_anew(keys, now, limit, code, last, codes, out):  # type: ignore[no-untyped-def]
    """Write the code of each row's group. A group that starts, or starts anew, gets a new code. Returns the number of
    codes."""
    for i in range(len(keys)):
        key, before = keys[i], last[keys[i]]
        returns = before != UNKNOWN and np.uint64(now[i]) - np.uint64(before) > np.uint64(limit)
        if code[key] == NONE or returns:
            code[key] = codes
            codes += 1
        last[key] = now[i]
        out[i] = code[key]
    return codes
