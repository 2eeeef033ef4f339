"""What requests are answered with: an answer, answers of the past, a plan."""

from __future__ import annotations

import time
from typing import Any, Final

import pyarrow as pa
from starlette.exceptions import HTTPException
from starlette.requests import Request

from skyband.core.explain import Explanation, readable
from skyband.core.notebook import plan_nodes
from skyband.serving import formats
from skyband.serving.boards import Answer
from skyband.serving.catalog import Catalog
from skyband.serving.served import Served

MOST_HISTORY: Final = 60  # rows of each answer of the past


def find(catalog: Catalog, request: Request) -> Served:
    """The query that a request names."""
    name = request.path_params["name"]
    query = catalog.find(name)
    if query is None:
        known = ", ".join(each.name for each in catalog.queries()) or "none"
        raise HTTPException(404, f"There is no query {name[:60]!r}. Queries: {known}.")
    return query


def published(query: Served, at: str | None) -> Answer | None:
    if at is None:
        return query.board.latest()
    kept = query.board.kept()
    for answer in reversed(kept):
        if answer.at is not None and at in (str(answer.at), str(formats.value(answer.at))):
            return answer
    ends = [str(formats.value(answer.at)) for answer in kept if answer.at is not None]
    possible = f"The server keeps the windows from {ends[0]} to {ends[-1]}." if ends else "No window is kept."
    raise HTTPException(404, f"at={at[:60]!r}: there is no window that ends there. {possible}")


def encoded(query: Served, answer: Answer, form: str, k: int | None, group: str | None) -> bytes:
    table = chosen(query, answer.table, k, group)
    if form == "csv":
        return formats.as_csv(table)
    if form == "arrow":
        return formats.as_arrow(table)
    return formats.encode(answer_json(query, answer, table))


def history(query: Served, k: int, group: str | None) -> bytes:
    """The answers that are kept, the latest last: the first k rows of each, and how long ago it was published."""
    now, answers = time.monotonic(), []
    for answer in query.board.kept():
        table = chosen(query, answer.table, k, group).slice(0, MOST_HISTORY)
        age = round(now - answer.published, 3)
        answers.append({"age": age, **answer_json(query, answer, table)})
    return formats.encode({"answers": answers})


def answer_json(query: Served, answer: Answer, table: pa.Table) -> dict[str, Any]:
    return {
        "query": query.name,
        "version": answer.version,
        "batch": answer.batch,
        "watermark": formats.value(answer.watermark),
        "at": formats.value(answer.at),
        "rows": formats.rows_of(table),
    }


def chosen(query: Served, table: pa.Table, k: int | None, group: str | None) -> pa.Table:
    """The first k of each group, or of one."""
    if group is not None:
        groups = [name for name in query.describe()["groups"] if name in table.schema.names]
        if not groups:
            raise HTTPException(400, "This query has no groups: leave group= out.")
        column = table.column(groups[0]).to_pylist()
        table = table.filter(pa.array([str(formats.value(each)) == group for each in column], pa.bool_()))
    if k is None:
        return table
    if "rank" not in table.schema.names:
        return table.slice(0, k)
    return table.filter(pa.array([rank <= k for rank in table.column("rank").to_pylist()], pa.bool_()))


def plan_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON: its text, its steps, and what else was considered."""
    plan = explanation.plan
    nodes = [
        {"head": node.head, "said": node.said, "strong": node.is_chosen} for node in plan_nodes(plan, explanation.steps)
    ]
    return {
        "text": str(explanation),
        "nodes": nodes,
        "title": readable(str(explanation).splitlines()[0]).partition("; ")[0],
        "steps": [{"name": step.name, "said": step.said} for step in explanation.steps],
        "algorithm": plan.algorithm,
        "why": plan.why,
        "rows": formats.value(plan.rows),
        "ns": formats.value(plan.ns),
        "window_rows": formats.value(plan.window_rows),
        "considered": [
            {
                "algorithm": choice.algorithm,
                "refused": choice.refused,
                "rows": formats.value(choice.rows),
                "ns": formats.value(choice.ns),
                "chosen": choice.algorithm == plan.base,
            }
            for choice in plan.considered
        ],
    }
