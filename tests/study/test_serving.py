"""Example tests: the tables of readers on a page are replaced as a whole, and the rest of the page stays; readers count
what they get."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from waiting import wait_until

import skyband as sb
from skyband.errors import InvalidInput
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.watching import Watched
from skyband.study.processes import Shares
from skyband.study.readers import Publisher, reading
from skyband.study.serving import Found, report, report_pipeline
from skyband.study.serving_pipeline import PipelineTurn

TURNS = [Found(0, 10, 4e6, 8e6, 0, 0, 0, 0.0, 0.0), Found(20, 10, 3e6, 6e6, 190, 10, 0, 1.6, 9.4)]
CORES = Shares(1.1, 0.01, 0.05, 0.07, 0.1)
PIPELINE_TURNS = [
    PipelineTurn(20, 10, 9e5, 31, CORES, 190, 10, 0, 1.6, 9.4),
    PipelineTurn(0, 10, 1e6, 33, Shares(1.0, 0.0, 0.0, 0.0, 0.2), 0, 0, 0, 0.0, 0.0),
]
PAGE = """before
<!-- readers of a pipeline: skyband bench serving --report -->
old
<!-- end of readers -->
between
<!-- readers: skyband bench serving --report -->
old
<!-- end of readers -->
after
"""


def test_the_tables_of_a_page_are_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    for _ in range(2):
        report(TURNS, page)
        report_pipeline(PIPELINE_TURNS, page)
        lines = page.read_text().splitlines()
        assert [lines[0], lines[7], lines[-1]] == ["before", "between", "after"]
        alone, read = lines[4:6]
        assert alone.startswith(
            "| 0 |  |  |  |  |  |  | 1.00 million (1.000) | 33 | 1.000 | 0.000 | 0.000 | 0.000 | 0.200 | 2"
        )
        assert read.startswith("| 20 | 200 | 190 | 10 | 0 | 2 ms | 9 ms | 0.90 million (0.900) | 31 | 1.100 | 0.010 |")
        alone, read = lines[11:13]
        assert alone.startswith("| 0 |  |  |  |  |  |  | 4.0 million | 8.0 million (1.00) | 2")
        assert read.startswith("| 20 | 200 | 190 | 10 | 0 | 2 ms | 9 ms | 3.0 million | 6.0 million (0.75) | 2")


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(InvalidInput, match="has no place for the table"):
        report(TURNS, page)


def test_readers_count_what_they_get_and_when() -> None:
    watched = Watched(sb.TopK(k=1, by="x", window=sb.sliding(2)).open(pa.schema({"x": pa.float64()})), "clock")
    catalog = Catalog("load")
    catalog.add(watched)
    with Server(catalog) as server, reading(server.port, "clock", 12) as connected:
        publisher = Publisher(watched.board)

        def published() -> bool:
            publisher.tick(pa.table({"x": [float(len(publisher.published))]}))
            return len(publisher.published) == 5

        wait_until(published, "five answers")
        watched.close()
        read = connected.result()
    assert (read.received, read.skipped) == (60, 0)
    assert sorted(set(read.versions.tolist())) == [1, 2, 3, 4, 5]
    median, p99 = read.late_ms(publisher.published)
    assert 0 <= median <= p99
