"""What a row is worth to a query: an SQL expression over the row's columns and the query's, `q.x`.

The expression is read as that of a pair is (`pairs`), the row standing for a and the query for b. Beside the lines that
compute a score there are, where possible, lines that bound it: from an interval for each column, the least and the most
that the score can be. They apply the same operations to the ends of intervals, only those that IEEE 754 rounds
correctly: these keep the order of their arguments, so a bound is one to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.errors import InvalidExpression, InvalidQuery, UnknownColumn
from skyband.expressions import lines as code_lines
from skyband.expressions import pairs
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
    # Which of these are no numbers, and are only compared with one another: values that are equal are given equal ones.
    compared_columns: tuple[str, ...] = ()
    compared_parameters: tuple[str, ...] = ()
    calls: tuple[tuple[str, Callable[..., Any]], ...] = ()  # functions of the user's that the lines call, by name
    # Where a row is worth the same to all queries that see it: the lines that compute `s` from the row alone. Those see
    # it whose parameters are what it has in some columns, by their numbers; without such, all do.
    common: tuple[str, ...] | None = None
    seen_by: tuple[tuple[int, int], ...] = ()  # column, parameter

    @property
    def is_common(self) -> bool:
        """Is a row worth the same to all queries that see it?"""
        return self.common is not None


# A score that is known, in a column: what there is to compute has been.
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
    """What a row is worth to queries that see only rows that meet a condition."""
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
        _bound(tree, numbers, ascending),
        *compared,
        calls,
        None if common is None else lines_of(common)[0],  # which call the same functions in the same order
        seen_by,
    )


def _check_literals(tree: Any, by: str) -> None:
    """Raise for a whole number that float64, in which scores of many queries are computed, would round."""
    from sqlglot import exp

    for literal in tree.find_all(exp.Literal):
        if not literal.is_string and literal.this.isdigit() and int(literal.this) > 2**53:
            raise InvalidExpression(
                f"{literal.this} in {by!r} is beyond 2**53, and the scores of many queries are computed in float64, "
                f"which would round it. Write {float(literal.this):g} to accept that."
            )


def _common(tree: exp.Expr, numbers: dict[str, int]) -> tuple[exp.Expr | None, tuple[tuple[int, int], ...]]:
    """What a row is worth to all queries that see it, if that is the same; and which columns and parameters must be
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
    """The columns of rows and of queries that are no numbers, and that are compared with one another: name = q.name."""
    from sqlglot import exp

    ours: dict[str, None] = {}
    theirs: dict[str, None] = {}
    for node in tree.find_all(exp.EQ, exp.NEQ):
        row, query = _compares(node, "", "q") or ("", "")
        is_known = row in rows.names and query in queries.names
        if is_known and is_compared(rows.field(row).type, queries.field(query).type):
            ours[row] = theirs[query] = None
    return tuple(ours), tuple(theirs)


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
            f"{column.sql('spark')!r} in {text!r} is {column_type}, not a number. What is no number can be compared "
            "with a column of the same type: name = q.name."
        )


# -- bounds --------------------------------------------------------------------------------------------------------


class _Unbounded(Exception):
    """Something in the score is not known to keep the order of its arguments."""


def _bound(tree: exp.Expr, numbers: dict[str, int], ascending: bool) -> tuple[str, ...] | None:
    code = _Intervals(numbers)
    try:
        low, high = code.interval(tree)
    except _Unbounded:
        return None
    return (*code.lines, f"most = {f'-({low})' if ascending else high}")


