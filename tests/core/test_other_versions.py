"""Example tests: what another version of Skyband may have written is refused by name, never with a raw error."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import ALGORITHMS

import skyband as sb
from skyband.core import snapshots
from skyband.core.registry import find
from skyband.problems.rows.planning import specify

SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "v": pa.float64(), "n": pa.int64()})
ROWS = pa.table([[1, 5, 12], ["a", "b", "a"], [3.0, 1.0, 2.0], [2**60, 5, 2**60 + 1]], schema=SCHEMA)
WINDOW = sb.sliding(20, every=10, on="t")
QUERIES = pa.table({"id": [1, 2], "w": [1.0, 2.0], "g": ["a", "b"]})

PROBLEMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "rows": (sb.TopK(k=2, by="v", window=WINDOW, per="g"), SCHEMA, {}),
    "rows by 64 bits": (sb.TopK(k=2, by="n", window=WINDOW, per="g"), SCHEMA, {}),
    "pairs": (sb.TopKPairs(k=2, by="a.v + b.v", where="a.g <= b.g", window=WINDOW, different="n"), SCHEMA, {}),
    "pairs by 64 bits": (sb.TopKPairs(k=2, by="a.n - b.n", window=WINDOW, same="g"), SCHEMA, {}),
    "across": (
        sb.TopKAcross(k=2, id="g", value="v", streams=["s"], bounds=(0, 99), window=WINDOW, repeat="last"),
        SCHEMA,
        {"stream": "s"},
    ),
    "queries": (
        sb.TopKForEach(k=2, by="v * q.w", where="g = q.g", window=WINDOW, queries=QUERIES, key="id"),
        SCHEMA,
        {},
    ),
    "joins": (
        sb.JoinAggregate(
            inputs={"a": sb.sliding(20, on="t"), "b": sb.sliding(20, on="t")},
            on="a.g = b.g",
            group_by=["a.g"],
            aggregates={"n": "COUNT(*)"},
            every=10,
        ),
        {"a": SCHEMA, "b": SCHEMA},
        {"input": "a"},
    ),
}


def a_snapshot(problem: str) -> bytes:
    query, schema, options = PROBLEMS[problem]
    session = query.open(schema)
    session.push(ROWS, **options)
    state: bytes = session.snapshot()
    return state


def refused(problem: str, state: bytes, error: type[sb.SnapshotError], match: str = "") -> None:
    query, schema, _ = PROBLEMS[problem]
    with pytest.raises(error, match=match):
        query.open(schema, state)


def with_header(state: bytes, header: Any, version: int = snapshots.VERSION) -> bytes:
    """The snapshot with another header, and a checksum that fits."""
    _, _, size = struct.unpack_from("<8sII", state)
    text = json.dumps(header).encode()
    body = struct.pack("<8sII", snapshots.MAGIC, version, len(text)) + text + state[16 + size : -16]
    return body + hashlib.blake2b(body, digest_size=16).digest()


def header_of(state: bytes) -> dict[str, Any]:
    _, _, size = struct.unpack_from("<8sII", state)
    header: dict[str, Any] = json.loads(state[16 : 16 + size])
    return header


def with_parts_changed(saved: snapshots.Snapshot, kind: str, change: Any) -> Iterator[bytes]:
    """Snapshots in each of which one counter, array or table is another: `change` of it, or gone if that is None."""
    for of, part in saved.parts.items():
        for name, value in getattr(part, kind).items():
            changed = change(value)
            others = {other: each for other, each in getattr(part, kind).items() if other != name}
            kept = others if changed is None else {**others, name: changed}
            yield snapshots.write(replace(saved, parts={**saved.parts, of: replace(part, **{kind: kept})}))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_as_it_is_it_is_read(problem: str) -> None:
    query, schema, options = PROBLEMS[problem]
    undisturbed, state = query.open(schema), a_snapshot(problem)
    undisturbed.push(ROWS, **options)
    again = query.open(schema, with_header(state, header_of(state)))
    assert again.stats() == undisturbed.stats()
    assert again.finish().equals(undisturbed.finish())


@pytest.mark.parametrize("kind", ["counters", "arrays", "tables"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_something_is_not_there(problem: str, kind: str) -> None:
    for state in with_parts_changed(snapshots.read(a_snapshot(problem)), kind, lambda _: None):
        refused(problem, state, sb.SnapshotMismatch, "another version of Skyband")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_arrays_of_another_type(problem: str) -> None:
    def other(array: Any) -> Any:
        return array.astype(np.int64 if array.dtype == np.float64 else np.float64) if not array.dtype.names else None

    for state in with_parts_changed(snapshots.read(a_snapshot(problem)), "arrays", other):
        refused(problem, state, sb.SnapshotMismatch, "another version of Skyband")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_arrays_in_other_dimensions(problem: str) -> None:
    for state in with_parts_changed(snapshots.read(a_snapshot(problem)), "arrays", lambda array: array[None, None]):
        refused(problem, state, sb.SnapshotMismatch, "another version of Skyband")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_tables_without_columns(problem: str) -> None:
    for state in with_parts_changed(snapshots.read(a_snapshot(problem)), "tables", lambda table: table.select([])):
        refused(problem, state, sb.SnapshotError)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_part_is_not_there(problem: str) -> None:
    saved = snapshots.read(a_snapshot(problem))
    for gone in saved.parts:
        parts = {of: part for of, part in saved.parts.items() if of != gone}
        refused(
            problem, snapshots.write(replace(saved, parts=parts)), sb.SnapshotMismatch, "another version of Skyband"
        )


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_earlier_version(problem: str) -> None:
    state = a_snapshot(problem)
    earlier = with_header(state, header_of(state), version=snapshots.VERSION - 1)
    refused(problem, earlier, sb.SnapshotMismatch, f"version {snapshots.VERSION - 1}, of an earlier version of Skyband")


def test_a_later_version_need_not_be_understood() -> None:
    state = a_snapshot("rows")
    refused("rows", with_header(state, ["of", "another", "kind"], snapshots.VERSION + 1), sb.SnapshotTooNew)


def test_headers_that_say_too_little() -> None:
    state = a_snapshot("rows by 64 bits")
    header = header_of(state)
    headers: list[Any] = [[], 5, None, {}]
    headers += [{name: each for name, each in header.items() if name != gone} for gone in header]
    for i, data in enumerate(header["data"]):
        for gone in data:
            less = {name: each for name, each in data.items() if name != gone}
            headers.append({**header, "data": [*header["data"][:i], less, *header["data"][i + 1 :]]})
    headers.append({**header, "data": [{**header["data"][0], "type": "no such type"}, *header["data"][1:]]})
    headers.append({**header, "data": [{**header["data"][0], "shape": [10**6]}, *header["data"][1:]]})
    headers.append({**header, "data": [{**header["data"][0], "bytes": 10**9}, *header["data"][1:]]})
    for each in headers:
        refused("rows by 64 bits", with_header(state, each), sb.SnapshotCorrupt, "its header does not describe it")


@pytest.mark.parametrize("by", ["v", "n"])
def test_what_another_algorithm_keeps(by: str) -> None:
    def asking_for(algorithm: str | None) -> sb.TopK:
        return sb.TopK(k=2, by=by, window=WINDOW, algorithm=algorithm)

    spec = specify(asking_for(None), SCHEMA)
    able = [name for name in ALGORITHMS if not find(name, "rows").refuses(spec)]
    kept = {}
    for name in able:
        session = asking_for(name).open(SCHEMA)
        session.push(ROWS)
        kept[name] = snapshots.read(session.snapshot())
    for name, saved in kept.items():
        for theirs in kept.values():
            mine, taken = ({*each.parts["operator"].arrays} for each in (saved, theirs))
            if mine <= taken:  # it can go on from these, or reads no others
                continue
            state = snapshots.write(replace(saved, parts={**saved.parts, "operator": theirs.parts["operator"]}))
            with pytest.raises(sb.SnapshotMismatch, match=re.escape(f"{name!r} of another version")):
                asking_for(None).open(SCHEMA, state)


def test_an_algorithm_that_there_is_no_more() -> None:
    state = a_snapshot("rows")
    refused("rows", with_header(state, {**header_of(state), "algorithm": "olden"}), sb.SnapshotMismatch, "'olden'")
