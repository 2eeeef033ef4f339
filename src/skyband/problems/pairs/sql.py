"""SELECT … FROM t AS a, t AS b … ORDER BY … LIMIT k: the k best pairs of rows of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.computing import with_row_values
from skyband.dialect.query_spec import ONLY, QuerySpec, Shown, Turn
from skyband.dialect.ranking import ranking_of
from skyband.dialect.reading import check_value, columns_read, only, quoted, shown_columns, window_of, written
from skyband.dialect.statement import Statement
from skyband.dialect.window_bounds import check_whole, is_bound
from skyband.expressions import pairs as pair_expressions
from skyband.expressions.grammar import rewritten
from skyband.problems.pairs.codec import output_of
from skyband.problems.pairs.query import TopKPairs
from skyband.windows import Window

_POSSIBLE = "Write for example WHERE a.id < b.id. Without it every pair would come twice, as (x, y) and as (y, x)."

Sides = Mapping[str, str]  # which row of a query's pair an alias means


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `TopKPairs`. `schemas` by alias.

    A pair of a query has its rows in order of time; a pair of a statement in the order that a condition asks for, such
    as a.id < b.id. So what is asked of (a, b) is asked of (b, a) where that is the order that meets the condition.
    """
    statement, schemas = with_row_values(statement, schemas)
    first, second = statement.inputs
    schema = schemas[first.alias]
    statement.check_exact("Skyband always ranks pairs exactly")
    ranking = ranking_of(statement)
    by = ranking.by.unnest()
    if second.window is not None and second.window != first.window:
        statement.refuse(
            "Both rows of a pair share one window, but this window is different",
            second.node,
            "Write the window once, after the first input.",
        )
    window, lateness = window_of(statement, first, schema)
    turn, same, different, rest = _sorted_out(statement)
    sides = {first.alias: "a", second.alias: "b"}
    turned = {first.alias: "b", second.alias: "a"}
    score, where = _either_way(statement, by, rest, turn, sides, turned, schema)
    # `different=` takes one of them: of several columns it asks that any differs, and here each must.
    unequal = [f"a.{quoted(name)} <> b.{quoted(name)}" for name in [*different, turn.column][1:]]
    # To `same=` and `different=` null is a value like any other; to a comparison it is not.
    known = [f"a.{quoted(name)} IS NOT NULL" for name in same if schema.field(name).nullable]
    unlike = (different[0] if different else turn.column,)
    known += [f"{side}.{quoted(name)} IS NOT NULL" for name in unlike for side in "ab" if schema.field(name).nullable]
    per = _per(statement, ranking.per, same)
    where = _all([*([where] if where else []), *unequal, *known]) or None
    query = statement.attempt(
        lambda: TopKPairs(
            k=ranking.k,
            by=score,
            window=window,
            ascending=ranking.ascending,
            same=[name for name in same if name not in per],
            per=per,
            different=different[0] if different else turn.column,
            where=where,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        ),
        ranking.by,
    )
    statement.attempt(lambda: pair_expressions.bind(query.by, query.where, query.ascending, schema), ranking.by)
    check_whole(statement, str(query.emit), is_cut=False)
    needed = _needed(statement, by, turn, window, schema)
    shown = _shown(statement, query, only(schema, needed), sides)
    return QuerySpec(query, {ONLY: first.rows(None, needed)}, shown, turn)


def _per(statement: Statement, columns: Sequence[exp.Expr], same: Sequence[str]) -> list[str]:
    """The columns that LIMIT k BY names: a pair is in the group of both its rows."""
    aliases = {one.alias for one in statement.inputs}
    for column in columns:
        if not isinstance(column, exp.Column) or column.name not in same or column.table not in aliases:
            name = column.name if isinstance(column, exp.Column) and column.name else "symbol"
            first, second = (one.alias for one in statement.inputs)
            statement.refuse(
                "A pair is ranked in the group that both its rows belong to",
                column,
                f"Write WHERE {first}.{name} = {second}.{name} … LIMIT k BY {first}.{name}.",
            )
    return list(dict.fromkeys(column.name for column in columns))


