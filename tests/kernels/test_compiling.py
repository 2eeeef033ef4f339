"""Compiled code on disk: what several processes may write at once, and when it is no longer valid."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from numba.core import config
from waiting import PATIENCE_S

import skyband as sb
from skyband import core, kernels, problems
from skyband.kernels import compiling
from skyband.kernels.compiling import KernelCache, OneFileEach, kernel
from skyband.problems.rows.algorithms.mintopk.kernels import pushing as mintopk_kernels
from skyband.problems.rows.algorithms.relaxed.kernels import pushing as relaxed_kernels
from skyband.problems.rows.drivers import step_kernels as stepwise
from skyband.study.baselines.rows.pretopk import kernels as pretopk_kernels


def cache_of(folder: Path, stamp: object = 1) -> OneFileEach:
    return OneFileEach(str(folder), "kernel", stamp)


def test_two_processes_that_compile_one_kernel_at_once_never_get_the_other_s_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What numba numbers, two processes may number alike; it happened between two workers of these tests."""
    one, other = cache_of(tmp_path), cache_of(tmp_path)
    saving = OneFileEach._save_data

    def save_in_between(name: str, data: Any) -> None:
        """While one process writes its code, the other compiles and saves for other arguments."""
        other.save("floats", "code for floats")
        saving(one, name, data)

    monkeypatch.setattr(one, "_save_data", save_in_between)
    one.save("integers", "code for integers")
    for process in (one, other, cache_of(tmp_path)):
        assert process.load("integers") == "code for integers"
        assert process.load("floats") in ("code for floats", None)  # what one forgets is compiled again


def test_code_for_other_sources_is_not_used(tmp_path: Path) -> None:
    cache_of(tmp_path, stamp=1).save("integers", "code")
    assert cache_of(tmp_path, stamp=1).load("integers") == "code"
    assert cache_of(tmp_path, stamp=2).load("integers") is None


def test_code_of_a_version_with_other_classes_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of such code cannot even be read."""
    monkeypatch.setattr(compiling, "Moved", type("Moved", (), {"__module__": compiling.__name__}), raising=False)
    cache_of(tmp_path).save(compiling.Moved, "code")  # type: ignore[attr-defined]
    monkeypatch.undo()
    cache_of(tmp_path).save("integers", "new code")
    assert cache_of(tmp_path).load("integers") == "new code"


def test_code_that_names_a_module_which_has_moved_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel calls may move to another module, and stay the same: then its hash says that the code is valid."""
    monkeypatch.setitem(sys.modules, "skyband.moved", moved := types.ModuleType("skyband.moved"))
    moved.Called = type("Called", (), {"__module__": "skyband.moved"})  # type: ignore[attr-defined]
    cache_of(tmp_path).save("integers", moved.Called)  # type: ignore[attr-defined]
    monkeypatch.undo()
    assert cache_of(tmp_path).load("integers") is None
    cache_of(tmp_path).save("integers", "new code")
    assert cache_of(tmp_path).load("integers") == "new code"


def test_no_two_named_tuples_look_the_same_to_numba() -> None:
    """It tells them apart by name and types; of two alike it knows one, and each call with the other is slow."""
    seen: dict[tuple[object, ...], type] = {}
    for package in (core, kernels, problems):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(importlib.import_module(module.name)).values():
                if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
                    look = (found.__name__, *(str(found.__annotations__[field]) for field in found._fields))
                    assert seen.setdefault(look, found) is found


def test_a_kernel_is_made_from_what_the_classes_of_its_arguments_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that several algorithms share calls what the class of `kind` stands for, and names none of them."""
    cache = KernelCache(stepwise.push.py_func, stepwise.push.targetoptions)
    kind = (numba.typeof(pretopk_kernels.PredictedHeaps(1, 1, 0)),)
    codegen = stepwise.push.targetctx.codegen()
    key = cache._index_key(kind, codegen)
    assert cache._index_key(kind, codegen) == key
    monkeypatch.setattr(pretopk_kernels, "sift_down", pretopk_kernels.predict)
    assert cache._index_key(kind, codegen) != key


def test_kernels_are_cached_so() -> None:
    @kernel
    def twice(x):  # type: ignore[no-untyped-def]
        return 2 * x

    assert twice(21) == 42
    assert isinstance(twice._cache, KernelCache)
    assert isinstance(twice._cache._cache_file, OneFileEach)


def test_copies_of_the_package_share_what_they_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder by the module's name, not its path; a file by what the code is made from."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    function, options = relaxed_kernels.push.py_func, relaxed_kernels.push.targetoptions
    here = KernelCache(function, options)
    assert Path(here.cache_path) == tmp_path / relaxed_kernels.__name__
    here._cache_file.save("integers", "code")
    assert KernelCache(function, options)._cache_file.load("integers") == "code"
    monkeypatch.setattr(compiling, "_compiler", lambda: 7)  # a copy that compiles in another way
    other = KernelCache(function, options)._cache_file
    other.save("integers", "other code")
    assert (here._cache_file.load("integers"), other.load("integers")) == ("code", "other code")


_WORKER = """
import sys, time
from pathlib import Path
from skyband.kernels.compiling import kernel

@kernel
def twice(x):
    return 2 * x

mine, other = (Path(__file__).with_name(name) for name in sys.argv[1:])
mine.touch()
while not other.exists():
    time.sleep(0.001)
assert twice(21) == 42
print(sum(twice.stats.cache_misses.values()))
"""


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    """Spark starts a worker for each core, and all of them need the same kernels first."""
    script = tmp_path / "worker.py"
    script.write_text(_WORKER)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    workers = [
        subprocess.Popen([sys.executable, script, *names], stdout=subprocess.PIPE, text=True, env=environment)
        for names in (("one", "other"), ("other", "one"))
    ]
    assert sorted(worker.communicate(timeout=PATIENCE_S)[0] for worker in workers) == ["0\n", "1\n"]


@pytest.mark.parametrize("algorithm", ["mintopk", "relaxed", "strict"])
def test_nothing_is_compiled_anew_because_a_column_is_computed(algorithm: str) -> None:
    """Columns of Arrow may not be written to, and what is computed from them may."""
    rows = pa.table({"n": np.arange(40), "x": np.arange(40.0)})
    window = sb.sliding(20, every=5, on="n") if algorithm == "mintopk" else sb.sliding(20, on="n")
    known = []
    for by in ("x", "x + n", lambda x: -x):
        sb.top_k(rows, k=2, by=by, window=window, algorithm=algorithm)
        known.append([len(k.signatures) for k in (mintopk_kernels.push_by_value, relaxed_kernels.push, stepwise.push)])
    assert sum(known[0]) > 0
    assert known[1:] == known[:1] * 2
