"""Oracle tests of the row store: rows by position, against a list of all of them, through random forgetting."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skyband.core.encoding.rows import FEW, MANY, RowStore

SCHEMA = pa.schema({"n": pa.int64(), "s": pa.dictionary(pa.int32(), pa.string())})


def lowered(little: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From how many rows on they are found in another way."""
    monkeypatch.setattr(RowStore, "little", little)
    monkeypatch.setattr(RowStore, "many", many)


@pytest.mark.parametrize(("little", "many"), [(4096, 4096), (0, 1), (30, 4)])
@pytest.mark.parametrize("seed", range(10))
def test_rows_are_found_by_position(seed: int, little: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered(little, many, monkeypatch)
    random = np.random.default_rng(seed)
    store, held, arrived = RowStore(SCHEMA), np.empty(0, np.int64), 0
    for _ in range(25):
        n = int(random.choice([0, 1, 5, 100]))
        numbers = np.arange(arrived, arrived + n)
        names = pa.array([str(i) for i in numbers], pa.string()).dictionary_encode()
        store.append(arrived, pa.record_batch([numbers, names], schema=SCHEMA))
        held, arrived = np.concatenate([held, numbers]), arrived + n
        if random.random() < 0.5:
            store.join()
        asked = random.choice(held, int(random.integers(0, 20))) if len(held) else held
        found = store.take(asked)
        assert found.column("n").to_pylist() == asked.tolist(), "in the order asked for, some twice"
        assert found.column("s").to_pylist() == [str(i) for i in asked]
        if random.random() < 0.4:
            held = held[random.random(len(held)) < 0.3]
            store.keep(held)


@pytest.mark.parametrize(("little", "many"), [(4096, 4096), (0, 1), (30, 4)])
@pytest.mark.parametrize("seed", range(5))
def test_rows_without_columns_are_counted(seed: int, little: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered(little, many, monkeypatch)
    random = np.random.default_rng(seed)
    store, held, arrived = RowStore(pa.schema([])), np.empty(0, np.int64), 0
    for _ in range(25):
        n = int(random.choice([0, 1, 5, 100]))
        store.append(arrived, pa.record_batch({"score": np.arange(n)}).select([]))
        held, arrived = np.concatenate([held, np.arange(arrived, arrived + n)]), arrived + n
        if random.random() < 0.5:
            store.join()
        asked = random.choice(held, int(random.integers(0, 20))) if len(held) else held
        assert (store.take(asked).num_rows, store.take(asked).num_columns) == (len(asked), 0)
        if random.random() < 0.4:
            held = held[random.random(len(held)) < 0.3]
            if random.random() < 0.5:
                store.keep(held)
            else:  # as from a snapshot, which does not say how many rows a table without columns has
                store.load(held, pa.record_batch([], schema=pa.schema([])))


@pytest.mark.parametrize("seed", range(3))
def test_many_rows_at_once_are_picked_out_column_by_column(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 3 * MANY
    rows = pa.table(
        {
            "flag": random.random(n) < 0.5,
            "small": random.integers(-128, 128, n).astype(np.int8),
            "half": random.random(n).astype(np.float16),
            "date": pa.array(random.integers(0, 20_000, n), pa.int32()).cast(pa.date32()),
            "time": pa.array(random.integers(0, 2**60, n), pa.timestamp("us", "UTC")),
            "missing": pa.array(random.random(n), mask=random.random(n) < 0.1),
            "name": [f"name {i}" for i in range(n)],
        }
    ).combine_chunks()
    (batch,) = rows.to_batches()
    held = np.flatnonzero(random.random(n) < 0.1)
    store = RowStore(rows.schema)
    store.load(held, batch.take(pa.array(held)))
    for start, stop in ((n, n + 100), (n, n + MANY)):  # of a slice, too
        store.append(start, batch.slice(start - n, stop - start))
        wanted = random.choice(np.concatenate([held, np.arange(start, stop)]), MANY)
        assert store.take(wanted).equals(batch.take(pa.array(wanted % n)))
        store.load(held, store.take(held))


def test_however_many_batches_come_there_are_few_places_to_look() -> None:
    store, copied = RowStore(pa.schema({"n": pa.int64()})), 0
    for i in range(1_000):
        store.append(i, pa.record_batch({"n": [i]}))
        before = {id(batch) for batch in store._batches}
        store.join()
        copied += sum(batch.num_rows for batch in store._batches if id(batch) not in before)
        assert len(store._batches) <= 2 * FEW
    assert store.take(np.arange(1_000)).column("n").to_pylist() == list(range(1_000))
    assert copied <= 1_000 * 10


def test_it_is_wasteful_when_less_than_half_is_held() -> None:
    store = RowStore(pa.schema({"n": pa.int64()}))
    store.append(0, pa.record_batch({"n": np.arange(1_000)}))
    assert store.is_wasteful(100)
    assert not store.is_wasteful(600)
    store.keep(np.arange(0, 1_000, 10))
    assert not store.is_wasteful(100)


def test_nothing_held() -> None:
    store = RowStore(SCHEMA)
    assert store.take(np.empty(0, np.int64)).num_rows == 0
    store.keep(np.empty(0, np.int64))
    assert store.take(np.empty(0, np.int64)).schema.equals(SCHEMA)
