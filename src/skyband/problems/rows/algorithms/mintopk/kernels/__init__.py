"""The compiled loops of MinTopK.

`pushing` takes rows in, `gathering` takes many rows of one pane at once, `closing` closes windows. They work on the
arrays of `arrays`, and on the open panes through `cells`. A loop stops early, at a row it has not touched, when the
pool, the cells or the output might run out: its caller then makes room and calls it again.
"""
