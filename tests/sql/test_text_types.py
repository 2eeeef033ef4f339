"""Example tests: types of columns in files of text, where what Arrow guesses from the first rows loses something."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from skyband.sql.files import open_table

WIDE = [2**64 - 1, 2**64 - 2, 2**53 + 1, 2**53]


def read(path: Path) -> pa.Table:
    rows = open_table(path)
    return rows.to_table() if isinstance(rows, ds.Dataset) else rows


@pytest.mark.parametrize(
    ("later", "kind"),
    [
        (["10", "9", ""], pa.int64()),
        (["10", "0.5"], pa.float64()),
        ([str(2**64 - 1), "3"], pa.uint64()),
        (["2026-03-01", "2026-03-02"], pa.date32()),
        (["2026-03-01T09:30:00.5", "2026-03-02 10:00:00"], pa.timestamp("us")),
        (["2026-03-01T09:30:00Z"], pa.timestamp("us", "UTC")),
        (["true", "false"], pa.bool_()),
        (["10", "ten"], pa.string()),
    ],
)
def test_a_column_that_is_empty_in_the_first_megabyte(later: list[str], kind: pa.DataType, tmp_path: Path) -> None:
    empty = 150_000
    path = tmp_path / "rows.csv"
    path.write_text("t,x\n" + "".join(f"{i},\n" for i in range(empty)) + "".join(f"0,{each}\n" for each in later))
    table = read(path)
    assert path.stat().st_size > 1 << 20
    assert table.schema.field("x").type == kind
    if kind != pa.string():
        assert table["x"].slice(0, empty).null_count == empty
        assert table["x"].slice(empty).null_count == later.count("")


def test_an_empty_column_is_text(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("t,x\n1,\n2,\n")
    assert read(tmp_path / "rows.csv").schema.field("x").type == pa.string()


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (WIDE, pa.uint64()),
        ([-1, 2**63], pa.decimal128(38)),
        ([0.5, 2**63], pa.float64()),
        ([2.0**70, 1.5], pa.float64()),
        ([2**63 - 1, 1], pa.int64()),
    ],
)
def test_whole_numbers_in_csv_are_exact(numbers: list[int | float], kind: pa.DataType, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,t\n" + "".join(f"{number},1\n" for number in numbers))
    column = read(tmp_path / "rows.csv")["id"]
    assert column.type == kind
    assert [int(each) if kind != pa.float64() else each for each in column.to_pylist()] == numbers


def test_whole_numbers_in_json_are_exact(tmp_path: Path) -> None:
    lines = [f'{{"id": {number}, "part": {number}, "ts": "2026-03-01T09:30:00Z"}}\n' for number in WIDE]
    lines.append('{"id": 1, "part": 0.5, "ts": "2026-03-01T09:31:00Z"}\n')
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    table = read(tmp_path / "rows.jsonl")
    assert table.schema.field("part").type == pa.float64()
    assert table["id"].to_pylist() == [*WIDE, 1]
    assert pa.types.is_timestamp(table.schema.field("ts").type)


def test_floats_in_json_stay_floats(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"x": 1e19}\n{"x": 5}\n')
    assert read(tmp_path / "rows.jsonl")["x"].to_pylist() == [1e19, 5.0]
