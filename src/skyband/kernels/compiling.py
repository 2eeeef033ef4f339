"""How loops are compiled: `kernel` and `allocating` for functions that Python calls, `part` and `inlined` for the rest.

A function that Python can call needs a compiled wrapper that unpacks every argument. Most functions here are called
only by kernels: without wrappers, the first answer comes a quarter sooner. Called from Python, a part is interpreted.
"""

from __future__ import annotations

import functools
import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt
from numba import njit
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import AnnotateTypes
from numba.extending import register_jitable

from skyband.kernels.ingredients import Ingredients, number_of

try:
    import fcntl
except ImportError:  # on Windows, where several processes may compile the same
    fcntl = None  # type: ignore[assignment]

_PACKAGE: Final = __name__.partition(".")[0]


def cached(text: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with these options of numba's, and keep the code on disk for later processes.

    `text`: of a function that is in no file.
    """

    def compiling(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        compile_now = compiled.compile

        @functools.wraps(compile_now)
        def compile_in_turn(signature: Any) -> Any:
            if not isinstance(compiled._cache, KernelCache):  # only now: looking for its place takes a while
                compiled._cache = KernelCache(function, compiled.targetoptions, text)
            with compiled._cache.turn(), uncollected():
                return compile_now(signature)

        compiled.compile = compile_in_turn
        return compiled

    return compiling


class ByModule(UserProvidedCacheLocator):
    """Where `NUMBA_CACHE_DIR` is set: a folder for each module of ours, wherever the package lies.

    Numba's folders go by the path of the source, so that two copies of it would each compile everything.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(Path(config.CACHE_DIR, function.__module__))

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        ours = function.__module__.startswith(f"{_PACKAGE}.")
        return super().from_function(function, file) if ours else None


class KernelFiles(CompileResultCacheImpl):
    _locator_classes: Final = [ByModule, *CompileResultCacheImpl._locator_classes]


class KernelCache(FunctionCache):
    """Compiled code on disk, valid until something changes that it is made from.

    Numba itself looks at the file of the outermost function: that is too little and too much. The code of a function
    that is in no file lies where that of one in this file would, and goes by its text.
    """

    _impl_class = KernelFiles

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], text: str | None = None) -> None:
        super().__init__(function if text is None else cached)
        name = self._impl.filename_base
        if text is not None:
            name = f"{function.__name__}-{_number(text.encode()):016x}.{name}"
        made_from = Ingredients()
        made_from.add_function(function, options)
        stamp = _number(repr((made_from.number(), _compiler())).encode())
        if isinstance(self._impl.locator, ByModule):  # several versions may share the folder
            name = f"{name}.{stamp:016x}"
        self._cache_file = OneFileEach(self._cache_path, name, stamp)
        self._turn = Path(self._cache_path, f"{name}.turn")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Also what the classes of its arguments bring."""
        key, classes = super()._index_key(sig, codegen), [*_classes(sig)]
        return (*key, number_of(*classes)) if classes else key

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One process at a time: those that wait find the code on disk. Spark starts several workers at once.

        A kernel that is waited for waits only for those it calls, so none waits for itself; and in a process no more
        than one is compiled at a time, which is what numba's lock says.
        """
        with global_compiler_lock, ExitStack() as open_files:
            if fcntl:
                with suppress(OSError):  # nowhere to keep code, or no locks there
                    # Closing the file gives the lock back, and so does the end of the process.
                    fcntl.lockf(open_files.enter_context(self._turn.open("w")), fcntl.LOCK_EX)
            yield


class OneFileEach(IndexDataCacheFile):
    """The code for each signature in a file named by it.

    Numba numbers the files, and two processes that compile one function at once, for different arguments, take the same
    number: then the index of one leads to the code of the other, now and in every later process. See decision 0002.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # it names what this version of the package does not have
            return {}

    def load(self, key: Any) -> Any:
        try:
            return super().load(key)
        except (AttributeError, ImportError):  # the code names a module that has moved
            return None

    def save(self, key: Any, data: Any) -> None:
        overloads = self._load_index()
        overloads[key] = name = self._data_name(_number(repr(key).encode()))
        self._save_data(name, data)
        self._save_index(overloads)


@contextmanager
def uncollected() -> Iterator[None]:
    """No looking for garbage meanwhile: it is a tenth of the time that compiling takes, and finds little."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _classes(types: Any) -> Iterator[type]:
    """The classes of the named tuples among these types, and of those in them."""
    for one in types:
        if found := getattr(one, "instance_class", None):
            yield found
        yield from _classes(getattr(one, "types", ()))


@functools.cache
def _compiler() -> int:
    """What this file says."""
    return _number(Path(__file__).read_bytes())


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as one that may not be written to, which Arrow's are and others are not.

    Kernels are compiled for one or the other; what only reads its input need not be compiled for both.
    """
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


class PartLibrary(JITCodeLibrary):
    """The code of a part, for linking into kernels.

    Numba would optimise it, and translate it, on its own and again in every function that calls it. Here that is done
    once, in the kernel, as a C compiler does with static functions: a first answer comes a third sooner.
    """

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no wrapper for Python

    @property
    def codegen(self) -> PartLibrary:
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Asked of the code generator, for wrappers."""


@register_pass(mutates_CFG=False, analysis_only=True)
class LinkOnly(AnalysisPass):
    """What is compiled is a part."""

    _name = "skyband_link_only"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(LinkOnly, AnnotateTypes)
        passes.finalize()
        return [passes]


# It allocates nothing, so no references need be counted: it runs two to three times as fast so. See decision 0002.
kernel: Final[Any] = cached(_nrt=False, no_cfunc_wrapper=True)
allocating: Final[Any] = cached(_nrt=True, no_cfunc_wrapper=True)  # said outright, or its callers decide it
_PART: Final[Any] = {"pipeline_class": PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _part_of(compiled_as: str, **options: Any) -> Any:
    def marked(function: Any) -> Any:
        function.compiled_as = compiled_as
        return register_jitable(**_PART, **options)(function)

    return marked


part: Final[Any] = _part_of("part")
inlined: Final[Any] = _part_of("inlined", forceinline=True)
