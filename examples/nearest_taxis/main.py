"""Nearest taxis: which taxis are nearest to each of many people, over the last reports?

Taxis report where they are. Each person is a query of its own, and all of them share one pass over the reports.
"""

import argparse

import numpy as np
import pyarrow as pa

import skyband as sb

DISTANCE = "sqrt((x - q.x)**2 + (y - q.y)**2)"
WINDOW = 1_000


def reports(rows: int, seed: int) -> pa.Table:
    """Taxis somewhere in a city of ten by ten kilometres."""
    rng = np.random.default_rng(seed)
    return pa.table({"taxi": rng.integers(0, 300, rows), "x": rng.random(rows) * 10, "y": rng.random(rows) * 10})


def people(number: int, seed: int) -> pa.Table:
    """Who waits, and where."""
    rng = np.random.default_rng(seed + 1)
    return pa.table({"id": np.arange(number), "x": rng.random(number) * 10, "y": rng.random(number) * 10})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="how many reports")
    parser.add_argument("--people", type=int, default=200, help="how many wait")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    taxis, waiting = reports(options.rows, options.seed), people(options.people, options.seed)
    nearest = sb.top_k(
        taxis, k=3, by=DISTANCE, ascending=True, for_each=waiting, window=sb.sliding(WINDOW, every=WINDOW)
    )
    last = [row for row in nearest.to_pylist() if row["window_end"] == len(taxis) // WINDOW * WINDOW]
    print(
        f"{options.rows:,} positions of taxis; the nearest to each of {options.people} people, in the last {WINDOW:,}:"
    )
    for row in last[:3]:
        print(f"person {row['id']}: {row['rank']}. taxi {row['taxi']}, {row['score']:.2f} km away")

    end = len(taxis) // WINDOW * WINDOW
    window = taxis.slice(end - WINDOW, WINDOW)
    for person in waiting.to_pylist():
        away = np.hypot(window["x"].to_numpy() - person["x"], window["y"].to_numpy() - person["y"])
        found = [row["score"] for row in last if row["id"] == person["id"]]
        assert np.allclose(found, np.sort(away)[:3]), "the nearest are those of plain numpy"
    print(f"{len(waiting)} people checked with numpy")


if __name__ == "__main__":
    main()
