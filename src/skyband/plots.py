"""Charts of answers and sessions, as matplotlib axes: `skyband.plots`. Needs `pip install 'skyband[notebook]'`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.calls import Came
from skyband.core.session import Session
from skyband.errors import EnvironmentProblem, InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Followed", "follow", "kth_score", "ranks"]

_NOT_NAMES: Final = ("window_start", "window_end", "rank", "score")
_MOST_LINES: Final = 12  # rows that get a line of their own colour


def ranks(answer: Any, by: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw ranks over time: a line for each value of a column, with the best rank on top.

    Parameters
    ----------
    answer
        The windows of one ranking, as `top_k` and its siblings return them: Arrow, pandas or polars.
    by
        The column that names who is ranked. None: the first column of text, or else the first column that the window
        and the score leave.
    ax
        The axes to draw on. None: those of a new figure.

    Returns
    -------
    The axes.

    Raises
    ------
    InvalidInput
        The answer has no windows with ranks, or several rankings, or no such column.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> from skyband import plots
    >>> trades = pa.table({"t": [0, 1, 2, 3], "symbol": ["OAK", "ELM", "OAK", "ELM"], "price": [5, 4, 3, 6]})
    >>> best = sb.top_k(trades, k=2, by="price", window=sb.tumbling(2, on="t"))
    >>> len(plots.ranks(best).lines)
    2
    """
    table = _windows(answer)
    name = _named_by(table, by)
    ax = _axes(ax)
    from matplotlib.ticker import MaxNLocator

    ends = _in_order(table)
    place = {end: number for number, end in enumerate(ends)}
    listed: dict[Any, list[float]] = {}
    for end, rank, who in zip(*(table.column(each).to_pylist() for each in ("window_end", "rank", name)), strict=True):
        known = listed.setdefault(who, [float("nan")] * len(ends))
        known[place[end]] = min(rank, known[place[end]]) if known[place[end]] == known[place[end]] else rank
    longest = sorted(listed, key=lambda who: sum(rank != rank for rank in listed[who]))
    for number, who in enumerate(longest):
        style: dict[str, Any] = {"label": str(who)} if number < _MOST_LINES else {"color": "0.75", "zorder": 1}
        ax.plot(ends, listed[who], marker="o", markersize=4, **style)
    ax.invert_yaxis()
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("end of the window")
    ax.set_ylabel("rank")
    ax.legend(title=name, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


def kth_score(answer: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the score that a new row has to beat: that of the last rank, window by window, as a staircase.

    Parameters
    ----------
    answer
        The windows of one ranking, as `top_k` and its siblings return them: Arrow, pandas or polars.
    ax
        The axes to draw on. None: those of a new figure.

    Returns
    -------
    The axes.

    Raises
    ------
    InvalidInput
        The answer has no windows with ranks and scores, or several rankings.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> from skyband import plots
    >>> trades = pa.table({"t": [0, 1, 2, 3], "price": [5, 4, 3, 6]})
    >>> best = sb.top_k(trades, k=2, by="price", window=sb.tumbling(2, on="t"))
    >>> plots.kth_score(best).lines[0].get_ydata().tolist()
    [4.0, 3.0]
    """
    table = _windows(answer)
    if "score" not in table.schema.names:
        raise InvalidInput(f"This answer has no scores. Its columns: {', '.join(table.schema.names)}.")
    k = pc.max(table.column("rank"))
    last = table.filter(pc.equal(table.column("rank"), k))
    ax = _axes(ax)
    scores = last.column("score").cast(pa.float64(), safe=False).to_pylist()
    ax.step(last.column("window_end").to_pylist(), scores, where="post")
    ax.set_xlabel("end of the window")
    ax.set_ylabel(f"score of rank {k}")
    return ax


class Followed:
    """How many rows a session holds, push by push. `follow` makes one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.rows_in: list[int] = []
        self.rows_held: list[int] = []
        self.close: Callable[[], None] = session.observe(self._observe)

    def held(self, *, ax: Axes | None = None) -> Axes:
        """Draw the rows held against the rows read."""
        ax = _axes(ax)
        ax.plot(self.rows_in, self.rows_held)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("rows read")
        ax.set_ylabel("rows held")
        return ax

    def _observe(self, first: int, came: Came, result: pa.Table) -> None:
        stats = self._session.stats()
        self.rows_in.append(stats.rows_in)
        self.rows_held.append(stats.rows_held)


def follow(session: Session) -> Followed:
    """Note after each push how many rows a session holds, until `close()`; `held()` draws it.

    Parameters
    ----------
    session
        Any session.

    Returns
    -------
    The numbers so far: `rows_in` and `rows_held`, and `held()`, which draws them.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> from skyband import plots
    >>> session = sb.TopK(k=1, by="x", window=sb.sliding(4)).open(pa.schema({"x": pa.int64()}))
    >>> followed = plots.follow(session)
    >>> for x in (1, 3, 2, 1):
    ...     _ = session.push(pa.table({"x": [x]}))
    >>> followed.rows_in
    [1, 2, 3, 4]
    >>> max(followed.rows_held) <= 4
    True
    >>> ax = followed.held()
    """
    return Followed(session)


# -- inside ------------------------------------------------------------------------------------------------------------


def _windows(answer: Any) -> pa.Table:
    table = answer if isinstance(answer, pa.Table) else pa.table(answer)
    missing = [name for name in ("window_end", "rank") if name not in table.schema.names]
    if missing:
        raise InvalidInput(
            f"This answer has no column {missing[0]!r}: ranks over time are drawn of windows (emit='windows'). Its "
            f"columns: {', '.join(table.schema.names)}."
        )
    if table.group_by(["window_end", "rank"]).aggregate([]).num_rows < table.num_rows:
        raise InvalidInput("This answer has several rankings: keep the rows of one of them, such as one group.")
    return table


def _named_by(table: pa.Table, by: str | None) -> str:
    possible = [name for name in table.schema.names if name not in _NOT_NAMES]
    if by is not None:
        if by not in table.schema.names:
            raise InvalidInput(f"by={by!r} is no column of the answer. Columns: {', '.join(table.schema.names)}.")
        return by
    texts = [name for name in possible if pa.types.is_string(table.schema.field(name).type)]
    if not possible:
        raise InvalidInput("Nothing names the rows of this answer: it has a score alone.")
    return (texts or possible)[0]


def _in_order(table: pa.Table) -> list[Any]:
    ends: list[Any] = pc.unique(table.column("window_end")).to_pylist()
    return sorted(ends)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise EnvironmentProblem("Charts need the package matplotlib: pip install 'skyband[notebook]'.") from error
    made: Axes = pyplot.subplots(figsize=(7, 3.5), layout="constrained")[1]
    return made
