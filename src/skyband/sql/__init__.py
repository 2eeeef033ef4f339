"""One SQL text for every problem."""

from skyband.sql.run import sql
from skyband.sql.several import run_all

__all__ = ["run_all", "sql"]
