"""What was done to a bucket's session since its last snapshot, so that a micro-batch need not write a snapshot.

An entry has what one micro-batch did: rows that it pushed, queries that it changed, how far it moved the clock. A
session that was opened from the snapshot becomes the session that ran if it does the same again. Each entry begins
with a digest of itself and of the entry before it. So the digest of the last entry identifies the whole journal, and
a worker that has kept a session can tell whether that session is an earlier state of the one that Spark committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.snapshot_pages import DIGEST_BYTES
from skyband.engines.spark.bucket_job import BucketSession
from skyband.engines.spark.pages import read_table, write_table
from skyband.errors import SkybandError, SnapshotCorrupt

_LENGTH: Final = 4  # bytes of the number that says how long the list of an entry's calls is


class Call(NamedTuple):
    """Something done to a session."""

    name: str
    number: int | None = None
    table: pa.Table | None = None
    flags: list[bool] | None = None


class Recorded:
    """A session that writes down what is done to it."""

    def __init__(self, session: BucketSession) -> None:
        self.session: Any = session
        self._calls: list[Call] = []

    def push(self, rows: pa.Table) -> pa.Table:
        return self._done(Call("push", table=rows))

    def advance(self, watermark: int) -> pa.Table:
        return self._done(Call("advance", watermark))

    def change(self, changes: pa.Table, elsewhere: npt.NDArray[np.bool_]) -> pa.Table:
        """Queries come and go."""
        return self._done(Call("change", table=changes, flags=elsewhere.tolist()))

    def forget_rows(self) -> None:
        self._done(Call("forget_rows"))

    def entry(self, before: bytes) -> bytes:
        """All of it as one entry; `before` is the digest of the entry before it."""
        listed, tables = [], []
        for name, number, table, flags in self._calls:
            written = b"" if table is None else write_table(table, compression="zstd")
            listed.append({"call": name, "number": number, "flags": flags, "bytes": len(written)})
            tables.append(written)
        text = json.dumps(listed).encode()
        content = b"".join([len(text).to_bytes(_LENGTH, "little"), text, *tables])
        return _digest(before, content) + content

    def _done(self, call: Call) -> Any:
        self._calls.append(call)
        return _do(self.session, call)


def repeat(session: BucketSession, entries: Iterable[bytes], before: bytes) -> bytes:
    """Do all of this to a session that is as it was at `before`. Returns the digest of the last entry.

    Raises a `SkybandError` whatever is in an entry: who can write to a checkpoint can compute digests, too.
    """
    for entry in entries:
        before, content = _checked(entry, before)
        try:
            for call in _calls(content):
                _do(session, call)
        except SkybandError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise SnapshotCorrupt(f"An entry of the journal cannot be repeated ({said:.200}).") from error
    return before


def digest_of(entry: bytes) -> bytes:
    return entry[:DIGEST_BYTES]


def _do(session: Any, call: Call) -> Any:
    match call.name:
        case "push":
            return session.push(call.table)
        case "advance":
            return session.advance(call.number)
        case "change":
            return session.change(call.table, set_aside=True, elsewhere=np.array(call.flags, np.bool_))
        case "forget_rows":
            return session.forget_rows()
    raise SnapshotCorrupt(f"A journal says {call.name!r}, which nothing can do. Another version of Skyband wrote it.")


def _calls(content: bytes) -> Iterable[Call]:
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    for each in json.loads(content[_LENGTH:start]):
        end = start + each["bytes"]
        if not start <= end <= len(content):
            raise SnapshotCorrupt(f"An entry of the journal says that it has {each['bytes']:,} bytes of rows.")
        table = read_table(content[start:end]) if end > start else None
        if table is not None:
            table.validate(full=True)  # Arrow follows offsets that lead out of its arrays
        yield Call(each["call"], each["number"], table, each["flags"])
        start = end


def _checked(entry: bytes, before: bytes) -> tuple[bytes, bytes]:
    digest, content = entry[:DIGEST_BYTES], entry[DIGEST_BYTES:]
    if digest != _digest(before, content):
        raise SnapshotCorrupt(f"An entry of the journal is damaged, or one is missing ({digest.hex()}).")
    return digest, content


def _digest(before: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(before + content, digest_size=DIGEST_BYTES).digest()
