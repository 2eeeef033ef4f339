"""The pictures of the documentation, drawn from real runs: `python -m skyband.study.pictures` writes them as SVG.

Each module draws one picture: its function `draw` runs Skyband on a small seeded stream, asks the operator what it
holds, and returns the text of an SVG. The same code always draws the same picture, so a test can compare.
"""
