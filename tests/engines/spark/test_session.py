"""The settings of a local session, and where its messages go. No Spark is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyband.engines.spark.session import STREAMING_SETTINGS, _messages_to, _settings


def test_shuffle_partitions_follow_the_cores() -> None:
    settings = _settings(3, False, {})
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings.items() >= STREAMING_SETTINGS.items()


def test_the_users_settings_come_before_ours_and_java_options_are_added() -> None:
    ours = _settings(2, True, {})
    theirs = _settings(2, True, {"spark.sql.shuffle.partitions": "7", "spark.driver.extraJavaOptions": "-Xss8m"})
    assert ours["spark.sql.shuffle.partitions"] == "1"
    assert theirs["spark.sql.shuffle.partitions"] == "7"
    assert theirs["spark.driver.extraJavaOptions"] == ours["spark.driver.extraJavaOptions"] + " -Xss8m"
    assert "-XX:+UseSerialGC" in ours["spark.driver.extraJavaOptions"]


def test_workers_are_forked_from_a_process_that_has_imported_what_they_run() -> None:
    """On this machine; elsewhere Skyband may be among the files that Spark brings, which a worker sees first."""
    daemon = _settings(2, False, {})["spark.python.daemon.module"]
    program = f"import sys, {daemon}; print({{'numba', 'pandas', 'skyband.engines.spark.bucket'}} - sys.modules.keys())"
    program += "; from skyband.expressions import forking; print(forking.started())"  # a fork would lose threads
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\nFalse\n"
    assert "spark.python.daemon.module" not in _settings(2, False, {"spark.master": "spark://elsewhere:7077"})


def test_messages_of_started_processes_go_to_the_log_and_ours_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    speak_later = "import sys; sys.stdin.read(); print('theirs', file=sys.stderr)"
    with _messages_to(tmp_path / "spark.log"):
        process = subprocess.Popen([sys.executable, "-c", speak_later], stdin=subprocess.PIPE)
    process.communicate()
    os.write(2, b"ours")
    assert (tmp_path / "spark.log").read_text() == "theirs\n"
    assert capfd.readouterr().err == "ours"
