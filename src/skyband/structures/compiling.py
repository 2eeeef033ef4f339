"""How loops are compiled: `kernel` for what Python calls, `part` and `inlined` for what only kernels call.

A function that Python can call costs compiling a wrapper that unpacks every argument, and most functions here are never
called so: without wrappers a first answer comes a quarter sooner. From Python a part is what it says, interpreted.
"""

from __future__ import annotations

from typing import Any, Final

from numba import njit
from numba.extending import register_jitable

# It allocates nothing, so no references need be counted: it runs two to three times as fast so. See decision 0002.
kernel: Final[Any] = njit(cache=True, _nrt=False, no_cfunc_wrapper=True)
part: Final[Any] = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined: Final[Any] = register_jitable(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
