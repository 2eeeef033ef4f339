"""Golden: a pipeline of all five problems that this version stopped in the middle of its input, with its checkpoints.

A later version goes on from them to the answers over all rows, or refuses them by name. Run this file to write the
archive anew. Do so when the format of snapshots changes.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from engines.spark.streams import Line, lines, split, trades, write_batches
from pipelines.test_running import closed, run
from pyspark.sql import SparkSession
from torture.pipelines import STATEMENTS, WATCHES

import skyband as sb
from skyband.core.snapshots import VERSION
from skyband.engines.spark.plan import BUCKETS_SETTING
from skyband.errors import PipelineFailed

ARCHIVE = Path(__file__).parents[1] / "golden" / "checkpoints.tar.xz"
ROWS, BATCHES, BEFORE = 480, 6, 3  # so many micro-batches were committed
NAME, WRITTEN_BY = "market", "written_by.json"
PLACE = "{folder}"  # where the archive is unpacked: Spark's logs have whole paths
LAST_US = trades(ROWS)["ts"].cast("int64")[-1].as_py()


@contextmanager
def few_buckets(spark: SparkSession) -> Iterator[None]:
    """Two for each query, so that an archive is small."""
    spark.conf.set(BUCKETS_SETTING, "2")
    try:
        yield
    finally:
        spark.conf.unset(BUCKETS_SETTING)


def unpacked(folder: Path) -> Path:
    """The archive in a folder: the pipeline's file."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    _replace(folder, PLACE, str(folder))
    return folder / f"{NAME}.toml"


def _replace(folder: Path, old: str, new: str) -> None:
    """In the texts of the checkpoints: lists of files that were read, and where a state's schema is."""
    for path in (folder / ".skyband").rglob("*"):
        if path.is_file() and old.encode() in (content := path.read_bytes()):
            path.write_bytes(content.replace(old.encode(), new.encode()))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def written_by(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / WRITTEN_BY).read_text())
    return found


def right(folder: Path) -> dict[str, list[Line]]:
    """The answers to each query over all rows, of windows that the watermark closes."""
    inputs = {name: pq.read_table(folder / name) for name in ("trades", "others")}
    found = {}
    for name, statement in STATEMENTS.items():
        answers = sb.sql(statement, **inputs, watches=WATCHES)
        found[name] = closed(
            answers.rename_columns(["window_end" if n == "at" else n for n in answers.column_names]), LAST_US
        )
    return found


def found(folder: Path) -> dict[str, list[Line]]:
    """What a reader of the sinks sees."""
    return {
        name: sorted(lines(pq.read_table(folder / "answers" / name).drop_columns(["batch"]))) for name in STATEMENTS
    }


@pytest.mark.spark
def test_a_checkpoint_of_an_earlier_version_goes_on_or_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    file = unpacked(tmp_path)
    streams = [path for path in (tmp_path / ".skyband" / NAME).iterdir() if path.is_dir()]
    committed = {len([*(stream / "commits").glob("[0-9]*")]) for stream in streams}
    assert committed <= {BEFORE, BEFORE + 1}, "the last may have no rows, and only close windows"
    with few_buckets(spark):
        if written_by(tmp_path)["snapshots"] < VERSION:
            with pytest.raises(PipelineFailed, match="of an earlier version of Skyband"):
                run(spark, file)
            return
        figures = run(spark, file)
    assert found(tmp_path) == right(tmp_path)
    assert figures["rows"].rows_in < ROWS, "it read on where the other had stopped"


def write(folder: Path) -> None:
    """Stop a pipeline in the middle, and pack it."""
    from skyband.engines.spark import local_session

    inputs = {name: split(trades(ROWS, seed=seed), BATCHES) for seed, name in enumerate(("trades", "others"), 1)}
    for name, tables in inputs.items():
        write_batches(folder / name, tables[:BEFORE])
    pq.write_table(WATCHES, folder / "watches.parquet")
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\noptions = {{ maxFilesPerTrigger = 2 }}\n'
        for name in inputs
    )
    queries = "".join(f'[queries.{name}]\nsql = """{text}"""\nto = "files"\n' for name, text in STATEMENTS.items())
    file = folder / f"{NAME}.toml"
    file.write_text(
        f'trigger = "available now"\n{sources}'
        f'[sources.watches]\nformat = "parquet"\npath = "watches.parquet"\nstream = false\n{queries}'
        '[sinks.files]\nformat = "parquet"\npath = "answers/{query}"\n'
    )
    spark = local_session("golden checkpoints", cores=2, fast_start=True)
    with few_buckets(spark):
        run(spark, file)
    spark.stop()
    for name, tables in inputs.items():
        write_batches(folder / name, tables[BEFORE:], first=BEFORE)
    _replace(folder, str(folder), PLACE)
    versions = {"skyband": sb.__version__, "snapshots": VERSION, "spark": pyspark.__version__}
    (folder / WRITTEN_BY).write_text(json.dumps(versions) + "\n")
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.add(path, str(path.relative_to(folder)), filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes", file=sys.stderr)
