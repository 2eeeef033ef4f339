"""Rule: do not read columns and rows that the query does not need."""

from __future__ import annotations

from skyband.core.draft import Draft, Read, Step


def source(draft: Draft) -> Draft:
    """What is asked of each input; on Spark that is the JVM's work, so what is left out never comes to Python."""
    if not draft.reads:
        return draft
    where = " in the JVM" if draft.on_spark else ""
    if len(draft.reads) == 1:
        return draft.with_step(Step("source", f"{draft.reads[0].name}: {_asked(draft.reads[0], where)}"))
    parts = tuple(Step(read.name, _asked(read, where)) for read in draft.reads)
    return draft.with_step(Step("source", "", parts))


def _asked(read: Read, where: str) -> str:
    count, all_of = len(read.columns), len(read.schema)
    columns = f"all {all_of} columns" if count == all_of else f"{count} of {all_of} columns"
    return columns if read.where is None else f"{columns}, rows with {read.where}{where}"
