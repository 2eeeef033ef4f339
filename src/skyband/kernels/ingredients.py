"""A hash of everything that a kernel is compiled from: its code, the code of all functions it calls, and constants.

Compiled code is cached on disk under this hash, so it is used exactly as long as compiling again would give the same
code. Docstrings, comments, line numbers, annotations and other code of the same modules do not count.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

# Packages whose code is not hashed: numba's own cache key has their versions.
_FOREIGN: Final = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)

_brought: dict[type, list[Callable[..., Any]]] = {}


def brought_by(kind: type, function: Callable[..., Any]) -> None:
    """Register that kernels with an argument of this class call this function: numba chooses it by the class."""
    _brought.setdefault(kind, []).append(function)


def number_of(*things: Any) -> int:
    """A hash that changes if one of these functions, classes or values would be compiled to other code."""
    found = Ingredients()
    for thing in things:
        found.add(thing)
    return found.number()


class Ingredients:
    """Collects functions, classes and values into one hash, each of them once."""

    def __init__(self) -> None:
        self.unknown: list[Any] = []  # things that may change unseen: code with one is compiled in each process
        self._digest = hashlib.blake2b(digest_size=8)
        # By id: the order in which things were found. It holds the things, so that no other gets the same id.
        self._seen: dict[int, tuple[int, Any]] = {}

    def number(self) -> int:
        return int.from_bytes(self._digest.digest())

    def add(self, thing: Any) -> None:
        if isinstance(thing, _PLAIN):
            self._write(type(thing).__name__, repr(thing))
        elif isinstance(thing, np.dtype):
            self._write("dtype", repr(thing))
        elif isinstance(thing, np.ndarray):
            self._write("array", repr(thing.dtype), thing.shape, thing.tobytes())
        elif isinstance(thing, (tuple, list)) and not hasattr(thing, "_fields"):
            self._write(type(thing).__name__, len(thing))
            self._add_all(thing)
        elif self._is_new(thing):
            self._add_new(thing)

    def _add_all(self, things: Any) -> None:
        for thing in things:
            self.add(thing)

    def _add_new(self, thing: Any) -> None:
        if hasattr(thing, "py_func"):  # compiled by numba
            self.add_function(thing.py_func, thing.targetoptions)
        elif hasattr(thing, "_defn"):  # an intrinsic
            self.add_function(thing._defn, {})
        elif isinstance(thing, ModuleType):  # of another package; its path does not count
            self._write(thing.__name__)
        elif _package(thing) in _FOREIGN and " at 0x" not in repr(thing):
            self._write(repr(thing))
        elif _package(thing) in _FOREIGN and hasattr(thing, "__qualname__"):
            self._write(thing.__module__, thing.__qualname__)
        elif isinstance(thing, FunctionType):
            self.add_function(thing, {})
        elif isinstance(thing, type) and hasattr(thing, "_fields"):
            self._write(thing.__name__, thing._fields, thing.__annotations__)
            self._add_all(_brought.get(thing, ()))
        elif hasattr(thing, "_fields"):
            self.add(type(thing))
            self._add_all(thing)
        else:
            self.unknown.append(thing)
            self._write(os.urandom(8))

    def add_function(self, function: Any, options: Mapping[str, Any]) -> None:
        """Add a function that is compiled with these options."""
        self._write(function.__name__, sorted((name, _named(value)) for name, value in options.items()))
        self._write(getattr(function, "compiled_as", None))
        self._add_all(function.__defaults__ or ())
        self._add_all(cell.cell_contents for cell in function.__closure__ or ())
        self._add_code(function.__code__, function.__globals__, function.__doc__)

    def _add_code(self, code: CodeType, scope: Mapping[str, Any], doc: str | None) -> None:
        self._write(code.co_code, code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_exceptiontable)
        self._write(code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant, scope, None)
            elif constant is not doc or doc is None:
                in_order = sorted(constant, key=repr) if isinstance(constant, frozenset) else constant
                self._write(type(constant).__name__, repr(in_order))
        for name in code.co_names:  # names of globals and of attributes
            if name in scope:
                self._write(name)
                self._add_named(scope[name], code.co_names)

    def _add_named(self, thing: Any, names: tuple[str, ...]) -> None:
        if isinstance(thing, ModuleType) and thing.__name__.partition(".")[0] not in _FOREIGN:
            self._add_all(getattr(thing, name) for name in names if hasattr(thing, name))
        else:
            self.add(thing)

    def _is_new(self, thing: Any) -> bool:
        if id(thing) in self._seen:
            self._write("seen", self._seen[id(thing)][0])
            return False
        self._seen[id(thing)] = len(self._seen), thing
        return True

    def _write(self, *parts: Any) -> None:
        self._digest.update(repr(parts).encode())


def _package(thing: Any) -> str:
    """The outermost package of a module, or of the module in which a thing is defined."""
    module = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    return str(module or type(thing).__module__).partition(".")[0]


def _named(value: Any) -> str:
    """The name of a class, or the repr of another value. The hash of `compiling.py` covers what the class does."""
    return str(getattr(value, "__qualname__", repr(value)))
