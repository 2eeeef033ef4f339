"""How many candidates are enough, given the probability that a row of rank l ever becomes one of the best k.

Paper: Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.1. Its equation (9) prints `l + l'` instead of `l + l' - 2`,
and the shortcut behind its table V (each probability is at most half of the one before) does not hold for large k. This
module sums the probabilities of all ranks left out, as Definition 4.5 requires.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TABLE = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 256)))])  # log n! up to n = 255


def _log_factorial(n: npt.NDArray[np.int64]) -> Floats:
    """log n!, from a table or by Stirling's series, to about the last bit."""
    x = np.maximum(n, 1).astype(np.float64)
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5)
    stirling = x * np.log(x) - x + 0.5 * np.log(2 * np.pi * x) + series
    return np.where(n < len(_TABLE), _TABLE[np.minimum(n, len(_TABLE) - 1)], stirling)


def log_choose(n: int | npt.NDArray[np.int64], r: npt.NDArray[np.int64]) -> Floats:
    """The logarithm of the binomial coefficient of n over r."""
    return _log_factorial(np.asarray(n)) - _log_factorial(r) - _log_factorial(n - r)


def chance(ranks: npt.NDArray[np.int64], n: int, k: int) -> Floats:
    """For each rank l > k: an upper bound of the probability that a row of this rank is ever among the k best.

    This is the paper's p_practice(l, n, k). Rows come in random order, and the row has rank l of n when it arrives.
    """
    # The paper's l'. Each term is smaller than the next by a factor, so the first of very many terms do not matter.
    better = np.arange(max(1, min(k, n) - 4000), min(k, n) + 1)[:, None]
    each = np.exp(
        log_choose(n - 1, better - 1) + log_choose(n - 1, ranks - 1) - log_choose(2 * n - 2, ranks + better - 2)
    )
    found: Floats = n * n / (4 * n - 2) * each.sum(axis=0)
    return found


@lru_cache(maxsize=256)
def candidates(n: int, k: int, sigma: float) -> int:
    """How many rows to hold behind the best k, so that the rows left out belong in an answer with a probability below
    sigma."""
    if n <= k + 1:
        return 1
    tail, last = 0.0, min(n, k + 64)
    # In the end the probabilities fall geometrically: continue until the rest cannot matter.
    while last < n and chance(np.array([last]), n, k)[0] > sigma * 1e-6:
        last = min(n, k + 2 * (last - k))
    for low in range(last, k, -256):
        ranks = np.arange(max(k + 1, low - 255), low + 1)
        sums = tail + np.cumsum(chance(ranks, n, k)[::-1])
        enough = int(np.searchsorted(sums, sigma))
        if enough < len(sums):
            return int(ranks[::-1][enough]) - k
        tail = float(sums[-1])
    return 1
