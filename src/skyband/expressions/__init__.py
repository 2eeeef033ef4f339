"""Expressions as text: what a row is worth, which rows count, what a pair is worth, what is added up.

Each is parsed once, by sqlglot (`tree`), and bound to the columns it is about before a row is read.
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
