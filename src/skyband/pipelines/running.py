"""Runs a pipeline on Spark: starts it, follows it, and stops it after the running micro-batch. The next run continues
it.

The answers of a micro-batch stay in memory until all sinks have them, so that nothing is computed twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from skyband.dialect.statement import Statement
from skyband.engines.spark.failures import has_no_worker, readable
from skyband.engines.spark.processor import STATE_NAME
from skyband.engines.spark.sharing import QUESTION
from skyband.errors import PipelineFailed, SkybandError
from skyband.pipelines.answers import Answers
from skyband.pipelines.checkpoints import Checkpoint
from skyband.pipelines.connect import FROM_PYTHON, take_over
from skyband.pipelines.damage import explained
from skyband.pipelines.figures import Figures
from skyband.pipelines.model import AVAILABLE_NOW, Pipeline
from skyband.pipelines.secrets import hide
from skyband.pipelines.served import ServedPipeline
from skyband.pipelines.server_writer import ServerWriter, letters_of
from skyband.pipelines.sinks import ConsoleTarget, FileTarget, Show, Target, open_target
from skyband.pipelines.streams import Stream, streams_of, write_batch
from skyband.pipelines.tables import TableTarget

_POLL_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 600  # for the micro-batch that runs when a stop is asked for
_STOPPED: Final = (
    "somebody else stopped it: another `skyband run` of this pipeline, which goes on from its checkpoint, or whoever "
    "looks after the server."
)
_MOST_STARTS: Final = 4  # of a stream whose Python worker was lost, or that Spark did not wait for


class Running:
    """A pipeline that runs; `follow` it, and `stop` it."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        show: Show,
        trigger: str | None = None,
        served: ServedPipeline | None = None,
        statements: Mapping[str, Statement] | None = None,
    ) -> None:
        """`statements`: those of the queries, where `check` has read them."""
        self._statements = statements
        self._spark, self._pipeline, self._show, self._served = spark, pipeline, show, served
        self._trigger = trigger or pipeline.trigger
        self._streams: dict[str, Stream] = {}  # those that are no tables
        self._targets: dict[str, list[Target]] = {}  # of a query
        self._read: Counter[str] = Counter()  # of a stream: the micro-batches whose letters were read
        self._is_stopped = False
        self._started: dict[str, StreamingQuery] = {}
        self._starts: Counter[str] = Counter()
        self._outputs: dict[str, tuple[str, ...]] = {}  # the queries of a stream
        self._failed: dict[str, SkybandError] = {}  # what went wrong in our part of a micro-batch
        self._checkpoints: list[Checkpoint] = []
        self.figures: dict[str, Figures] = {}

    def start(self) -> None:
        """Check everything against the real sources, then start every stream."""
        try:
            streams = streams_of(self._spark, self._pipeline, self._statements)
            if self._pipeline.remote is not None:
                take_over(self._spark, self._pipeline, stop_in_order)
            is_new = {stream.name: self._begun(stream) for stream in streams}
            for stream in streams:
                self._start(stream, is_new=is_new[stream.name])
        except Exception as error:
            self.stop()
            raise self._said(error) from error

    def follow(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Figures]:
        """The figures of a query each time a micro-batch of it is done, until all have ended or a stop is asked for."""
        running = True
        while running:
            if stop():
                self.stop()
            running = any(query.isActive for query in self._started.values())  # first: the last look is after the end
            for name in self._started:
                yield from self._news(name)
            running |= self._start_again()
            self._raise_failure()
            time.sleep(_POLL_SECONDS if running else 0)

    def reports(self) -> dict[str, list[Any]]:
        """What Spark reported of the micro-batches of each stream."""
        return {name: [*query.recentProgress] for name, query in self._started.items()}

    def stop(self) -> None:
        """Let the micro-batches that run come to their end, then stop. What was begun after them is done next time."""
        self._is_stopped = True
        stop_in_order([*self._started.values()])

    def _news(self, stream: str) -> Iterator[Figures]:
        query = self._started[stream]
        active = query.isActive
        reports = reports_after(query, min((self.figures[name].batch for name in self._outputs[stream]), default=-1))
        if self._pipeline.remote is not None:
            self._read_letters(stream, reports)
        for name in self._outputs[stream]:
            figures = self.figures[name]
            for report in reports:
                if figures.take(report):
                    yield figures
            if figures.up and not active:
                figures.up = False
                yield figures

    def _read_letters(self, stream: str, reports: Sequence[Mapping[str, Any]]) -> None:
        """What a server's Python wrote for this process to show."""
        for batch in (report["batchId"] for report in reports if report["batchId"] >= self._read[stream]):
            self._read[stream] = batch + 1
            for name, changes, rows in letters_of(self._spark, stream, batch):
                self.figures[name].changes.update(changes)
                if rows is not None:
                    answers = Answers(self._spark, rows)
                    for target in self._targets[name]:
                        if isinstance(target, ConsoleTarget):
                            target.write(answers, batch)
                    self._serve_answers(name, answers, batch)

    def _start_again(self) -> bool:
        """Start streams again that ended because Spark had no Python: they go on from their checkpoints."""
        again = [
            name
            for name, query in self._started.items()
            if self._starts[name] < _MOST_STARTS and (error := query.exception()) and has_no_worker(error)
        ]
        for name in again:
            self._begin(self._streams[name], is_new=False)
        return bool(again)

    def _begin(self, stream: Stream, *, is_new: bool) -> None:
        """Let Spark run a stream. `is_new`: for the first time."""
        self._starts[stream.name] += 1
        self._failed.pop(stream.name, None)
        write = self._writer(stream) if self._pipeline.remote is None else self._server_writer(stream, is_new=is_new)
        writer = stream.rows.writeStream.queryName(stream.name).outputMode(stream.mode).foreachBatch(write)
        writer = writer.option("checkpointLocation", stream.checkpoint.location)
        if self._trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif self._trigger is not None:
            writer = writer.trigger(processingTime=self._trigger)
        self._started[stream.name] = writer.start()
        for name in stream.outputs:
            self.figures[name].up = True

    def _raise_failure(self) -> None:
        for stream, query in self._started.items():
            error: Exception | None = query.exception()
            if error is None and self._was_stopped_by_another(query):
                error = PipelineFailed(_STOPPED)
            if error is not None:
                said = self._said(self._failed.get(stream) or error)
                if self._served is not None:
                    self._served.fail(self._outputs[stream], str(said))
                self.stop()
                raise PipelineFailed(f"{', '.join(self._outputs[stream])} failed: {said}") from error

    def _said(self, error: BaseException) -> SkybandError:
        """The error in words, without a secret."""
        ours = readable(error)
        if not isinstance(error, SkybandError):
            places = [(one.location, one.note) for one in self._checkpoints]
            said = [words for place in places if (words := explained(str(error), *place)) is not None]
            ours = PipelineFailed("\n".join(said)) if said else ours
        hidden = hide(str(ours), self._pipeline.secret_names())
        return ours if hidden == str(ours) else PipelineFailed(hidden)

    def _was_stopped_by_another(self, query: StreamingQuery) -> bool:
        """On a server others can; elsewhere nobody knows of it."""
        is_endless = self._pipeline.remote is not None and self._trigger != AVAILABLE_NOW
        return is_endless and not self._is_stopped and not query.isActive

    def _begun(self, stream: Stream) -> bool:
        """Open the sinks of a stream, and find its checkpoint fit for it. True: nothing was written yet."""
        is_stream = stream.rows.isStreaming
        for name, output in stream.outputs.items():
            sinks = [self._pipeline.sinks[to] for to in output.to]
            self._targets[name] = [
                open_target(self._spark, self._pipeline, sink, name, output.key, self._show, is_stream=is_stream)
                for sink in sinks
                # A server's Python opens those itself: it may be the only one that reaches them.
                if self._pipeline.remote is None or not is_stream or sink.format not in FROM_PYTHON
            ]
        self.figures |= {name: Figures(name, shared=stream.is_shared) for name in stream.outputs}
        self._outputs[stream.name] = tuple(stream.outputs)
        if not is_stream:
            self._serve(stream, is_resumed=False)
            return True
        self._checkpoints.append(stream.checkpoint)
        is_resumed = stream.checkpoint.begin({name: output.asked for name, output in stream.outputs.items()})
        self._serve(stream, is_resumed=is_resumed)
        if is_resumed:
            self._recall(stream)
        else:
            for target in (target for name in stream.outputs for target in self._targets[name]):
                if isinstance(target, FileTarget | TableTarget):
                    target.refuse_leftovers(stream.checkpoint)
        return not is_resumed

    def _serve(self, stream: Stream, *, is_resumed: bool) -> None:
        if self._served is not None:
            specs = {name: output.spec for name, output in stream.outputs.items() if output.spec is not None}
            self._served.begin(specs, self.figures, is_resumed=is_resumed)

    def _recall(self, stream: Stream) -> None:
        """What the state of a stream held when it stopped."""
        checkpoint = stream.checkpoint
        if not stream.is_stateful or not checkpoint.exists_in(f"{checkpoint.location}/commits", ""):
            return
        state = self._spark.read.format("statestore").option("stateVarName", STATE_NAME).load(checkpoint.location)
        held = "coalesce(sum(value.rows_held), 0)", "coalesce(sum(value.bytes), 0)"
        for name, output in stream.outputs.items():
            mine = state if output.number is None else state.where(f"key.{QUESTION} = {output.number}")
            self.figures[name].rows_held, self.figures[name].bytes_held = mine.selectExpr(*held).collect()[0]

    def _start(self, stream: Stream, *, is_new: bool) -> None:
        if not stream.rows.isStreaming:
            self._writer(stream)(stream.rows, 0)
            for name in stream.outputs:
                self.figures[name].up = False
            return
        self._streams[stream.name] = stream
        self._begin(stream, is_new=is_new)

    def _writer(self, stream: Stream) -> Callable[[DataFrame, int], None]:
        """For foreachBatch."""

        def said(name: str, answers: Answers, batch: int) -> None:
            self._serve_answers(name, answers, batch)
            self.figures[name].changes.update(answers.by_change())

        def write(rows: DataFrame, batch: int) -> None:
            try:
                write_batch(self._spark, stream.outputs, self._targets, rows, batch, said)
            except Exception as error:
                self._failed[stream.name] = readable(error)
                raise

        return write

    def _server_writer(self, stream: Stream, *, is_new: bool) -> ServerWriter:
        """For foreachBatch through Spark Connect."""
        shown = {
            name
            for name, output in stream.outputs.items()
            if self._served is not None or any(isinstance(target, ConsoleTarget) for target in self._targets[name])
        }
        return ServerWriter(self._spark, self._pipeline, stream, frozenset(shown), is_new=is_new)

    def _serve_answers(self, name: str, answers: Answers, batch: int) -> None:
        if self._served is not None:  # when the sinks have it: nobody is told what may be undone
            self._served.take(name, answers, batch)


def stop_in_order(queries: Sequence[StreamingQuery]) -> None:
    """Stop queries of Spark, each after the micro-batch that it runs."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for query in queries:
        done = _batches_done(query)
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            if _batches_done(query) > done:
                break
            time.sleep(_POLL_SECONDS)
        query.stop()


def reports_after(query: StreamingQuery, batch: int) -> Sequence[Mapping[str, Any]]:
    """What Spark reported after this micro-batch. Nearly always that is nothing, or the last report: to read all that
    Spark keeps (1,000 of them) takes a fifth of a second, and this is asked ten times a second."""
    last: Any = query.lastProgress
    if last is None or last["batchId"] <= batch:
        return ()
    return (last,) if last["batchId"] == batch + 1 else query.recentProgress


def _batches_done(query: StreamingQuery) -> int:
    progress: Mapping[str, Any] | None = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
