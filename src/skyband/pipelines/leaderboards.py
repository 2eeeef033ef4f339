"""A leaderboard as a sink: the latest window as a sorted set of Redis, whole at any moment.

`board` is the name of the set; {query}, and a column such as {symbol}, stand in it for their values, so that each group
has a board of its own. In a value the signs %, {, } and : are escaped as in an address, so that none can name the board
of another. `member` is the column that names who is ranked; of one that is ranked several times, the best rank counts,
and a row whose member is null ranks nobody. The end of the window that a board shows is kept under a name of ours, so
that a restart that repeats old windows changes nothing.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import pyarrow as pa

from skyband.errors import EnvironmentProblem
from skyband.pipelines.answers import Answers
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.secrets import resolve

# In one step, so that nobody sees half a board: not before the window that is shown, nor mixed with another.
_SHOW = """
local shown = tonumber(redis.call('GET', KEYS[2]))
if shown and shown > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('SET', KEYS[2], ARGV[1])
return 1
"""

RESERVED: Final = "skyband:"  # what names of our own begin with
_ESCAPED: Final = str.maketrans({sign: f"%{ord(sign):02X}" for sign in "%{}:"})
_NULL: Final = "%null"  # what stands for a value that is not there; a percent sign in a value is escaped


class LeaderboardTarget:
    """Sorted sets of a Redis server."""

    def __init__(self, pipeline: Pipeline, query: str, sink: Sink) -> None:
        try:
            import redis
        except ImportError as error:
            raise EnvironmentProblem("A leaderboard needs the package redis: pip install redis.") from error
        self._pipeline, self._sink = pipeline, sink
        self._board, self._query = resolve(str(sink.board)), query
        self._member = str(sink.member)
        self._client = redis.Redis.from_url(resolve(str(sink.url)))
        self._show = self._client.register_script(_SHOW)
        try:
            self._client.ping()
        except redis.RedisError as error:
            raise EnvironmentProblem(f"No Redis answers at {sink.url}: {error}") from error

    def write(self, answers: Answers, batch: int) -> None:
        for needed in ("window_end", "rank"):
            if needed not in answers.columns:
                raise self._pipeline.wrong(
                    "A leaderboard shows the ranks of windows: the statement needs ORDER BY … LIMIT and EMIT WINDOWS.",
                    *("sinks", self._sink.name),
                )
        for board, rows in self._boards(answers.table).items():
            end = max(row["window_end"] for row in rows)
            latest = [row for row in rows if row["window_end"] == end]
            scores = [part for member, row in self._best(latest).items() for part in (_score(row), member)]
            self._show(keys=[board, f"{RESERVED}window_end:{board}"], args=[end, *scores])

    def _best(self, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """By member its best row: a sorted set has each member once, with the score that it is given last."""
        best: dict[str, dict[str, Any]] = {}
        for row in sorted(rows, key=lambda row: row["rank"]):
            if row[self._member] is not None:
                best.setdefault(str(row[self._member]), row)
        return best

    def _boards(self, answers: pa.Table) -> dict[str, list[dict[str, Any]]]:
        """The rows by the board they belong to; times as microseconds."""
        end = answers.schema.get_field_index("window_end")
        if pa.types.is_timestamp(answers.schema.field(end).type):
            micros = answers.column(end).cast(pa.timestamp("us", answers.schema.field(end).type.tz)).cast(pa.int64())
            answers = answers.set_column(end, "window_end", micros)
        boards: dict[str, list[dict[str, Any]]] = {}
        for row in answers.to_pylist():
            boards.setdefault(self._named(row), []).append(row)
        return boards

    def _named(self, row: dict[str, Any]) -> str:
        """The board of a row."""
        values = {"query": self._query, **row}

        def put(place: re.Match[str]) -> str:
            if place[1] not in values:
                return place[0]
            value = values[place[1]]
            return _NULL if value is None else str(value).translate(_ESCAPED)

        return re.sub(r"\{([^{}]*)\}", put, self._board)


def _score(row: dict[str, Any]) -> float:
    """What the set is sorted by: the score; of ranked groups, which have none, the rank from below."""
    score = row.get("score")
    if score is None:
        return -float(row["rank"])
    return -math.inf if math.isnan(score) else float(score)  # Redis knows no NaN; it comes last
