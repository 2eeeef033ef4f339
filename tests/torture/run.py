"""`skyband run`, in which a bug may be planted: python -m torture.run market.toml"""

from __future__ import annotations

import sys

from skyband.cli import app
from torture.planted import planted_here

if __name__ == "__main__":
    with planted_here():
        app(["run", sys.argv[1]])
