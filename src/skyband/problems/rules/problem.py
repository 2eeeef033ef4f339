"""Rule: which of the problems the query is."""

from __future__ import annotations

from skyband.problems.across.query import TopKAcross
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import TopK
from skyband.problems.rules.drafting import Draft, Step
from skyband.problems.subscriptions.query import TopKForEach


def problem(draft: Draft) -> Draft:
    """Said by the kind of the query; sb.sql finds the kind by how a statement is built."""
    query = draft.query
    match query:
        case TopK():
            said = "the best rows of one input"
        case TopKForEach():
            said = f"the best rows of one input, {query.for_each}"
        case TopKPairs():
            said = "the best pairs of rows of one input"
        case TopKAcross():
            count = len(query.streams)
            said = f"the best objects, scored by {'one stream' if count == 1 else f'{count} streams'}"
        case _:
            inputs = len(query.names)
            of = "one window" if inputs == 1 else f"a join of {inputs} inputs"
            said = f"{'the best groups' if query.k else 'groups'} of {of}"
    return draft.with_step(Step("problem", said))
