"""A bucket's snapshot in Spark's state: a small one is one value; a large one is pages, of which few are written.

A large snapshot that is mostly new is also one value, because each page is a separate request to Spark.

A worker caches the pages and the open session of each bucket. It uses the cache only if the state that Spark has
committed names the same pages: a digest identifies the contents of a page, and the root those of a session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import MapState

from skyband.core.snapshot_pages import WHOLE_BYTES, PagedSnapshot, join, split
from skyband.engines.spark.bucket_job import BucketSession

whole_bytes = WHOLE_BYTES  # a larger snapshot is kept in pages; tests set it to 0
new_bytes = 1 << 22  # up to this size one that is mostly new is not; tests set it to 0
_MOST_BYTES: Final = 1 << 29  # of snapshots that a worker keeps


@dataclass(slots=True)
class _Kept:
    """What a worker knows of a bucket."""

    root: bytes
    pages: dict[bytes, bytes]  # what is in the state, by digest
    digests: Set[bytes]  # of all pages that the snapshot has, in the state or not
    session: BucketSession

    @property
    def nbytes(self) -> int:
        return len(self.root) + sum(map(len, self.pages.values()))


_kept: OrderedDict[Any, _Kept] = OrderedDict()  # by query and bucket; those used last come last


class PagedState:
    """The pages of one bucket's snapshot, from when it is opened to when it is saved."""

    def __init__(self, name: Any, pages: MapState, root: bytes | None, depth: int) -> None:
        self._name, self._state, self._root, self._depth = name, pages, root, depth
        known = _kept.pop(name, None)  # what fails in between is not to be used again
        self._known = {} if known is None else known.pages
        self._in_state: Set[bytes] = set()  # digests of pages
        self._before: Set[bytes] = set()  # the same of the whole snapshot, in whichever way it is kept
        self.session: BucketSession | None = None
        if known is not None and known.root == root:
            self.session, self._in_state, self._before = known.session, known.pages.keys(), known.digests

    def read(self) -> bytes | None:
        """The snapshot; None if there is none yet."""
        if self._root is None:
            return None
        if not self._depth:
            self._before = split(self._root, whole_bytes=whole_bytes).pages.keys()
            return self._root
        known = self._known or {bytes(digest): bytes(page) for (digest,), (page,) in self._state.iterator()}
        snapshot, pages = join(self._root, self._depth, lambda digest: known.get(digest) or self._fetched(digest))
        self._in_state = self._before = pages.keys()
        return snapshot

    def _fetched(self, digest: bytes) -> bytes | None:
        found = self._state.getValue((digest,))
        return None if found is None else bytes(found[0])

    def write(self, session: BucketSession, snapshot: bytes) -> PagedSnapshot:
        """Write pages that are new, delete those that are gone. The root is the caller's to keep."""
        split_up = split(snapshot, whole_bytes=whole_bytes)
        paged = PagedSnapshot(snapshot, 0, {}) if self._is_mostly_new(split_up, len(snapshot)) else split_up
        for digest, page in paged.pages.items():
            if digest not in self._in_state:
                self._state.updateValue((digest,), (page,))
        if not paged.pages and self._in_state:
            self._state.clear()
        for digest in self._in_state - paged.pages.keys() if paged.pages else ():
            self._state.removeKey((digest,))
        _keep(self._name, _Kept(paged.root, paged.pages, split_up.pages.keys(), session))
        return paged

    def _is_mostly_new(self, paged: PagedSnapshot, nbytes: int) -> bool:
        new = sum(len(page) for digest, page in paged.pages.items() if digest not in self._before)
        return 2 * new > nbytes <= new_bytes


def _keep(name: Any, kept: _Kept) -> None:
    _kept[name] = kept
    room = _MOST_BYTES
    for each in [*reversed(_kept)]:
        room -= _kept[each].nbytes
        if room < 0:
            del _kept[each]
