"""Several mistakes of one file as one error."""

from __future__ import annotations

from collections.abc import Sequence

from skyband.errors import InvalidPipeline


def together(mistakes: Sequence[InvalidPipeline]) -> InvalidPipeline:
    """All of them, one below the other.

    >>> print(together([InvalidPipeline("a.toml:1: No."), InvalidPipeline("a.toml:3: Nor this.")]))
    a.toml:1: No.
    a.toml:3: Nor this.
    """
    return mistakes[0] if len(mistakes) == 1 else InvalidPipeline("\n".join(map(str, mistakes)))
