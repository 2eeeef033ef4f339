"""Oracle tests of group codes: numbers in order of first appearance, against a dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skyband.core.encoding.groups import GroupCodes
from skyband.kernels.codes import IntegerCodes, first_rows


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000),
        np.random.default_rng(2).integers(0, 50, 5_000),
        np.arange(5_000) << 40,
        np.arange(5_000) << 32,
        np.full(5_000, -1),
        np.array([0, 2**63 - 1, -(2**63), 0, -1]),
        np.empty(0, np.int64),
        np.concatenate([np.arange(1_000), [2**40], np.arange(-500, 1_500)]),
        np.concatenate([np.random.default_rng(3).permutation(20_000), [-9], 2**40 + np.arange(20_000)]),
        -np.arange(5_000),
        np.arange(-(2**63), -(2**63) + 300)[::-1],
        np.concatenate([np.arange(2**63 - 300, 2**63 - 1), [2**63 - 1], np.arange(-(2**63), -(2**63) + 300)]),
    ],
    ids=[
        *("random", "few", "high bits", "pairs", "minus one", "extremes", "none"),
        *("close, then far", "far, then close", "down", "down to the smallest", "up to the largest"),
    ],
)
def test_whole_numbers_in_order_of_first_appearance(values: np.ndarray) -> None:
    codes, known = IntegerCodes(), {}
    for part in np.array_split(values.astype(np.int64), 7):
        expected = [known.setdefault(int(value), len(known)) for value in part]
        assert codes.encode(part).tolist() == expected
        assert codes.count == len(known)


def test_first_rows() -> None:
    codes = np.array([3, 4, 1, 4, 5, 3], np.int32)
    assert first_rows(codes, 3, 6).tolist() == [0, 1, 4]
    assert first_rows(codes, 6, 6).tolist() == []


@pytest.mark.parametrize("seed", range(6))
def test_keys_of_several_columns(seed: int) -> None:
    """Whatever the types, nulls and NaN included: equal keys have equal codes, also after forgetting some."""
    random = np.random.default_rng(seed)
    schema = pa.schema(
        {"i": pa.int32(), "s": pa.string(), "f": pa.float64(), "ts": pa.timestamp("us"), "u": pa.uint64()}
    )
    schema = pa.schema([schema.field(int(i)) for i in random.permutation(5)[: 1 + seed % 5]])
    groups, known = GroupCodes(schema), {}
    for step in range(12):
        n = int(random.integers(0, 30))
        columns = {
            "i": pa.array(random.integers(0, 3, n), pa.int32(), mask=random.random(n) < 0.2),
            "s": pa.array(random.choice(["x", "y", ""], n), pa.string(), mask=random.random(n) < 0.2),
            "f": pa.array(random.choice([0.5, np.nan, np.inf], n), pa.float64(), mask=random.random(n) < 0.2),
            "ts": pa.array(random.integers(0, 3, n), pa.timestamp("us"), mask=random.random(n) < 0.2),
            "u": pa.array(random.choice(np.array([0, 2**64 - 1], np.uint64), n), mask=random.random(n) < 0.2),
        }
        batch = pa.record_batch([columns[name] for name in schema.names], schema=schema)
        keys = [str(tuple(row.values())) for row in batch.to_pylist()]
        for key, code in zip(keys, groups.encode(batch).tolist(), strict=True):
            assert known.setdefault(key, code) == code
        assert len(set(known.values())) == len(known) == len(groups)
        assert [str(tuple(row.values())) for row in groups.keys.to_pylist()] == sorted(
            known, key=lambda key: known[key]
        )
        if step % 4 == 3:
            kept = np.flatnonzero(random.random(len(known)) < 0.5)
            names = sorted(known, key=lambda key: known[key])
            groups.keep(kept)
            known = {names[old]: new for new, old in enumerate(kept.tolist())}
