"""Trades on a made-up market, as a stream of any length in constant memory.

Prices walk at random, some symbols trade more than others, now and then one of them has a burst, and some trades are
reported seconds after they happened, so that the stream is out of order by event time. The same seed gives the same
rows, whatever the length of the stream or of its batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.streams.batches import cut

START: Final = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
MAX_DELAY: Final = timedelta(seconds=5)  # from a trade to its report: how far rows are out of order
TRADES_PER_SECOND: Final = 300  # between bursts

_NAMES: Final = """
ACER ALGA ALOE BALM BEET CHIA CORN DATE DILL FERN FLAX HEMP IRIS KALE KELP LEEK LIME LILY MINT MOSS
OATS OKRA PALM PEAR PINE PLUM REED RICE ROSE RUSH SAGE SLOE SOYA TARO TEAK TEFF VINE WEED YAMS YUZU
"""
SYMBOLS: Final = tuple(_NAMES.split())
SCHEMA: Final = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int64())]
)

_BLOCK_ROWS: Final = 4096  # made at a time; part of what a seed means
_START_US: Final = int(START.timestamp()) * 1_000_000
_MAX_DELAY_US: Final = MAX_DELAY // timedelta(microseconds=1)
_DELAYED: Final = 0.05  # of all trades are reported late
_BURST: Final = 0.1  # of all blocks are a burst: faster, larger, and mostly of one symbol
_BURST_SPEED: Final = 5.0
_BURST_VOLUME: Final = 3.0
_STEP: Final = 0.0008  # the standard deviation of a price's change from one trade to the next
_POPULARITY: Final = 1.0 / np.arange(3, 3 + len(SYMBOLS))


@dataclass(slots=True)
class _Market:
    """What one block leaves to the next."""

    clock_us: int
    log_price: npt.NDArray[np.float64]  # of each symbol


def trades(rows: int, *, seed: int = 1, batch_rows: int = 65_536) -> pa.RecordBatchReader:
    """`rows` trades in order of report, in batches of `batch_rows`: ts, symbol, price, volume."""
    return pa.RecordBatchReader.from_batches(SCHEMA, cut(_blocks(seed), rows, batch_rows))


def _blocks(seed: int) -> Iterator[pa.RecordBatch]:
    opening = np.random.default_rng(seed)
    market = _Market(_START_US, opening.uniform(np.log(10), np.log(400), len(SYMBOLS)))
    number = 0
    while True:
        yield _block(market, np.random.default_rng((seed, number)))
        number += 1


def _block(market: _Market, random: np.random.Generator) -> pa.RecordBatch:
    is_burst = random.random() < _BURST
    hot = random.integers(len(SYMBOLS))
    symbol = random.choice(len(SYMBOLS), _BLOCK_ROWS, p=_POPULARITY / _POPULARITY.sum())
    volume = random.lognormal(4.5, 1.1, _BLOCK_ROWS)
    gap_us = random.exponential(1e6 / TRADES_PER_SECOND, _BLOCK_ROWS)
    if is_burst:
        symbol[random.random(_BLOCK_ROWS) < 0.6] = hot
        volume[symbol == hot] *= _BURST_VOLUME
        gap_us /= _BURST_SPEED
    reported_us = market.clock_us + np.cumsum(gap_us).astype(np.int64)
    delay_us = np.where(random.random(_BLOCK_ROWS) < _DELAYED, random.integers(0, _MAX_DELAY_US, _BLOCK_ROWS), 0)
    price = np.exp(_walk(market, symbol, random.normal(0, _STEP, _BLOCK_ROWS)))
    market.clock_us = int(reported_us[-1])
    return pa.record_batch(
        [
            pa.array(np.maximum(reported_us - delay_us, _START_US)).view(SCHEMA.field("ts").type),
            pa.DictionaryArray.from_arrays(pa.array(symbol, pa.int32()), pa.array(SYMBOLS)).cast(pa.string()),
            pa.array(np.maximum(np.round(price, 2), 0.01)),
            pa.array(np.maximum(volume.astype(np.int64), 1)),
        ],
        schema=SCHEMA,
    )


def _walk(market: _Market, symbol: npt.NDArray[np.int64], step: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each trade's log price: its symbol's last one and the steps of the symbol's trades since then."""
    by_symbol = np.argsort(symbol, kind="stable")
    total = np.cumsum(step[by_symbol])
    first = np.searchsorted(symbol[by_symbol], np.arange(len(SYMBOLS)))
    before = np.concatenate([[0.0], total])[first]
    log_price = np.empty(len(symbol))
    log_price[by_symbol] = market.log_price[symbol[by_symbol]] + total - before[symbol[by_symbol]]
    last = np.searchsorted(symbol[by_symbol], np.arange(len(SYMBOLS)), side="right")
    traded = last > first
    market.log_price[traded] = log_price[by_symbol[last[traded] - 1]]
    return log_price
