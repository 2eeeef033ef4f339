"""Sorted lists in two arrays: keys, and the owner of each key."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import part


@part
def insert(keys, owners, size, key, owner):
    i = np.searchsorted(keys[:size], key, side="right")
    for j in range(size, i, -1):
        keys[j], owners[j] = keys[j - 1], owners[j - 1]
    keys[i], owners[i] = key, owner


@part
def remove(keys, owners, size, key, owner):
    i = np.searchsorted(keys[:size], key)
    while owners[i] != owner:
        i += 1
    for j in range(i, size - 1):
        keys[j], owners[j] = keys[j + 1], owners[j + 1]
