"""Snapshots in pages. Two snapshots of one session share the pages that have not changed.

    snapshot ─ cut where its bytes say so ─ pages ─ a list of their digests, which is cut into pages in the same way

A page ends where a hash of the last bytes says so, not at a fixed offset. So rows that leave at the front of an array,
or arrive at its back, change only their own pages. A page is identified by the digest of its bytes, so it never
changes, and any cache may keep it for any time.
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
WHOLE_BYTES: Final = 1 << 16  # a snapshot up to this size is not cut: pages would cost more than they save
PAGE_BYTES: Final = 1 << 13  # on average; the shortest have a quarter of it, the longest four times as much
LIST_BYTES: Final = 1 << 9  # a list of digests up to this size is not cut again

# A random number for each value of a byte, fixed for ever. A rolling hash of them decides where pages end.
_GEARS: Final = np.random.Generator(np.random.PCG64(20_110_612)).integers(0, 2**64, 256, np.uint64)


@dataclass(frozen=True, slots=True)
class PagedSnapshot:
    """A snapshot that is cut into pages."""

    root: bytes  # the snapshot itself, or a list of digests
    depth: int  # how many levels of lists lead from the root to the snapshot; 0: the root is the snapshot
    pages: dict[bytes, bytes]  # all pages, by digest


def split(snapshot: bytes, *, whole_bytes: int = WHOLE_BYTES, page_bytes: int = PAGE_BYTES) -> PagedSnapshot:
    """Cut a snapshot into pages, if it is larger than `whole_bytes`."""
    pages: dict[bytes, bytes] = {}
    root, depth, most = snapshot, 0, whole_bytes
    while len(root) > most:
        found = [(digest_of_page(page), page) for page in _cut(root, page_bytes)]
        pages.update(found)
        root, depth, most = b"".join(digest for digest, _ in found), depth + 1, LIST_BYTES
    return PagedSnapshot(root, depth, pages)


def join(
    root: bytes, depth: int, find: Callable[[bytes], bytes | None], *, nbytes: int
) -> tuple[bytes, dict[bytes, bytes]]:
    """Put a snapshot of so many bytes together; returns it and its pages. `find` returns the page with a digest.

    Raises if a page is missing or does not have its digest, or if there are more bytes: a page that is listed a
    million times would fill the memory.
    """
    data, pages = bytes(root), {}
    for level in range(depth, 0, -1):
        if len(data) % DIGEST_BYTES:
            raise SnapshotCorrupt(f"A list of pages of a snapshot has {len(data)} bytes, which are no digests.")
        digests = [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
        for digest in digests:
            if digest not in pages:
                pages[digest] = _checked(digest, find(digest))
        most = nbytes if level == 1 else DIGEST_BYTES * nbytes  # a list has at most a digest for each byte
        if (found := sum(len(pages[digest]) for digest in digests)) > most:
            raise SnapshotCorrupt(f"The pages of a snapshot have {found:,} bytes; at most {most:,} are right.")
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
    if digest_of_page(page) != digest:
        raise SnapshotCorrupt(f"A page of the snapshot is damaged ({digest.hex()}). Use an earlier one.")
    return page


def digest_of_page(page: bytes) -> bytes:
    return hashlib.blake2b(page, digest_size=DIGEST_BYTES).digest()
