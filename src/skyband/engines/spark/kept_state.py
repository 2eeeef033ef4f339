"""A bucket's session in Spark's state: a snapshot, in one value or in pages, and a journal of what was done since.

A micro-batch adds an entry to the journal. When the journal is half as large as the snapshot, it writes a new snapshot
instead, of which only the pages that have changed are written. So all that is ever written is at most three times the
entries. A snapshot that is mostly new is one page, because each page is a separate request to Spark. Pages are
compressed. Small snapshots have no journal: they are part of the value that each micro-batch writes.

A worker keeps the pages and the open session of each bucket. It uses a session only if the state that Spark has
committed is the one that the session is in, or continues from there: then the session repeats the rest of the journal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from skyband.core.snapshot_pages import WHOLE_BYTES, PagedSnapshot, digest_of_page, join, split
from skyband.engines.spark.bucket_job import BucketSession
from skyband.engines.spark.journal import Recorded, digest_of, repeat
from skyband.errors import SnapshotCorrupt

whole_bytes = WHOLE_BYTES  # a larger snapshot is kept in pages; tests set it to 0
small_bytes = 1 << 13  # the same, of a session that has a journal
new_bytes = 1 << 22  # a snapshot up to this size that is mostly new is one page; tests set it to 0
journal_share = 0.5  # of the snapshot's bytes, that a journal may have; tests set it to 0
_LONGEST_PAGE: Final = 1 << 26
_LENGTH: Final = 4  # bytes of the number that says how long a page is
_MOST_BYTES: Final = 1 << 29  # of snapshots that a worker keeps


class Stored(NamedTuple):
    """What the value of a bucket says of its session."""

    nbytes: int  # of the snapshot and its journal
    depth: int
    root: bytes | None  # None: there is no session yet
    entries: int
    journal: bytes  # the digest of its last entry; empty if there is none
    journal_bytes: int

    @property
    def snapshot_bytes(self) -> int:
        return self.nbytes - self.journal_bytes

    @classmethod
    def read(cls, columns: Iterable[Any]) -> Stored:
        """From the state, where columns that an earlier version did not have are null."""
        nbytes, depth, root, entries, journal, journal_bytes = columns
        return cls(nbytes, depth, root and bytes(root), entries or 0, bytes(journal or b""), journal_bytes or 0)


NOTHING: Final = Stored(0, 0, None, 0, b"", 0)


def packed(page: bytes) -> bytes:
    """A page as the state has it: its length, and zstd."""
    return len(page).to_bytes(_LENGTH, "little") + pa.compress(page, codec="zstd", asbytes=True)


def unpacked(data: bytes) -> bytes:
    length = int.from_bytes(data[:_LENGTH], "little")
    try:
        if length <= _LONGEST_PAGE:
            return bytes(pa.decompress(data[_LENGTH:], decompressed_size=length, codec="zstd", asbytes=True))
    except (pa.ArrowException, OSError) as error:
        raise SnapshotCorrupt(f"A page of a bucket's snapshot is damaged: {error}") from error
    raise SnapshotCorrupt(f"A page of a bucket's snapshot is damaged: it says that it has {length:,} bytes.")


def key_of(entry: int) -> bytes:
    """Where an entry of the journal is, among the pages: these have longer keys."""
    return entry.to_bytes(8, "big")


@dataclass(slots=True)
class _Kept:
    """What a worker knows of a bucket."""

    stored: Stored
    session: BucketSession
    pages: dict[bytes, bytes] = field(default_factory=dict)  # what is in the state, by digest
    digests: Set[bytes] = frozenset()  # of all pages that the snapshot has, in the state or not

    @property
    def nbytes(self) -> int:
        return len(self.stored.root or b"") + sum(map(len, self.pages.values()))


_kept: OrderedDict[Any, _Kept] = OrderedDict()  # by query and bucket; those used last come last
_dropped: set[Any] = set()  # for which there was no room


class KeptState:
    """The state of one bucket, from when its session is opened to when it is saved."""

    def __init__(self, name: Any, pages: MapState, stored: Stored, *, has_journal: bool) -> None:
        self._name, self._state, self.stored = name, pages, stored
        # A worker that keeps no session would repeat the whole journal each time.
        self._has_journal = has_journal and name not in _dropped
        self._before = _kept.pop(name, None)  # what fails in between is not to be used again
        self._read: dict[bytes, bytes] = {}  # all that is in the state, once it was read
        self._pages: dict[bytes, bytes] = {}  # of its snapshot
        self._digests: Set[bytes] = frozenset()

    def session(self, open: Callable[[bytes | None], BucketSession]) -> BucketSession:
        """The session that the state describes. `open` opens one from a snapshot, or a new one."""
        kept, stored = self._before, self.stored
        if kept is not None and kept.stored.root == stored.root and self._continues(kept.stored):
            session, start, journal = kept.session, kept.stored.entries, kept.stored.journal
            self._pages, self._digests = kept.pages, kept.digests
        else:
            session, start, journal = open(self._snapshot()), 0, b""
        entries = (self._entry(number) for number in range(start, stored.entries))
        if repeat(session, entries, journal) != stored.journal:
            raise SnapshotCorrupt("The journal of a bucket does not end where its state says.")
        return session

    def write(self, recorded: Recorded) -> Stored:
        """Save the session, and keep it. The result is the caller's to keep."""
        room = journal_share * self.stored.snapshot_bytes - self.stored.journal_bytes
        if self._has_journal and self.stored.depth and room > 0:
            entry = recorded.entry(self.stored.journal)
            if len(entry) <= room:
                return self._kept(recorded.session, self._continued(entry))
        snapshot = recorded.session.snapshot()
        paged = self._written(snapshot)
        return self._kept(recorded.session, Stored(len(snapshot), paged.depth, paged.root, 0, b"", 0))

    def _continues(self, earlier: Stored) -> bool:
        """Is this the journal of a session that was `earlier`, or does it continue it?"""
        if not 0 < earlier.entries < self.stored.entries:
            return earlier.entries == 0 or earlier.journal == self.stored.journal
        return digest_of(self._entry(earlier.entries - 1)) == earlier.journal

    def _entry(self, number: int) -> bytes:
        entry = self._found(key_of(number))
        if entry is None:
            raise SnapshotCorrupt(f"Entry {number} of {self.stored.entries} of a bucket's journal is missing.")
        return entry

    def _page(self, digest: bytes) -> bytes | None:
        found = self._found(digest)
        return None if found is None else unpacked(found)

    def _found(self, key: bytes) -> bytes | None:
        if self._read:
            return self._read.get(key)
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def _snapshot(self) -> bytes | None:
        """None if there is none yet."""
        root, depth = self.stored.root, self.stored.depth
        if root is None or not depth:
            self._digests = frozenset() if root is None else self._split(root).pages.keys()
            return root
        known = {} if self._before is None else self._before.pages
        if not known:
            self._read = {bytes(key): bytes(page) for (key,), (page,) in self._state.iterator()}
        snapshot, self._pages = join(
            *(root, depth, lambda digest: known.get(digest) or self._page(digest)), nbytes=self.stored.snapshot_bytes
        )
        self._digests = self._split(snapshot).pages.keys()
        return snapshot

    def _split(self, snapshot: bytes) -> PagedSnapshot:
        return split(snapshot, whole_bytes=small_bytes if self._has_journal else whole_bytes)

    def _continued(self, entry: bytes) -> Stored:
        stored = self.stored
        self._state.updateValue((key_of(stored.entries),), (entry,))
        return stored._replace(
            nbytes=stored.nbytes + len(entry),
            entries=stored.entries + 1,
            journal=digest_of(entry),
            journal_bytes=stored.journal_bytes + len(entry),
        )

    def _written(self, snapshot: bytes) -> PagedSnapshot:
        """Write pages that are new; delete those that are gone, and the journal."""
        paged = split_up = self._split(snapshot)
        new = sum(len(page) for digest, page in paged.pages.items() if digest not in self._digests)
        if paged.depth and 2 * new > len(snapshot) <= new_bytes:
            whole = digest_of_page(snapshot)
            paged = PagedSnapshot(whole, 1, {whole: snapshot})
        for digest in paged.pages.keys() - self._pages.keys():
            self._state.updateValue((digest,), (packed(paged.pages[digest]),))
        gone = [*(self._pages.keys() - paged.pages.keys()), *map(key_of, range(self.stored.entries))]
        if gone and not paged.pages:
            self._state.clear()
        else:
            for key in gone:
                self._state.removeKey((key,))
        self._pages, self._digests = paged.pages, split_up.pages.keys()
        return paged

    def _kept(self, session: BucketSession, stored: Stored) -> Stored:
        _keep(self._name, _Kept(stored, session, self._pages, self._digests))
        return stored


def _keep(name: Any, kept: _Kept) -> None:
    _kept[name] = kept
    room = _MOST_BYTES
    for each in [*reversed(_kept)]:
        room -= _kept[each].nbytes
        if room < 0:
            del _kept[each]
            _dropped.add(each)
