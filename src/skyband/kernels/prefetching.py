"""A prefetch hint to the processor, for loops with random memory access."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_TO_READ, _KEEP, _DATA = 0, 3, 1
_LINE = 64  # bytes of a cache line


@intrinsic
def prefetch(_: Any, array: Any, index: Any) -> Any:
    """Start loading array[index], or its first entry if the array has several dimensions; nothing waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rest = [context.get_constant(types.intp, 0)] * (signature.args[0].ndim - 1)
        return _hint(context, builder, signature, arguments, rest)

    return types.void(array, index), codegen


@intrinsic
def prefetch_in(_: Any, array: Any, row: Any, column: Any) -> Any:
    """Start loading array[row, column]: a long row spans several cache lines."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rest = context.cast(builder, arguments[2], signature.args[2], types.intp)
        return _hint(context, builder, signature, arguments, [rest])

    return types.void(array, row, column), codegen


def _hint(context: Any, builder: Any, signature: Any, arguments: Any, rest: list[Any]) -> Any:
    """Emit a prefetch of the item whose first index is the second argument; `rest` has its other indices."""
    array_type = signature.args[0]
    made = context.make_array(array_type)(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    item = cgutils.get_item_pointer(context, builder, array_type, made, [index, *rest])
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer], function_type)
    constants = [ir.Constant(number, value) for value in (_TO_READ, _KEEP, _DATA)]
    begin = builder.bitcast(item, pointer)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    for offset in (*range(0, size, _LINE), *([size - 1] if size > _LINE else [])):
        builder.call(hint, [builder.gep(begin, [ir.Constant(ir.IntType(64), offset)]), *constants])
    return context.get_dummy_value()
