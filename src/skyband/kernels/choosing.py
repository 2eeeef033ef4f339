"""One of two numbers, for loops in which nobody can guess which: a branch would be guessed wrong by the processor."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def choose(_: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one if condition else other`, of the same type, without a branch, which compilers like to make of that."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return (one(types.boolean, one, one), codegen) if one == other else None
