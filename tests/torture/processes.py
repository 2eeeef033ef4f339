"""Processes that a line starts: what they need to find the campaign, and which bug they have to plant."""

from __future__ import annotations

import os
from pathlib import Path


def environment(**more: str) -> dict[str, str]:
    tests = str(Path(__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]), **more}
