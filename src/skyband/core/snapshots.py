"""Snapshots: everything an operator needs to go on elsewhere, as bytes that are versioned and checked.

    magic (8 bytes) | version (4) | length of header (4) | header (JSON) | parts, one after another | digest (16)

The header says whose snapshot it is and what the parts are: arrays (type, shape) or Arrow tables (IPC streams). The
digest covers all before it. Nothing in a snapshot is ever executed or unpickled.
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

from skyband.errors import SnapshotCorrupt, SnapshotTooNew

MAGIC = b"SKYBAND\n"
VERSION = 1
_FIXED = struct.Struct("<8sII")
_DIGEST_SIZE = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    fingerprint: str  # of the query and schema it belongs to
    algorithm: str
    counters: dict[str, int]
    arrays: dict[str, npt.NDArray[Any]]
    tables: dict[str, pa.Table]


def write(snapshot: Snapshot) -> bytes:
    parts: list[bytes] = []
    described: list[dict[str, Any]] = []
    for name, array in snapshot.arrays.items():
        parts.append(np.ascontiguousarray(array).tobytes())
        kind = array.dtype.descr if array.dtype.names else array.dtype.str
        described.append({"array": name, "type": kind, "shape": array.shape, "bytes": len(parts[-1])})
    for name, table in snapshot.tables.items():
        parts.append(_write_table(table))
        described.append({"table": name, "bytes": len(parts[-1])})
    header = json.dumps(
        {
            "fingerprint": snapshot.fingerprint,
            "algorithm": snapshot.algorithm,
            "counters": snapshot.counters,
            "parts": described,
        }
    ).encode()
    body = b"".join([_FIXED.pack(MAGIC, VERSION, len(header)), header, *parts])
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
    header = json.loads(bytes(body[_FIXED.size : _FIXED.size + header_size]))
    arrays, tables = {}, {}
    at = _FIXED.size + header_size
    for part in header["parts"]:
        data_of_part = body[at : at + part["bytes"]]
        at += part["bytes"]
        if "table" in part:
            tables[part["table"]] = pa.ipc.open_stream(pa.py_buffer(data_of_part)).read_all()
        else:
            arrays[part["array"]] = _read_array(part, data_of_part)
    return Snapshot(header["fingerprint"], header["algorithm"], header["counters"], arrays, tables)


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
