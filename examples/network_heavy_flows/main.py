"""Heavy flows: which flows carry most bytes over three routers, in each ten seconds?

Each router reports packets on its own, and none waits for the others. A flow's score is the sum of what all of them
have seen.
"""

import argparse
from collections import Counter

import numpy as np
import pyarrow as pa

import skyband as sb

ROUTERS = ("north", "south", "west")


def packets(rows: int, seed: int) -> dict[str, pa.Table]:
    """Packets of a minute at each router: a few flows are heavy, and each router sees its own share of them."""
    rng = np.random.default_rng(seed)
    return {
        router: pa.table(
            {
                "second": np.sort(rng.integers(0, 60, rows // len(ROUTERS))),
                "flow": rng.zipf(1.2, rows // len(ROUTERS)) % 500,
                "bytes": rng.integers(40, 1_500, rows // len(ROUTERS)).astype(float),
            }
        )
        for router in ROUTERS
    }


def check(streams: dict[str, pa.Table], best: list[dict[str, float]], end: int) -> None:
    """Compare one window with plain Python."""
    totals: Counter[int] = Counter()
    for table in streams.values():
        for row in table.to_pylist():
            if end - 10 <= row["second"] < end:
                totals[row["flow"]] += row["bytes"]
    assert [row["score"] for row in best] == sorted(totals.values(), reverse=True)[: len(best)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000, help="how many packets")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    streams = packets(options.rows, options.seed)
    answer = sb.top_k_across(
        streams,
        k=5,
        id="flow",
        value="bytes",
        repeat="sum",
        bounds=(0, float("inf")),
        window=sb.tumbling(10, on="second"),
    ).to_pylist()
    last = [row for row in answer if row["window_end"] == 60]
    print(f"{options.rows:,} packets in a minute; the heaviest flows of its last ten seconds:")
    for row in last:
        parts = ", ".join(f"{router} {row[router] or 0:,.0f}" for router in ROUTERS)
        print(f"{row['rank']}. flow {row['flow']}: {row['score']:,.0f} bytes ({parts})")
    check(streams, last, 60)
    print("checked with plain Python")


if __name__ == "__main__":
    main()
