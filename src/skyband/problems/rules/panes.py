"""Rule: into which panes windows are cut. All rows of a pane are in the same windows."""

from __future__ import annotations

from dataclasses import replace

from skyband.core.planned_windows import ticks_of
from skyband.kernels.panes import shape_of
from skyband.problems.joins.query import JoinAggregate, StreamInput
from skyband.problems.rules.drafting import Draft, Step
from skyband.windows import FOREVER, Window


def panes(draft: Draft) -> Draft:
    """The query's window, or that of each input of a join; and when it gives what."""
    query = draft.query
    if not isinstance(query, JoinAggregate):
        return draft.with_step(Step("window", cut(query.window))).with_step(Step("gives", str(query.emit)))
    for name, given in query.inputs:
        what = "a relation"
        if isinstance(given, StreamInput):
            what = f"a stream, {cut(replace(given.window, every=query.every))}"
        draft = draft.with_step(Step(name, what))
    if query.on:
        draft = draft.with_step(Step("join", " AND ".join(query.on)))
    return draft.with_step(Step("gives", str(query.emit)))


def cut(window: Window) -> str:
    """The window in words, and its panes."""
    ticks = ticks_of(window)
    if not ticks.every or ticks.size == FOREVER:
        return str(window)
    shape = shape_of(ticks.size, ticks.every)
    if shape.rest:
        return f"{window}: {2 * shape.whole + 1} panes, two a slide"
    return f"{window}: {shape.whole} pane{'s' * (shape.whole > 1)}"
