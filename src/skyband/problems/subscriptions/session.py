"""The session of subscriptions: queries are added and removed while rows arrive."""

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
from skyband.problems.subscriptions.query import ADDS, CHANGE, FEED, PASSED_OVER, TopKForEach, as_table, check_backfill


class SubscriptionsSession(Session):
    """Running subscriptions: `push` feeds rows, `add` and `remove` change the queries, `snapshot` saves all."""

    query: TopKForEach
    _codec: SubscriptionsCodec

    def __init__(self, codec: SubscriptionsCodec, state: bytes | None = None, plan: Plan | None = None) -> None:
        super().__init__(codec, state, plan)
        if state is None:
            self.add(self.query.queries)

    @property
    def queries(self) -> pa.Table:
        """The keys of the current queries, in the order in which they were added."""
        return self._codec.keys

    @property
    def sizes(self) -> Ints:
        """The window size of each query, in ticks of the window's unit."""
        return self._codec.sizes

    @entry
    def add(self, queries: Any, *, backfill: bool | None = None) -> pa.Table:
        """Add queries. They see the rows that arrive from now on.

        Parameters
        ----------
        queries
            A table with one query per row, and the columns of the first queries.
        backfill
            Let them also see the rows that are already in the window. None: as the query's own option says.

        Returns
        -------
        A pyarrow Table: with `backfill`, if the window has no slide, their first answers; else empty.

        Raises
        ------
        InvalidInput
            The columns do not fit.
        InvalidQuery
            Two queries have the same key, a k, size or slide is out of range, or the session lacks the rows for
            `backfill`.
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
        """Remove queries.

        Parameters
        ----------
        keys
            A table with the key columns, or a list of values if there is only one such column.

        Raises
        ------
        InvalidInput
            There is no query with one of the keys. None is removed.
        """
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
        """Apply a change data feed to the queries, in its order.

        "insert" and "update_postimage" add a query and replace one with the same key; "delete" removes a query if it
        exists, and reads only its key; "update_preimage" does nothing.

        Parameters
        ----------
        changes
            A table with the queries' columns and `_change_type`.
        set_aside
            Skip a change that cannot be applied, such as one with a k of 0, and count it in `queries_refused`. By
            default it raises, and no change is applied.
        elsewhere
            If several sessions share the queries, all get every change. This marks the changes that belong to another
            session: this one removes such a query if it has it, and the other one counts the change.

        Returns
        -------
        A pyarrow Table, as `add` returns it.

        Raises
        ------
        InvalidInput
            There is no column `_change_type`, or it has another value.
        InvalidQuery
            A change cannot be applied.
        """
        table = as_table(changes)
        if CHANGE not in table.column_names:
            raise InvalidInput(f"Changes of queries need the column {CHANGE!r}: {KINDS}.")
        kinds = np.array(table.column(CHANGE).to_pylist(), dtype=object)
        batch = self._codec.queries_in(table.select([name for name in table.column_names if name not in FEED]))
        refused = self._codec.refusals(batch, kinds)
        if refused and not set_aside:
            raise next(iter(refused.values()))
        self._changing = True
        here = np.ones(len(kinds), np.bool_) if elsewhere is None else ~elsewhere
        self._codec.refused += int(here[list(refused)].sum())
        # No row arrives in between, so only the last of several changes with the same key has an effect.
        told = np.array([i for i, kind in enumerate(kinds) if i not in refused and kind not in PASSED_OVER], np.int64)
        last = told[self._codec.last_of_each(batch.take(pa.array(told)))]
        numbers = self._find(batch.take(pa.array(last)))
        self._remove(numbers[numbers >= 0])
        coming = [i for i in last.tolist() if kinds[i] in ADDS and here[i]]
        return self._add(batch.take(pa.array(coming, pa.int64())), self.query.backfill)

    @entry
    def forget_rows(self) -> None:
        """Drop the window's rows if there is no query, and new queries see only later rows."""
        self._changing = True
        self._codec.forget_rows()

    def _find(self, queries: pa.Table | pa.RecordBatch) -> Ints:
        return self._at_once(lambda: self._codec.find(queries))

    def _remove(self, gone: Ints) -> None:
        if len(gone):
            self._changing = True
            self._codec.remove(gone)
