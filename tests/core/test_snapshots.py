"""Example tests: a snapshot is read whole and unchanged by the query that wrote it, or refused by name."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace

import pyarrow as pa
import pytest

import skyband as sb
from skyband.core import snapshots
from skyband.core.session import Session
from skyband.problems.rows.codec import RowsCodec

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.float64(), "g": pa.string()})
QUERY = sb.TopK(k=2, by="v", window=sb.sliding(20, every=10, on="t"), per="g")


def a_snapshot(query: sb.TopK = QUERY, schema: pa.Schema = SCHEMA) -> bytes:
    session = query.open(schema)
    columns = [[1, 12, 13], [5.0, 3.0, 4.0], ["a", "b", "a"]]
    session.push(pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema))
    return session.snapshot()


def resealed(body: bytes) -> bytes:
    """The bytes with a checksum that fits them: what a careless tool might write, not what damage looks like."""
    return body + hashlib.blake2b(body, digest_size=16).digest()


@pytest.mark.parametrize(
    "data", [b"", b"SKYBAND\n", b"x" * 200, b"\x80\x04\x95cos\nsystem\n(S'id'\ntR.", bytes(10_000)]
)
def test_what_is_not_a_snapshot(data: bytes) -> None:
    with pytest.raises(sb.SnapshotCorrupt, match=f"{len(data)} bytes are not a Skyband snapshot"):
        QUERY.open(SCHEMA, data)


def test_every_truncation_is_found() -> None:
    state = a_snapshot()
    for length in range(len(state)):
        with pytest.raises(sb.SnapshotCorrupt):
            QUERY.open(SCHEMA, state[:length])


def test_something_behind_the_end_is_found() -> None:
    with pytest.raises(sb.SnapshotCorrupt):
        QUERY.open(SCHEMA, a_snapshot() + b"\0")


def test_a_flipped_bit_anywhere_is_found() -> None:
    state = a_snapshot()
    for at in range(len(state)):
        damaged = bytearray(state)
        damaged[at] ^= 1 << (at % 8)
        with pytest.raises(sb.SnapshotError):
            QUERY.open(SCHEMA, bytes(damaged))


def test_a_newer_version_is_refused_by_number() -> None:
    state = bytearray(a_snapshot())
    struct.pack_into("<I", state, len(snapshots.MAGIC), snapshots.VERSION + 1)
    with pytest.raises(
        sb.SnapshotTooNew, match=f"version {snapshots.VERSION + 1}; this Skyband reads up to {snapshots.VERSION}"
    ):
        QUERY.open(SCHEMA, resealed(bytes(state[:-16])))


def test_what_another_version_kept_is_refused() -> None:
    saved = snapshots.read(a_snapshot())
    for of, part in saved.parts.items():
        for kind in ("counters", "arrays", "tables"):
            for name in getattr(part, kind):
                rest = {other: each for other, each in getattr(part, kind).items() if other != name}
                parts = {**saved.parts, of: replace(part, **{kind: rest})}
                with pytest.raises(sb.SnapshotMismatch, match="another version of Skyband"):
                    QUERY.open(SCHEMA, snapshots.write(replace(saved, parts=parts)))


WINDOW = QUERY.window
OTHER_QUERIES = {
    "k": sb.TopK(k=3, by="v", window=WINDOW, per="g"),
    "by": sb.TopK(k=2, by="v * 1", window=WINDOW, per="g"),
    "a function": sb.TopK(k=2, by=lambda v: v, window=WINDOW, per="g"),
    "size": sb.TopK(k=2, by="v", window=sb.sliding(30, every=10, on="t"), per="g"),
    "every": sb.TopK(k=2, by="v", window=sb.sliding(20, every=5, on="t"), per="g"),
    "by count": sb.TopK(k=2, by="v", window=sb.sliding(20, every=10), per="g"),
    "per": sb.TopK(k=2, by="v", window=WINDOW),
    "ascending": sb.TopK(k=2, by="v", window=WINDOW, per="g", ascending=True),
    "emit": sb.TopK(k=2, by="v", window=WINDOW, per="g", emit="changes"),
    "lateness": sb.TopK(k=2, by="v", window=WINDOW, per="g", lateness=1),
    "ad_hoc": sb.TopK(k=2, by="v", window=WINDOW, per="g", ad_hoc=True),
}


@pytest.mark.parametrize("difference", OTHER_QUERIES)
def test_another_query_cannot_read_it(difference: str) -> None:
    with pytest.raises(sb.SnapshotMismatch, match="Another query took this snapshot"):
        OTHER_QUERIES[difference].open(SCHEMA, a_snapshot())


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema({"t": pa.int64(), "v": pa.float64(), "g": pa.large_string()}),
        pa.schema({"t": pa.int32(), "v": pa.float64(), "g": pa.string()}),
        pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64()}),
        pa.schema({"t": pa.int64(), "v": pa.float64(), "g": pa.string(), "x": pa.int64()}),
    ],
    ids=["another key type", "another time type", "another order", "one more column"],
)
def test_another_schema_cannot_read_it(schema: pa.Schema) -> None:
    with pytest.raises(sb.SnapshotMismatch, match="Another query took this snapshot"):
        QUERY.open(schema, a_snapshot())


def test_another_algorithm_cannot_read_it() -> None:
    def asking_for(algorithm: str) -> sb.TopK:
        return sb.TopK(k=2, by="v", window=WINDOW, per="g", algorithm=algorithm)

    state = a_snapshot(asking_for("relaxed"))
    with pytest.raises(sb.SnapshotMismatch, match="'relaxed'; 'mintopk' cannot read it"):
        asking_for("mintopk").open(SCHEMA, state)
    assert QUERY.open(SCHEMA, state).algorithm == "relaxed", "without a wish, it goes on with what wrote it"


def test_another_clock_cannot_read_it() -> None:
    with pytest.raises(sb.SnapshotMismatch):
        Session(RowsCodec(QUERY, SCHEMA, external_clock=True), a_snapshot())


def test_an_algorithm_that_this_version_does_not_have() -> None:
    state = a_snapshot()
    _, version, size = struct.unpack_from("<8sII", state)
    header = json.loads(state[16 : 16 + size])
    header["algorithm"] = "a better one"
    text = json.dumps(header).encode()
    body = struct.pack("<8sII", snapshots.MAGIC, version, len(text)) + text + state[16 + size : -16]
    with pytest.raises(sb.SkybandError, match="a better one"):
        QUERY.open(SCHEMA, resealed(body))


def test_a_function_of_the_same_text_is_the_same_query() -> None:
    def make() -> sb.TopK:
        return sb.TopK(k=2, by=lambda v: v * 2, window=WINDOW)

    assert make().open(SCHEMA, a_snapshot(make())).stats().rows_in == 3


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(kind: type) -> None:
    assert QUERY.open(SCHEMA, kind(a_snapshot())).stats().rows_in == 3


@pytest.mark.parametrize("state", ["text", 5, [1, 2]])
def test_what_is_not_bytes_is_refused(state: object) -> None:
    with pytest.raises(sb.SnapshotCorrupt, match=f"bytes, got {type(state).__name__}"):
        QUERY.open(SCHEMA, state)  # type: ignore[arg-type]


def test_snapshots_of_the_same_state_are_the_same_bytes() -> None:
    assert a_snapshot() == a_snapshot()
