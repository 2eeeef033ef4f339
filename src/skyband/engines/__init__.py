"""Which engine data belongs to, and what has to be known of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from skyband.errors import EnvironmentProblem

_NO_ANALYSIS: Final = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


def is_spark(data: object) -> bool:
    """Is it a Spark DataFrame, classic or Connect? Asked by name, so that pyspark is not imported for others."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(data).__mro__
    )


@contextmanager
def outside_table_functions() -> Iterator[None]:
    """Say what to do where a question is asked inside a table function of a Declarative Pipeline."""
    try:
        yield
    except Exception as error:
        if _NO_ANALYSIS not in str(error):
            raise
        raise EnvironmentProblem(
            "Inside a table function of a Declarative Pipeline, Spark does not tell Skyband which columns a DataFrame "
            "has. Call Skyband at module level, and return its answer from the function: "
            "best = sb.top_k(…), then @dp.materialized_view def top(): return best. See docs/deploying.md."
        ) from error
