"""The parts that an expression may have: both engines evaluate them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from skyband.expressions.calls import CALL_PARSERS, with_unit

# In a string, a quote that stands twice is one: 'O''Brien'.
DOUBLED_QUOTES: Final = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']
_CHAR_FORMATS: Final = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}


def to_char(arguments: list[exp.Expr]) -> exp.Expr:
    """TO_CHAR(ts, 'YYYY-MM-DD'): DATE_FORMAT with other words for the parts of a time."""
    if len(arguments) != 2 or not isinstance(arguments[1], exp.Literal):
        return exp.Anonymous(this="TO_CHAR", expressions=arguments)
    written = str(arguments[1].this)
    for name, code in _CHAR_FORMATS.items():
        written = written.replace(name, code)
    return exp.TimeToStr(this=arguments[0], format=exp.Literal.string(written))


def date_bin(arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_BIN(INTERVAL 10 SECONDS, ts): DATE_TRUNC to so many of a unit, counted from 1970 on."""
    size = arguments[0] if len(arguments) == 2 else None
    unit = size.args.get("unit") if isinstance(size, exp.Interval) else None
    if size is None or not isinstance(unit, exp.Var) or not isinstance(size.this, exp.Literal):
        return exp.Anonymous(this="DATE_BIN", expressions=arguments)
    return exp.TimestampTrunc(this=arguments[1], unit=exp.var(f"{size.this.name} {unit.name}"))


class DateSub(exp.Expression, exp.Func):
    """DATE_SUB(d, n). The nodes of sqlglot are written as DATE_ADD(d, n * -1)."""

    arg_types: ClassVar = {"this": True, "expression": True}
    _sql_names: ClassVar = ["DATE_SUB"]


def date_add(arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_ADD(d, n): n days after d. With an interval, as others write it, it is d + INTERVAL 3 DAYS."""
    if len(arguments) == 3:
        return with_unit("DATE_ADD", arguments)
    if len(arguments) != 2:
        return exp.Anonymous(this="DATE_ADD", expressions=arguments)
    day, more = arguments
    if isinstance(more, exp.Interval):
        return exp.Paren(this=exp.Add(this=day, expression=more))
    return exp.TsOrDsAdd(this=day, expression=more)


def date_sub(arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_SUB(d, n): n days before d."""
    if len(arguments) != 2:
        return exp.Anonymous(this="DATE_SUB", expressions=arguments)
    day, less = arguments
    if isinstance(less, exp.Interval):
        return exp.Paren(this=exp.Sub(this=day, expression=less))
    return DateSub(this=day, expression=less)


def date_diff(arguments: list[exp.Expr]) -> exp.Expr:
    """DATEDIFF(a, b): the days from b until a. DATEDIFF(HOUR, a, b) is another function: the hours from a until b."""
    if len(arguments) == 3:
        return with_unit("DATEDIFF", arguments)
    if len(arguments) != 2:
        return exp.Anonymous(this="DATEDIFF", expressions=arguments)
    return exp.DateDiff(this=arguments[0], expression=arguments[1])


CALLED: Final = {
    **CALL_PARSERS,
    "TO_CHAR": to_char,
    "DATE_BIN": date_bin,
    "DATE_ADD": date_add,
    "DATE_SUB": date_sub,
    "DATEDIFF": date_diff,
    "DATE_DIFF": date_diff,
}


class RowExpressions(Spark):
    """Spark's expressions, with ** as power and with division that is always of floats."""

    SAFE_DIVISION = False
    TYPED_DIVISION = False

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = DOUBLED_QUOTES
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "**": TokenType.DSTAR}

    class Parser(SparkParser):
        EXPONENT: ClassVar = {TokenType.DSTAR: exp.Pow}
        FUNCTIONS: ClassVar = {**SparkParser.FUNCTIONS, **CALLED}


_OPERANDS: Final = frozenset({"this", "expression"})
_ONE: Final = frozenset({"this"})

# Of each kind of node, the arguments that are evaluated.
READ: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Column: frozenset({"this", "table"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    **dict.fromkeys((exp.Paren, exp.Neg, exp.Not), _ONE),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Pow, exp.Nullif, exp.Log, exp.Atan2), _OPERANDS),
    exp.Div: _OPERANDS | {"typed", "safe"},  # how other dialects divide
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Is), _OPERANDS),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Coalesce: frozenset({"this", "expressions", "is_nvl", "is_null"}),  # NVL and IFNULL are names of it
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),  # as Spark ignores them
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    **dict.fromkeys((exp.Abs, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Floor, exp.Ceil), _ONE),
    **dict.fromkeys((exp.Sin, exp.Cos, exp.Tan), _ONE),
}


