"""Snapshots whose checksum fits and whose contents are hostile: every array of every algorithm, changed in every way.

A crafted snapshot may be refused, or be taken for what it says: some changes make another valid state. It may not crash
the interpreter, hang, take memory without bounds or raise what is no `SkybandError`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core import snapshots
from skyband.errors import InvalidQuery, SkybandError, SnapshotError
from torture.corpus import Case

NUMBERS = [-1, -2, 0, 1, 2, 3, 7, 64, 2**20, 2**31 - 1, 2**31, 2**40, 2**53, 2**62, 2**63 - 1]
NUMBERS += [-number for number in NUMBERS] + [-(2**63)]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 0.5, 1e308, -1e308, 5e-324, float(2**31), float(2**63)]
TYPES = ["<i4", "<i8", "<f8", "<u8", "|u1", "<f4", "|b1", "|S3", "<M8[s]", ">i8"]


def craft(state: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Another snapshot with a checksum that fits, and what was changed."""
    if rng.random() < 0.06:
        return _raw(state, rng)
    saved, words = snapshots.read(state), []
    for _ in range(1 + int(rng.random() < 0.3)):
        saved, said = _changed(saved, rng)
        words.append(said)
    return snapshots.write(saved), "; ".join(words)


def _changed(saved: snapshots.Snapshot, rng: np.random.Generator) -> tuple[snapshots.Snapshot, str]:
    places = [
        (of, kind, name)
        for of, part in saved.parts.items()
        for kind in ("arrays", "counters", "tables")
        for name in getattr(part, kind)
    ]
    weights = np.array([{"arrays": 4.0, "counters": 1.0, "tables": 2.0}[kind] for _, kind, _ in places])
    of, kind, name = places[rng.choice(len(places), p=weights / weights.sum())]
    part = saved.parts[of]
    things = dict(getattr(part, kind))
    if kind == "arrays":
        things[name], words = _array(things[name], things, rng)
    elif kind == "counters":
        things[name], words = (number := int(rng.choice(NUMBERS[:-1]))), f"= {number}"
    else:
        things[name], words = table_crafted(things[name], rng)
    return replace(saved, parts={**saved.parts, of: replace(part, **{kind: things})}), f"{of}.{name} {words}"


