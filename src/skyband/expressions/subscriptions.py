"""The score of a row for a query: an SQL expression over the row's columns and the query's, `q.x`.

The expression is parsed like that of a pair (`pairs`): the row is a, the query is b. `score_bounds` adds lines that
bound the score for intervals of columns, if it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.errors import InvalidExpression, InvalidQuery, UnknownColumn
from skyband.expressions import lines as code_lines
from skyband.expressions import pairs
from skyband.expressions.score_bounds import bound
from skyband.expressions.scores import is_number

if TYPE_CHECKING:
    from sqlglot import exp

PREFIX: Final = "q."  # of a query's columns
POSSIBLE: Final = pairs.POSSIBLE.replace("a.column and b.column", "columns of the row, q.column of the query")


@dataclass(frozen=True)
class QueryScore:
    """A score bound to two schemas. The lines compute `s`, higher is better, from a0, a1, … and b0, b1, …"""

    text: str
    columns: tuple[str, ...]  # what is read of a row, as float64: a0, a1, …
    parameters: tuple[str, ...]  # what is read of a query, as float64: b0, b1, …
    lines: tuple[str, ...]
    bound: tuple[str, ...] | None  # `most` from the intervals [a0_low, a0_high], …, [b0_low, b0_high], …; if known
    # Columns that are only compared with one another, and are no numbers or are wide whole ones. Equal values are given
    # equal numbers, and others other ones.
    compared_columns: tuple[str, ...] = ()
    compared_parameters: tuple[str, ...] = ()
    calls: tuple[tuple[str, Callable[..., Any]], ...] = ()  # functions of the user's that the lines call, by name
    # If a row has one score for all queries that see it: the lines that compute `s` from the row alone. A query sees
    # the row if its parameters are what the row has in the columns of `seen_by`; if there are none, every query does.
    common: tuple[str, ...] | None = None
    seen_by: tuple[tuple[int, int], ...] = ()  # column, parameter

    @property
    def is_common(self) -> bool:
        """Has a row one score for all queries that see it?"""
        return self.common is not None


# A score that was computed before, and is a column.
GIVEN: Final = QueryScore("score", ("score",), (), ("s = a0",), ("most = a0_high",), common=("s = a0",))


def check_by(by: object) -> None:
    """Raise unless `by` can be such a score at all; what it means is known only with the columns."""
    if not isinstance(by, str) or not by.strip():
        raise InvalidQuery(
            "With for_each=, by must be an SQL expression over columns of the row and of the query, such as "
            f"'abs(price - q.price)'; got {by!r}. Functions of your own can be called in it: sb.function(name, fn)."
        )


def parameter(text: object, what: str) -> str:
    """The column of the queries that `q.name` means."""
    if not isinstance(text, str) or not text.startswith(PREFIX) or len(text) == len(PREFIX):
        raise InvalidQuery(f"{what} as a column of the queries is written 'q.{what}', got {text!r}.")
    return text.removeprefix(PREFIX)


def filtered(by: str, where: str | None) -> str:
    """The score for queries that see only rows that meet a condition."""
    if where is None:
        return by
    for text in (by, where):
        _parse(text)
    return f"CASE WHEN ({where}) THEN ({by}) END"


def _parse(text: str) -> exp.Expr:
    # Deferred: sqlglot and polars cost a second to import.
    from skyband.expressions import tree as expression_tree

    return expression_tree.parse(text, possible=POSSIBLE, tables=("q",))


def bind(by: str, ascending: bool, rows: pa.Schema, queries: pa.Schema) -> QueryScore:
    """The score of rows for queries. Every reason why there is none is raised here, before a row is read."""
    from sqlglot import exp

    tree = _parse(by)
    _check_literals(tree, by)
    columns: dict[str, int] = {}
    parameters: dict[str, int] = {}
    compared = _compared(tree, rows, queries)
    rows, queries = (_with_numbers(schema, names) for schema, names in zip((rows, queries), compared, strict=True))
    for column in list(tree.find_all(exp.Column, bfs=False)):
        _check(column, by, rows, queries)
        of_query = column.table == "q"
        known = parameters if of_query else columns
        number = known.setdefault(column.name, len(known))
        # Both sides are numbered apart: a name that both have means two columns.
        named = exp.column(exp.to_identifier(f"{PREFIX if of_query else ''}{number}"), "b" if of_query else "a")
        named.meta[code_lines.WRITTEN] = column.copy()
        if column is tree:
            tree = named
        else:
            column.replace(named)
    fields = [pa.field(str(number), rows.field(name).type) for name, number in columns.items()]
    fields += [pa.field(f"{PREFIX}{number}", queries.field(name).type) for name, number in parameters.items()]
    numbers = {str(n): n for n in columns.values()} | {f"{PREFIX}{n}": n for n in parameters.values()}
    schema = pa.schema(fields)

    def lines_of(tree: exp.Expr) -> tuple[tuple[str, ...], tuple[tuple[str, Callable[..., Any]], ...]]:
        code = code_lines.Lines(numbers, schema)
        code.lines.append(f"s = {'-' if ascending else ''}({code.number(tree, by)})")
        return tuple(code.lines), tuple(code.calls.items())

    lines, calls = lines_of(tree)
    common, seen_by = _common(tree, numbers)
    return QueryScore(
        by,
        tuple(columns),
        tuple(parameters),
        lines,
        bound(tree, numbers, ascending),
        *compared,
        calls,
        None if common is None else lines_of(common)[0],  # which call the same functions in the same order
        seen_by,
    )


def _check_literals(tree: Any, by: str) -> None:
    """Raise for a whole number that float64 would round: subscriptions compute scores in it."""
    from sqlglot import exp

    for literal in tree.find_all(exp.Literal):
        if not literal.is_string and literal.this.isdigit() and int(literal.this) > 2**53:
            raise InvalidExpression(
                f"{literal.this} in {by!r} is beyond 2**53, and Skyband computes scores of subscriptions in float64, "
                f"which would round it. Write {float(literal.this):g} to accept that."
            )


def _common(tree: exp.Expr, numbers: dict[str, int]) -> tuple[exp.Expr | None, tuple[tuple[int, int], ...]]:
    """The score that a row has for all queries that see it, if there is one; and which columns and parameters must be
    equal for a query to see it: those of CASE WHEN symbol = q.symbol AND … THEN … END."""
    from sqlglot import exp

    value, conditions = tree.unnest(), []
    if isinstance(value, exp.Case) and not value.this and not value.args.get("default") and len(value.args["ifs"]) == 1:
        (branch,) = value.args["ifs"]
        value, conditions = branch.args["true"], _conjuncts(branch.this)
    equated = [_equated(one, "a", "b") for one in conditions]
    rest = [one for one, names in zip(conditions, equated, strict=True) if names is None]
    if any(column.table == "b" for one in (value, *rest) for column in one.find_all(exp.Column)):
        return None, ()
    if rest:
        value = exp.Case(ifs=[exp.If(this=exp.and_(*rest), true=value.copy())])
    return value, tuple((numbers[names[0]], numbers[names[1]]) for names in equated if names)


def equalities(where: str | None) -> tuple[tuple[str, str], ...]:
    """The columns of the row and of the query that have to be equal for a condition to hold: name = q.name."""
    conditions = [] if where is None else _conjuncts(_parse(where))
    return tuple(dict.fromkeys(names for one in conditions if (names := _equated(one, "", "q"))))


def columns_read(condition: str) -> frozenset[str]:
    """The columns of the row that a condition reads."""
    from sqlglot import exp

    return frozenset(column.name for column in _parse(condition).find_all(exp.Column) if column.table != "q")


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Conditions that must all be met."""
    from sqlglot import exp

    node = node.unnest()
    return [*_conjuncts(node.this), *_conjuncts(node.expression)] if isinstance(node, exp.And) else [node]


