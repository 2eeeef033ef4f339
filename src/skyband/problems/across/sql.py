"""SELECT … FROM r1 FULL JOIN r2 USING (id) … ORDER BY … LIMIT k: the k best objects, scored across streams."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from skyband.core.emit import gives_changes
from skyband.core.encoding.output import free_name
from skyband.dialect.columns import check_name
from skyband.dialect.query_spec import QuerySpec, Shown
from skyband.dialect.ranking import ranking_of
from skyband.dialect.reading import all_of, shown_columns, window_of, written
from skyband.dialect.statement import Statement
from skyband.dialect.window_bounds import check_whole, is_bound
from skyband.expressions.grammar import rewritten
from skyband.problems.across.query import TopKAcross
from skyband.windows import Window

_POSSIBLE = "Possible: FROM r1 FULL JOIN r2 USING (id) FULL JOIN r3 USING (id), each with the same window."


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """Turn the statement into a `TopKAcross`. `schemas` are those of its inputs, by alias."""
    if statement.error is not None:
        statement.refuse("WITH ERROR is for rows of one stream")
    key = _key(statement, schemas)
    ranking = ranking_of(statement)
    if ranking.per or ranking.ascending:
        statement.refuse("Skyband ranks objects once, the highest score first: ORDER BY … DESC LIMIT k", ranking.by)
    by = ranking.by.unnest()
    filters: dict[str, list[exp.Expr]] = {alias: [] for alias in schemas}
    for condition in statement.conditions:
        owners = {column.table for column in condition.find_all(exp.Column)}
        if len(owners) != 1:
            statement.refuse("A condition here must read one stream", condition, "Write r1.column.")
        filters[owners.pop()].append(condition)
    values = _values(statement, by, schemas)
    bounds = statement.bounds or (0.0, math.inf)
    window, lateness = _window(statement, schemas)
    query = statement.attempt(
        lambda: TopKAcross(
            k=ranking.k,
            id=key,
            value=_VALUE,
            window=window,
            streams=list(schemas),
            combine=_combined(statement, by, bounds[0]),
            bounds=bounds,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
            recall=statement.recall,
        ),
        ranking.by,
    )
    rows = {}
    for one in statement.inputs:
        called = {name: check_name(statement, exp.to_identifier(name), schemas[one.alias]) for name in key}
        kept = (*(name for name, here in called.items() if here == name), str(one.on))
        renamed = ((_VALUE, values[one.alias]), *((name, here) for name, here in called.items() if here != name))
        rows[one.alias] = one.rows(all_of(filters[one.alias]), kept, renamed)
    check_whole(statement, str(query.emit), is_cut=False)
    return QuerySpec(query, rows, _shown(statement, key, values, window.every is None or gives_changes(statement.emit)))


_VALUE = "value"


def _key(statement: Statement, schemas: Mapping[str, pa.Schema]) -> tuple[str, ...]:
    keys: list[tuple[str, ...]] = []
    for join, one in zip(statement.joins, statement.inputs[1:], strict=True):
        using = list(join.args.get("using") or ())
        if join.side != "FULL" or not using:
            statement.refuse(
                "Write FULL JOIN … USING (id): an object may be missing from any stream", one.node, _POSSIBLE
            )
        keys.append(tuple(check_name(statement, name, schemas[statement.inputs[0].alias]) for name in using))
    if len(set(map(frozenset, keys))) != 1:
        said = " and ".join(sorted({f"({', '.join(key)})" if len(key) > 1 else key[0] for key in keys}))
        statement.refuse(
            f"The same columns must identify the object in all streams, but here {said} do", None, _POSSIBLE
        )
    return keys[0]


def _window(statement: Statement, schemas: Mapping[str, pa.Schema]) -> tuple[Window, str | int | None]:
    windows = [window_of(statement, one, schemas[one.alias]) for one in statement.inputs]
    for one, window in zip(statement.inputs, windows, strict=True):
        if window != windows[0]:
            statement.refuse(
                "All streams share one window", one.node, "Write it once, at the end: WINDOW [100 EVERY 1 ON t]."
            )
        if window[0].on is None:
            statement.refuse("Skyband merges streams by time, so their window must measure a column", one.node)
    return windows[0]


def _values(statement: Statement, by: exp.Expr, schemas: Mapping[str, pa.Schema]) -> dict[str, str]:
    """The column of each stream that the score reads."""
    values: dict[str, str] = {}
    for column in by.find_all(exp.Column):
        if values.setdefault(column.table, column.name) != column.name:
            statement.refuse(
                f"The score reads two columns of {column.table!r}", column, "Each stream has one value of an object."
            )
    for alias in schemas:
        if alias not in values:
            statement.refuse(f"The score does not read {alias!r}", by, "Leave that stream out, or add its value.")
    return values


def _combined(statement: Statement, by: exp.Expr, smallest: float) -> str:
    """Rewrite the score as an expression over the names of the streams.

    A missing value counts as the smallest. COALESCE is accepted only if it says the same.
    """

    def rename(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Coalesce) and isinstance(node.this, exp.Column):
            said = node.expressions[0] if len(node.expressions) == 1 else None
            if said is None or not said.is_number or float(said.to_py()) != smallest:
                statement.refuse(
                    f"A missing value counts as the smallest, {smallest:g}, not as the value in COALESCE",
                    node.this,
                    "Set the smallest value with WITH BOUNDS (smallest, largest).",
                )
            return rename(node.this)
        return exp.column(exp.to_identifier(node.table, quoted=True)) if isinstance(node, exp.Column) else node

    return rewritten(by, rename).sql(dialect="spark")


def _shown(statement: Statement, key: tuple[str, ...], values: Mapping[str, str], changes: bool) -> tuple[Shown, ...]:
    lead = ["at", "change", "rank", "score"] if changes else ["window_start", "window_end", "rank", "score"]
    lead = [] if statement.shows_only_what_is_named else lead
    items: list[tuple[str, str]] = []
    score = statement.take("order").expressions[0].this.unnest()
    for item in statement.items:
        if item.is_star:
            items += [(name, name) for name in (*key, *values)]
            continue
        tree = item.tree.unnest()
        if item.is_named and tree == score:
            items += [(item.name, "score")] * (item.name != "score" or not lead)
            continue
        if is_bound(tree):
            items.append((item.name, tree.name))
            continue
        if not isinstance(tree, exp.Column) or (tree.name not in key and values.get(tree.table) != tree.name):
            statement.refuse("You can select the object and its value in each stream", tree)
        column = tree.name if tree.name in key else tree.table
        plain = tree.name if tree.name in key else f"{tree.table}_{tree.name}"
        items.append((item.name if item.is_named else plain, column))
    if statement.recall is not None:
        # The query gives it the first name that no other column has.
        items.append(("recall", free_name("recall", {*lead, *key, *values})))
    return shown_columns(lead, ((name, exp.column(written(column))) for name, column in items))
