"""A parsed statement: its inputs, windows and clauses. The problems decide what it means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, NoReturn, TypeVar

from sqlglot import exp

from skyband.core.emit import MODES
from skyband.dialect import table_functions
from skyband.dialect import text as texts
from skyband.dialect.clauses import RANKS, check_read
from skyband.dialect.columns import Item
from skyband.dialect.functions import refuse_function, unknown_function
from skyband.dialect.grammar import SkybandSql
from skyband.dialect.levels import Level, nested, unstacked
from skyband.dialect.nodes import StreamWindow
from skyband.dialect.query_spec import LINES, Rows, RowStep, View
from skyband.dialect.semi_joins import with_semi_joins
from skyband.dialect.sources import Source, Step, check_queries, sources_of
from skyband.dialect.unions import Union, taken_unions, whole_select
from skyband.dialect.window_bounds import bound_in
from skyband.errors import InvalidSql, SkybandError
from skyband.expressions.grammar import parts_of
from skyband.expressions.tree import IN_PYTHON

T = TypeVar("T")

_IN_SQL: Final[dict[str, str | Callable[[re.Match[str]], str]]] = {  # what errors about a query say in Python's words
    r"\bemit='(\w+)'": lambda found: f"EMIT {found[1].upper()}",
    r"`every`": "EVERY",
    r"^having='": "HAVING '",
    r"^(error|recall|bounds)\b": lambda found: f"WITH {found[1].upper()}",
    r", or None for none": "",
    r", or such a pair for each stream": "",
    r"^lateness\b": "LATENESS",
    r"^(?:size|span|every)=": "",
    r"^size\b": "The window",
    r"landmark\(\) has no end": "A window UNTIL NOW has no end",
    r" in (['\"])CASE WHEN \(.*\) THEN \(.*\) END\1": "",  # how the rows of a query are filtered
    r"^combine='[^']*'": "The score",
    r"`([A-Za-z_][\w.]*)`": r"\1",
}


def in_sql(why: str) -> str:
    """An error about a query in the words of a statement.

    >>> in_sql("emit='windows' emits the answer of each closed window")
    'EMIT WINDOWS emits the answer of each closed window'
    """
    for words, said in _IN_SQL.items():
        why = re.sub(words, said, why)
    return why


@dataclass(frozen=True)
class Input:
    """An input, by the name it was given under and the name the statement calls it by."""

    source: Source
    alias: str
    node: exp.Expr
    # What follows is known once the columns of the input are: see `resolving`.
    views: tuple[RowStep, ...] = ()
    on: str | None = None  # the column that its window measures
    order: str | None = None  # the column that says which row came first

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def window(self) -> StreamWindow | None:
        return self.source.window

    def is_same_as(self, other: Input) -> bool:
        """Are these the same rows, by another name?"""
        return self.name.lower() == other.name.lower() and self.source.steps == other.source.steps

    def rows(
        self, where: str | None, columns: tuple[str, ...] | None, renamed: tuple[tuple[str, str], ...] = ()
    ) -> Rows:
        """The rows of it that a query takes."""
        plain = [view for view in self.views if isinstance(view, View) and view.is_plain]
        if len(plain) < len(self.views):
            return Rows(self.name, where, columns, renamed, self.views)
        # Filters alone are part of the condition, and what they leave of the columns is part of the choice.
        conditions = [*(view.where for view in plain), where]
        kept = tuple(name for name, _ in plain[-1].columns) if plain and columns is None else columns
        return Rows(self.name, " AND ".join(one for one in conditions if one) or None, kept, renamed)


@dataclass(frozen=True)
class PartnerWindow:
    """A window that the rows of another are joined with, and that leaves them what they are: see `partners`."""

    alias: str
    how: str  # "left": a row without a partner stays, with nulls; "semi", "anti": rows that have one, or none; "inner"
    keys: tuple[tuple[exp.Column, exp.Column], ...]  # that are equal: a column of the other, and one of its own
    own: tuple[exp.Expr, ...]  # what its rows have to meet before
    hidden: Input | None = None  # the input, if the statement sees none of its columns

    @property
    def trees(self) -> list[exp.Expr]:
        """All that ON says."""
        return [*(column for key in self.keys for column in key), *self.own]


@dataclass(frozen=True)
class Statement:
    """What a text says. Once it is resolved, each column is written as input.column, by the input's own names."""

    text: str
    select: exp.Select
    inputs: tuple[Input, ...]
    window: StreamWindow | None = None  # for all inputs
    emit: str | None = None
    error: float | None = None
    recall: float | None = None
    bounds: tuple[float, float] | None = None
    explain: str | None = None  # "PLAN" or "ANALYZE"
    levels: tuple[Level, ...] = ()  # the queries around it, from within
    unions: tuple[Union, ...] = ()  # inputs that are made of others, by UNION ALL
    items: tuple[Item, ...] = ()  # of the SELECT list, once it is resolved
    kept: tuple[exp.Expr, ...] = ()  # conditions on what is answered, as the queries around it ask for
    inner: Statement | None = None  # whose answers are its only input
    partners: tuple[PartnerWindow, ...] = ()  # once it is resolved
    _taken: set[str] = field(default_factory=set, compare=False)

    @property
    def innermost(self) -> Statement:
        """The one that reads what is given."""
        return self if self.inner is None else self.inner.innermost

    @property
    def leaves(self) -> tuple[Input, ...]:
        """The inputs that are given: those behind a UNION ALL, or a query that ranks or groups, in its place."""
        if self.inner is not None:
            return self.inner.leaves
        made = {union.name: union.parts for union in self.unions}
        return tuple(
            leaf
            for one in self.inputs
            for leaf in (chain(*(part.leaves for part in made[one.name])) if one.name in made else (one,))
        )

    def refuse(self, why: str, where: exp.Expr | str | None = None, possible: str = "") -> NoReturn:
        """Raise `InvalidSql` at a part of the tree, or at the last place of a word, which the tree has no place of."""
        place = texts.place_of_last(self.text, where) if isinstance(where, str) else where
        texts.refuse(self.text, why, place, possible)

    def attempt(self, make: Callable[[], T], where: exp.Expr | None = None) -> T:
        """What `make` makes; what it complains of is shown in the text."""
        try:
            return make()
        except InvalidSql:
            raise
        except SkybandError as error:
            if where is not None and (call := unknown_function(where)) is not None:
                refuse_function(self, call)
            if where is not None and "cannot be part of" in str(error):
                self.check_rows(where)
            # What polars says of it is about an expression that nobody wrote.
            why = str(error).partition("': ")[0] + "'" if str(error).startswith("Cannot evaluate") else str(error)
            why = in_sql(why.removesuffix(IN_PYTHON))
            self.refuse(why, self._guilty(why) or (where if where is not None else self.inputs[-1].node))

    def _guilty(self, why: str) -> str | None:
        """The word that a query complains of, if it is one."""
        words = ("EMIT", "ERROR", "RECALL", "BOUNDS", "LATENESS")
        return next((word for word in words if why.startswith((word, f"WITH {word}"))), None)

    def check_exact(self, why: str) -> None:
        """Raise at WITH ERROR and WITH RECALL, where answers are exact."""
        if self.error is not None or self.recall is not None:
            self.refuse(f"{why}: there is no error to allow", "ERROR" if self.error is not None else "RECALL")

    def check_rows(self, tree: exp.Expr) -> None:
        """Raise at an aggregate in what is asked of each row by itself."""
        for one in tree.find_all(exp.AggFunc):
            if not is_over(one):
                self.refuse(
                    f"{one.key.upper()} aggregates several rows, but Skyband evaluates this for each row",
                    one,
                    "Only groups have aggregates: GROUP BY symbol HAVING COUNT(*) > 3 ORDER BY COUNT(*) DESC LIMIT 10.",
                )

    def take(self, clause: str) -> Any:
        """A clause of the SELECT, or None. Whoever asks for one answers for it: see `check_taken`."""
        self._taken.add(clause)
        return self.select.args.get(clause)

    def check_taken(self) -> None:
        """Raise if there is a clause that nobody has taken into account."""
        for clause, (why, possible) in _CLAUSES.items():
            if self.select.args.get(clause) and clause not in self._taken:
                place = texts.place_of_word(self.text, (clause.upper(),), near=self.select.args[clause])
                texts.refuse(self.text, why, place, possible)

    @property
    def is_grouped(self) -> bool:
        """Does it ask for aggregates?"""
        if self.select.args.get("group") is not None:
            return True
        aggregates = (one for item in self.select.expressions for one in item.find_all(exp.AggFunc))
        return any(not is_over(one) for one in aggregates)

    @property
    def over(self) -> list[exp.Window]:
        """The aggregates OVER the rows, or groups, of a window, wherever they stand."""
        clauses = (self.select.args.get(name) for name in ("qualify", "order", "having"))
        trees = [*(item.tree for item in self.items), *(one for one in clauses if one is not None), *self.kept]
        windows = (window for tree in trees for window in tree.find_all(exp.Window))
        return [one for one in windows if not isinstance(one.this, RANKS)]

    @property
    def is_plain(self) -> bool:
        """Does it only compute columns and filter rows, with no window? Other inputs are tables beside these rows."""
        return self._asks_of_rows and not any(self.select.args.get(name) for name in ("limit", "offset"))

    @property
    def takes_any(self) -> bool:
        """Does it do the same, and take some rows, no matter which?"""
        limit = self.select.args.get("limit")
        if not self._asks_of_rows or not isinstance(limit, exp.Limit) or limit.expressions:
            return False
        return not any(options.args.get(name) for options in limit.find_all(exp.LimitOptions) for name in _PARTS)

    @property
    def _asks_of_rows(self) -> bool:
        asked = (self.window, self.emit, self.error, self.recall, self.bounds)
        return (
            all(one.source.window is None for one in self.inputs)
            and not self.has_full_join
            and not self.is_grouped
            and not self.levels
            and self.inner is None
            and not any(self.select.args.get(name) for name in ("order", "qualify", "having"))
            and not any(item.find(exp.Window) for item in self.select.expressions)
            and all(part is None for part in asked)
        )

    @property
    def function(self) -> exp.Expr | None:
        """TUMBLE, HOP or window(), where that is how the window was written."""
        if self.inner is not None:
            return self.inner.function
        return next((one.source.function for one in self.inputs if one.source.function is not None), None)

    @property
    def is_about_tables(self) -> bool:
        """Is there one answer, about all rows? See `whole_tables`."""
        return self.inner.is_about_tables if self.inner is not None else any(one.source.is_whole for one in self.inputs)

    @property
    def shows_only_what_is_named(self) -> bool:
        """Does an answer have the columns of the SELECT list alone? If not, it begins with those of its own."""
        is_told = self.function is not None or self.is_about_tables
        return is_told or any(bound_in(item.tree) for item in self.items)

    @property
    def nullable(self) -> set[str]:
        """The inputs whose columns are null in rows without a partner."""
        return {partner.alias for partner in self.partners if partner.how == "left"}

    @property
    def read(self) -> tuple[Input, ...]:
        """All inputs, with those of which only matters whether they have rows."""
        return (*self.inputs, *(partner.hidden for partner in self.partners if partner.hidden is not None))

    @property
    def joins(self) -> list[exp.Join]:
        return list(self.select.args.get("joins") or ())

    @property
    def has_full_join(self) -> bool:
        return any(join.side == "FULL" for join in self.joins)

    @property
    def conditions(self) -> list[exp.Expr]:
        """What WHERE and ON ask for, each by itself and once."""
        where = self.take("where")
        return parts_of(
            [*([where.this] if where else []), *(join.args["on"] for join in self.joins if join.args.get("on"))]
        )


