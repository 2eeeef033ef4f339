"""The plan in words."""

from __future__ import annotations

from dataclasses import dataclass

from skyband.operators.protocol import EMIT_CODES, Spec
from skyband.planner.plan import Plan, plan
from skyband.queries import TopK
from skyband.windows import FOREVER, Ticks


@dataclass(frozen=True, slots=True)
class Explanation:
    """What will run and why; `str` of it is for reading."""

    query: TopK
    plan: Plan

    def __str__(self) -> str:
        query, chosen = self.query, self.plan
        groups = f" for each {', '.join(query.per)}" if query.per else ""
        by = query.by if isinstance(query.by, str) else getattr(query.by, "__name__", "a function")
        of = f"{chosen.window_rows:,.0f} in a window{' (assumed)' if chosen.assumed else ''}"
        each = " per group" if query.per else ""
        lines = [
            f"top {query.k} by {by}{' (smallest first)' if query.ascending else ''}{groups}",
            f"  window     {query.window}",
            f"  gives      {query.emit}",
            f"  algorithm  {chosen.algorithm}: {chosen.why}",
            f"  holds      about {chosen.rows:,.0f} rows{each} of the {of}, if scores come in random order",
            "  considered",
        ]
        for choice in chosen.considered:
            verdict = f"cannot: {choice.refused}" if choice.refused else f"would hold about {choice.rows:,.0f} rows"
            mark = "->" if choice.algorithm == chosen.algorithm else "  "
            lines.append(f"    {mark} {choice.algorithm:<10} {verdict}")
        return "\n".join(lines)


def explain(query: TopK, *, window_rows: float | None = None) -> Explanation:
    """Which algorithm the planner chooses for `query`, why, and how many rows it expects to hold.

    `window_rows` says how many rows a window by value holds; a window of arrivals knows.
    """
    window = query.window
    # Durations and numbers mean the same to the planner: it only compares them with each other.
    size = FOREVER if window.size is None else _number(window.size)
    ticks = Ticks(size, 0 if window.every is None else _number(window.every), 0, window.by_count)
    spec = Spec(query.k, ticks, EMIT_CODES[str(query.emit)], bool(query.per), query.ad_hoc)
    return Explanation(query, plan(spec, query.algorithm, window_rows=window_rows))


def _number(span: object) -> int:
    return span if isinstance(span, int) else int(span.total_seconds() * 1_000_000)  # type: ignore[attr-defined]
