"""Game leaderboard: which players have most points in the last ten minutes, every minute?

Points come in; players are ranked by their sums. With --redis, the latest ranking becomes a sorted set, which an
application reads with ZRANGE leaderboard 0 9 REV WITHSCORES.
"""

import argparse
from collections import Counter

import numpy as np
import pyarrow as pa

import skyband as sb

MINUTE = 60


def points(rows: int, seed: int) -> pa.Table:
    """Throws of a thousand players over an hour; some play far more than others."""
    rng = np.random.default_rng(seed)
    player = rng.zipf(1.3, rows) % 1_000
    return pa.table(
        {
            "second": np.sort(rng.integers(0, 60 * MINUTE, rows)),
            "player": pa.array([f"player {number}" for number in player]),
            "points": rng.integers(1, 100, rows),
        }
    )


def check(table: pa.Table, ranking: list[dict[str, object]], end: int) -> None:
    """Compare the sums of one window with plain Python."""
    totals: Counter[str] = Counter()
    for row in table.to_pylist():
        if end - 10 * MINUTE <= row["second"] < end:
            totals[row["player"]] += row["points"]
    best = sorted(totals.values(), reverse=True)[: len(ranking)]
    assert [row["total"] for row in ranking] == best, "the ranking is that of plain Python"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000, help="how many throws")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--redis", metavar="URL", help="write the last ranking there, such as redis://localhost")
    options = parser.parse_args(arguments)

    table = points(options.rows, options.seed)
    answer = sb.join_aggregate(
        table,
        window=sb.sliding(10 * MINUTE, every=MINUTE, on="second"),
        group_by="player",
        aggregates={"total": "SUM(points)"},
        order_by="total",
        k=10,
    ).to_pylist()
    ranking = [row for row in answer if row["window_end"] == 60 * MINUTE]
    print(f"{options.rows:,} throws in an hour; the ranking of its last ten minutes:")
    for row in ranking[:3]:
        print(f"{row['rank']}. {row['player']}: {row['total']} points")
    check(table, ranking, 60 * MINUTE)
    print("checked with plain Python")
    if options.redis:
        import redis

        board = redis.Redis.from_url(options.redis)
        board.delete("leaderboard")
        board.zadd("leaderboard", {row["player"]: row["total"] for row in ranking})
        print("written to the sorted set 'leaderboard'")


if __name__ == "__main__":
    main()
