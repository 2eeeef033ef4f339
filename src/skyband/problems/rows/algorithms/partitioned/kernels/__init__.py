"""The compiled loops of `partitioned`.

`steps` takes rows and drops expired ones, `store` keeps the sorted partitions of the window. They work on the arrays of
`arrays`.
"""
