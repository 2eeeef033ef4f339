"""Declarative Pipelines (`spark-pipelines`): their files may change nothing of the session."""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException

_NO_CHANGE: Final = "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE"


def is_no_change(error: PySparkException) -> bool:
    """Is it refused because files of a pipeline may change nothing of their session?"""
    return _NO_CHANGE in str(error)
