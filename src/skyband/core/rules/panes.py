"""Rule: cut windows into panes. All rows of a pane are in the same windows."""

from __future__ import annotations

from skyband.core.draft import Draft, Step
from skyband.core.registry import problem_of


def panes(draft: Draft) -> Draft:
    """The query's window, or that of each input; and when it gives what."""
    for step in problem_of(draft.query).windows(draft.query):
        draft = draft.with_step(step)
    return draft.with_step(Step("gives", str(draft.query.emit)))
