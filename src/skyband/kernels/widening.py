"""A hint to the compiler, for loops of plain arithmetic: to use the widest registers that the processor has."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

_WIDEST = '"prefer-vector-width"="512"'  # where there are none so wide, it means nothing


@intrinsic
def widen(_: Any) -> Any:
    """Said once in a function, of all its loops. LLVM alone keeps to half as wide ones, since the first processors that
    had them became slow; where a loop is bound by arithmetic it is a quarter faster so."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Of attributes that are texts llvmlite knows none, and would refuse it.
        set.add(builder.function.attributes, _WIDEST)
        return context.get_dummy_value()

    return types.void(), codegen
