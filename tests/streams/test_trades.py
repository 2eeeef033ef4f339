"""Examples: the demo's stream is the same for everyone, in any cut, and as out of order as it says."""

import numpy as np
import pyarrow as pa
import pytest

from skyband.streams.trades import MAX_DELAY, SCHEMA, START, SYMBOLS, trades


@pytest.mark.parametrize("batch_rows", [1, 7, 4096, 5000, 100_000])
def test_batches_of_any_length_hold_the_same_rows(batch_rows: int) -> None:
    rows = 300 if batch_rows == 1 else 20_000
    whole = trades(rows).read_all().combine_chunks()
    batches = list(trades(rows, batch_rows=batch_rows))
    assert pa.Table.from_batches(batches).combine_chunks().equals(whole)
    assert {batch.num_rows for batch in batches[:-1]} <= {batch_rows}


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    assert trades(5_000).read_all().equals(trades(10_000).read_all().slice(0, 5_000))


def test_a_seed_gives_the_same_rows_and_another_gives_others() -> None:
    assert trades(1_000, seed=5).read_all().equals(trades(1_000, seed=5).read_all())
    assert not trades(1_000, seed=5).read_all().equals(trades(1_000, seed=6).read_all())


def test_an_empty_stream_has_columns() -> None:
    assert trades(0).read_all().schema == SCHEMA


def test_some_trades_come_late_and_none_by_more_than_the_promised_delay() -> None:
    ts = trades(50_000).read_all().column("ts").to_numpy().astype("datetime64[us]").astype(np.int64)
    assert ts[0] >= START.timestamp() * 1_000_000
    behind_us = np.maximum.accumulate(ts) - ts
    assert 0.01 < (behind_us > 0).mean() < 0.1
    assert 1_000_000 < behind_us.max() <= MAX_DELAY.total_seconds() * 1_000_000


def test_prices_and_volumes_are_possible() -> None:
    table = trades(50_000).read_all()
    assert set(table.column("symbol").to_pylist()) == set(SYMBOLS)
    assert min(table.column("price").to_pylist()) > 0
    assert min(table.column("volume").to_pylist()) >= 1
    assert not any(column.null_count for column in table.columns)


def test_the_price_of_a_symbol_walks() -> None:
    """From one trade to the next a price moves little, and over many it moves much; also from block to block."""
    table = trades(100_000).read_all()
    price = table.filter(pa.compute.equal(table.column("symbol"), SYMBOLS[0])).column("price").to_numpy()
    steps = np.abs(np.diff(np.log(price)))
    assert steps.max() < 0.01
    assert price.max() / price.min() > 1.02