# What more there may be in expressions over one row, of whatever type they are.
READ_IN_ROWS: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Interval: frozenset({"this", "unit"}),
    exp.Var: _ONE,
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset({"this", "to"})),  # of a time: TIMESTAMP '2024-01-31 12:00:00'
    exp.DataType: frozenset({"this", "nested", "expressions"}),  # DECIMAL(10, 2): see `is_read`
    exp.DataTypeParam: _ONE,
    exp.Like: _OPERANDS | {"negate"},
    exp.DPipe: _OPERANDS | {"safe"},  # how other dialects put numbers together
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Length, exp.Trim), _ONE),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StartsWith: _OPERANDS,
}


REWRITTEN: Final = (exp.NullSafeEQ, exp.NullSafeNEQ)  # see `plainly`


def is_read(node: exp.Expr, also: Mapping[type[exp.Expr], frozenset[str]]) -> bool:
    """Is this part of an expression evaluated, with all that was written of it?"""
    if isinstance(node, exp.DataType) and node.expressions and not node.is_type("decimal"):
        return False  # of others, how many digits would be left out
    read = READ.get(type(node), also.get(type(node)))
    return read is not None and all(name in read or not is_there(value) for name, value in node.args.items())


def plainly(tree: exp.Expr) -> exp.Expr:
    """The same in fewer kinds of nodes, and with its ANDs and ORs side by side: x <=> y is (x = y) IS TRUE OR (x IS
    NULL AND y IS NULL)."""

    def write(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Connector):
            parts = _chained(node)
            return _balanced(type(node), [plainly(part) for part in parts]) if len(parts) > 2 else node
        if not isinstance(node, REWRITTEN):
            return node
        x, y = (exp.Paren(this=plainly(part)) for part in (node.this, node.expression))
        equal = exp.Is(this=exp.Paren(this=exp.EQ(this=x, expression=y)), expression=exp.Boolean(this=True))
        unknown = (exp.Is(this=part.copy(), expression=exp.Null()) for part in (x, y))
        same = exp.Paren(this=exp.or_(equal, exp.and_(*unknown)))
        return same if isinstance(node, exp.NullSafeEQ) else exp.Not(this=same)

    return rewritten(tree, write)


def _chained(node: exp.Connector) -> list[exp.Expr]:
    """What a run of ANDs, or of ORs, connects, from left to right."""
    found, waiting = [], [node.expression, node.this]
    while waiting:
        part = waiting.pop()
        inner = part.unnest()
        if type(inner) is type(node):
            waiting += [inner.expression, inner.this]
        else:
            found.append(part)
    return found


def parts_of(conditions: list[exp.Expr]) -> list[exp.Expr]:
    """What these ask for, each by itself and once."""
    waiting, found = list(reversed(conditions)), dict[exp.Expr, None]()
    while waiting:
        condition = waiting.pop().unnest()
        if isinstance(condition, exp.And):
            waiting += [condition.expression, condition.this]
        else:
            found.setdefault(condition)
    return list(found)


