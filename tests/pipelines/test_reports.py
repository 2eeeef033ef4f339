"""Example test: to follow a pipeline is to read the last report of a stream, or all that Spark keeps after a gap."""

from __future__ import annotations

from typing import Any

from skyband.pipelines.running import reports_after


class Stream:
    """A streaming query that counts how often all its reports are read."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.reads = 0

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.kept[-1] if self.kept else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        self.reads += 1
        return [*self.kept]


def test_each_report_is_read_once_and_all_of_them_only_after_a_gap() -> None:
    stream, seen = Stream(), -1
    assert [*reports_after(stream, seen)] == []
    for batch in range(5):
        stream.kept.append({"batchId": batch})
        assert [report["batchId"] for report in reports_after(stream, seen)] == [batch]
        seen = batch
        assert [*reports_after(stream, seen)] == []
    assert stream.reads == 0
    stream.kept += [{"batchId": 5}, {"batchId": 6}]
    assert [report["batchId"] for report in reports_after(stream, seen)][-2:] == [5, 6]
    assert stream.reads == 1


def test_a_stream_that_continues_begins_at_the_batch_of_its_checkpoint() -> None:
    stream = Stream()
    stream.kept.append({"batchId": 57})
    assert [report["batchId"] for report in reports_after(stream, -1)] == [57]