def is_over(aggregate: exp.Expr) -> bool:
    """Does it stand before OVER?"""
    parent = aggregate.parent.parent if isinstance(aggregate.parent, exp.Filter) else aggregate.parent
    return isinstance(parent, exp.Window) and parent.this.find(type(aggregate), bfs=False) is aggregate


_PARTS = ("percent", "with_ties")
_CLAUSES = {
    "where": ("WHERE has no meaning here", ""),
    "group": ("GROUP BY has no meaning here", ""),
    "having": ("HAVING filters groups, but there is no GROUP BY here", "WHERE filters rows."),
    "qualify": ("QUALIFY ranks rows; groups are ranked by ORDER BY … LIMIT k", ""),
    "order": ("ORDER BY has no meaning here", ""),
    "limit": ("LIMIT has no meaning here", ""),
    "offset": ("OFFSET needs a LIMIT", ""),
}


def understand(text: str) -> Statement:
    """The statement in `text`; raises `InvalidSql` where it cannot be one."""
    tree = texts.read(text)
    select = whole_select(tree.this)
    if not isinstance(select, exp.Select):
        texts.refuse(text, f"{select.key.upper()} is not supported on a stream", select, _ONE_SELECT)
    with_semi_joins(text, select)
    _group_distinct(select)
    check_read(text, tree)
    table_functions.with_windows(text, tree)
    statement = _understood(text, select)
    number = {name: tree.args.get(name) for name in ("error", "recall")}
    bounds = tree.args.get("bounds")
    return replace(
        _with_window(statement, tree.args.get("window")),
        emit=_emit(text, tree.args.get("emit")),
        error=None if number["error"] is None else float(number["error"].name),
        recall=None if number["recall"] is None else float(number["recall"].name),
        bounds=None if bounds is None else (_number(bounds.expressions[0]), _number(bounds.expressions[1])),
        explain=tree.args["explain"].name if tree.args.get("explain") else None,
    )


