"""Snapshots: everything an operator needs to go on elsewhere, as bytes that are versioned and checked.

    magic (8 bytes) | version (4) | length of header (4) | header (JSON) | data, one after another | digest (16)

The header says whose snapshot it is, what each part of a session counts, and what it keeps: arrays (type, shape) or
Arrow tables (IPC streams). The digest covers all before it. Nothing in a snapshot is ever executed or unpickled.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
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
    """What one part of a session keeps: the session itself, its codec, its operator."""

    counters: dict[str, int]
    arrays: dict[str, npt.NDArray[Any]]
    tables: dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Snapshot:
    fingerprint: str  # of the query and schema it belongs to
    algorithm: str
    parts: dict[str, Part]


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
        }
    ).encode()
    body = b"".join([_FIXED.pack(MAGIC, VERSION, len(header)), header, *data])
    return body + _digest(body)


def read(data: bytes) -> Snapshot:
    """The snapshot in `data`; raises before anything of it is used if it is not whole."""
    view = memoryview(data)
    if len(view) < _FIXED.size + _DIGEST_SIZE or bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotCorrupt(f"These {len(view)} bytes are not a Skyband snapshot: they do not start like one.")
    _, version, header_size = _FIXED.unpack_from(view)
    if version > VERSION:
        raise SnapshotTooNew(
            f"This snapshot has version {version}; this Skyband reads up to {VERSION}. Upgrade Skyband to read it."
        )
    body, digest = view[:-_DIGEST_SIZE], bytes(view[-_DIGEST_SIZE:])
    if _digest(body) != digest:
        raise SnapshotCorrupt("The snapshot is damaged: its checksum does not match its contents. Use an earlier one.")
    if version < VERSION:
        raise SnapshotMismatch(
            f"This snapshot has version {version}, of an earlier version of Skyband, which keeps other things than "
            f"version {VERSION}. Read it with that version, or start afresh."
        )
    try:
        return _read_body(body, header_size)
    except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise SnapshotCorrupt(
            f"The snapshot is whole, but its header does not describe it ({type(error).__name__}: {error}): no Skyband "
            "wrote it so. Use an earlier one."
        ) from error


def _read_body(body: memoryview, header_size: int) -> Snapshot:
    header = json.loads(bytes(body[_FIXED.size : _FIXED.size + header_size]))
    parts = {of: Part(dict(counters), {}, {}) for of, counters in header["counters"].items()}
    at = _FIXED.size + header_size
    for each in header["data"]:
        data, at = body[at : at + each["bytes"]], at + each["bytes"]
        if "table" in each:
            parts[each["of"]].tables[each["table"]] = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        else:
            parts[each["of"]].arrays[each["array"]] = _read_array(each, data)
    return Snapshot(str(header["fingerprint"]), str(header["algorithm"]), parts)


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest()


def _write_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def _read_array(part: dict[str, Any], data: memoryview) -> npt.NDArray[Any]:
    kind = part["type"]
    dtype = np.dtype(kind if isinstance(kind, str) else [tuple(field) for field in kind])
    count = math.prod(part["shape"])
    return np.frombuffer(data, dtype, count).reshape(part["shape"]).copy()


def check_kinds(saved: Mapping[str, npt.NDArray[Any]], own: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise unless arrays have the types of those that would be saved here. Kernels would not take others."""
    for name, array in own.items():
        found = saved[name]
        # A record may have fewer fields than those of this version: operators know what these begin with.
        same_type = found.dtype == array.dtype or (found.dtype.names and array.dtype.names)
        # A list of rows that is empty does not say how many columns each has.
        same_shape = found.ndim == array.ndim or (not array.size and not array.dtype.names and found.ndim <= 2)
        if not (same_type and same_shape):
            raise ValueError(f"{name} is {found.dtype} in {found.ndim} dimensions, not {array.dtype} in {array.ndim}")
