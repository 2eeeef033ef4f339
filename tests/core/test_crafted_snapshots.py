"""Example: snapshots whose checksum fits and whose contents are hostile are refused, or taken for what they say.

Here loops check every index, so that what would crash the interpreter elsewhere is an `IndexError`. The campaign tries
thousands more, in processes that may die: `make torture ARGS="--line 6"`.
"""

from __future__ import annotations

import faulthandler
import struct
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from torture.corpus import cases
from torture.crafted import craft, drive, sealed

import skyband as sb
from skyband.core import snapshots

# One case of each algorithm, or of several that are the same but for their index.
TRIED = [
    "rows/mintopk/time, changes",
    "rows/relaxed/each arrival",
    "rows/partitioned/count",
    "rows/tma/count",
    "rows/staircase/time, changes",
    "rows/strict+relaxed/time",
    "rows/recompute/time",
    "pairs/staircase/time, changes",
    "pairs/naive/count",
    "across/staircase/time",
    "across/totals/max",
    "across/sorted_lists/time",
    "subscriptions/scan/time, changes",
    "subscriptions/shared/time, changes",
    "subscriptions/mintopk/count",
    "joins/late/windows",
    "joins/multiply/parts",
    "joins/late/arrivals",
    "joins/early/arrivals, extremes",
]


@pytest.fixture
def patience() -> Iterator[None]:
    """A loop that never ends lets nothing else run: after ten minutes the process says where it is, and ends."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.usefixtures("patience")
def test_hostile_contents_do_no_harm(name: str) -> None:
    case = cases(name)[name]
    state = case.snapshot(3)
    for seed in range(12):
        crafted, words = craft(state, np.random.default_rng([seed, *name.encode()]))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outcome = drive(case, crafted, 3)
        fine = outcome in ("refused", "typed", "went on") or outcome.startswith("typed after ")
        assert fine, f"{words}: {outcome}"
        assert not outcome.endswith(("IndexError", "MemoryError")), f"{words}: {outcome}"


@pytest.mark.parametrize("name", TRIED)
def test_what_was_saved_is_taken(name: str) -> None:
    case = cases(name)[name]
    assert [drive(case, case.snapshot(batches), batches) for batches in (0, 1, 4)] == ["went on"] * 3


@pytest.mark.parametrize("header", [b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"1" * 10_000, b'{"counters": 5}'])
def test_a_header_that_is_none(header: bytes) -> None:
    case = cases(TRIED[0])[TRIED[0]]
    fixed = struct.pack("<8sII", snapshots.MAGIC, snapshots.VERSION, len(header))
    with pytest.raises(sb.SnapshotCorrupt, match="its header does not describe it"):
        case.open(sealed(fixed + header))


def test_a_header_longer_than_all_of_it() -> None:
    case = cases(TRIED[0])[TRIED[0]]
    with pytest.raises(sb.SnapshotCorrupt, match="a header of 4294967295 bytes does not fit"):
        case.open(sealed(struct.pack("<8sII", snapshots.MAGIC, snapshots.VERSION, 2**32 - 1) + b"{}"))


def test_damage_to_the_version_is_damage() -> None:
    case = cases(TRIED[0])[TRIED[0]]
    state = bytearray(case.snapshot(1))
    struct.pack_into("<I", state, len(snapshots.MAGIC), snapshots.VERSION + 1)
    with pytest.raises(sb.SnapshotCorrupt, match="checksum does not match"):
        case.open(bytes(state))


def test_a_table_whose_offsets_point_outside() -> None:
    name = "rows/relaxed/time"
    case = cases(name)[name]
    state = case.snapshot(2)
    body, refused = bytearray(state[:-16]), 0
    at = body.rindex(b"ARROW1") if b"ARROW1" in body else len(body) - 400
    for place in range(at, len(body), 7):  # the last table: its offsets, texts and numbers
        changed = bytearray(body)
        changed[place] ^= 0xFF
        refused += drive(case, sealed(bytes(changed)), 2) == "refused"
    assert refused, "some of them are offsets"