def _needed(statement: Statement, by: exp.Expr, turn: Turn, window: Window, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that the query and the SELECT list read of either row."""
    first = statement.inputs[0].alias
    trees = [by, exp.column(turn.column, first), *statement.conditions, *(item.tree for item in statement.items)]
    read = {name for one in statement.inputs for name in columns_read(trees, one.alias, schema, window)}
    return tuple(name for name in schema.names if name in read)


def _sorted_out(statement: Statement) -> tuple[Turn, list[str], list[str], list[exp.Expr]]:
    """What orders the rows of a pair, columns that must be the same, columns that must differ, and other conditions."""
    first, second = (one.alias for one in statement.inputs)
    turn: Turn | None = None
    same, different, rest = [], [], []
    for condition in statement.conditions:
        left, right = (
            part.unnest() if isinstance(part, exp.Expr) else None
            for part in (condition.this, condition.args.get("expression"))
        )
        of_both = (
            isinstance(left, exp.Column)
            and isinstance(right, exp.Column)
            and left.name == right.name
            and {left.table, right.table} == {first, second}
        )
        if of_both and isinstance(condition, exp.EQ):
            same.append(left.name)  # type: ignore[union-attr]
        elif of_both and isinstance(condition, exp.NEQ):
            different.append(left.name)  # type: ignore[union-attr]
        elif of_both and isinstance(condition, (exp.LT, exp.GT)) and turn is None:
            smaller = left if isinstance(condition, exp.LT) else right
            turn = Turn(smaller.name, ascending=smaller.table == first)  # type: ignore[union-attr]
        else:
            rest.append(condition)
    if turn is None:
        statement.refuse("No condition decides which row of a pair comes first", statement.inputs[1].node, _POSSIBLE)
    return turn, same, different, rest


def _either_way(
    statement: Statement, by: exp.Expr, rest: list[exp.Expr], turn: Turn, sides: Sides, turned: Sides, schema: pa.Schema
) -> tuple[str, str | None]:
    """The score and the condition of a pair, whichever of its rows is the earlier one."""
    score, other = _over(by, sides), _over(by, turned)
    for one in rest:  # by itself, so that an error is about what was written
        statement.attempt(lambda one=one: pair_expressions.bind("0", _over(one, sides), False, schema), one)  # type: ignore[misc]
    conditions, others = ([_over(one, way) for one in rest] for way in (sides, turned))
    bound = statement.attempt(lambda: pair_expressions.bind(score, None, False, schema), by)
    symmetric = bound.distances is not None
    if (symmetric or score == other) and not rest:
        return score, None
    less, more = ("<", ">") if turn.ascending else (">", "<")
    ordered, reversed_ = (f"a.{quoted(turn.column)} {sign} b.{quoted(turn.column)}" for sign in (less, more))
    where = f"({_all([ordered, *conditions])}) OR ({_all([reversed_, *others])})" if rest else None
    if symmetric or score == other:
        return score, where
    return f"CASE WHEN {ordered} THEN {score} ELSE {other} END", where


def _all(conditions: list[str]) -> str:
    return " AND ".join(f"({condition})" for condition in conditions)


def _over(tree: exp.Expr, sides: Sides) -> str:
    """The expression as a query writes it: its columns are those of row a or b."""

    def rename(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(written(node.name), sides[node.table])

    return rewritten(tree, rename).sql(dialect="spark")


def _shown(statement: Statement, query: TopKPairs, schema: pa.Schema, sides: Sides) -> tuple[Shown, ...]:
    """First what every answer has, if the statement does not name the window itself, then what the SELECT list asks
    for."""
    output = output_of(query, schema, str(query.emit), pa.float64()).schema
    lead = output.names[: len(output.names) - 2 * (len(schema) - len(query.per))]
    groups = dict(zip(query.per, lead[len(lead) - 2 - len(query.per) :], strict=False))
    items = []
    for item in statement.items:
        tree = item.tree.unnest()
        name = f"{tree.table}_{tree.name}" if isinstance(tree, exp.Column) and not item.is_named else item.name
        items.append((name, rewritten(tree, lambda node: _column_of(node, sides, groups))))
        check_value(statement, items[-1][1], output, item.tree)
    return shown_columns(() if statement.shows_only_what_is_named else lead, items)


def _column_of(node: exp.Expr, sides: Sides, groups: Mapping[str, str]) -> exp.Expr:
    """A column of a row as the answer calls it; `groups`: those that both rows share, and their names in the answer."""
    if is_bound(node):
        return exp.column(node.unnest().name)
    if not isinstance(node, exp.Column):
        return node
    if node.name in groups:
        return exp.column(written(groups[node.name]))
    return exp.column(written(f"{sides[node.table]}_{node.name}"))
