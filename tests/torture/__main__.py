"""`make torture`: run the campaign, and write its scorecard to docs/reliability.md.

make torture                                  every line, minutes
make torture ARGS="--line 6"                  one line, and its row of the scorecard
make torture ARGS=--long                      every line, hours
make torture ARGS="--line 6 --seed 1234 --count 1"    one seed again, as a failure prints it; no scorecard
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from pathlib import Path

from compile_times import checked_kernels

if "--long" not in sys.argv:
    # As in tests: what would be a stray write is an IndexError, and what they compiled is used. A long run is as users
    # run it.
    os.environ.update({"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(checked_kernels())})

import skyband as sb
from torture import damage, fuzzed, numbers, simulated, stores
from torture.campaign import Line, Result, timed

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- scorecard: written by make torture -->", "<!-- end of the scorecard -->"

LINES = (
    Line(
        1,
        "a session that saves to a `sb.Store` is killed with SIGKILL, again and again, and goes on from it",
        "0 lost, 0 doubled",
        20,
        400,
        stores.killed,
    ),
    Line(
        3,
        "ENOSPC, EIO and EACCES at every call of a `sb.Store` to the disk, half-written files among them",
        "a clean error or the right result; it goes on afterwards",
        180,
        360,
        stores.faults,
    ),
    Line(
        4,
        "simulated streams of all five problems: reordered, late, repeated, silent, bursts, any batches, restarts",
        "0 differences from the definition",
        60,
        10_000,
        simulated.run,
    ),
    Line(
        6,
        "snapshots with a fitting checksum and hostile contents; flipped bytes and truncations",
        "typed errors only: no crash, no hang, memory bounded",
        120,
        10_000,
        damage.run,
    ),
    Line(
        7,
        "statements, expressions and records made of random pieces",
        "answered or typed; rows in = used + late + set aside",
        150,
        1_000_000,
        fuzzed.run,
    ),
    Line(
        12,
        "sums against exact fractions, 64-bit edges, every time unit and zone, before the epoch, at the watermark",
        "equal to Python's own numbers",
        20,
        4_000,
        numbers.run,
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--long", action="store_true", help="hours instead of minutes")
    parser.add_argument("--line", type=int, choices=[line.number for line in LINES], help="one line of the scorecard")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="how many seeds")
    given = parser.parse_args()
    failed, rows = False, dict[int, str]()
    for line in LINES:
        if given.line not in (None, line.number):
            continue
        count = given.count or (line.long if given.long else line.short)
        print(f"line {line.number}: {line.what}", flush=True)
        result, seconds = timed(line, given.seed, count)
        _tell(line, result, seconds)
        failed |= bool(result.failures)
        rows[line.number] = _row(line, result, count)
    if given.count is None and given.seed == 0:
        _write(rows)
        print(f"the scorecard is in {PAGE}")
    return int(failed)


def _tell(line: Line, result: Result, seconds: float) -> None:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(result.tried.items()))
    print(f"  {outcomes}; {len(result.failures)} failures; {seconds:.0f} s", flush=True)
    for seed, wrong in result.failures[:20]:
        print(f"  FAILED {wrong[:300]}\n    again: {line.repeat(seed)}", flush=True)


def _row(line: Line, result: Result, count: int) -> str:
    outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(result.tried.items())).replace("|", "/")
    again = f'`make torture ARGS="--line {line.number} --count {count}"`'
    return f"| {line.number} | {line.what} | {line.target} | {outcomes} | {len(result.failures)} | {again} |"


def _write(rows: dict[int, str]) -> None:
    """The rows of the lines that ran; those of the others stay."""
    page = PAGE.read_text()
    before = page[page.index(BEGIN) : page.index(END)]
    rows = {int(row.split("|")[1]): row for row in before.splitlines() if re.match(r"\| \d+ \|", row)} | rows
    table = "\n".join(
        [
            BEGIN,
            f"The last run was with Skyband {sb.__version__} and Python {platform.python_version()}.",
            "",
            "| # | what | target | what came of it | failures | again |",
            "|---|---|---|---|---|---|",
            *(rows[number] for number in sorted(rows)),
            END,
        ]
    )
    PAGE.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table, page, flags=re.DOTALL))


if __name__ == "__main__":
    sys.exit(main())
