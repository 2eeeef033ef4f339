"""Rule: resolve the names of columns. It adds nothing if the inputs are unknown."""

from __future__ import annotations

from skyband.core.draft import Draft, Read, Step


def names(draft: Draft) -> Draft:
    """The columns that are read of each input, with their types."""
    if not draft.reads:
        return draft
    if len(draft.reads) == 1:
        return draft.with_step(Step("names", _typed(draft.reads[0])))
    return draft.with_step(Step("names", "", tuple(Step(read.name, _typed(read)) for read in draft.reads)))


def _typed(read: Read) -> str:
    return ", ".join(f"{name} {read.schema.field(name).type}" for name in read.columns)
