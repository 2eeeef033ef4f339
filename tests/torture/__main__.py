"""`make torture`: run the campaign, and write its scorecard to docs/reliability.md.

make torture                                  every line, minutes
make torture ARGS="--line 6"                  one line, and its row of the scorecard
make torture ARGS=--long                      every line, hours; a run that was stopped goes on
make torture ARGS="--long --line 2"           one line of these
make torture ARGS="--line 6 --seed 1234 --count 1"    one seed again, as a failure prints it; no scorecard
make torture ARGS=--planted                   a bug is planted for each line, which has to find it
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from compile_times import checked_kernels

if "--long" not in sys.argv:
    # As in tests: what would be a stray write is an IndexError, and what they compiled is used. A long run is as users
    # run it.
    os.environ.update({"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(checked_kernels())})
else:
    os.environ.setdefault("TORTURE_ROWS_A_DAY", "40000")

import skyband as sb
from torture import (
    changed,
    damage,
    faulty,
    fuzzed,
    killed,
    limits,
    numbers,
    planted,
    security,
    simulated,
    soak,
    stores,
    surroundings,
    three_ways,
)
from torture.campaign import Line, Result, resumed, timed

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- scorecard: written by make torture -->", "<!-- end of the scorecard -->"
BUGS_BEGIN, BUGS_END = "<!-- planted: written by make torture ARGS=--planted -->", "<!-- end of what was planted -->"

LINES = (
    Line(
        "1",
        "a session that saves to a `sb.Store` is killed with SIGKILL, again and again, and goes on from it",
        "0 lost, 0 doubled",
        20,
        400,
        stores.killed,
    ),
    Line(
        "2",
        "a pipeline of all five problems and seven sinks whose driver, Java and workers are killed, one or two at once",
        "0 lost, 0 doubled",
        2,
        25,
        killed.run,
    ),
    Line(
        "3",
        "ENOSPC, EIO and EACCES at every call of a `sb.Store` to the disk, half-written files among them",
        "a clean error or the right result; it goes on afterwards",
        180,
        360,
        stores.faults,
    ),
    Line(
        "3s",
        "ENOSPC, EIO, EACCES and half a write under the checkpoint and each sink of a pipeline on Spark",
        "a clean error or the right result; it goes on afterwards",
        2,
        60,
        faulty.run,
    ),
    Line(
        "4",
        "simulated streams of all five problems: reordered, late, repeated, silent, bursts, any batches, restarts",
        "0 differences from the definition",
        400,
        10_000,
        simulated.run,
    ),
    Line(
        "5",
        "generated statements: embedded and DuckDB, every fortieth on Spark, too",
        "0 differences",
        200,
        20_000,
        three_ways.run,
    ),
    Line(
        "6",
        "snapshots with a fitting checksum and hostile contents; flipped bytes and truncations",
        "typed errors only: no crash, no hang, memory bounded",
        400,
        10_000,
        damage.run,
    ),
    Line(
        "7",
        "statements, expressions and records made of random pieces",
        "answered or typed; rows in = used + late + set aside",
        10_000,
        1_000_000,
        fuzzed.run,
    ),
    Line(
        "9",
        "a snapshot is opened by another query, with another option, or for rows of another schema",
        "it goes on rightly, or is refused by name",
        400,
        20_000,
        changed.run,
    ),
    Line(
        "10",
        "thirty days of event time, with groups that come and go",
        "what is held grows by 1 % at most",
        6,
        60,
        soak.run,
    ),
    Line(
        "11",
        "bursts, 90 % of the rows on one key, falling scores, k and windows at their limits, 3 GB of memory",
        "the same answers as `recompute`; what is held afterwards is as before",
        35,
        5_000,
        limits.run,
    ),
    Line(
        "12",
        "sums against exact fractions, 64-bit edges, every time unit and zone, before the epoch, at the watermark",
        "equal to Python's own numbers",
        20,
        4_000,
        numbers.run,
    ),
    Line(
        "13",
        "threads, forks, two stores in one folder, no place for a cache, clocks that go back, calls that fail",
        "works, or is refused by name",
        18,
        450,
        surroundings.run,
    ),
    Line(
        "14",
        "every function of Spark and polars in expressions, code as names, pickles as snapshots",
        "no file, process, connection or unpickling",
        600,
        20_000,
        security.run,
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--long", action="store_true", help="hours instead of minutes")
    parser.add_argument("--line", "--only", choices=[line.number for line in LINES], help="one line of the scorecard")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="how many seeds")
    parser.add_argument("--planted", action="store_true", help="see that each line finds a bug that is planted for it")
    given = parser.parse_args()
    if given.planted:
        return _plant(given.line)
    failed = False
    for line in LINES:
        if given.line not in (None, line.number):
            continue
        is_whole = given.count is None and given.seed == 0
        count = given.count or (line.long if given.long else line.short)
        print(f"line {line.number}: {line.what}", flush=True)
        if is_whole and given.long:
            result, seconds = resumed(line, _commit())
        else:
            result, seconds = timed(line, given.seed, count)
        _tell(line, result, seconds)
        failed |= bool(result.failures)
        if is_whole:  # at once: a later line may be stopped
            version = f"The last run was with Skyband {sb.__version__} and Python {platform.python_version()}."
            titles = "| # | what | target | what came of it | failures | when, commit | again |"
            row = {line.number: _row(line, result, count)}
            _write(row, BEGIN, END, version, "", titles, "|---|---|---|---|---|---|---|")
    return int(failed)


def _plant(number: str | None) -> int:
    missed = False
    for line in LINES:
        if number not in (None, line.number):
            continue
        bug, found = planted.BUGS[line.number], planted.find(line)
        print(f"line {line.number}: {bug.words}: {found or 'NOT FOUND'}"[:300], flush=True)
        missed |= found is None
        seen = "not found" if found is None else "found"
        again = f'`make torture ARGS="--planted --line {line.number}"`'
        row = {line.number: f"| {line.number} | {bug.words} | {seen} | {again} |"}
        _write(row, BUGS_BEGIN, BUGS_END, "| # | planted | the line | again |", "|---|---|---|---|")
    return int(missed)


def _tell(line: Line, result: Result, seconds: float) -> None:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result.tried.items()))
    print(f"  {outcomes}; {len(result.failures)} failures; {seconds:.0f} s", flush=True)
    for seed, wrong in result.failures[:20]:
        print(f"  FAILED {wrong[:1500]}\n    again: {line.repeat(seed)}", flush=True)


def _row(line: Line, result: Result, count: int) -> str:
    outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(result.tried.items())).replace("|", "/")
    again = f'`make torture ARGS="--line {line.number} --count {count}"`'
    when = f"{datetime.now(UTC):%Y-%m-%d}, {_commit()}"
    return f"| {line.number} | {line.what} | {line.target} | {outcomes} | {len(result.failures)} | {when} | {again} |"


def _commit() -> str:
    command = ["git", "-C", str(PAGE.parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "?"


def _write(rows: dict[str, str], begin: str, end: str, *head: str) -> None:
    """The rows of the lines that ran; those of the others stay."""
    page = PAGE.read_text()
    before = page[page.index(begin) : page.index(end)]
    rows = {row.split("|")[1].strip(): row for row in before.splitlines() if re.match(r"\| \d+s? \|", row)} | rows
    table = "\n".join([begin, *head, *(rows[number] for number in sorted(rows, key=_place)), end])
    PAGE.write_text(page[: page.index(begin)] + table + page[page.index(end) + len(end) :])


def _place(number: str) -> tuple[int, str]:
    return int(number.rstrip("s")), number


if __name__ == "__main__":
    sys.exit(main())
