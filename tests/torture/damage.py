"""Line 6: snapshots with flipped bytes, cut short, or sealed again with hostile contents, in processes that may die.

A worker runs compiled loops as users do, without checks of indices: a stray write is a crash here as it would be there.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings
from functools import cache

import numpy as np

import skyband as sb
from torture import journals
from torture.campaign import Result
from torture.corpus import MADE, Case, cases
from torture.crafted import craft, drive
from torture.processes import environment

PATIENCE_S = 120  # for one snapshot: far more than any takes
MEMORY = 8 << 30  # bytes of address space: what asks for more has no bounds
SPARK = "in Spark's state, "
FINE = ("refused", "typed", "went on", "damage refused")
# Behind a typed error: compiled loops check indices in tests only. Arrow always checks its own (ArrowIndexError).
UNCHECKED = (" IndexError", " MemoryError")


@cache
def _names() -> tuple[str, ...]:
    """Which cases there are, without opening any: `cases` finds out which of them are refused."""
    return tuple(cases())


@cache
def _snapshot(name: str, batches: int) -> bytes:
    return cases(name)[name].snapshot(batches)


def chosen(seed: int) -> tuple[Case, int]:
    """Problem after problem, so that one with many algorithms is not tried more often."""
    problem = list(MADE)[seed % len(MADE)]
    names = [name for name in _names() if name.startswith(f"{problem}/")]
    rng = np.random.default_rng(seed)
    name = names[int(rng.integers(len(names)))]
    return cases(name)[name], int(rng.integers(1, 6))


def one(seed: int) -> tuple[str, str]:
    """Try one: what came of it, and what it was."""
    case, batches = chosen(seed)
    state, rng = _snapshot(case.name, batches), np.random.default_rng([seed, 1])
    if seed % 10 == 9:
        return _damaged(case, state, rng)
    if seed % 5 == 3 and case.problem != "joins":  # a job for Spark has another session for these
        return _in_spark(case, batches, rng)
    crafted, words = craft(state, rng)
    return drive(case, crafted, batches), f"{case.name}: {words}"


def _in_spark(case: Case, batches: int, rng: np.random.Generator) -> tuple[str, str]:
    """The same in the state of a bucket, with a journal."""
    stored, variable = journals.state(case, batches, cut=bool(rng.random() < 0.5))
    stored, words = journals.crafted(stored, variable, rng)
    return f"{SPARK}{journals.drive(case, stored, variable, batches)}", f"{case.name}: {words}"


def _damaged(case: Case, state: bytes, rng: np.random.Generator) -> tuple[str, str]:
    """A byte flipped, or an end that is missing, whose checksum does not fit."""
    damaged, at = bytearray(state), int(rng.integers(len(state)))
    damaged[at] ^= int(rng.integers(1, 256))
    for data in (bytes(damaged), state[:at]):
        try:
            case.open(data)
        except sb.SnapshotError:
            continue
        return "damage was read", f"{case.name}: byte {at}"
    return "damage refused", f"{case.name}: byte {at}"


def worker(first: int, count: int) -> None:
    """In a process of its own: a line before each snapshot, so that whoever waits knows which one it died of."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for seed in range(first, first + count):
        print(f"try {seed}", flush=True)
        outcome, words = one(seed)
        print(f"got {seed}\t{outcome}\t{words}".replace("\n", " "), flush=True)


def run(first: int, count: int) -> Result:
    result, seed, end = Result(), first, first + count
    while seed < end:
        seed = _run_until_it_dies(seed, end - seed, result)
    return result


def _run_until_it_dies(first: int, count: int, result: Result) -> int:
    """The seed to go on with."""
    command = [sys.executable, "-m", "torture.damage", str(first), str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    seed, done = first, first
    watch = subprocess.Popen([sys.executable, "-c", _WATCH, str(process.pid), str(PATIENCE_S)], stdin=subprocess.PIPE)
    assert watch.stdin is not None
    try:
        for line in process.stdout:
            watch.stdin.write(b".")
            watch.stdin.flush()
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "try":
                seed = int(rest)
                continue
            number, outcome, words = rest.split("\t", 2)
            done = int(number) + 1
            kind = outcome.partition(":")[0]
            plain = kind.removeprefix(SPARK).partition(" after ")[0]
            raw = plain not in FINE or kind.endswith(UNCHECKED)
            result.note(int(number), kind if not raw else "raw error", f"{words} -> {outcome}" if raw else None)
    finally:
        code = process.wait()
        watch.stdin.close()
        watch.wait()
    if code == 0 or done == first + count:
        return first + count
    what = "hang, or was stopped" if code == -9 else f"crash, signal {-code}"
    case, batches = chosen(seed)
    result.note(seed, what, f"{case.name} after {batches} batches: {what}")
    return seed + 1


# Whoever is silent for so long is ended. A process of its own: a compiled loop lets no other thread of its process run.
_WATCH = """
import os, select, sys
while select.select([0], [], [], float(sys.argv[2]))[0]:
    if not os.read(0, 1 << 16):
        sys.exit()
os.kill(int(sys.argv[1]), 9)
"""

if __name__ == "__main__":
    from torture.planted import planted_here

    with planted_here():
        worker(int(sys.argv[1]), int(sys.argv[2]))
