"""Semantic alerts: which messages are closest in meaning to each watch-list, over the last messages?

Messages and watch-lists are vectors, as an embedding model gives them; here they are made from topics, so that the
example needs no model. A watch-list is told of a message once, when it gets among the closest.
"""

import argparse

import numpy as np
import pyarrow as pa

import skyband as sb

DIMENSIONS = 8
CLOSENESS = " + ".join(f"e{i} * q.e{i}" for i in range(DIMENSIONS))
WINDOW = 500


def vectors(topic: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A unit vector near the axis of each topic, by the name of its column."""
    points = np.eye(DIMENSIONS)[topic] + rng.normal(0, 0.2, (len(topic), DIMENSIONS))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return {f"e{i}": points[:, i] for i in range(DIMENSIONS)}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000, help="how many messages")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(options.seed)
    topic = rng.integers(0, DIMENSIONS, options.rows)
    messages = pa.table({"message": np.arange(options.rows), "topic": topic, **vectors(topic, rng)})
    lists = pa.table({"id": np.arange(50), **vectors(np.arange(50) % DIMENSIONS, rng)})

    alerts = sb.top_k(messages, k=2, by=CLOSENESS, for_each=lists, window=sb.sliding(WINDOW), emit="entries")
    settled = [row for row in alerts.to_pylist() if row["at"] > WINDOW]
    right = np.mean([row["topic"] == row["id"] % DIMENSIONS for row in settled])
    print(f"{options.rows:,} messages, {lists.num_rows} watch-lists, {alerts.num_rows:,} alerts")
    for row in settled[-3:]:
        told = f"watch-list {row['id']} is told, closeness {row['score']:.2f}"
        print(f"message {row['message']:,} about topic {row['topic']}: {told}")
    print(f"{right:.0%} of the alerts are about the topic of their watch-list")
    assert right > 0.95, "alerts are about what the watch-list is about"


if __name__ == "__main__":
    main()
