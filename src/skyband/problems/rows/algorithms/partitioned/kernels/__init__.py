"""The compiled loops of `partitioned`.

`steps` says what a row changes and what an expiry changes, `store` keeps the sorted partitions of the window. They work
on the arrays of `arrays`.
"""
