"""Oracle tests: keys are in the order of their numbers, one to one, whatever came before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numbers_at_the_edge import EDGES_OF_64_BITS, EDGES_WITHOUT_SIGN

from skyband.kernels.whole_keys import EXACT, NEAR, WholeKeys

SIGNED = st.one_of(st.sampled_from(EDGES_OF_64_BITS), st.integers(-(2**63), 2**63 - 1))
UNSIGNED = st.one_of(st.sampled_from(EDGES_WITHOUT_SIGN), st.integers(0, 2**64 - 1))
SMALLEST_NORMAL = np.finfo(np.float64).tiny


def check(whole: WholeKeys, keys: np.ndarray, numbers: list[int]) -> None:
    assert whole.numbers(keys).tolist() == numbers
    assert np.isfinite(keys).all()
    assert ((keys == 0) | (np.abs(keys) >= SMALLEST_NORMAL)).all(), "subnormal floats may be taken for zero"
    order = np.argsort(keys, kind="stable")
    assert [numbers[i] for i in order] == sorted(numbers)
    assert len(np.unique(keys)) == len(set(numbers))


@given(st.booleans(), st.data())
def test_numbers_that_come_one_batch_after_another(unsigned: bool, data: st.DataObject) -> None:
    batches = data.draw(st.lists(st.lists(UNSIGNED if unsigned else SIGNED, max_size=12), max_size=6))
    whole = WholeKeys(unsigned=unsigned)
    held, numbers = np.empty(0), []
    for batch in batches:
        coming = np.array(batch, np.uint64 if unsigned else np.int64)
        keys = whole.keys(coming)
        if keys is None:
            held = whole.rekey(held, coming)
            keys = whole.keys(coming)
        assert keys is not None
        held, numbers = np.concatenate([held, keys]), numbers + batch
        check(whole, held, numbers)
        restored = WholeKeys(unsigned=unsigned)
        restored.restore(whole.state())
        check(restored, held, numbers)


@given(st.lists(SIGNED, max_size=20))
def test_fixed_keys_pass_over_few_numbers(batch: list[int]) -> None:
    keys, without = WholeKeys(near=False).some_keys(np.array(batch, np.int64))
    assert np.isnan(keys).tolist() == without.tolist()
    assert without.tolist() == [not -(2**63) + 2**53 <= x < 2**63 - 2**53 for x in batch]
    check(WholeKeys(near=False), keys[~without], [x for x, none in zip(batch, without, strict=True) if not none])


def test_hashes() -> None:
    """So many at once that no stretch between two of them is as long as what has to be left out."""
    numbers = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 100_000, endpoint=True)
    whole = WholeKeys()
    assert whole.keys(numbers) is None
    whole.rekey(np.empty(0), numbers)
    keys = whole.keys(numbers)
    assert keys is not None
    check(whole, keys, numbers.tolist())


def test_whole_numbers_that_are_floats_are_their_own_keys() -> None:
    numbers = np.array([0, 1, -1, EXACT, -EXACT, 12_345])
    assert WholeKeys().keys(numbers).tolist() == numbers.tolist()
    assert WholeKeys().keys(np.array([NEAR, -NEAR])) is not None
    assert WholeKeys().keys(np.array([NEAR + 1])) is None
    assert WholeKeys(unsigned=True).keys(np.array([2**64 - 1], np.uint64)) is None


def test_infinities_stay_when_keys_change() -> None:
    whole = WholeKeys()
    kept = whole.rekey(np.array([np.inf, 3.0, -np.inf, np.nan]), np.array([2**63 - 1]))
    assert kept[[0, 2]].tolist() == [np.inf, -np.inf]
    assert np.isnan(kept[3])
    assert whole.numbers(kept[1:2]).tolist() == [3]


def test_numbers_of_a_smaller_unit() -> None:
    whole = WholeKeys()
    keys = whole.keys(np.array([5, -7]))
    changed = whole.rekey(keys, np.array([123]), factor=1_000)
    assert whole.numbers(changed).tolist() == changed.tolist() == [5_000, -7_000]
    with pytest.raises(OverflowError):
        whole.rekey(whole.keys(np.array([2**60])), np.array([1]), factor=10)
