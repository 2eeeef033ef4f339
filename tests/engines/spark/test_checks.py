"""Example tests of what is said of a session that is not fit for Skyband, before a query starts in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import skyband as sb
from skyband.engines.spark import checks, versions
from skyband.engines.spark.failures import readable
from skyband.engines.spark.settings import ROCKSDB, SETTINGS, STATE_STORE

DAY = sb.tumbling(5, on="id")


class Builder:
    """What a session's builder is to `configure`."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self


def test_configure_sets_all_that_check_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    settings = sb.spark.configure(Builder()).settings
    assert settings[STATE_STORE] == ROCKSDB
    ours = [each for each in SETTINGS if each.ours is not None and not each.at_start]
    assert all(each.is_fine(settings[each.name]) for each in ours)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    ("said", "name", "found"),
    [
        ("…ModuleNotFoundError: No module named 'pyarrow'\n at…", "Skyband on the workers", "pyarrow"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has…", "The workers' Python", "another version"),
        ('java.io.IOException: Cannot run program "/no/python": error=2', "The workers' Python", "/no/python"),
        ("something else\nat line 2", "The workers' Python", "does not answer"),
    ],
)
def test_what_spark_says_of_workers_that_fail_becomes_a_line_to_write(said: str, name: str, found: str) -> None:
    finding = checks._no_answer(said)
    assert finding.name == name
    assert found in finding.found
    assert finding.stops
    assert f"export PYSPARK_PYTHON={sys.executable}" in finding.line


def test_a_machine_that_is_too_busy_for_spark_is_named() -> None:
    said = readable(RuntimeError("[STREAM_FAILED] Query terminated: Python worker failed to connect back.\n\tat org…"))
    assert "too busy" in str(said)
    assert "org" not in str(said)


def test_an_old_pyspark_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "version", lambda _: "4.0.2")
    with pytest.raises(sb.EnvironmentProblem, match=r"PySpark 4\.0\.2, and Skyband needs 4\.1 or later"):
        versions.require_pyspark()


@pytest.fixture
def changed(spark: SparkSession) -> Iterator[Any]:
    """Settings that are put back; the session is asked anew."""
    before: dict[str, str] = {}

    def change(name: str, value: str) -> None:
        before[name] = str(spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.spark
def test_our_own_session_is_fit(spark: SparkSession) -> None:
    assert sb.spark.check(spark) == ()
    assert str(sb.spark.check(spark)) == "All is well."


@pytest.mark.spark
def test_each_setting_that_is_not_as_it_should_be_has_its_line(spark: SparkSession, changed: Any) -> None:
    wrong = {
        "spark.sql.session.timeZone": "Europe/Zurich",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    }
    for name, value in wrong.items():
        changed(name, value)
    found = {finding.name: finding for finding in sb.spark.check(spark)}
    assert {name: finding.found for name, finding in found.items()} == wrong
    assert not any(finding.stops for finding in found.values())
    assert found["spark.sql.ansi.enabled"].line == 'spark.conf.set("spark.sql.ansi.enabled", "true")'


@pytest.mark.spark
def test_workers_with_another_skyband_keep_a_query_from_starting(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.unset(checks.CHECKED)
    monkeypatch.setattr(sb, "__version__", "0.0.9")
    with pytest.raises(sb.EnvironmentProblem, match=r"(?s)version 0\.\d.*driver has 0\.0\.9.*PYSPARK_PYTHON"):
        sb.top_k(spark.range(10), k=1, by="id", window=DAY)
    assert spark.conf.get(checks.CHECKED, None) is None, "it is asked again the next time"


@pytest.mark.spark
def test_a_python_that_is_not_there_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.unset(checks.CHECKED)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "nowhere"))
    with pytest.raises(sb.EnvironmentProblem, match=f"(?s){tmp_path}/nowhere, which is not there.*PYSPARK_PYTHON="):
        sb.top_k(spark.range(10), k=1, by="id", window=DAY)
    monkeypatch.undo()
    assert sb.top_k(spark.range(10), k=1, by="id", window=DAY).count() == 2
