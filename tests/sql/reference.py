"""Writes docs/sql-reference.md from the statements that are tested: `python tests/sql/reference.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sql.nexmark import ASKED, CANNOT  # run as a program, it is not on the path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "sql-reference.md"

HEAD = """# SQL, statement by statement

`python tests/sql/reference.py` generates this page from the tests. The tests run every statement of the first part on
both engines and compare the answer with recomputation; they compare each error of the second part word for word.
[SQL](sql.md) explains the language and shows answers.

The inputs: `trades` (seq, t, ts, symbol, venue, price, volume), `auction` (ts, auctionID, sellerID), `bid` (ts,
auctionID, price), `person` (personID, state), and the streams `r1` (flow, size, t), `r2` (flow, amount, t) and `r3`
(flow, weight, t); `ts` is a timestamp, `t` and `seq` are whole numbers.
"""


def page() -> str:
    """The page as it should be."""
    refused = ["## Refused statements, and their errors", "", *_rejected()]
    return "\n".join([HEAD, *_accepted(), *_nexmark(), *refused])


def _nexmark() -> list[str]:
    """The suite that engines for streams compare themselves by."""
    lines = ["## Nexmark", ""]
    lines += [
        f"Skyband answers {len(ASKED)} of the {len(ASKED) + len(CANNOT)} queries of the suite:",
        "",
        "```sql",
    ]
    for name, asked in ASKED.items():
        lines += [f"-- {name}: {asked.about}", f"{asked.ours};"]
    lines += ["```", "", "It cannot answer these:", "", "| query | why |", "|---|---|"]
    return [*lines, *(f"| {name} | {why} |" for name, why in CANNOT.items()), ""]


def _accepted() -> list[str]:
    lines: list[str] = []
    statements: list[str] = []

    def close() -> None:
        if statements:
            lines.extend(["```sql", *(f"{statement};" for statement in statements), "```", ""])
            statements.clear()

    for line in (HERE / "accepted.sql").read_text().splitlines():
        if line.startswith("-- # "):
            close()
            lines.extend([f"## {line.removeprefix('-- # ')}", ""])
        elif line.startswith("-- ") and lines:
            close()
            lines.extend([line.removeprefix("-- "), ""])
        elif line and not line.startswith("--"):
            statements.append(line.removesuffix(";"))
    close()
    return lines


def _rejected() -> list[str]:
    blocks = (HERE / "rejected.txt").read_text().strip().split("\n\n")
    return ["```text", *(line for block in blocks for line in (*block.split("\n")[1:], "")), "```", ""]


if __name__ == "__main__":
    PAGE.write_text(page())
