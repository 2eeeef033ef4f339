"""How the work is spread on Spark: over buckets by a key whose rows belong together, or in one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from skyband.expressions.many import equalities
from skyband.problems.across.query import TopKAcross
from skyband.problems.joins import distribution as join_spreading
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import FOREVER, Ticks

Query = TopK | TopKForEach | TopKPairs | TopKAcross | JoinAggregate


@dataclass(frozen=True, slots=True)
class Spread:
    """Over several buckets, or not, and why."""

    is_spread: bool
    why: str


def by_pane(ticks: Ticks) -> bool:
    """Do answers come at the ends of windows by value?"""
    return not ticks.by_count and ticks.every > 0


def by_its_rows(ticks: Ticks) -> bool:
    """Does what a window shows depend on nothing but the rows that it shows, and time?

    In a window of arrivals, and without a slide, a row matters to queries that do not want it; and one from the start
    on is shown as long as any row comes.
    """
    return by_pane(ticks) and ticks.size != FOREVER


# A bucket by itself knows neither when the last row of all comes nor that others have rows where it has none.
_FROM_THE_START = Spread(
    False, "in one place: a window from the start on is shown as long as rows come, of whatever key"
)


def spread(query: Query, ticks: Ticks) -> Spread:
    """How `query`, whose window is `ticks`, is spread."""
    how = _by_key(query, ticks)
    # Where queries are dealt out every bucket gets all rows.
    if how.is_spread and ticks.size == FOREVER and by_pane(ticks) and not isinstance(query, TopKForEach):
        return _FROM_THE_START if query.emit == "windows" else how
    return how


@singledispatch
def _by_key(query: Query, ticks: Ticks) -> Spread:
    """The same, of a window that ends."""
    raise AssertionError(f"a query of no known kind: {query}")


@_by_key.register
def _(query: TopK, ticks: Ticks) -> Spread:
    if not query.per:
        return Spread(False, "in one place: there is one ranking")
    if not (by_pane(ticks) or ticks.by_count):
        return Spread(False, "in one place: each row moves the one clock that all groups share")
    return Spread(True, f"over buckets by {', '.join(query.per)}: each ranks its own groups")


@_by_key.register
def _(query: TopKForEach, ticks: Ticks) -> Spread:
    if by_its_rows(ticks) and (by := equalities(query.where)):
        asked = ", ".join(f"q.{name}" for _, name in by)
        return Spread(True, f"over buckets by {asked}: a row goes to the queries that ask for its value")
    if by_its_rows(ticks) and len(query.queries):  # else they are a stream, and there are none yet
        return Spread(True, "over buckets by query: each of them gets the rows of a pane that its queries may show")
    return Spread(True, "over buckets by query: each of them gets every row")


@_by_key.register
def _(query: TopKPairs, ticks: Ticks) -> Spread:
    if not by_pane(ticks) or query.emit != "windows":
        return Spread(False, "in one place: answers do not come window by window")
    if query.same:
        return Spread(True, f"over buckets by {', '.join(query.same)}, merged for each window")
    return Spread(True, "over a triangle of buckets, in one of which any two rows meet; merged for each window")


@_by_key.register
def _(query: TopKAcross, ticks: Ticks) -> Spread:
    if not by_pane(ticks) or query.emit != "windows":
        return Spread(False, "in one place: answers do not come window by window")
    return Spread(True, f"over buckets by {query.id}, merged for each window")


def spread_join(query: JoinAggregate, bound: BoundJoin) -> Spread:
    """The same of a join, which needs to know the columns."""
    how = join_spreading.spread(query, bound)
    if how is None:
        lasts = join_spreading.shows_without_rows(query, bound)
        return _FROM_THE_START if lasts else Spread(False, f"in one place: {_why_not(query)}")
    by = ", ".join(f"{name}.{column}" for name, columns in how.columns.items() for column in columns)
    if not how.adds_up:
        return Spread(True, f"over buckets by {by}: each has whole groups" + (", ranked once more" if query.k else ""))
    return Spread(True, f"over buckets {f'by {by}' if by else 'by turns'}, whose parts of groups are added up")


def _why_not(query: JoinAggregate) -> str:
    if query.every is None:
        return "each row moves the windows of all"
    if query.emit != "windows":
        return "what changed is known only there"
    return "parts of these aggregates cannot be added up exactly"
