"""The counts of a session."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from skyband.core import notebook
from skyband.core.validation import Saved


@dataclass(slots=True)
class Counters:
    """Counts of rows: of one batch, or of all batches so far."""

    position: int = 0  # arrivals
    rows_in: int = 0  # with those that were dropped
    rows_null_time: int = 0
    rows_jumped: int = 0

    def add(self, others: Counters) -> None:
        self.position += others.position
        self.rows_in += others.rows_in
        self.rows_null_time += others.rows_null_time
        self.rows_jumped += others.rows_jumped

    @classmethod
    def restored(cls, counters: dict[str, int]) -> Counters:
        names = [field.name for field in fields(cls)]
        Saved({}).counts("counters", np.array([counters[name] for name in names]))
        return cls(*(counters[name] for name in names))


@dataclass(slots=True)
class Stats:
    """Counts of the rows so far: rows_in = rows_used + rows_late + rows_null_time + rows_jumped.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> rows = pa.table({"t": [1, 25, None, 2], "x": [5, 6, 7, 8]})
    >>> session = sb.TopK(k=1, by="x", window=sb.tumbling(10, on="t")).open(rows.schema)
    >>> _ = session.push(rows)
    >>> stats = session.stats()
    >>> stats.rows_in, stats.rows_used, stats.rows_null_time, stats.rows_late
    (4, 2, 1, 1)
    """

    rows_in: int = 0
    rows_used: int = 0  # took their place in a window
    rows_late: int = 0  # dropped: all their windows had closed
    rows_null_time: int = 0  # dropped: no event time
    rows_jumped: int = 0  # dropped: with `max_jump`, too far ahead of all earlier rows
    rows_unranked: int = 0  # used, but with a null or NaN score, so never ranked
    rows_held: int = 0  # kept now because they may still be shown
    rows_missed: int = 0  # with `error`: belonged in an answer, and were not shown
    groups: int = 0
    queries_refused: int = 0  # changes of queries that could not be applied, and were skipped

    def _repr_html_(self) -> str:
        return notebook.page("Rows so far", notebook.facts(self.told()))

    def told(self) -> dict[str, int]:
        """The counts by readable name: rows in, used and held, and every other count that is not zero."""
        always = ("rows_in", "rows_used", "rows_held")
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name.replace("_", " "): value for name, value in found.items() if value or name in always}
