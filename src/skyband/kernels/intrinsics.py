"""LLVM operations that numba does not offer; `prefetch` asks for memory before it is needed.

`choose` takes one of two numbers without a branch, for loops in which the processor would mispredict. `widen` makes the
loops of a function use the widest registers. `copy_row` copies a whole record, which numba copies field by field.
`row_at` reads a record without checking for a negative index.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def choose(_: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one if condition else other`, both of the same type, compiled without a branch."""

    def codegen(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        chosen = builder.select(*arguments)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return (one(types.boolean, one, one), codegen) if one == other else None


_WIDEST = '"prefer-vector-width"="512"'  # processors without such registers ignore it


@intrinsic
def widen(_: Any) -> Any:
    """Make all loops of the function that calls this use the widest registers.

    By default LLVM uses half of their width, because the first processors with wide registers slowed down. A loop that
    only calculates runs a quarter faster with the full width.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # `attributes.add` of llvmlite would refuse an attribute that is a text.
        set.add(builder.function.attributes, _WIDEST)
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def copy_row(_: Any, array: Any, to: Any, other: Any, at: Any) -> Any:
    """array[to] = other[at], for arrays with the same type of rows. It checks no bounds."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, other_kind = signature.args[0], signature.args[2]
        target = _pointer(context, builder, kind, arguments[0], arguments[1])
        source = _pointer(context, builder, other_kind, arguments[2], arguments[3])
        # The size is constant, so LLVM turns this into a few instructions.
        cgutils.raw_memmove(builder, target, source, ir.Constant(ir.IntType(64), 1), _size(context, kind))
        return context.get_dummy_value()

    return types.void(array, types.intp, other, types.intp), codegen


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    made = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, made, [index])


def _size(context: Any, kind: Any) -> Any:
    return ir.Constant(ir.IntType(64), context.get_abi_sizeof(context.get_data_type(kind.dtype)))


@intrinsic
def row_at(_: Any, array: Any, index: Any) -> Any:
    """array[index] for an index that is not negative. The check for that takes a tenth of the time of some loops."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        made = context.make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(
            context, builder, kind, made, [arguments[1]], boundscheck=context.enable_boundscheck
        )
        return builder.bitcast(pointer, context.get_value_type(kind.dtype))

    return array.dtype(array, types.intp), codegen


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
