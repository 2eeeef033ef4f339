"""Expressions as text: the scores of rows and pairs, conditions, aggregates.

sqlglot parses each expression once (`tree`). It is bound to its columns before a row is read.
"""

from skyband.expressions.scores import (
    Condition,
    Score,
    as_floats,
    bind,
    bind_condition,
    bind_value,
    check_exact,
    check_text,
    is_number,
)

__all__ = [
    "Condition",
    "Score",
    "as_floats",
    "bind",
    "bind_condition",
    "bind_value",
    "check_exact",
    "check_text",
    "is_number",
]
