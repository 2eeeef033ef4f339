"""Snapshots: the state of an operator as bytes, with a version and a checksum, so that it can continue elsewhere.

    magic (8 bytes) | version (4) | length of header (4) | header (JSON) | data, one after another | digest (16)

The header has the query's fingerprint and, for each part of the session, its counters and a description of its data:
arrays (type, shape) and Arrow tables (IPC streams). The digest covers everything before it. Skyband never executes or
unpickles anything in a snapshot.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.errors import SnapshotCorrupt, SnapshotMismatch, SnapshotTooNew

MAGIC = b"SKYBAND\n"
VERSION = 2
_FIXED = struct.Struct("<8sII")
_DIGEST_SIZE = 16


@dataclass(frozen=True, slots=True)
class Part:
    """The state of one part of a session: the session itself, its codec, or its operator."""

    counters: dict[str, int]
    arrays: dict[str, npt.NDArray[Any]]
    tables: dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a session."""

    fingerprint: str  # of the query and its columns
    algorithm: str
    parts: dict[str, Part]
    about: dict[str, Any] | None = None  # the query, where a reader may have nothing else: see core/about.py


def write(snapshot: Snapshot) -> bytes:
    data: list[bytes] = []
    described: list[dict[str, Any]] = []
    for of, part in snapshot.parts.items():
        for name, array in part.arrays.items():
            data.append(np.ascontiguousarray(array).tobytes())
            kind = array.dtype.descr if array.dtype.names else array.dtype.str
            described.append({"of": of, "array": name, "type": kind, "shape": array.shape, "bytes": len(data[-1])})
        for name, table in part.tables.items():
            data.append(_write_table(table))
            described.append({"of": of, "table": name, "bytes": len(data[-1])})
    header = json.dumps(
        {
            "fingerprint": snapshot.fingerprint,
            "algorithm": snapshot.algorithm,
            "counters": {of: part.counters for of, part in snapshot.parts.items()},
            "data": described,
            **({} if snapshot.about is None else {"about": snapshot.about}),
        }
    ).encode()
    body = b"".join([_FIXED.pack(MAGIC, VERSION, len(header)), header, *data])
    return body + _digest(body)


def read_of(data: Any, fingerprint: str, algorithm: str | None) -> Snapshot:
    """Read a snapshot of the query with this fingerprint, and raise if it is anything else.

    `algorithm` is the algorithm that the query names; None accepts any.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotCorrupt(f"A snapshot is bytes, got {type(data).__name__}.")
    saved = read(bytes(data))
    if saved.fingerprint != fingerprint:
        raise SnapshotMismatch(
            "Another query took this snapshot, or the columns have changed. Open it with the query that took it, or "
            "start the changed query without it."
        )
    if algorithm not in (None, saved.algorithm):
        raise SnapshotMismatch(f"This snapshot was taken by {saved.algorithm!r}; {algorithm!r} cannot read it.")
    return saved


def read(data: bytes) -> Snapshot:
    """Read the snapshot in `data`. It checks the digest before it uses anything else."""
    view = memoryview(data)
    if len(view) < _FIXED.size + _DIGEST_SIZE or bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotCorrupt(f"These {len(view)} bytes are not a Skyband snapshot: they do not start like one.")
    _, version, header_size = _FIXED.unpack_from(view)
    body, digest = view[:-_DIGEST_SIZE], bytes(view[-_DIGEST_SIZE:])
    if _digest(body) != digest:  # before everything else, even the version
        raise SnapshotCorrupt("The snapshot is damaged: its checksum does not match its contents. Use an earlier one.")
    if version > VERSION:
        raise SnapshotTooNew(
            f"This snapshot has version {version}; this Skyband reads up to {VERSION}. Upgrade Skyband to read it."
        )
    if version < VERSION:
        raise SnapshotMismatch(
            f"This snapshot has version {version}, of an earlier version of Skyband, which keeps other things than "
            f"version {VERSION}. Open it with that version, or start without it."
        )
    try:
        return _read_body(body, header_size)
    except Exception as error:  # numpy, Arrow and JSON raise errors of many kinds
        raise SnapshotCorrupt(
            f"The snapshot is whole, but its header does not describe it ({type(error).__name__}: {error}): Skyband "
            "did not write it. Use an earlier one."
        ) from error


def _read_body(body: memoryview, header_size: int) -> Snapshot:
    start = _FIXED.size + header_size
    if start > len(body):
        raise ValueError(f"a header of {header_size} bytes does not fit")
    header = json.loads(bytes(body[_FIXED.size : start]))
    parts = {of: Part(_counters(counters), {}, {}) for of, counters in header["counters"].items()}
    for each in header["data"]:
        end = start + _whole(each["bytes"])
        if end > len(body):
            raise ValueError(f"{each['bytes']} bytes are not there")
        data, start = body[start:end], end
        if "table" in each:
            parts[each["of"]].tables[each["table"]] = _read_table(data)
        else:
            parts[each["of"]].arrays[each["array"]] = _read_array(each, data)
    if start != len(body):
        raise ValueError(f"it says nothing of the last {len(body) - start} bytes")
    about = header.get("about")
    return Snapshot(
        str(header["fingerprint"]), str(header["algorithm"]), parts, about if isinstance(about, dict) else None
    )


def _whole(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no count")
    return number


def _counters(counters: Any) -> dict[str, int]:
    for name, number in counters.items():
        if type(number) is not int or not -(2**63) <= number < 2**63:
            raise ValueError(f"the counter {name!r} is {number!r}")
    return dict(counters)


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest()


def _write_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def _read_table(data: memoryview) -> pa.Table:
    """Read a table, and check that its offsets stay inside it: Arrow trusts them unless it is told to validate."""
    table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    table.validate(full=True)
    return table


def _read_array(part: dict[str, Any], data: memoryview) -> npt.NDArray[Any]:
    kind, shape = part["type"], [_whole(length) for length in part["shape"]]
    dtype = np.dtype(kind if isinstance(kind, str) else [tuple(field) for field in kind])
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{part['array']!r} is not {shape} of {dtype} in {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape).copy()
