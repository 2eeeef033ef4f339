"""Blocks of rows made from a seed, and batches of the length asked for.

A block has always the same length, and random numbers of its own. So a stream is made in constant memory, and its rows
depend neither on its length nor on that of its batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.errors import InvalidInput

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# One block's columns of numbers, from its random numbers and its rows' times; called once a block, in order.
Values = Callable[[np.random.Generator, Ints], Iterable[Floats]]

BLOCK_ROWS: Final = 65_536  # made at a time; part of what a seed means


class Options(TypedDict, total=False):
    """What every generator takes: how many different ids there are, the seed, and the rows of a batch."""

    ids: int | None
    seed: int
    batch_rows: int


def generated(
    schema: pa.Schema,
    values: Values,
    rows: int,
    *,
    ids: int | None = None,
    seed: int = 1,
    batch_rows: int = 1_000_000,
) -> pa.RecordBatchReader:
    """`rows` rows of `values`, an id and a time: 0, 1, 2, …. `schema` names them in this order.

    The id is the row's number or, with `ids`, one of so many, at random.
    """
    if ids is not None:
        check_count("ids", ids, at_least=1)

    def made() -> Iterator[pa.RecordBatch]:
        for random, time in blocks(seed):
            numbers = [pa.array(column) for column in values(random, time)]
            who = time if ids is None else random.integers(ids, size=BLOCK_ROWS)
            yield pa.record_batch([*numbers, pa.array(who), pa.array(time)], schema=schema)

    check_count("rows", rows, at_least=0)
    return as_reader(schema, first(made(), rows), seed, batch_rows)


def as_reader(schema: pa.Schema, made: Iterable[pa.RecordBatch], seed: int, batch_rows: int) -> pa.RecordBatchReader:
    """The rows of `made`, in batches of `batch_rows`, after a look at the options that every stream has."""
    check_count("seed", seed, at_least=0)
    check_count("batch_rows", batch_rows, at_least=1)
    return pa.RecordBatchReader.from_batches(schema, evenly(made, batch_rows))


def blocks(seed: int, *, purpose: tuple[int, ...] = ()) -> Iterator[tuple[np.random.Generator, Ints]]:
    """Without end, for each block: its random numbers, and the numbers of its rows.

    Two streams of the same seed have the same random numbers, unless their purposes differ.
    """
    number = 0
    while True:
        random = np.random.default_rng(np.random.SeedSequence((seed, number), spawn_key=purpose))
        yield random, np.arange(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS, dtype=np.int64)
        number += 1


def cut(made: Iterator[pa.RecordBatch], rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The first `rows` rows of `made`, in batches of `batch_rows`; the last one may be shorter."""
    return evenly(first(made, rows), batch_rows)


def evenly(made: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of `made`, in batches of `batch_rows`; the last one may be shorter."""
    waiting: list[pa.RecordBatch] = []
    missing = batch_rows
    for block in made:
        rest = block
        while rest.num_rows >= missing:
            yield pa.concat_batches([*waiting, rest.slice(0, missing)])
            rest = rest.slice(missing)
            waiting = []
            missing = batch_rows
        if rest.num_rows:
            waiting.append(rest)
            missing -= rest.num_rows
    if waiting:
        yield pa.concat_batches(waiting)


def first(made: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The first `rows` rows of `made`, which has at least so many. Nothing is made that is not needed."""
    missing = rows
    while missing:
        block = next(made).slice(0, missing)
        missing -= block.num_rows
        yield block


def check_count(name: str, given: int, *, at_least: int) -> None:
    """Raise `InvalidInput` unless `given` is a whole number, and not too small."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < at_least:
        raise InvalidInput(f"{name} must be a whole number of at least {at_least}, got {given!r}.")


def check_number(name: str, given: float, *, at_least: float, at_most: float = math.inf) -> None:
    """Raise `InvalidInput` unless `given` is a finite number within bounds."""
    if not at_least <= given <= at_most or math.isinf(given):
        bounds = f"of at least {at_least}" if math.isinf(at_most) else f"from {at_least} to {at_most}"
        raise InvalidInput(f"{name} must be a number {bounds}, got {given!r}.")
