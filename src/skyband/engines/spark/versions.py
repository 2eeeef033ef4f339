"""The version of Spark: checked before importing anything that only some versions have."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from skyband.errors import EnvironmentProblem

OLDEST_SPARK: Final = (4, 1)
_NEEDED: Final = ".".join(map(str, OLDEST_SPARK))


def require_pyspark() -> None:
    """Raise unless there is a PySpark that Skyband runs on."""
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        try:
            import pyspark  # a distribution of Spark brings it without the records of an installer
        except ImportError as error:
            raise EnvironmentProblem(
                f"PySpark is not installed, and Skyband runs on Spark {_NEEDED} or later: pip install 'skyband[spark]'."
            ) from error
        found = pyspark.__version__
    if is_too_old(found):
        raise EnvironmentProblem(
            f"This is PySpark {found}, and Skyband needs {_NEEDED} or later: pip install 'skyband[spark]'. "
            "Without Spark, Skyband takes Arrow tables, pandas and polars."
        )


def is_too_old(found: str) -> bool:
    """Is a version before the oldest that Skyband runs on? One that cannot be read is given a chance.

    >>> is_too_old("4.0.2"), is_too_old("4.1.0"), is_too_old("5.0.0.dev1"), is_too_old("17.3 of somebody's")
    (True, False, False, False)
    """
    numbers = re.match(r"(\d+)\.(\d+)", found)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST_SPARK