def _understood(text: str, select: exp.Select) -> Statement:
    """A SELECT, with what stands in its FROM, and nothing that may follow a statement."""
    unions = taken_unions(text, select, lambda part: _understood(text, part))
    check_queries(text, select)
    select, levels = unstacked(select)
    if (found := nested(select)) is not None:
        body, level = found
        inner = _understood(text, body)
        lines = Source(LINES, (Step(exp.select("*"), LINES, level.names, level.alias),))
        return Statement(
            text=text,
            select=_with_limit(level.select),
            inputs=(Input(lines, level.alias, select.args["from_"].this),),
            levels=levels,
            inner=replace(inner, unions=(*unions, *inner.unions)),
        )
    inputs = tuple(Input(source, alias, node) for alias, source, node in sources_of(text, select))
    return Statement(text=text, select=_with_limit(select), inputs=inputs, levels=levels, unions=unions)


def _with_window(statement: Statement, window: StreamWindow | None) -> Statement:
    """The statement with a window for all inputs that are given."""
    if statement.inner is None:
        if window is not None and all(one.window is not None for one in statement.inputs):
            statement.refuse("Every input has a window already", window, "Leave one of the windows out.")
        return replace(statement, window=window)
    return replace(statement, inner=_with_window(statement.inner, window))


def _group_distinct(select: exp.Select) -> None:
    """Put GROUP BY in place of DISTINCT: the rows of a window, each once, are its groups."""
    distinct, items = select.args.get("distinct"), select.expressions
    grouped = any(select.args.get(clause) for clause in ("group", "having", "qualify"))
    computed = any(item.find(exp.Star, exp.AggFunc, exp.Window) for item in items)
    if distinct is not None and not distinct.args.get("on") and not grouped and not computed:
        select.set("distinct", None)
        select.set("group", exp.Group(expressions=[item.unalias().copy() for item in items]))


_ONE_SELECT = "Possible: one SELECT."


def _with_limit(select: exp.Select) -> exp.Select:
    """The same with LIMIT k where FETCH FIRST k ROWS ONLY or WITH TIES was written."""
    fetch = select.args.get("limit")
    if isinstance(fetch, exp.Fetch):
        count = fetch.args.get("count") or exp.Literal.number(1)
        select.set("limit", exp.Limit(expression=count, limit_options=fetch.args.get("limit_options")))
    return select


def _emit(text: str, said: exp.Expr | None) -> str | None:
    if said is None:
        return None
    word = said.name.lower()
    if word not in MODES:
        near = difflib.get_close_matches(word, MODES, n=1, cutoff=0.7)
        hint = f"Did you mean {near[0].upper()}? " if near else ""
        possible = ", ".join(f"EMIT {mode.upper()}" for mode in MODES)
        places = [token.start for token in SkybandSql().tokenize(text) if token.text.upper() == said.name]
        texts.refuse(text, f"EMIT {said.name} is unknown", places[-1], f"{hint}Possible: {possible}.")
    return word


def _number(node: exp.Expr) -> float:
    return -float(node.this.name) if isinstance(node, exp.Neg) else float(node.name)
