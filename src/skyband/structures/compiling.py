"""How loops are compiled: `kernel` and `allocating` for what Python calls, `part` and `inlined` for the rest.

A function that Python can call costs compiling a wrapper that unpacks every argument, and most functions here are never
called so: without wrappers a first answer comes a quarter sooner. From Python a part is what it says, interpreted.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import register_jitable


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with these options of numba's, and keep the code on disk for later processes."""

    def compiling(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        compiled._cache = KernelCache(function)
        return compiled

    return compiling


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Compiled code on disk, valid until a file with parts of kernels changes.

    Numba itself looks only at the file of the outermost function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), stamp_of_parts()
        self._cache_file = OneFileEach(self._cache_path, self._impl.filename_base, stamp)


class OneFileEach(IndexDataCacheFile):  # type: ignore[misc]
    """The code for each signature in a file named by it.

    Numba numbers the files, and two processes that compile one function at once, for different arguments, take the same
    number: then the index of one leads to the code of the other, now and in every later process. See decision 0002.
    """

    def save(self, key: Any, data: Any) -> None:
        overloads = self._load_index()
        overloads[key] = name = self._data_name(_number(repr(key).encode()))
        self._save_data(name, data)
        self._save_index(overloads)


@functools.cache
def stamp_of_parts() -> int:
    """Another number as soon as a file changes that may have parts of kernels in it."""
    package = Path(__file__).parents[1]
    files = sorted(file for folder in ("operators", "structures") for file in (package / folder).rglob("*.py"))
    return _number(repr([(file.stat().st_mtime_ns, file.stat().st_size) for file in files]).encode())


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


# It allocates nothing, so no references need be counted: it runs two to three times as fast so. See decision 0002.
kernel: Final[Any] = cached(_nrt=False, no_cfunc_wrapper=True)
allocating: Final[Any] = cached(_nrt=True, no_cfunc_wrapper=True)  # said outright, or its callers decide it
part: Final[Any] = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined: Final[Any] = register_jitable(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
