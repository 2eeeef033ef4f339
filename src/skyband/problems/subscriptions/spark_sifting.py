"""Finds out which subscriptions can show a row, before the shuffle and in the task that has the row.

Time is cut wherever a window of some query begins or ends. All rows of such a pane are in the same windows of a query.
So a query with k shows no row that k others of its pane outrank. The other rows go to the buckets of the queries that
can show them. A pane keeps at most as many rows as all queries show together, so a pane is sifted only if it has many
more.

To sift a pane, the queries run over it as over a tumbling window, with the index that runs in a bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.engines.spark.bucket_job import PREFIX
from skyband.engines.spark.gathering import times_of
from skyband.engines.spark.pages import Ints
from skyband.expressions.subscriptions import bind, parameter
from skyband.problems.subscriptions.query import TopKForEach
from skyband.problems.subscriptions.session import SubscriptionsSession
from skyband.windows import tumbling

if TYPE_CHECKING:
    from skyband.problems.subscriptions.spark import SubscriptionJob

_PANE: Final = PREFIX + "pane"
_ROW: Final = PREFIX + "row"
_QUERY: Final = PREFIX + "query"
WORTH: Final = 4  # sifting pays if there are so many times as many copies of rows as it keeps at most


class Panes(NamedTuple):
    """The stretches of time between moments at which a window begins or ends."""

    every: int
    cuts: Ints  # in every slide, ascending from 0

    def of(self, times: Ints) -> Ints:
        """The number of the pane of each time. Numbers ascend with time."""
        slides = times // self.every
        found: Ints = (
            slides * len(self.cuts) + np.searchsorted(self.cuts, times - slides * self.every, side="right") - 1
        )
        return found


def panes_of(sizes: Ints, every: int) -> Panes:
    """The panes of windows with these sizes, whose ends are multiples of `every`.

    >>> panes_of(np.array([30, 25, 12]), 10).cuts.tolist()
    [0, 5, 8]
    """
    return Panes(every, np.unique(np.append(-sizes % every, 0)))


class Sifted(NamedTuple):
    """The rows that are kept, by number, and the bucket of each; a row may go to several buckets.

    `all_else` has the rows of panes that were too small to sift.
    """

    rows: Ints
    buckets: Ints
    all_else: Ints


class QuerySieve:
    """Keeps the rows that some query may show: those among the best of their pane."""

    def __init__(self, job: SubscriptionJob, *, worth: float = WORTH) -> None:
        assert job.homes is not None, "the queries are known"
        assert job.panes is not None, "rows that are not shown do not matter"
        self._job, self._homes, self._panes = job, job.homes, job.panes
        copies = 1 if job.meet_by else job.buckets
        self._enough = worth * self._most_left() / copies
        self._session: SubscriptionsSession | None = None
        self._before = 0  # panes so far

    def _most_left(self) -> int:
        """How many rows of a pane all queries show together at most."""
        k, queries = self._job.query.k, self._job.query.queries
        return int(pc.sum(queries.column(parameter(k, "k"))).as_py()) if isinstance(k, str) else k * len(queries)

    def sift(self, rows: pa.Table) -> Sifted | None:
        """Sift rows. Returns None if no pane has enough of them."""
        _, pane, count = np.unique(
            self._panes.of(times_of(rows.column(str(self._job.window.on)))), return_inverse=True, return_counts=True
        )
        if not (count >= self._enough).any():
            return None
        large = (count >= self._enough)[pane]
        # Rows are sorted as they would arrive in the bucket, since the more recent of two equal scores ranks first.
        keys = [(name, "ascending") for name in self._job.arrival_order]
        order = pc.sort_indices(rows, sort_keys=keys).to_numpy()
        order = order[large[order]]
        answer = self._best(rows, pane[order], order)
        row, query = (answer.column(name).to_numpy() for name in (_ROW, _QUERY))
        goes = np.zeros((rows.num_rows, self._job.buckets), np.bool_)
        goes[row, self._homes[query]] = True
        left, buckets = np.nonzero(goes)
        return Sifted(left, buckets, np.flatnonzero(~large))

    def _best(self, rows: pa.Table, pane: Ints, order: Ints) -> pa.Table:
        """The best rows of each pane for each query. Panes must ascend, and none may be given twice."""
        session = self._session = self._session or self._open()
        names = session.schema.names[:-2]
        numbers = (pa.array(values) for values in (pane + self._before, order.astype(np.int64)))
        columns = [*rows.select(names).take(pa.array(order)).columns, *numbers]
        self._before += int(pane[-1]) + 1
        pushed = session.push(pa.table(columns, schema=session.schema))
        return pa.concat_tables([pushed, session.finish()])

    def _open(self) -> SubscriptionsSession:
        """Open a session of all queries over tumbling windows of one pane each."""
        asked, schema = self._job.query, self._job.schema
        score = bind(asked.score, asked.ascending, schema, asked.queries.schema)
        fields = [schema.field(name) for name in dict.fromkeys(score.columns)]
        queries = asked.queries.append_column(_QUERY, pa.array(np.arange(len(asked.queries))))
        of_panes = TopKForEach(
            queries=queries,
            k=asked.k,
            by=asked.by,
            where=asked.where,
            window=tumbling(1, on=_PANE),
            key=_QUERY,
            ascending=asked.ascending,
        )
        return of_panes.open(pa.schema([*fields, (_PANE, pa.int64()), (_ROW, pa.int64())]))
