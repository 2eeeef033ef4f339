"""One SQL text for every problem."""

from skyband.sql.run import run_all, sql

__all__ = ["run_all", "sql"]