def _array(array: Any, others: dict[str, Any], rng: np.random.Generator) -> tuple[Any, str]:
    way = rng.choice(
        ["one", "all", "some", "order", "length", "type", "swap", "repeat"],
        p=[0.4, 0.1, 0.15, 0.07, 0.12, 0.05, 0.05, 0.06],
    )
    array = array.copy()
    if way == "length":
        cut = int(rng.integers(-2, 3))
        longer = np.concatenate([array, array[:cut]]) if cut > 0 else array[: len(array) + cut] if cut else array[:0]
        if array.ndim > 1 and rng.random() < 0.5:
            longer = array[:, : max(0, array.shape[1] + min(cut, -1))]
        return longer, f"of length {longer.shape}, not {array.shape}"
    if way == "type":
        kind = rng.choice(TYPES)
        if array.dtype.names and rng.random() < 0.5:
            names = list(array.dtype.names)[: int(rng.integers(0, len(array.dtype.names)))] or [array.dtype.names[0]]
            plain = np.zeros(array.shape, [(name, array.dtype[name]) for name in names])
            return plain, f"with fields {names}"
        return np.zeros(array.shape, kind), f"of type {kind}"
    if way == "swap":
        other = others[rng.choice(list(others))]
        return other.copy(), "as another array"
    if not array.size:
        return array, "as it is"
    if way in ("order", "repeat"):
        order = rng.permutation(len(array)) if way == "order" else np.zeros(len(array), np.int64)
        return array[order], f"in another order ({way})"
    field = None
    target = array
    if array.dtype.names:
        field = str(rng.choice(array.dtype.names))
        target = array[field]
    values: Any = FLOATS if target.dtype.kind == "f" else NUMBERS
    value = values[int(rng.integers(len(values)))]
    if rng.random() < 0.3 and target.dtype.kind in "if":
        value = target.flat[int(rng.integers(target.size))] + int(rng.integers(-3, 4))
    if target.dtype.kind in "iu":
        info = np.iinfo(target.dtype)
        value = min(max(int(value), info.min), info.max)
    count = {"one": 1, "all": target.size, "some": max(1, target.size // 3)}[str(way)]
    target.flat[rng.choice(target.size, count, replace=False)] = value
    return array, f"{'.' + field if field else ''} {way} = {value}"


def table_crafted(table: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, str]:
    way = rng.choice(["fewer", "more", "none", "nulls", "type", "columns", "same"])
    n = table.num_rows
    if way == "fewer":
        return table.slice(0, max(0, n - 1)), "with a row less"
    if way == "more" and n:
        return pa.concat_tables([table, table.slice(0, 1)]), "with a row more"
    if way == "none":
        return table.slice(0, 0), "without rows"
    if way == "columns":
        return table.select(table.column_names[1:]), "with a column less"
    if not table.num_columns:
        return table, "as it is"
    at = int(rng.integers(table.num_columns))
    name = table.column_names[at]
    if way == "nulls":
        return table.set_column(at, name, pa.nulls(n, table.schema.field(at).type)), f"with nulls in {name}"
    if way == "type":
        return table.set_column(at, name, pa.array(range(n), pa.int16())), f"with int16 in {name}"
    return table.take(pa.array([0] * n)) if n else table, "with one row over and over"


def sealed(body: bytes) -> bytes:
    return body + hashlib.blake2b(body, digest_size=16).digest()


def _raw(state: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """A header that is not one, or bytes flipped anywhere, with a checksum that fits."""
    body = bytearray(state[:-16])
    _, version, size = struct.unpack_from("<8sII", state)
    if rng.random() < 0.5:
        for at in rng.integers(8, len(body), int(rng.integers(1, 4))).tolist():
            body[at] = int(rng.integers(256))
        return sealed(bytes(body)), "bytes flipped"
    header = json.loads(state[16 : 16 + size])
    each = header["data"][int(rng.integers(len(header["data"])))]
    keys = [*each, "all"]
    key = str(rng.choice(keys))
    values = [None, -1, 2**62, 10**30, "x", [], [2**40, 2**40], [-1], {"a": 1}, "O", "|V8", 1.5, True]
    value = values[int(rng.integers(len(values)))]
    if key == "all":
        header = [b"{", b"\xff\xfe", b"[" * 100_000, b"null", b"1" * 10_000, b'{"counters": 5}'][int(rng.integers(6))]
        return _with_header(state, size, version, header), f"header {header[:20]!r}"
    each[key] = value
    return _with_header(state, size, version, json.dumps(header).encode()), f"header: {key} = {value!r}"


def _with_header(state: bytes, size: int, version: int, text: bytes) -> bytes:
    return sealed(struct.pack("<8sII", snapshots.MAGIC, version, len(text)) + text + state[16 + size : -16])


def drive(case: Case, state: bytes, batches: int) -> str:
    """Open it, and go on as if it were good. What came of it: 'refused', 'typed', 'went on', or the error's name."""
    try:
        session = case.open(state)
    except SnapshotError:
        return "refused"
    except Exception as error:
        return f"open: {type(error).__name__}: {error}"
    try:
        session.stats()
        if hasattr(session, "top"):
            with suppress(InvalidQuery):  # not every algorithm can be asked
                session.top()
        for batch, options in case.pushes[batches:]:
            session.push(batch, **options)
        again = case.open(session.snapshot())
        again.finish()
    except SkybandError as error:
        return "typed" if error.__cause__ is None else f"typed after {type(error.__cause__).__name__}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "went on"
