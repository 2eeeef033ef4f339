"""`python -m skyband.cli` is `skyband`."""

from skyband.cli import app

app()
