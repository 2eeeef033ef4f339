"""The parts of SQL's grammar that Skyband uses. It refuses everything else at its place: nothing is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.nodes import Continuous, Span, Stream, StreamWindow
from skyband.expressions import grammar as expressions

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
}

RANKS: Final = (exp.RowNumber, exp.Rank, exp.DenseRank)  # what can stand before OVER

_VALUES: Final[
    Mapping[tuple[type[exp.Expr], str], tuple[str, ...]]
] = {  # of arguments that are words, those that are read
    (exp.Join, "kind"): ("INNER", "CROSS", "OUTER", "SEMI", "ANTI"),
    (exp.Join, "side"): ("FULL", "LEFT"),
    (exp.Window, "over"): ("OVER",),
}

_JOINS: Final = (
    "Possible: JOIN … ON, JOIN … USING, FULL JOIN … USING of streams, and LEFT, LEFT SEMI and LEFT ANTI JOIN of a "
    "stream with a table."
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
    (exp.Group, "grouping_sets"): ("GROUPING SETS is not supported", "Possible: GROUP BY columns or expressions."),
    (exp.Group, "all"): ("GROUP BY ALL is not supported", "Name the columns: GROUP BY symbol."),
    (exp.Window, "spec"): ("A frame has no meaning for a rank, which counts all rows of the window", ""),
    (exp.Join, "method"): ("{value} JOIN is not supported", _JOINS),
    (exp.Join, "side"): ("{value} JOIN is not supported", _JOINS),
    (exp.Join, "kind"): ("{value} JOIN is not supported", _JOINS),
}


def check_read(text: str, tree: exp.Expr) -> None:
    """Raise at the first part of the statement that nobody reads."""
    for node in tree.walk():
        if isinstance(node, exp.Window) and not isinstance(node.this, RANKS):
            texts.refuse(
                text,
                f"{texts.word_at(text, node)}(…) OVER is not supported",
                node,
                "Possible: ROW_NUMBER(), RANK() and DENSE_RANK(). For aggregates, write GROUP BY.",
            )
        read = READ.get(type(node))
        if read is None:
            continue  # an expression of another kind, which whoever reads the expressions refuses
        for name, value in node.args.items():
            if expressions.is_there(value) and (
                name not in read or value not in _VALUES.get((type(node), name), (value,))
            ):
                _refuse(text, node, name, value)


def _refuse(text: str, node: exp.Expr, name: str, value: Any) -> None:
    word = value if isinstance(value, str) else name.strip("_").upper()
    why, possible = _WHY.get((type(node), name), ("{value} is not supported", ""))
    said = texts.first_of(value) if isinstance(value, (exp.Expr, list)) else None
    first = why.split()[0]  # which is the word itself, if it is one of SQL
    words = (word, *word.split("_"), *([first] if first.isupper() and len(first) > 1 else []))
    place = texts.place_of_word(text, words, near=said or node)
    texts.refuse(text, why.format(value=word.replace("_", " ")), place, possible)
