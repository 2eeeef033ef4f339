"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import pytest
from compile_times import (  # noqa: F401  # hooks
    checked_kernels,
    pytest_addoption,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)
from hypothesis import HealthCheck, settings
from servers.fast_start import FAST_START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Compiling a kernel takes longer than any deadline. The same examples each time, so that a failure is a change's and
# not the day's; `--hypothesis-profile=deep` looks further, and elsewhere each time.
settings.register_profile("skyband", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", parent=settings.get_profile("skyband"), derandomize=False, max_examples=2_000)
settings.register_profile("quick", parent=settings.get_profile("skyband"), max_examples=20)  # a tenth, while you write
settings.load_profile("skyband")

# Here, in Spark's workers and in all that tests start, kernels check every index, so that a stray write is an error and
# not a crash elsewhere; they are compiled once for all of them, and for every copy of the tree that has the same
# sources: compiling them all takes longer than running the tests. The demo runs them as users do (test_cli.py).
CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(checked_kernels())}
os.environ.update(CHECKED)
numba.config.reload_config()

# The demo runs Spark as users do, too.
os.environ.update(FAST_START)

# The planner chooses by the figures that come with the package, not by those of whoever runs the tests.
os.environ["SKYBAND_CACHE"] = str(Path(__file__).parent / "no_such_cache")


@pytest.hookimpl(tryfirst=True)  # xdist reads groups in the same hook, and is asked before a conftest
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (`-n 2 --dist loadgroup`), one runs all that shares a Spark session, which costs seconds.

    And all tests of a problem, or of an algorithm for rows, or of those that are compiled as one, run in one worker:
    compiling costs seconds too.
    """
    for item in items:
        if not item.get_closest_marker("xdist_group") and (group := _group(item)):
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str | None:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "spark" in getattr(item, "fixturenames", ()) or parameters.get("engine") == "spark":
        return "spark"
    if item.get_closest_marker("spark"):
        return None  # in a process of its own, which any worker can wait for
    problem = parameters["suite"].problem if "suite" in parameters else item.nodeid.partition("[")[0]
    for name in ("sql", "pair", "across", "join"):
        if name in problem:
            return name
    algorithm = parameters.get("algorithm")
    if not algorithm:
        return None
    name = str(getattr(algorithm, "name", algorithm))
    return "filtered" if "+" in name or name == "strict" else name


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests: starting one takes longer than most of them."""
    from servers.maven import connectors
    from servers.ports import free_port

    from skyband.engines.spark import local_session

    folder = tmp_path_factory.mktemp("spark")
    session = local_session(
        "skyband tests",
        cores=2,
        fast_start=True,
        log_file=folder / "log.txt",
        **{
            "spark.sql.streaming.checkpointLocation": str(folder / "checkpoints"),
            "spark.sql.warehouse.dir": str(folder),
            # For clients of Spark Connect.
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(free_port()),
            **connectors(),
        },
    )
    yield session
    session.stop()
