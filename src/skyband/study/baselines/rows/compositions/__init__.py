"""The other k-skybands with a filter: a strict or relaxed skyband, and a strict, relaxed or probabilistic filter.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 5 (SASF, SARF, SAPF, RASF, RARF).
Invariant:  that of `relaxed+probabilistic`.
Cost:       push O(s) for a strict skyband of s rows or a strict filter, else as `relaxed+probabilistic`, whose filter
            rejects most rows with one comparison; state as its.
Choose it:  for comparisons only; `relaxed+probabilistic` gives the same answers faster.
"""

from __future__ import annotations

from skyband.problems.rows.algorithms.filtered import NAME, expected_rows, opener
from skyband.problems.rows.algorithms.filtered.state import KINDS
from skyband.problems.rows.operator import row_algorithm

NAMES = tuple(f"{query}+{before}" for query in ("strict", "relaxed") for before in KINDS if f"{query}+{before}" != NAME)

ALGORITHMS = tuple(row_algorithm(name, opener(name), expected_rows=expected_rows, for_comparing=True) for name in NAMES)
