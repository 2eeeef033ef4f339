"""The demo's answers against the definition, with nothing in common with what computed them: numpy over all trades.

A window ends on a whole minute and holds the trades of the ten minutes before. It has closed when a trade was seen
whose time is at least the allowed lateness after its end. It shows the ten best by price * volume, of equals
the later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.streams.trades import MAX_DELAY

_K: Final = 10
_MINUTE_US: Final = 60_000_000
_SIZE_US: Final = 10 * _MINUTE_US
_LATENESS_US: Final = MAX_DELAY // timedelta(microseconds=1)

Shown = tuple[int, float, int, str, float, int]  # rank, score, ts in us, symbol, price, volume
Windows = dict[int, list[Shown]]  # by end, in us


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many windows there should be, and what is wrong with which."""

    windows: int
    disagreements: list[str]


def check(trades: pa.Table, answers: pa.Table) -> Verdict:
    """Every window of `answers` against those of `trades`, row for row."""
    expected, given = dict(recomputed(trades)), _given(answers)
    wrong = [
        _describe(end, expected.get(end), given.get(end))
        for end in sorted(expected.keys() | given.keys())
        if expected.get(end) != given.get(end)
    ]
    return Verdict(len(expected), wrong)


def recomputed(trades: pa.Table) -> Iterator[tuple[int, list[Shown]]]:
    """Each window that has closed, by its end: all its trades sorted, and the first ten of them."""
    ts = _micros(trades.column("ts"))
    price, volume = (trades.column(name).to_numpy() for name in ("price", "volume"))
    symbol = trades.column("symbol").combine_chunks()
    score = price * volume
    by_time = np.argsort(ts, kind="stable")
    first, watermark = int(ts.min()), int(ts.max()) - _LATENESS_US
    for end in range(first // _MINUTE_US * _MINUTE_US + _MINUTE_US, watermark + 1, _MINUTE_US):
        bounds = np.searchsorted(ts, [end - _SIZE_US, end], sorter=by_time)
        inside = by_time[bounds[0] : bounds[1]]
        if len(inside):
            best = inside[np.lexsort((-inside, -ts[inside], -score[inside]))[:_K]].tolist()
            yield (
                end,
                [
                    (rank, float(score[i]), int(ts[i]), str(symbol[i]), float(price[i]), int(volume[i]))
                    for rank, i in enumerate(best, start=1)
                ],
            )


def _given(answers: pa.Table) -> Windows:
    windows: Windows = {}
    start, end, ts = (_micros(answers.column(name)).tolist() for name in ("window_start", "window_end", "ts"))
    others = (answers.column(name).to_pylist() for name in ("rank", "score", "symbol", "price", "volume"))
    for window_start, window_end, time, rank, *values in zip(start, end, ts, *others, strict=True):
        score, symbol, price, volume = values
        # A window with the wrong start is another window.
        key = window_end if window_start == window_end - _SIZE_US else window_start
        windows.setdefault(key, []).append((rank, score, time, symbol, price, volume))
    return {key: sorted(rows) for key, rows in windows.items()}


def _micros(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()


def _describe(end: int, expected: list[Shown] | None, given: list[Shown] | None) -> str:
    window = f"the window that ends at {_clock(end)}"
    if expected is None:
        return f"{window} should not be there"
    if given is None:
        return f"{window} is missing"
    for right, wrong in zip(expected, given, strict=False):
        if right != wrong:
            return f"{window} shows {_row(wrong)} where recomputation gives {_row(right)}"
    return f"{window} shows {len(given)} rows where recomputation gives {len(expected)}"


def _row(shown: Shown) -> str:
    rank, score, ts, symbol, price, volume = shown
    return f"{rank}. {symbol} {price} × {volume} = {score:.2f} of {_clock(ts)}"


def _clock(us: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S UTC")