def _balanced(kind: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    """The parts connected in as few levels as there can be: what evaluates them goes down level by level."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    sides = (_balanced(kind, side) for side in (parts[:half], parts[half:]))
    return kind(**dict(zip(("this", "expression"), (exp.Paren(this=side) for side in sides), strict=True)))


def is_there(value: object) -> bool:
    """Was this argument of a node written?"""
    return value is not None and value is not False and value != [] and value != ""


DEEPEST: Final = 150  # levels of an expression; chains of ANDs and of ORs count as one
NESTED: Final = 20  # parentheses and calls in each other, at least: sqlglot reads them by calling itself
LARGEST: Final = 50_000  # nodes
MOST_BRANCHES: Final = 1_000  # of a CASE
MOST_QUERIES: Final = 300  # of WITH and FROM together
TOO_LARGE: Final = (
    f"is too large: an expression has at most {DEEPEST} levels and {LARGEST:,} parts, a CASE {MOST_BRANCHES:,} "
    f"branches, and a statement {MOST_QUERIES} queries. A list (x IN (…)) and a run of ANDs or ORs are one level; WITH "
    "computes a column in steps"
)


def too_deep(tree: exp.Expr) -> exp.Expr | None:
    """The first part of a tree that lies deeper than what is evaluated, if there is one; of a tree with too many parts,
    queries or branches, the first that is too many."""
    waiting, seen, queries = [(tree, 0)], 0, 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        queries += isinstance(node, exp.Select)
        branches = len(node.args.get("ifs") or ()) if isinstance(node, exp.Case) else 0
        if depth > DEEPEST or seen > LARGEST or queries > MOST_QUERIES or branches > MOST_BRANCHES:
            return node
        chained = isinstance(node, exp.Connector)
        waiting += [
            (part, depth if chained and type(part) is type(node) else depth + 1) for part in node.iter_expressions()
        ]
    return None


def rewritten(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of `tree` with nodes in place of others, from the top: below what `change` replaces nothing is changed."""
    return _rebuilt(copied(tree), change, None)


def copied(tree: exp.Expr) -> exp.Expr:
    """A copy of the nodes. What is noted down about one is not copied with it, as sqlglot would: that takes longer than
    all the rest."""
    root = type(tree)()
    waiting = [(tree, root)]
    while waiting:
        node, copy = waiting.pop()
        copy.comments, copy._type = node.comments, node._type
        copy._meta = None if node._meta is None else dict(node._meta)
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                part = type(value)()
                waiting.append((value, part))
                copy.set(name, part)
            elif isinstance(value, list):
                parts = [type(one)() if isinstance(one, exp.Expr) else one for one in value]
                waiting += [(one, part) for one, part in zip(value, parts, strict=True) if isinstance(one, exp.Expr)]
                copy.set(name, parts)
            else:
                copy.args[name] = value
    return root


def bottom_up(tree: exp.Expr, rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """`tree` with every node rewritten after its children, so that what a rewrite adds is not rewritten again."""
    return exp.Paren(this=_rebuilt(tree, None, rewrite))


def _rebuilt(
    node: exp.Expr,
    before: Callable[[exp.Expr], exp.Expr] | None,
    after: Callable[[exp.Expr], exp.Expr] | None,
) -> exp.Expr:
    """The tree with what `before` makes of each node, below which nothing is changed, or `after` of those that are
    left, children first. It calls nothing level by level: a run of ANDs is thousands of levels deep. sqlglot's
    `transform` takes time quadratic in the length of a list."""
    if before is not None and (changed := before(node)) is not node:
        return changed
    seen: list[tuple[exp.Expr, exp.Expr | None, str, int | None]] = []
    waiting: list[tuple[exp.Expr, exp.Expr | None, str, int | None]] = [(node, node.parent, "", None)]
    while waiting:
        seen.append(waiting.pop())
        holder = seen[-1][0]
        for name, value in list(holder.args.items()):
            for place, part in enumerate(value) if isinstance(value, list) else ((None, value),):
                if not isinstance(part, exp.Expr):
                    continue
                changed = part if before is None else before(part)
                if changed is part:
                    waiting.append((part, holder, name, place))
                else:
                    holder.set(name, changed, index=place)
    if after is None:
        return node
    for part, around, name, place in reversed(seen):
        changed = after(part)
        if part is node:
            return changed
        if changed is not part and around is not None:
            around.set(name, changed, index=place)
    return node


_TYPES: Final = {
    name: exp.DataType.build(name) for name in ("DOUBLE", "BIGINT", "INT128", "DECIMAL(38, 0)", "DATE", "TIMESTAMPNTZ")
}


def cast_to(node: exp.Expr, name: str) -> exp.Cast:
    """CAST(node AS name); sqlglot's own function reads the name anew each time."""
    return exp.Cast(this=node, to=_TYPES[name].copy())


def is_to_decimal(node: exp.Expr) -> bool:
    """Is this CAST(x AS DECIMAL(10, 2))?"""
    return isinstance(node, exp.Cast) and bool(node.to.is_type("decimal"))


def is_to_truth(node: exp.Expr) -> bool:
    """Is this CAST(x AS BOOLEAN)?"""
    return isinstance(node, exp.Cast) and bool(node.to.is_type("boolean"))


def is_to_double(node: exp.Expr) -> bool:
    """Is this CAST(x AS DOUBLE)? What else is written so is a time."""
    return isinstance(node, exp.Cast) and bool(node.to.is_type("double"))
