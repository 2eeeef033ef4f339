"""Spark's Python daemon, as the campaign has it: all states have pages and a journal, and a bug may be planted.

By default small states have neither; `TORTURE_PAGES` set to `cut` has them cut into many pages, too.
"""

from __future__ import annotations

import os

from pyspark.daemon import manager

from skyband.engines.spark import daemon, kept_state  # noqa: F401  # the imports that workers need
from skyband.engines.spark.workers import spare_the_collector
from torture.planted import planted_here

PAGES = "TORTURE_PAGES"

if __name__ == "__main__":
    kept_state.small_bytes = 0
    if os.environ.get(PAGES) == "cut":
        kept_state.new_bytes = 0
    with planted_here():
        spare_the_collector()
        manager()
