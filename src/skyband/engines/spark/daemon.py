"""Spark's Python daemon, with the imports that its workers need, so that it forks them ready to run.

A worker that imports pandas, numba and all of Skyband by itself is busy for three seconds, and a query on two cores has
four of them. `spark.python.daemon.module` names this module.
"""

from importlib import import_module

import pandas  # noqa: F401  # Spark's workers import it for whatever crosses as Arrow
from pyspark.daemon import manager

from skyband.core.registry import problems
from skyband.engines.spark import bucket  # noqa: F401
from skyband.engines.spark.workers import spare_the_collector

for name in problems():
    import_module(f"skyband.problems.{name}.spark")

if __name__ == "__main__":
    spare_the_collector()
    manager()
