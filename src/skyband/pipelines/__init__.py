"""Pipelines in a file: sources, statements and sinks, run on Spark by `skyband run`."""
