"""Which algorithm answers a top-k pairs query, why, and what it will hold and cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from skyband.errors import InvalidQuery
from skyband.operators.pairs import supreme
from skyband.operators.pairs.protocol import Spec
from skyband.operators.pairs.scoring import Scoring
from skyband.operators.protocol import EMIT_CODES
from skyband.operators.registry import PAIRS, find
from skyband.queries import TopKPairs
from skyband.windows import FOREVER


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run."""

    algorithm: str
    why: str


def specify(query: TopKPairs, schema: pa.Schema, scoring: Scoring, *, external_clock: bool = False) -> Spec:
    """`query` over rows of `schema`, in numbers."""
    ticks = query.window.ticks(schema, query.lateness)
    if external_clock:
        ticks = replace(ticks, lateness=FOREVER)
    return Spec(query.k, ticks, scoring, EMIT_CODES[str(query.emit)])


def plan(spec: Spec, asked_for: str | None = None) -> Plan:
    """The algorithm asked for by name, or else the cheapest."""
    if asked_for is not None:
        if asked_for.partition("(")[0].strip() == supreme.NAME:
            raise InvalidQuery(
                f"'supreme' cannot answer a query: {supreme.WHY_NOT}. Possible here: {', '.join(PAIRS)}."
            )
        if refused := find(asked_for, PAIRS).refuses(spec):
            possible = ", ".join(name for name, algorithm in PAIRS.items() if not algorithm.refuses(spec))
            raise InvalidQuery(f"{asked_for!r} cannot answer this: {refused}. Possible here: {possible}.")
        return Plan(asked_for, "asked for by name")
    return Plan("staircase", "takes any score")
