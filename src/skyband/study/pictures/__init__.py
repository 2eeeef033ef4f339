"""The pictures of the documentation, drawn from real runs: `python -m skyband.study.pictures` writes them as SVG.

A function draws a picture: it runs Skyband on a small seeded stream, asks the operator what it holds, and returns the
text of an SVG. Those of `bars` and `limits` show what a page of measurements says, and `skyband.study.walks` draws the
walks. The same code always draws the same picture, so a test can compare.
"""
