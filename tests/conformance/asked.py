"""Questions as a user asks them, each of every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from engines.spark.streams import Line, lines

ONE = ""  # the name of the only input


@dataclass(frozen=True)
class Asked:
    """A question and its inputs, by name."""

    ask: Callable[..., Any]  # sb.top_k, …
    inputs: Mapping[str, pa.Table]
    options: Mapping[str, Any]
    closes: bool = True  # windows, as the watermark moves; other answers come with each row
    in_order: bool = False  # there is one ranking, so answers come in the order in which they became known
    streams: bool = True  # it is asked over streams, too
    when_streamed: Mapping[str, Any] = field(default_factory=dict)  # options, then
    tables: tuple[str, ...] = ()  # inputs that are no streams
    buckets: int | None = None  # on Spark; None: as many as it finds best
    most_states: int | None = None  # that Spark keeps
    filtered: int = 0  # rows that a condition drops before Spark counts them
    least: int = 20  # lines in the answer, or the question asks for too little
    reference: Mapping[str, Any] = field(default_factory=lambda: {"algorithm": "recompute"})

    def of(self, inputs: Mapping[str, Any], **more: Any) -> Any:
        """The answer over these inputs."""
        return self.ask(inputs.get(ONE, inputs), **{**self.options, **more})

    @cached_property
    def expected(self) -> pa.Table:
        """What recomputing from scratch answers in this process, over whole tables."""
        return self.of(self.inputs, **self.reference)

    @property
    def mode(self) -> str:
        """What Spark calls the way in which the answers of a stream come."""
        return "append" if self.options.get("emit", "windows") == "windows" and self.closes else "update"

    def closed(self) -> list[Line]:
        """What a stream says by its end: a window whose end the watermark has not reached stays open."""
        expected = self.of(self.inputs, **self.reference, **self.when_streamed)
        found = lines(expected)
        moved_by = self._moved_by()
        if not moved_by or not self.closes:
            return found
        at = expected.column_names.index("window_end" if "window_end" in expected.column_names else "at")
        until = max(max(lines(self.inputs[name].select([on])))[0] for name, on in moved_by.items())
        return [line for line in found if line[at] <= until - self._lateness]

    def _moved_by(self) -> dict[str, str]:
        """By input: the column whose times close windows."""
        windows = {ONE: self.options["window"]} if "window" in self.options else self.options["inputs"]
        streams = {name: getattr(each, "window", each) for name, each in windows.items() if name not in self.tables}
        return {name: window.on for name, window in streams.items() if window.on is not None}

    @property
    def _lateness(self) -> int:
        lateness = self.when_streamed.get("lateness", self.options.get("lateness", 0))
        return lateness if isinstance(lateness, int) else SPANS[lateness]


SPANS = {"15 seconds": 15_000_000}  # in microseconds
