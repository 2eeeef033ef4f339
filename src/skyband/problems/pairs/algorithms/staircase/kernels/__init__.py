"""The compiled loops of the K-skyband of pairs.

`merging` merges candidates into the skyband and sets the staircase. `answering` keeps the answer up to date as rows
arrive. `arrays` has what they work on, and puts late rows and their pairs in order.
"""
