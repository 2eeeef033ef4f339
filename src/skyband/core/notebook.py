"""The HTML of plans, queries, sessions and stats in a notebook, with inline pictures, for dark and light themes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final, NamedTuple

from skyband.core.plan import Choice, Plan, Step

_WIDE, _GAP, _CHARACTERS = 200, 34, 30
_LINE, _MOST_LINES = 15, 7  # of a box
_CHOSEN: Final = "#e0900f"
_STYLE: Final = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:960px;color:inherit;"
    "font-variant-numeric:tabular-nums"
)
_NOT_WINDOWS: Final = ("problem", "source", "emits", "names", "algorithm", "plan", "runs", "on Spark", "then", "ran")


def page(title: str, *parts: str) -> str:
    """A heading with parts below it."""
    return (
        f'<div style="{_STYLE}"><div style="font-weight:650;font-size:14px">{escape(title)}</div>{"".join(parts)}</div>'
    )


def facts(rows: Mapping[str, Any]) -> str:
    """Names and values, side by side."""
    cells = "".join(
        f'<div style="opacity:.65">{escape(name)}</div><div>{escape(_text(value))}</div>'
        for name, value in rows.items()
    )
    return (
        '<div style="display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:6px 0">' + cells + "</div>"
    )


class PlanNode(NamedTuple):
    """One box of a plan that is drawn as a graph."""

    head: str
    said: str
    is_chosen: bool = False


def plan_nodes(plan: Plan, steps: Iterable[Step]) -> list[PlanNode]:
    """The plan from rows to answers, in four boxes."""
    by_name = {step.name: step for step in steps}
    windows = [each for name, each in by_name.items() if name not in _NOT_WINDOWS]
    said = [each.said if each.name == "window" else f"{each.name}: {each.said}" for each in windows]
    expected = [] if math.isnan(plan.rows) else [f"holds about {plan.rows:,.0f} rows"]
    expected += [] if math.isnan(plan.ns) else [f"{_cost(plan.ns)} a row"]
    nodes = [
        PlanNode("rows", _said(by_name, "source") or _said(by_name, "problem")),
        PlanNode("windows" if len(windows) > 1 else "window", "; ".join(said)),
        PlanNode(plan.algorithm, "; ".join([plan.why, *expected]), is_chosen=True),
        PlanNode("answers", _said(by_name, "emits")),
    ]
    return [node._replace(said=node.said.replace("`", "")) for node in nodes]


def plan_html(title: str, plan: Plan, steps: Iterable[Step]) -> str:
    """The plan as a graph, and the other candidates with their costs."""
    steps = list(steps)
    others = [f"{step.name}: {step.said}" for step in steps if step.name in ("on Spark", "ran") and step.said]
    notes = "".join(f'<div style="opacity:.75;margin-top:4px">{escape(note)}</div>' for note in others)
    return page(title, _graph(plan_nodes(plan, steps)), _considered(plan), notes)


def _said(steps: Mapping[str, Step], name: str) -> str:
    if name not in steps:
        return ""
    return steps[name].said or "; ".join(f"{part.name}: {part.said}" for part in steps[name].parts)


def _graph(nodes: list[PlanNode]) -> str:
    width = len(nodes) * _WIDE + (len(nodes) - 1) * _GAP
    texts = [textwrap.wrap(node.said, _CHARACTERS, max_lines=_MOST_LINES, placeholder=" …") for node in nodes]
    high = 44 + _LINE * max(4, *map(len, texts))
    drawn = "".join(
        _node(place * (_WIDE + _GAP), high, node, lines)
        for place, (node, lines) in enumerate(zip(nodes, texts, strict=True))
    )
    arrows = "".join(
        f'<path d="M{x} {high / 2} h{_GAP - 12} m-5 -5 l6 5 l-6 5" fill="none" stroke="currentColor" opacity=".5"/>'
        for x in (place * (_WIDE + _GAP) - _GAP + 5 for place in range(1, len(nodes)))
    )
    said = escape(" → ".join(f"{head}: {text}" for head, text, _ in nodes), quote=True)
    return (
        f'<svg viewBox="0 0 {width} {high}" role="img" aria-label="{said}" '
        f'style="width:100%;max-width:{width}px;margin:8px 0;display:block">{arrows}{drawn}</svg>'
    )


def _node(x: int, high: int, node: PlanNode, lines: list[str]) -> str:
    text = "".join(
        f'<text x="{x + 12}" y="{44 + _LINE * number}" font-size="11.5" fill="currentColor" opacity=".75">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    border = (_CHOSEN, 1.8, 1) if node.is_chosen else ("currentColor", 1, 0.35)
    colour = _CHOSEN if node.is_chosen else "currentColor"
    return (
        f'<rect x="{x + 1}" y="1" width="{_WIDE - 2}" height="{high - 2}" rx="9" fill="none" stroke="{border[0]}" '
        f'stroke-width="{border[1]}" stroke-opacity="{border[2]}"/>'
        f'<text x="{x + 12}" y="24" font-size="13.5" font-weight="650" fill="{colour}">'
        f"{escape(node.head[:26])}</text>{text}"
    )


def _considered(plan: Plan) -> str:
    usable = sorted((each for each in plan.considered if not each.refused and each.ns > 0), key=lambda each: each.ns)
    refused = [each for each in plan.considered if each.refused]
    if not usable and not refused:
        return ""
    most = max((math.log(each.ns) for each in usable), default=1.0)
    least = min((math.log(each.ns) for each in usable), default=0.0) - 0.7
    lines = [
        _line(each, plan, 100 * (math.log(each.ns) - least) / (most - least), _expectation(each)) for each in usable[:8]
    ]
    lines += [_line(each, plan, 0, f"cannot: {each.refused}") for each in refused[:6]]
    return (
        '<div style="display:grid;grid-template-columns:max-content 140px 1fr;gap:2px 14px;align-items:center">'
        + "".join(lines)
        + "</div>"
    )


def _line(choice: Choice, plan: Plan, share: float, said: str) -> str:
    is_chosen = choice.algorithm == plan.base
    colour = f"color:{_CHOSEN};font-weight:600" if is_chosen else ""
    bar = f"width:{share:.0f}%;height:7px;border-radius:4px;background:{_CHOSEN if is_chosen else 'currentColor'}"
    return (
        f'<code style="{colour}">{escape(choice.algorithm)}</code>'
        f'<div style="{bar};opacity:{1 if is_chosen else 0.4}"></div>'
        f'<div style="opacity:.75">{escape(said)}</div>'
    )


def _expectation(choice: Choice) -> str:
    rows = "" if math.isnan(choice.rows) else f", holds about {choice.rows:,.0f} rows"
    return f"{_cost(choice.ns)} a row{rows}"


def _cost(ns: float) -> str:
    return f"{ns:,.3g} ns" if ns < 1_000 else f"{ns / 1_000:,.3g} µs"


def _text(value: Any) -> str:
    if hasattr(value, "num_rows"):
        return f"a table of {value.num_rows:,} rows"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
