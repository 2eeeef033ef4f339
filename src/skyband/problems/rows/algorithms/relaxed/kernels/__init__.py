"""The compiled loops of the relaxed k-skyband.

`pushing` takes the rows of a group in blocks, `blocks` says what one block changes, `budget` lets rows go for
`budgeted`. They work on the arrays of `arrays`.
"""
