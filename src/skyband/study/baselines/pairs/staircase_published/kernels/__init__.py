"""The compiled loops of the K-skyband of pairs as published.

`skyband` has Algorithms 3 and 4: it checks new pairs against the staircase, and sets both anew. `search_tree` has the
priority search tree: Algorithm 1 builds it, Algorithm 2 searches it. `continuous` keeps answers up to date as section
4.2 says. They work on the arrays of `arrays`.
"""
