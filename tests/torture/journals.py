"""The state of a bucket on Spark, crafted: hostile entries of its journal, pages and counts, with digests that fit.

There is no Spark here: its two variables are a dictionary and a tuple. Sessions are those of the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.snapshot_pages import digest_of_page
from skyband.engines.spark import journal, kept_state
from skyband.engines.spark.journal import Recorded, digest_of
from skyband.engines.spark.kept_state import NOTHING, KeptState, Stored, key_of, packed
from skyband.engines.spark.pages import write_table
from skyband.errors import InvalidQuery, SkybandError, SnapshotError
from torture.corpus import Case
from torture.crafted import FLOATS, NUMBERS, table_crafted

LENGTH = 4  # bytes in front of an entry's list
RAW = (b"", b"{", b"null", b"[null]", b"[1]", b'{"call": "push"}', b"[" * 100_000, b"[" + b"9" * 10_000 + b"]", b"\xff")
CALLS = ("push", "advance", "change", "forget_rows", "snapshot", "__init__", "finish", "", None, 7)


class Variable:
    """A map state of Spark's."""

    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {}

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:
        found = self.content.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:
        self.content[key[0]] = value[0]

    def removeKey(self, key: tuple[bytes]) -> None:
        self.content.pop(key[0], None)

    def clear(self) -> None:
        self.content.clear()

    def iterator(self) -> Iterator[tuple[tuple[bytes], tuple[bytes]]]:
        return ((((key,), (value,))) for key, value in [*self.content.items()])


def state(case: Case, batches: int, *, cut: bool) -> tuple[Stored, Variable]:
    """As a bucket leaves it after so many micro-batches, most of them in its journal."""
    kept_state.small_bytes, kept_state.journal_share = 0, 20
    kept_state.new_bytes = 0 if cut else 1 << 22
    variable, stored = Variable(), NOTHING
    for batch, options in case.pushes[:batches]:
        kept = KeptState(case.name, variable, stored, has_journal=True)  # type: ignore[arg-type]
        recorded = Recorded(kept.session(case.open))
        recorded.push(pa.Table.from_batches([batch]), **options)
        stored = kept.write(recorded)
    return stored, variable


def crafted(stored: Stored, variable: Variable, rng: np.random.Generator) -> tuple[Stored, str]:
    """Change something; what is said of it fits again."""
    way = str(rng.choice(["entry", "pages", "counts"], p=[0.7, 0.15, 0.15]))
    if way == "entry" and stored.entries:
        at = int(rng.integers(stored.entries))
        content, words = _entry(variable.content[key_of(at)][journal.DIGEST_BYTES :], rng)
        return _sealed(stored, variable, {at: content}), f"entry {at}: {words}"
    if way == "counts" or not stored.depth:
        name = str(rng.choice(["nbytes", "depth", "entries", "journal_bytes"]))
        number = int(rng.choice(NUMBERS[:-1]))
        return stored._replace(**{name: number}), f"{name} = {number}"
    page = bytes(int(rng.integers(1, 1 << 22)))
    digest = digest_of_page(page)
    variable.content[digest] = packed(page)
    times = int(rng.choice([1, 2, 1000, 10_000]))
    return stored._replace(root=digest * times, depth=int(rng.choice([1, 2]))), f"{times} times a page of zeros"


def _sealed(stored: Stored, variable: Variable, changed: dict[int, bytes]) -> Stored:
    before = b""
    for number in range(stored.entries):
        old = variable.content[key_of(number)]
        content = changed.get(number, old[journal.DIGEST_BYTES :])
        entry = journal._digest(before, content) + content
        variable.content[key_of(number)], before = entry, digest_of(entry)
    return stored._replace(journal=before)


def _entry(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    start = LENGTH + int.from_bytes(content[:LENGTH], "little")
    listed, tables = json.loads(content[LENGTH:start]), content[start:]
    way = str(rng.choice(["raw", "length", "field", "call", "table", "flipped"], p=[0.15, 0.1, 0.25, 0.15, 0.25, 0.1]))
    if way == "raw":
        text = RAW[int(rng.integers(len(RAW)))]
        return _joined(text, tables), f"list {text[:20]!r}"
    if way == "length":
        number = int(rng.choice([0, 1, 2**31, 2**32 - 1, len(content)]))
        return number.to_bytes(LENGTH, "little") + content[LENGTH:], f"its list has {number} bytes"
    if way == "flipped":
        flipped = bytearray(content)
        flipped[int(rng.integers(start, len(flipped)))] ^= int(rng.integers(1, 256))
        return bytes(flipped), "a byte of its rows flipped"
    if way == "field":
        field = str(rng.choice(["call", "number", "flags", "bytes", "all"]))
        values: list[Any] = [None, -1, 2**62, 10**30, "x", [], [True] * 1000, {}, 1.5, True, *FLOATS]
        value = values[int(rng.integers(len(values)))]
        listed = [value] if field == "all" else [{**listed[0], field: value}]
        return _joined(json.dumps(listed).encode(), tables), f"{field} = {value!r:.30}"
    if way == "call":
        name, number = CALLS[int(rng.integers(len(CALLS)))], int(rng.choice(NUMBERS))
        more = {"call": name, "number": number, "flags": [bool(number % 2)] * 3, "bytes": 0}
        return _joined(json.dumps([*listed, more]).encode(), tables), f"and {name} of {number}"
    table, words = table_crafted(journal.read_table(tables), rng)
    written = write_table(table)
    return _joined(json.dumps([{**listed[0], "bytes": len(written)}]).encode(), written), f"rows {words}"


def _joined(text: bytes, tables: bytes) -> bytes:
    return len(text).to_bytes(LENGTH, "little") + text + tables


def drive(case: Case, stored: Stored, variable: Variable, batches: int) -> str:
    """Open it as a worker does that has not kept it, and go on. What came of it, as `crafted.drive` says it."""
    kept_state._kept.clear()
    try:
        for number, (batch, options) in enumerate(case.pushes[batches:]):
            kept = KeptState(case.name, variable, stored, has_journal=True)  # type: ignore[arg-type]
            session = kept.session(case.open)
            recorded = Recorded(session)
            recorded.push(pa.Table.from_batches([batch]), **options)
            stored = kept.write(recorded)
            if number == 0 and hasattr(session, "top"):
                with suppress(InvalidQuery):
                    session.top()
    except SnapshotError:
        return "refused"
    except SkybandError as error:
        return "typed" if error.__cause__ is None else f"typed after {type(error.__cause__).__name__}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "went on"
