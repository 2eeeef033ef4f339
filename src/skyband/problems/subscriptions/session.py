"""Subscriptions, running: queries come and go beside the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.operator import Ints
from skyband.core.plan import Plan
from skyband.core.session import Session, entry
from skyband.errors import InvalidInput, SkybandError
from skyband.problems.subscriptions.codec import KINDS, SubscriptionsCodec
from skyband.problems.subscriptions.query import (
    ADDS,
    CHANGE,
    FEED,
    PASSED_OVER,
    TopKForEach,
    as_table,
    check_backfill,
)


class SubscriptionsSession(Session):
    """Subscriptions, running: fed by `push`; `add` and `remove` change the queries, `snapshot` saves all."""

    query: TopKForEach
    _codec: SubscriptionsCodec

    def __init__(self, codec: SubscriptionsCodec, state: bytes | None = None, plan: Plan | None = None) -> None:
        super().__init__(codec, state, plan)
        if state is None:
            self.add(self.query.queries)

    @property
    def queries(self) -> pa.Table:
        """The keys of the queries there are, in the order in which they came."""
        return self._codec.keys

    @property
    def sizes(self) -> Ints:
        """How far each of them looks back, in ticks of what the window measures."""
        return self._codec.sizes

    @entry
    def add(self, queries: Any, *, backfill: bool | None = None) -> pa.Table:
        """More queries, one a row, in the columns of the first ones. They see the rows that come from now on.

        With `backfill` (as the query says, if it is not said here) they see those that are in the window, too: where
        answers come with each arrival, what they show at once is returned.
        """
        batch = self._codec.queries_in(as_table(queries))
        backfill = self.query.backfill if backfill is None else backfill
        if backfill:
            check_backfill(backfill, self.query.window)
        return self._add(batch, backfill)

    def _add(self, batch: pa.RecordBatch, backfill: bool) -> pa.Table:
        numbers = self._codec.in_numbers(batch)
        changed, self._changing = self._changing, True
        try:
            answer = self._codec.add(batch, numbers, backfill)
        except SkybandError:
            self._changing = changed
            raise
        return self._table(answer)

    @entry
    def remove(self, keys: Any) -> None:
        """Forget queries: their keys, as a table with the key columns, or as a list if there is one such column."""
        table = self._codec.keys_in(keys)
        gone = self._find(table)
        if (gone < 0).any():
            unknown = table.slice(int(np.flatnonzero(gone < 0)[0]), 1).to_pylist()[0]
            raise InvalidInput(f"There is no query {unknown}.")
        self._remove(gone)

    @entry
    def change(
        self, changes: Any, *, set_aside: bool = False, elsewhere: npt.NDArray[np.bool_] | None = None
    ) -> pa.Table:
        """Queries that come and go, one change after the other: a table with the queries' columns and `_change_type`.

        That is "insert" or "update_postimage" of a query that comes, and takes the place of one with the same key;
        "delete" of one that goes, if it is there, of which only the key is read; "update_preimage" says nothing. So the
        change data feed of a table can be passed on. Returns what `add` returns.

        A change that cannot be taken, such as one with a k of 0, raises, and nothing of the table is taken; with
        `set_aside` it is passed over, and counted in `queries_refused`.

        Where the queries are spread over several sessions, all of which are told of every change, `elsewhere` says
        which changes are another's: a query that comes there goes from here, if it was here, and another counts it.
        """
        table = as_table(changes)
        if CHANGE not in table.column_names:
            raise InvalidInput(f"Of changes of queries, the column {CHANGE!r} says what each does: {KINDS}.")
        kinds = np.array(table.column(CHANGE).to_pylist(), dtype=object)
        batch = self._codec.queries_in(table.select([name for name in table.column_names if name not in FEED]))
        refused = self._codec.refusals(batch, kinds)
        if refused and not set_aside:
            raise next(iter(refused.values()))
        self._changing = True
        here = np.ones(len(kinds), np.bool_) if elsewhere is None else ~elsewhere
        self._codec.refused += int(here[list(refused)].sum())
        # With no row in between, of changes with the same key only the last one can be noticed.
        told = np.array([i for i, kind in enumerate(kinds) if i not in refused and kind not in PASSED_OVER], np.int64)
        last = told[self._codec.last_of_each(batch.take(pa.array(told)))]
        numbers = self._find(batch.take(pa.array(last)))
        self._remove(numbers[numbers >= 0])
        coming = [i for i in last.tolist() if kinds[i] in ADDS and here[i]]
        return self._add(batch.take(pa.array(coming, pa.int64())), self.query.backfill)

    @entry
    def forget_rows(self) -> None:
        """Forget the window's rows if there is no query, and those that come see only what comes after them."""
        self._changing = True
        self._codec.forget_rows()

    def _find(self, queries: pa.Table | pa.RecordBatch) -> Ints:
        changed, self._changing = self._changing, True
        numbers = self._codec.find(queries)
        self._changing = changed
        return numbers

    def _remove(self, gone: Ints) -> None:
        if len(gone):
            self._changing = True
            self._codec.remove(gone)
