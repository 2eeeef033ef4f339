"""The compiled loops of the relaxed k-skyband.

`pushing` takes the rows of a group in blocks, `blocks` processes one block, and `budget` lets rows go for `budgeted`.
They work on the arrays of `arrays`.
"""
