"""Trading surveillance: which two accounts place nearly the same orders within seconds?

Orders of a hundred accounts come in. Two accounts act together: one repeats the other's orders a moment later. The
closest pairs of orders of different accounts, over the last minute, give them away.
"""

import argparse
from collections import Counter

import numpy as np
import pyarrow as pa

import skyband as sb

ALIKE = "abs(a.price - b.price) + abs(a.size - b.size)"


def orders(rows: int, seed: int) -> pa.Table:
    """Orders in the order of their seconds; every fifth order of account 7 is repeated by account 23."""
    rng = np.random.default_rng(seed)
    second = np.sort(rng.integers(0, rows // 4, rows))
    account = rng.integers(0, 100, rows)
    price, size = rng.normal(100, 20, rows).round(2), rng.integers(1, 500, rows)
    for i in range(0, rows - 1, 5):
        account[i], account[i + 1] = 7, 23
        price[i + 1], size[i + 1] = price[i], size[i]
    return pa.table({"second": second, "account": account, "price": price, "size": size})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000, help="how many orders")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    table = orders(options.rows, options.seed)
    window = sb.sliding(60, every=60, on="second")
    pairs = sb.top_k_pairs(table, k=5, by=ALIKE, ascending=True, different="account", window=window)

    suspects = Counter(
        tuple(sorted((row["a_account"], row["b_account"]))) for row in pairs.to_pylist() if row["score"] == 0
    )
    windows = len(set(pairs["window_end"].to_pylist()))
    (accounts, times), *_ = suspects.most_common(1)
    print(f"{options.rows:,} orders, {windows} windows of a minute")
    print(f"accounts {accounts[0]} and {accounts[1]} placed the same order {times} times")
    assert accounts == (7, 23), "the planted accounts are found"


if __name__ == "__main__":
    main()
