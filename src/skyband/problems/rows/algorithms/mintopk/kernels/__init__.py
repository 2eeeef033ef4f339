"""The compiled loops of MinTopK.

`pushing` takes rows, `gathering` takes many rows of one pane at once, and `closing` closes windows. They work on the
arrays of `arrays`, which has the open panes, too. When the pool, the cells or the output might run out, a loop
stops at a row that it has not touched; its caller makes room and calls it again.
"""
