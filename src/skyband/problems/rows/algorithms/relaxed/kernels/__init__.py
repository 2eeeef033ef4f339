"""The compiled loops of the relaxed k-skyband.

`pushing` takes the rows of a group in blocks, and `blocks` processes one block. They work on the arrays of `arrays`,
which also lets rows go for `budgeted`.
"""
