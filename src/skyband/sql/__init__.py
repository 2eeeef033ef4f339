"""One SQL text for every problem."""

from skyband.sql.run import sql

__all__ = ["sql"]
