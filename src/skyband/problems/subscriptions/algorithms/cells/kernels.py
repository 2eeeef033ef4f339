"""Finds the cells of rows, and sorts the hits that rows made by query."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating


@allocating
def cells_of(columns, first, end, cuts):
    """The cell of each row: behind the last cell if a value lies outside, or an undivided column is not finite."""
    n, (split, parts) = end - first, cuts.shape
    parts -= 1
    cell, inside = np.zeros(n, np.int32), np.ones(n, np.bool_)
    for c in range(split):
        for i in range(n):
            value, part, rest = columns[c, first + i], 0, parts
            while rest > 1:
                half = rest >> 1
                part += half if value >= cuts[c, part + half] else 0
                rest -= half
            inside[i] &= (value >= cuts[c, 0]) & (value <= cuts[c, parts])
            cell[i] = cell[i] * parts + part
    for c in range(split, len(columns)):
        for i in range(n):
            inside[i] &= abs(columns[c, first + i]) < np.inf
    for i in range(n):
        if not inside[i]:
            cell[i] = parts**split
    return cell


@allocating
def by_query(n, row, query, score, which, queries, hit, hit_score, ends):
    """Sort hits from order of arrival to order of queries: those of the query which[j] end at ends[j]."""
    place, following = np.zeros(queries, np.int64), np.zeros(len(which) + 1, np.int64)
    for j in range(len(which)):
        place[which[j]] = j
    for x in range(n):
        following[place[query[x]] + 1] += 1
    for j in range(len(which)):
        following[j + 1] += following[j]
        ends[j] = following[j + 1]
    for x in range(n):
        j = place[query[x]]
        hit[following[j]], hit_score[following[j]] = row[x], score[x]
        following[j] += 1
