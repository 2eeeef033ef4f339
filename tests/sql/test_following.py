"""Examples: what is read of a file or a folder while it grows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skyband.errors import InvalidInput
from skyband.sql.following import follow

Step = Callable[[], object]


class Over(Exception):
    """Nothing more will happen."""


class Steps:
    """What happens to a file: one step each time that somebody waits for more."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)

    def __call__(self) -> None:
        if not self._steps:
            raise Over
        self._steps.pop(0)()


def rows_of(given: Path | str, *steps: Step) -> list[dict[str, Any]]:
    """All rows that are read until nothing more happens."""
    rows: list[dict[str, Any]] = []
    source = follow(str(given), Steps(*steps))
    try:
        for batch in source.batches:
            assert batch.schema.names == source.schema.names
            rows += batch.to_pylist()
    except Over:
        return rows
    raise AssertionError("A file that grows has no end.")


def appended(path: Path, text: str) -> Step:
    def append() -> None:
        with path.open("a", newline="") as file:
            file.write(text)

    return append


def nothing() -> None:
    pass


def test_lines_count_once_they_have_their_end(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_text("t,name\n1,a\n2,b")
    steps = [appended(path, "b\n3"), nothing, appended(path, ",c"), appended(path, "\n")]
    assert rows_of(path, *steps) == [{"t": 1, "name": "a"}, {"t": 2, "name": "bb"}, {"t": 3, "name": "c"}]


def test_the_columns_are_known_with_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_text("t,ts")
    steps = [
        appended(path, "\n"),
        appended(path, "1,2026-01-01T00:00:00Z\n"),
        appended(path, "2,2026-01-01T00:00:00.5Z\n"),
    ]
    first, second = rows_of(path, *steps)
    assert first == {"t": 1, "ts": datetime(2026, 1, 1, tzinfo=UTC)}
    assert second["ts"] == datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC)


def test_line_ends_inside_quotes_end_no_line(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_text("t,name\n0,x\n")
    steps = [appended(path, '1,"two\n'), appended(path, 'lines"\n2,"a ""b""\nc"\n')]
    assert [row["name"] for row in rows_of(path, *steps)] == ["x", "two\nlines", 'a "b"\nc']


def test_a_file_that_is_cut_or_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path, other = tmp_path / "live.csv", tmp_path / "other"
    path.write_text("t\n1\n2\n3\n4\n")
    other.write_text("t\n7\n")
    steps = [lambda: path.write_text("t\n5\n"), nothing, appended(path, "6\n"), lambda: other.rename(path)]
    assert [row["t"] for row in rows_of(path, *steps)] == [1, 2, 3, 4, 5, 6, 7]


def test_other_columns_and_bad_values_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_text("t\n1\n2\n")
    with pytest.raises(InvalidInput, match="now has different columns: x; before: t"):
        rows_of(path, lambda: path.write_text("x\n"))
    path.write_text("t\n1\n")
    with pytest.raises(InvalidInput, match=r"Cannot read the new rows of .*live\.csv.*: .*invalid value 'x'"):
        rows_of(path, appended(path, "x\n"))


def test_json_lines_have_the_types_of_the_first_and_may_lack_or_add_fields(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    path.write_text('{"ts": "2026-01-01T00:00:00Z", "x": 1, "day": "2026-01-01", "note": null}\n')
    later = {"ts": "2026-01-01T00:00:01.5Z", "new": [1], "note": "n"}
    first, second = rows_of(path, appended(path, json.dumps(later) + "\n"))
    assert (first["x"], first["note"]) == (1, None)
    assert second == {"ts": datetime(2026, 1, 1, 0, 0, 1, 500_000, UTC), "x": None, "day": None, "note": "n"}


def test_files_that_come_to_a_folder_are_read_once_and_whole(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1], "x": ["a"]}), tmp_path / "1.parquet")
    half = (tmp_path / "1.parquet").read_bytes()[:40]

    def write(name: str, table: pa.Table) -> Step:
        return lambda: pq.write_table(table, tmp_path / name)

    steps = [
        *(nothing, lambda: (tmp_path / "2.parquet").write_bytes(half), nothing, nothing),
        *(write("2.parquet", pa.table({"t": [2]})), nothing, nothing, nothing),
        *(write(".3.parquet", pa.table({"t": [9]})), write("3.parquet", pa.table({"x": ["c"], "t": [3]})), nothing),
    ]
    with pytest.warns(UserWarning, match=r"Cannot read .*2\.parquet.*, unless it changes"):
        rows = rows_of(tmp_path, *steps)
    assert rows == [{"t": 1, "x": "a"}, {"t": 2, "x": None}, {"t": 3, "x": "c"}]


def test_what_cannot_grow_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1]}), tmp_path / "a.parquet")
    for given in (tmp_path / "a.parquet", tmp_path / "none.csv"):
        with pytest.raises(InvalidInput, match=r"cannot be followed|There is no file"):
            follow(str(given))
