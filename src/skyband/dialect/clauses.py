"""The parts of SQL's grammar that Skyband uses. It refuses everything else at its place: nothing is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.functions import refuse_call
from skyband.dialect.nodes import Continuous, Span, Stream, StreamWindow
from skyband.expressions import grammar as expressions
from skyband.expressions import row_functions

# The arguments of each kind of node that a reader takes into account: the problems, what they share, or the resolver.
READ: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    **expressions.READ,
    **{kind: frozenset(kind.arg_types) for kind in (Continuous, Span, Stream, StreamWindow)},
    exp.Select: frozenset(
        {"with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit", "offset"}
    ),
    exp.Union: frozenset({"this", "expression", "with_"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.From: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Table: frozenset({"this", "alias", "db", "catalog"}),  # a name in parts has an error of its own
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Star: frozenset({"except_", "replace"}),
    exp.Where: frozenset({"this"}),
    exp.Having: frozenset({"this"}),
    exp.Qualify: frozenset({"this"}),
    exp.Group: frozenset({"expressions"}),
    **dict.fromkeys((exp.Cube, exp.Rollup, exp.GroupingSets), frozenset()),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first", "nulls"}),
    exp.Limit: frozenset({"expression", "expressions", "limit_options"}),
    exp.Offset: frozenset({"expression"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.Window: frozenset({"this", "partition_by", "order", "over"}),
    **dict.fromkeys((exp.Rank, exp.DenseRank), frozenset()),
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Min, exp.Max), frozenset({"this"})),
    exp.Count: frozenset({"this", "big_int"}),
}

RANKS: Final = (exp.RowNumber, exp.Rank, exp.DenseRank)  # what can stand before OVER
_AGGREGATES: Final = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)  # and what else, if it is of whole groups

_VALUES: Final[
    Mapping[tuple[type[exp.Expr], str], tuple[str, ...]]
] = {  # of arguments that are words, those that are read
    (exp.Join, "kind"): ("INNER", "CROSS", "OUTER", "SEMI", "ANTI"),
    (exp.Join, "side"): ("FULL", "LEFT", "RIGHT"),
    (exp.Window, "over"): ("OVER",),
}

_JOINS: Final = (
    "Possible: JOIN, LEFT JOIN, LEFT SEMI JOIN and LEFT ANTI JOIN with ON or USING, RIGHT JOIN … ON of two windows, "
    "and FULL JOIN … USING of streams."
)
_BEST: Final = "Write a number: LIMIT 10."
_AROUND: Final = "Write SELECT … FROM (SELECT … UNION ALL SELECT …) AS u [WINDOW 1 HOUR] ORDER BY … LIMIT 10."
_WHY: Final[Mapping[tuple[type[exp.Expr], str], tuple[str, str]]] = {
    (exp.Select, "distinct"): (
        "DISTINCT is not supported here",
        "GROUP BY gives each row once: SELECT symbol FROM trades [WINDOW 1 HOUR] GROUP BY symbol.",
    ),
    (exp.Limit, "offset"): (
        "LIMIT takes one number, and OFFSET the number of rows to skip",
        "Write LIMIT 10 OFFSET 5.",
    ),
    (exp.Offset, "expressions"): ("BY comes before OFFSET", "Write LIMIT 10 BY symbol OFFSET 5."),
    (exp.Select, "laterals"): ("LATERAL VIEW is not supported", ""),
    (exp.Select, "windows"): (
        "WINDOW name AS (…) is not supported; write a stream's window in brackets: [WINDOW 1 HOUR]",
        "",
    ),
    (exp.Select, "cluster"): ("CLUSTER BY has no meaning here", ""),
    (exp.Select, "distribute"): ("DISTRIBUTE BY has no meaning here", ""),
    (exp.Select, "sort"): ("SORT BY has no meaning here; ORDER BY ranks", ""),
    (exp.Select, "into"): ("SELECT INTO is not supported: the answer is what sb.sql returns", ""),
    (exp.Select, "locks"): ("FOR UPDATE and FOR SHARE have no meaning for streams", ""),
    (exp.In, "query"): ("Skyband cannot answer a subquery here while a stream runs", "Write x IN ('a', 'b')."),
    (exp.Union, "distinct"): (
        "UNION drops duplicates, so Skyband would have to keep every row",
        "Write UNION ALL.",
    ),
    (exp.Union, "order"): ("ORDER BY ranks the rows of a window, and this union has no window", _AROUND),
    (exp.Union, "limit"): ("LIMIT ranks the rows of a window, and this union has no window", _AROUND),
    (exp.Union, "by_name"): ("UNION ALL matches columns by position", "Leave BY NAME out."),
    (exp.Table, "sample"): ("TABLESAMPLE is not supported: every row of a window counts", ""),
    (exp.Table, "version"): ("A stream has no versions: every row counts when it arrives", ""),
    (exp.Table, "pivots"): ("PIVOT is not supported", ""),
    (exp.With, "recursive"): ("WITH RECURSIVE is not supported", ""),
    (exp.LimitOptions, "percent"): ("The number of rows must be a number, not a percentage", _BEST),
    **{
        (kind, "expressions"): (f"{words}() takes no arguments: it counts the rows that ORDER BY puts first", "")
        for kind, words in ((exp.Rank, "RANK"), (exp.DenseRank, "DENSE_RANK"))
    },
    **{
        (kind, "expressions"): (f"{words} is not supported", "Possible: GROUP BY columns or expressions.")
        for kind, words in ((exp.Cube, "CUBE"), (exp.Rollup, "ROLLUP"), (exp.GroupingSets, "GROUPING SETS"))
    },
    **{
        (kind, name): (f"{kind.key.upper()} takes one argument", "")
        for kind in (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)
        for name in kind.arg_types
        if name not in ("this", "big_int")
    },
    (exp.Group, "grouping_sets"): ("GROUPING SETS is not supported", "Possible: GROUP BY columns or expressions."),
    (exp.Group, "all"): ("GROUP BY ALL is not supported", "Name the columns: GROUP BY symbol."),
    (exp.Window, "spec"): (
        "Frames are not supported: a rank or an aggregate OVER is about all rows of the window",
        "Leave the frame out: SUM(price) OVER (PARTITION BY symbol).",
    ),
    (exp.Join, "method"): ("{value} JOIN is not supported", _JOINS),
    (exp.Join, "side"): ("{value} JOIN is not supported", _JOINS),
    (exp.Join, "kind"): ("{value} JOIN is not supported", _JOINS),
}


def check_read(text: str, tree: exp.Expr) -> None:
    """Raise at the first part of the statement that nobody reads."""
    for node in tree.walk():
        if isinstance(node, (exp.Where, exp.Having, exp.Group)) and (window := node.find(exp.Window)) is not None:
            clause = {exp.Where: "WHERE", exp.Having: "HAVING"}.get(type(node), "GROUP BY")
            texts.refuse(
                text,
                f"{clause} is evaluated before {texts.word_at(text, window)}(…) OVER, so it cannot use it",
                window,
                "QUALIFY comes after it: QUALIFY price > AVG(price) OVER (PARTITION BY symbol).",
            )
        if isinstance(node, exp.Window):
            _check_over(text, node)
        _check_known(text, node)
        read = READ.get(type(node))
        if read is None:
            continue  # an expression of another kind, which whoever reads the expressions refuses
        for name, value in node.args.items():
            if expressions.is_there(value) and (
                name not in read or value not in _VALUES.get((type(node), name), (value,))
            ):
                _refuse(text, node, name, value)


_CALLED: Final = frozenset(
    {
        *(*READ, *expressions.READ_IN_ROWS, *row_functions.READ, *expressions.REWRITTEN),
        *(exp.RowNumber, exp.Anonymous, exp.Exists),
    }
)
_ELSEWHERE: Final = (exp.Table, exp.From, exp.Join, exp.Lateral, exp.Subquery)  # with errors of their own


def _check_known(text: str, node: exp.Expr) -> None:
    """Raise at a call of a function that nobody evaluates: written anew, it could become another."""
    if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
        sign = next((place for place, sign in enumerate(text) if sign in ":?@$"), 0)
        texts.refuse(text, "A statement has no parameters", sign, "Write the value itself.")
    is_call = isinstance(node, exp.Func) and not isinstance(node, exp.AggFunc) and type(node) not in _CALLED
    if is_call and not isinstance(node.parent, (*_ELSEWHERE, exp.Window)):
        refuse_call(text, texts.word_at(text, node), node)


def _check_over(text: str, window: exp.Window) -> None:
    """Raise if what stands before OVER is neither a rank nor an aggregate of whole groups."""
    what = window.this.this if isinstance(window.this, exp.Filter) else window.this
    if not isinstance(what, (*RANKS, *_AGGREGATES)):
        texts.refuse(
            text,
            f"{texts.word_at(text, window)}(…) OVER is not supported",
            window,
            "Possible: ROW_NUMBER(), RANK(), DENSE_RANK(), and COUNT, SUM, AVG, MIN and MAX, as in SUM(price) OVER "
            "(PARTITION BY symbol).",
        )
    if isinstance(what, _AGGREGATES) and (order := window.args.get("order")) is not None:
        texts.refuse(
            text,
            f"{texts.word_at(text, window)}(…) OVER (ORDER BY …) would be of the rows so far, which is not supported",
            order.expressions[0],
            "Leave ORDER BY out: SUM(price) OVER (PARTITION BY symbol) is of all rows of the window.",
        )


def _refuse(text: str, node: exp.Expr, name: str, value: Any) -> None:
    word = value if isinstance(value, str) else name.strip("_").upper()
    why, possible = _WHY.get((type(node), name), ("{value} is not supported", ""))
    said = texts.first_of(value) if isinstance(value, (exp.Expr, list)) else None
    first = why.split()[0]  # which is the word itself, if it is one of SQL
    words = (word, *word.split("_"), *([first] if first.isupper() and len(first) > 1 else []))
    place = texts.place_of_word(text, words, near=said or node)
    texts.refuse(text, why.format(value=word.replace("_", " ")), place, possible)
