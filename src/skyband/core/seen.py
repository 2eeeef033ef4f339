"""The rows that a session has seen of late: for pictures of it, and to say why a row is where it is.

Rows are kept as they came, without a copy, until there are too many of them. Rows that the session still holds are kept
longer. Places and scores are computed when somebody looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.encoding.schemas import whole_batch
from skyband.expressions import bind_condition
from skyband.windows import Window

MOST_ROWS: Final = 200_000  # that are remembered
MOST_COMPARED: Final = 20_000  # rows, to find one by what it shows
STAIRS: Final = 600  # of the k-th score over time
_MOST_PIECES: Final = 256  # beyond which small pieces are put together
_PIECE_ROWS: Final = 4_096

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass
class Piece:
    """Rows that came together."""

    position: Ints
    rows: pa.RecordBatch
    place: Floats | None = None  # in the window: seconds, numbers or arrivals; computed when first asked for
    score: Floats | None = None


@dataclass(frozen=True)
class Row:
    """One row that was seen."""

    position: int
    place: float
    score: float
    values: dict[str, Any]


class SeenRows:
    """The latest rows of one input."""

    def __init__(
        self,
        schema: pa.Schema,
        window: Window,
        *,
        held: Callable[[], Ints] | None = None,
        score: Callable[[pa.RecordBatch], Any] | None = None,
    ) -> None:
        """`held`: the arrivals that are remembered for as long as the session holds them, in the session's own turn.
        `score`: what rows are worth by themselves."""
        self.schema, self.window = schema, window
        self._held, self._score = held, score
        self._pieces: deque[Piece] = deque()
        self._old = Piece(np.empty(0, np.int64), pa.RecordBatch.from_pylist([], schema))
        self._rows = 0
        self._arrivals = 0
        self._stairs: deque[tuple[float, float]] = deque(maxlen=STAIRS)
        self._lock = Lock()

    def take(self, first: int, batch: pa.RecordBatch) -> None:
        """Remember rows; called by the thread that pushes them."""
        if not batch.num_rows:
            return
        if batch.num_rows > MOST_ROWS:
            first, batch = first + batch.num_rows - MOST_ROWS, batch.slice(batch.num_rows - MOST_ROWS)
        with self._lock:
            self._pieces.append(Piece(np.arange(first, first + batch.num_rows), batch))
            self._rows += batch.num_rows
            self._arrivals = first + batch.num_rows
            if len(self._pieces) > _MOST_PIECES + self._rows // _PIECE_ROWS:
                self._pieces = deque(_joined(self._pieces))
            while self._rows > MOST_ROWS and len(self._pieces) > 1:
                self._forget(self._pieces.popleft())

    @property
    def arrivals(self) -> int:
        """How many rows have come."""
        return self._arrivals

    def pieces(self) -> list[Piece]:
        """All that is remembered, with scores, the oldest first."""
        with self._lock:
            pieces = [self._old, *self._pieces]
            for piece in pieces:
                if piece.place is None:
                    piece.place = self._places(piece)
                    if self._score is not None:
                        piece.score = np.asarray(self._score(piece.rows), np.float64)
            return pieces

    def now(self) -> float:
        """Where the window ends: the latest place that was seen, or the number of arrivals."""
        if self.window.on is None:
            return float(self._arrivals)
        places = [each.place for each in self.pieces() if each.place is not None and len(each.place)]
        return max((float(np.nanmax(place)) for place in places), default=0.0)

    @property
    def is_time(self) -> bool:
        """Are places seconds?"""
        on = self.window.on
        return on is not None and pa.types.is_temporal(self.schema.field(on).type)

    def size(self) -> float | None:
        """The window's length in places; None: it has no beginning."""
        return _span(self.window.size)

    def every(self) -> float | None:
        return _span(self.window.every)

    def ends(self, place: Floats) -> Floats:
        """Until where rows live: with a slide, to the end of the last window that holds them."""
        size, every = self.size(), self.every()
        if size is None:
            return np.full(len(place), np.inf)
        if every is None:
            return place + size
        if self.window.on is None:  # the last window that ends before `size` more rows have come
            return (np.ceil((place + size) / every) - 1) * every
        return np.floor((place + size) / every) * every

    def live(self, most: int) -> tuple[Ints, Floats, pa.RecordBatch]:
        """The rows that a window to come still has, in their order: the latest `most` of them, with their arrivals and
        places."""
        pieces, now = self.pieces(), self.now()
        position = np.concatenate([piece.position for piece in pieces])
        place = np.concatenate([piece.place for piece in pieces if piece.place is not None])
        with np.errstate(invalid="ignore"):
            which = np.flatnonzero(self.ends(place) > now)
        which = which[np.lexsort((position[which], place[which]))][-most:]
        rows = pa.Table.from_batches([piece.rows for piece in pieces], self.schema).take(pa.array(which))
        return position[which], place[which], whole_batch(rows)

    def rows_in_window(self) -> int | None:
        """How many rows the window has; None: it has more than are remembered."""
        size = self.size()
        if self.window.on is None:
            return self._arrivals if size is None else int(min(self._arrivals, size))
        if size is None:
            return self._arrivals
        start, pieces = self.now() - size, self.pieces()
        if self._arrivals > self._rows and pieces[1].place is not None and float(np.nanmin(pieces[1].place)) > start:
            return None
        return sum(int((piece.place > start).sum()) for piece in pieces[1:] if piece.place is not None)

    def row(self, position: int) -> Row | None:
        for piece in self.pieces():
            at = int(np.searchsorted(piece.position, position))
            if at < len(piece.position) and piece.position[at] == position:
                return _row(piece, at)
        return None

    def find(self, where: str, most: int) -> list[Row]:
        """The newest rows that meet a condition."""
        condition = bind_condition(where, self.schema, used_as="the search")
        found: list[Row] = []
        for piece in reversed(self.pieces()):
            for at in np.flatnonzero(condition.evaluate(piece.rows))[::-1].tolist():
                found.append(_row(piece, at))
                if len(found) == most:
                    return found
        return found

    def showing(self, row: Mapping[str, Any], plain: Callable[[Any], Any]) -> int | None:
        """The newest arrival that has these values in the columns that both have; `plain` makes of a value what `row`
        has of it."""
        names, left = [name for name in self.schema.names if name in row], MOST_COMPARED
        for piece in reversed(self.pieces()):
            first = max(0, len(piece.position) - left)
            part = piece.rows.slice(first)
            which = list(range(part.num_rows))
            for name in names:
                column = part.column(name).take(pa.array(which, pa.int64())).to_pylist()
                which = [at for at, value in zip(which, column, strict=True) if plain(value) == row[name]]
            if names and which:
                return int(piece.position[first + which[-1]])
            left -= part.num_rows
        return None

    def step(self, now: Any, score: float) -> None:
        """The k-th score is this from now on; `now` is None as long as the window's column has not been seen."""
        if (now is not None or self.window.on is None) and (not self._stairs or self._stairs[-1][1] != score):
            self._stairs.append((as_place(self.arrivals if now is None else now), score))

    def stairs(self) -> list[tuple[float, float]]:
        return list(self._stairs)

    def _forget(self, piece: Piece) -> None:
        """Of the rows that go, those that are held stay; so do others of them that were kept before."""
        self._rows -= piece.rows.num_rows
        if self._held is None:
            return
        held = self._held()
        position = np.concatenate([self._old.position, piece.position])
        rows = pa.concat_batches([self._old.rows, piece.rows])
        kept = np.isin(position, held)
        self._old = Piece(position[kept], rows.filter(pa.array(kept)))

    def _places(self, piece: Piece) -> Floats:
        if self.window.on is None:
            return piece.position.astype(np.float64) + 1
        return as_places(piece.rows.column(self.window.on))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same rows in fewer pieces."""
    small: list[Piece] = []
    for piece in pieces:
        small.append(piece)
        if sum(each.rows.num_rows for each in small) >= _PIECE_ROWS:
            yield _one(small)
            small = []
    if small:
        yield _one(small)


def _one(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(
        np.concatenate([piece.position for piece in pieces]), pa.concat_batches([piece.rows for piece in pieces])
    )


def _span(given: int | timedelta | None) -> float | None:
    return None if given is None else given.total_seconds() if isinstance(given, timedelta) else float(given)


def as_places(column: pa.Array) -> Floats:
    """Times in seconds since the epoch, numbers as they are."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64(), safe=False).fill_null(float("nan"))) / 1e6
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(float("nan")))


def as_place(value: Any) -> float:
    """The same of one value of Python."""
    if not isinstance(value, datetime):
        return float(value)
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def _row(piece: Piece, at: int) -> Row:
    assert piece.place is not None
    values = piece.rows.slice(at, 1).to_pylist()[0]
    score = float("nan") if piece.score is None else float(piece.score[at])
    return Row(int(piece.position[at]), float(piece.place[at]), score, values)
