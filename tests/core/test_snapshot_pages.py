"""Oracle and example tests of snapshots in pages: they come back as they were, and what did not change is not new."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.core.snapshot_pages import DIGEST_BYTES, digest_of_page, join, split
from skyband.errors import SnapshotCorrupt


@given(st.binary(max_size=3_000), st.sampled_from([0, 64, 10_000]), st.sampled_from([4, 16, 256]))
def test_pages_give_the_snapshot_back(data: bytes, whole_bytes: int, page_bytes: int) -> None:
    repeated = data * 3
    paged = split(repeated, whole_bytes=whole_bytes, page_bytes=page_bytes)
    assert (paged.depth == 0) == (len(repeated) <= whole_bytes)
    assert all(0 < len(page) <= 4 * page_bytes for page in paged.pages.values())
    assert join(paged.root, paged.depth, paged.pages.get, nbytes=len(repeated)) == (repeated, paged.pages)


@pytest.mark.parametrize("front", [1, 8, 999, 40_000])
def test_what_leaves_at_the_front_and_comes_at_the_back_changes_few_pages(front: int) -> None:
    stream = np.random.default_rng(1).bytes(4_100_000)
    before, after = split(stream[:4_000_000]), split(stream[front : 4_000_000 + front])
    written = sum(len(page) for digest, page in after.pages.items() if digest not in before.pages)
    assert written < front + 200_000, "the bytes that came, a page or two at each end, and lists"
    assert before.depth == 2
    assert len(before.root) <= 4096


def test_a_page_that_is_missing_or_damaged_is_named() -> None:
    paged = split(np.random.default_rng(2).bytes(200_000))
    digest = paged.root[:DIGEST_BYTES]
    with pytest.raises(SnapshotCorrupt, match=f"missing .{digest.hex()}"):
        join(paged.root, paged.depth, lambda one: None if one == digest else paged.pages[one], nbytes=200_000)
    with pytest.raises(SnapshotCorrupt, match="damaged"):
        join(paged.root, paged.depth, lambda one: paged.pages[one][:-1] + b"?", nbytes=200_000)
    with pytest.raises(SnapshotCorrupt, match="no digests"):
        join(paged.root[:-1], paged.depth, paged.pages.get, nbytes=200_000)


def test_a_page_that_is_listed_again_and_again_takes_no_memory() -> None:
    """A page of 64 MB of zeros is small in a state; a list of a million of them has 16 MB."""
    page = bytes(1 << 16)
    digest = digest_of_page(page)
    with pytest.raises(SnapshotCorrupt, match="have 655,360,000 bytes; at most 65,536 are right"):
        join(digest * 10_000, 1, {digest: page}.get, nbytes=len(page))
    listed = digest * 4_096
    lists = {digest: page, digest_of_page(listed): listed}
    with pytest.raises(SnapshotCorrupt, match="at most 1,048,576 are right"):
        join(digest_of_page(listed) * 4_096, 2, lists.get, nbytes=len(page))


def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    random = np.random.default_rng(start)
    names = pa.array([None if number % 7 == 0 else f"row {number}" for number in numbers], pa.string())
    return pa.table({"t": numbers, "x": random.random(len(numbers)), "y": random.random(len(numbers)), "name": names})


WINDOW = sb.sliding(30_000, every=500, on="t")
QUERIES = {
    "pairs": sb.TopKPairs(k=3, by="abs(a.x - b.x) * abs(a.y - b.y)", ascending=True, window=WINDOW),
    "joins": sb.JoinAggregate(inputs=WINDOW, aggregates={"most": "MAX(x)", "other": "MIN(y)"}),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_a_session_writes_follows_the_rows_that_came_not_the_window(query: sb.TopKPairs) -> None:
    session = query.open(rows(0, 1).schema)
    for start in range(0, 40_000, 10_000):
        session.push(rows(start, start + 10_000))
    before = split(session.snapshot())
    session.push(rows(40_000, 40_500))
    state = session.snapshot()
    after = split(state)
    whole = sum(map(len, after.pages.values()))
    written = sum(len(page) for digest, page in after.pages.items() if digest not in before.pages)
    assert after.depth
    assert written < whole / 2
    restored = query.open(rows(0, 1).schema, join(after.root, after.depth, after.pages.get, nbytes=len(state))[0])
    more = rows(40_500, 41_000)
    assert restored.push(more).equals(session.push(more))
