"""Algorithms as their papers publish them, to compare ours with: `baselines/<problem>/<name>/`.

A baseline is a folder like that of any algorithm. The registry finds it when it is asked for by name, and the
conformance suite runs every check on it. The chooser does not weigh it, so EXPLAIN does not list it.
"""
