"""The session of a join query: each row belongs to an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.calls import Counters
from skyband.core.encoding.inputs import rows_for
from skyband.core.operator import Codes
from skyband.core.session import Arrivals, Session, entry
from skyband.errors import InvalidInput
from skyband.problems.joins.codec import Arrived, JoinsCodec
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.operator import JoinOperator, Rows
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.reading import Read

_NO_BATCH, _NO_TIMES = pa.record_batch([], names=[]), np.empty(0, np.int64)


class JoinSession(Session):
    """A running join query: `push` feeds it rows, `snapshot` saves it."""

    query: JoinAggregate
    _codec: JoinsCodec
    _operator: JoinOperator

    @entry
    def push(self, rows: Any, input: str | None = None) -> pa.Table:
        """Feed rows of an input to the query, in the order in which they arrive.

        Parameters
        ----------
        rows
            Any input that `top_k` takes. `push` reads a stream to its end. Push relations before the first row of a
            stream.
        input
            The name of the input. None: there is only one.

        Returns
        -------
        A pyarrow Table with the new answers. It is often empty.

        Raises
        ------
        InvalidInput
            The rows do not fit, or come too late for a relation. The session took none of them and is as it was.
        AggregateOverflow
            A sum of whole numbers exceeds 64 bits.
        TooManyGroups
            There are more than 20 million groups at once.
        """
        i = self._which(input)
        name = self.query.names[i]
        rows = rows_for(rows, self.schema[name])
        if self._codec.is_too_late(i):
            raise InvalidInput(
                f"{name!r} is a relation: push its rows before the first row of a stream. Skyband rejected the rows."
            )
        return self._push(rows, i)

    @entry
    def read(self, batch: pa.RecordBatch, input: str) -> Arrivals:
        """Read rows of an input into numbers, which the caller merges with those of others and gives to `push_rows`.

        Their cells get codes then: until then, a cell without other rows may be forgotten.
        """
        return self._read(rows_for(batch, self.schema[input]), self._which(input))

    @entry
    def push_rows(
        self, rows: Mapping[int, Rows | Read], order: Codes, read: Sequence[Arrivals] | None = None
    ) -> pa.Table:
        """Take rows in numbers, by input. `order` has the input of each arrival.

        `read` has the batches read since the last call, which are counted now; None: someone else read these rows.
        """
        counted = Counters(rows_in=len(order) if read is None else sum(each.counted.rows_in for each in read))
        counted.rows_null_time = sum(each.counted.rows_null_time for each in read or ())
        unmatched = sum(each.numbers.unmatched for each in read or ())
        came = tuple(each for arrivals in read or () for each in arrivals.came)
        return self._take(Arrivals(counted, _NO_BATCH, _NO_TIMES, Arrived(rows, order, unmatched), came))

    @entry
    def close_ahead(self, watermark: int) -> pa.Table:
        """Close windows up to `watermark`, in ticks, but only those that the end of the input closes in any case.

        It is not certain that all streams will come this far. So a window that only the watermark would close stays
        open: a landmark window without a new row, or with changes a window that takes back the last rows.
        """
        operator = self._operator
        return self._closed(lambda: operator.advance(min(watermark, operator.last_end())))

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The schema of each input, by name."""
        return self._codec.schema

    @property
    def lateness(self) -> int:
        """How long windows wait for rows, in ticks."""
        return self._codec.window.lateness

    def statistics(self) -> dict[str, Statistics]:
        """Measure the inputs: recent rates, in rows per slide, and current counts.

        Returns
        -------
        A dict from the inputs' names to `Statistics`, for `explain(query, statistics=…)`.
        """
        return self._codec.statistics()

    def _which(self, name: str | None) -> int:
        streams = [each for each, _ in self.query.streams]
        if name is None and len(streams) == 1:
            name = streams[0]
        if name not in self.query.names:
            raise InvalidInput(f"Say whose rows these are: one of {', '.join(self.query.names)}; got {name!r}.")
        return self.query.names.index(name)
