"""The base of the problems whose queries have one window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.plan import Step, in_panes
from skyband.core.problem import Problem, Running
from skyband.engines.embedded.running import run
from skyband.windows import Span, Window


class Windowed(Protocol):
    """A query with one window for all its inputs."""

    @property
    def window(self) -> Window: ...


W = TypeVar("W", bound=Windowed)


class OneWindowProblem(Problem[W]):
    """A problem whose queries have one window for all their inputs."""

    has_one_window = True
    shares_a_pass: ClassVar[bool] = False  # on Spark, can several queries share one pass over a stream?
    codec_type: ClassVar[Callable[..., Codec[Any, Any]]]

    def codec(self, query: W, schema: Any, *, external_clock: bool = False) -> Codec[Any, Any]:
        return self.codec_type(query, schema, external_clock=external_clock)

    def windows(self, query: W) -> tuple[Step, ...]:
        return (Step("window", in_panes(query.window)),)

    def start(self, data: Any, query: W) -> Running:
        return run(data, partial(self.open, query), query.window)

    def bucket_on_spark(self, query: W, schema: Any, snapshot: bytes, *, external_clock: bool) -> Any:
        return self.session(self.codec(query, schema, external_clock=external_clock), snapshot)

    def answer_on_spark(self, query: W, sessions: Sequence[Any], k: int | None, size: Span | None) -> pa.Table:
        answer: pa.Table = self._spark.answer_now(query, sessions, k, size)
        return answer

    @property
    def _spark(self) -> Any:
        return import_module(f"skyband.problems.{self.name}.spark")  # by name: only Spark's users have PySpark

    def refuses_spark(self, query: W) -> str | None:
        if query.window.lacks_order:
            return "a window of arrivals needs order=, the column that defines the order of arrival"
        return None

    def clock_column(self, query: W) -> str | None:
        if not self.shares_a_pass:
            return None
        return query.window.on or "" if query.window.every is not None else ""