class _Intervals:
    """As `lines.Lines`, but of the least and the most that each node can be. What is not known is NaN."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.lines: list[str] = []
        self._numbers = numbers

    def _new(self, text: str) -> str:
        name = f"u{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def interval(self, node: exp.Expr) -> tuple[str, str]:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.interval(node.this)
            case exp.Literal() if node.is_number:
                value = repr(float(node.this))
                if value == "inf":
                    raise _Unbounded
                return value, value
            case exp.Column():
                name = f"{node.table}{self._numbers[node.name]}"
                return f"{name}_low", f"{name}_high"
            case exp.Neg():
                low, high = self.interval(node.this)
                return self._new(f"-{high}"), self._new(f"-{low}")
            case exp.Add():
                (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                return self._new(f"{a} + {c}"), self._new(f"{b} + {d}")
            case exp.Sub():
                (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                return self._new(f"{a} - {d}"), self._new(f"{b} - {c}")
            case exp.Mul():
                return self._corners(node, "*")
            case exp.Div():
                divisor = self.interval(node.expression)
                holds_zero = self._new(f"({divisor[0]} <= 0.0) & ({divisor[1]} >= 0.0)")
                low, high = self._corners(node, "/")
                return self._new(f"-np.inf if {holds_zero} else {low}"), self._new(
                    f"np.inf if {holds_zero} else {high}"
                )
            case exp.Abs():
                return self._even(node.this, "abs({0})")
            case exp.Pow() if code_lines.is_two(node.expression):
                return self._even(node.this, "{0} * {0}")
            case exp.Sqrt():
                low, high = self.interval(node.this)
                # Below 0 there is no root, and no score.
                return self._new(f"math.sqrt({low} if {low} > 0.0 else 0.0 * {low})"), self._new(f"math.sqrt({high})")
            case exp.Greatest() | exp.Least():
                # Either passes over NaN, so that any of its parts may be what it is.
                return self._hull([(None, each) for each in (node.this, *node.expressions)])
            case exp.Case():
                default = node.args.get("default")
                branches = [(None if node.this else each.this, each.args["true"]) for each in node.args["ifs"]]
                return self._hull([*branches, *([(None, default)] if default else [])])
            case exp.If():
                otherwise = node.args.get("false")
                return self._hull([(node.this, node.args["true"]), *([(None, otherwise)] if otherwise else [])])
        raise _Unbounded

    def _corners(self, node: exp.Expr, sign: str) -> tuple[str, str]:
        (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
        corners = [self._new(f"{x} {sign} {y}") for x in dict.fromkeys((a, b)) for y in dict.fromkeys((c, d))]
        return self._least(corners), self._most(corners)

    def _even(self, node: exp.Expr, pattern: str) -> tuple[str, str]:
        """A function that falls up to 0 and rises from there."""
        low, high = self.interval(node)
        ends = [self._new(pattern.format(end)) for end in (low, high)]
        across = self._new(f"({low} <= 0.0) & ({high} >= 0.0)")
        return self._new(f"0.0 if {across} else {self._least(ends)}"), self._most(ends)

    def _hull(self, branches: list[tuple[exp.Expr | None, exp.Expr]]) -> tuple[str, str]:
        """Of values, each of which is only taken where its condition holds."""
        from sqlglot import exp

        parts = []
        for condition, node in branches:
            if isinstance(node.unnest(), exp.Null):
                continue
            low, high = self.interval(node)
            if condition is not None and (may := self._may_hold(condition)) is not None:
                # Where it cannot hold there is no value: any bound would be one.
                low, high = self._new(f"{low} if {may} else np.inf"), self._new(f"{high} if {may} else -np.inf")
            parts.append((low, high))
        if not parts:
            raise _Unbounded
        return self._least([low for low, _ in parts]), self._most([high for _, high in parts])

    def _may_hold(self, node: exp.Expr) -> str | None:
        """Can the condition hold? None: always, for all that is known."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self._may_hold(node.this)
            case exp.And():
                parts = [part for side in (node.this, node.expression) if (part := self._may_hold(side)) is not None]
                return self._new(" & ".join(parts)) if parts else None
            case exp.EQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                try:
                    (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                except _Unbounded:
                    return None
                # Of what is unknown nothing is ruled out.
                too_small, too_large = f"not ({b} < {c})", f"not ({a} > {d})"
                match node:
                    case exp.GT() | exp.GTE():
                        return self._new(f"({too_small})")
                    case exp.LT() | exp.LTE():
                        return self._new(f"({too_large})")
                return self._new(f"({too_small}) & ({too_large})")
        return None

    def _least(self, names: list[str]) -> str:
        return self._outermost(names, "<=")

    def _most(self, names: list[str]) -> str:
        return self._outermost(names, ">=")

    def _outermost(self, names: list[str], sign: str) -> str:
        """NaN if one of them is."""
        value, *others = names
        for other in others:
            value = self._new(f"{value} if ({value} {sign} {other}) | ({value} != {value}) else {other}")
        return value
