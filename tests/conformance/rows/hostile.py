"""Scores in orders that break what holds in random order: segments of every kind, of one source or of several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Floats = npt.NDArray[np.float64]
Segment = Callable[[np.random.Generator, int], Floats]

SEGMENTS: dict[str, Segment] = {
    "random": lambda rng, n: rng.random(n),
    "falling": lambda rng, n: 1 - np.arange(n) / n,
    "rising": lambda rng, n: np.arange(n) / n,
    "falling, far above": lambda rng, n: 1e9 - np.arange(n),
    "falling, with noise": lambda rng, n: 1 - np.arange(n) / n + rng.random(n) / 10,
    "constant": lambda rng, n: np.full(n, 0.5),
    "few values": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "a flood of -inf": lambda rng, n: np.where(rng.random(n) < 0.9, -np.inf, rng.random(n)),
    "a flood of inf": lambda rng, n: np.where(rng.random(n) < 0.9, np.inf, rng.random(n)),
    "both infinities": lambda rng, n: rng.choice([-np.inf, np.inf, 0.0], n),
    "unknown": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, rng.random(n)),
    "days": lambda rng, n: np.sin(np.arange(n) / 7) + rng.random(n) / 5,
    "long days": lambda rng, n: np.sin(np.arange(n) / 300) + rng.random(n) / 5,
    "a walk": lambda rng, n: np.cumsum(rng.normal(size=n)),
    "a level below": lambda rng, n: rng.random(n) - 1,
    "a level above": lambda rng, n: rng.random(n) + 1,
    "bursts that fall": lambda rng, n: np.where(np.arange(n) % 40 < 10, 3 - np.arange(n) % 40 / 10, rng.random(n)),
    "sorted blocks": lambda rng, n: np.concatenate([-np.sort(-block) for block in np.array_split(rng.random(n), 4)]),
    "all magnitudes": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.integers(-320, 308, n),
}


def interleaved(sources: list[Floats]) -> Floats:
    """One row of each source after the other."""
    shortest = min(map(len, sources))
    return np.stack([source[:shortest] for source in sources], axis=1).ravel()


@st.composite
def streams(draw: st.DrawFn, most: int) -> Floats:
    """Up to some four segments, each of one source or of up to three that take turns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(list(SEGMENTS)), min_size=1, max_size=3))
        rows = draw(st.integers(1, max(1, most // 4 // len(names))))
        parts.append(interleaved([SEGMENTS[name](rng, rows) for name in names]))
    return np.concatenate(parts)
