"""Spark's SQL with windows on streams: from a text to a statement, and what all problems read from one alike."""
