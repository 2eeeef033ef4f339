"""Snapshots in pages: two snapshots of one session share the pages that did not change.

    snapshot ─ cut where its own bytes say so ─ pages, each by its digest ─ the digests, which are cut the same way

A hash of its last bytes ends a page, not an offset. So rows that leave at the front of an array, or arrive at its back,
change only the pages they were in. The digest of its bytes identifies a page: a page never changes, and may be cached
anywhere and for any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from skyband.errors import SnapshotCorrupt
from skyband.kernels.page_ends import page_ends

DIGEST_BYTES: Final = 16
WHOLE_BYTES: Final = 1 << 16  # a snapshot of so many bytes is one value: pages would cost more than they save
PAGE_BYTES: Final = 1 << 13  # on average; the shortest have a quarter of it, the longest four times as much
LIST_BYTES: Final = 1 << 12  # a list of digests of so many bytes is not cut again

# A number for each value of a byte, the same for ever: together they say where pages end.
_GEARS: Final = np.random.Generator(np.random.PCG64(20_110_612)).integers(0, 2**64, 256, np.uint64)


@dataclass(frozen=True, slots=True)
class PagedSnapshot:
    root: bytes  # the snapshot itself, or a list of digests
    depth: int  # how often lists lead to lists before they lead to the snapshot; 0: the root is the snapshot
    pages: dict[bytes, bytes]  # all pages, by digest


def split(snapshot: bytes, *, whole_bytes: int = WHOLE_BYTES, page_bytes: int = PAGE_BYTES) -> PagedSnapshot:
    """The snapshot in pages, if it is larger than `whole_bytes`."""
    pages: dict[bytes, bytes] = {}
    root, depth, most = snapshot, 0, whole_bytes
    while len(root) > most:
        found = [(_digest(page), page) for page in _cut(root, page_bytes)]
        pages.update(found)
        root, depth, most = b"".join(digest for digest, _ in found), depth + 1, LIST_BYTES
    return PagedSnapshot(root, depth, pages)


def join(root: bytes, depth: int, find: Callable[[bytes], bytes | None]) -> tuple[bytes, dict[bytes, bytes]]:
    """The snapshot, put together from its pages, and these; `find` gives the page with a digest.

    Raises if a page is missing or is not the one that its digest says.
    """
    data, pages = bytes(root), {}
    for _ in range(depth):
        if len(data) % DIGEST_BYTES:
            raise SnapshotCorrupt(f"A list of pages of a snapshot has {len(data)} bytes, which are no digests.")
        digests = [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
        for digest in digests:
            if digest not in pages:
                pages[digest] = _checked(digest, find(digest))
        data = b"".join(map(pages.__getitem__, digests))
    return data, pages


def _cut(data: bytes, page_bytes: int) -> Iterator[bytes]:
    start = 0
    ends = page_ends(np.frombuffer(data, np.uint8), _GEARS, page_bytes // 4, page_bytes * 4, page_bytes - 1)
    for end in ends.tolist():
        yield data[start:end]
        start = end


def _checked(digest: bytes, page: bytes | None) -> bytes:
    if page is None:
        raise SnapshotCorrupt(f"A page of the snapshot is missing ({digest.hex()}). Use an earlier one.")
    if _digest(page) != digest:
        raise SnapshotCorrupt(f"A page of the snapshot is damaged ({digest.hex()}). Use an earlier one.")
    return page


def _digest(page: bytes) -> bytes:
    return hashlib.blake2b(page, digest_size=DIGEST_BYTES).digest()