def _equated(node: exp.Expr, row: str, query: str) -> tuple[str, str] | None:
    """The columns of the row and of the query, tables of these names, if a condition is that they are equal."""
    from sqlglot import exp

    return _compares(node, row, query) if isinstance(node, exp.EQ) else None


def _compares(node: exp.Expr, row: str, query: str) -> tuple[str, str] | None:
    """The same of any comparison."""
    from sqlglot import exp

    sides = (node.this.unnest(), node.expression.unnest())
    names = {side.table: side.name for side in sides if isinstance(side, exp.Column)}
    return (names[row], names[query]) if len(names) == 2 else None


def is_compared(of_row: pa.DataType, of_query: pa.DataType) -> bool:
    """Are values of these types no numbers, but can be told to be equal or not?"""
    is_value = not pa.types.is_nested(of_row) and not isinstance(of_row, pa.BaseExtensionType)
    return of_row == of_query and not is_number(of_row) and is_value


def _compared(tree: exp.Expr, rows: pa.Schema, queries: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of rows and of queries that are only compared with one another (name = q.name), and that are no
    numbers, or whole ones that float64 may round."""
    from sqlglot import exp

    values: list[tuple[str, str]] = []
    wide: list[tuple[str, str]] = []
    for node in tree.find_all(exp.EQ, exp.NEQ):
        row, query = _compares(node, "", "q") or ("", "")
        if row in rows.names and query in queries.names:
            types = rows.field(row).type, queries.field(query).type
            if is_compared(*types):
                values.append((row, query))
            elif all(map(pa.types.is_integer, types)) and any(each.bit_width == 64 for each in types):
                wide.append((row, query))
    found = [*values, *_only_compared(wide, tree)]
    return tuple(dict.fromkeys(row for row, _ in found)), tuple(dict.fromkeys(query for _, query in found))


def _only_compared(pairs: list[tuple[str, str]], tree: exp.Expr) -> list[tuple[str, str]]:
    """The pairs of columns that the expression reads in such comparisons only."""
    from sqlglot import exp

    uses = Counter((column.table, column.name) for column in tree.find_all(exp.Column))
    while True:
        compared = Counter(side for row, query in pairs for side in (("", row), ("q", query)))
        # A column that is read elsewhere is a number there: so is what it is compared with.
        kept = [(row, query) for row, query in pairs if all(compared[s] == uses[s] for s in (("", row), ("q", query)))]
        if len(kept) == len(pairs):
            return kept
        pairs = kept


def _with_numbers(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([pa.field(field.name, pa.float64()) if field.name in names else field for field in schema])


def outline(by: str, ascending: bool) -> QueryScore:
    """The score as far as it is known without a schema: as if all columns were numbers."""
    from sqlglot import exp

    found = list(_parse(by).find_all(exp.Column, bfs=False))
    rows = dict.fromkeys(column.name for column in found if column.table != "q")
    queries = dict.fromkeys(column.name for column in found if column.table == "q")
    numbers = [pa.schema([(name, pa.float64()) for name in names]) for names in (rows, queries)]
    return bind(by, ascending, *numbers)


def _check(column: exp.Column, text: str, rows: pa.Schema, queries: pa.Schema) -> None:
    of_query = column.table == "q"
    schema = queries if of_query else rows
    if column.name not in schema.names:
        where = "of the queries" if of_query else "of the rows"
        raise UnknownColumn.named(column.name, schema.names, used_as=f"a column {where} in {text!r}")
    column_type = schema.field(column.name).type
    if not is_number(column_type) and not pa.types.is_boolean(column_type):
        raise InvalidExpression(
            f"{column.sql('spark')!r} in {text!r} is {column_type}, not a number. You can only compare it with a "
            "column of the same type: name = q.name."
        )
