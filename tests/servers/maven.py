"""Jars from Maven, by name: copied once into a folder in the user's cache, with what they depend on."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from servers.missing import missing
from waiting import PATIENCE_S

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>
"""
_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
<exclusions>{exclusions}</exclusions></dependency>"""
_EXCLUSION = "<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"


def connectors() -> dict[str, str]:
    """What makes a Spark session know Kafka; nothing if it cannot be had: who needs it says so."""
    from skyband.pipelines.connectors import KAFKA_JARS

    try:
        found = jars(*KAFKA_JARS, without=("*:*",))  # what else they need, Spark has
    except (pytest.skip.Exception, pytest.fail.Exception):
        return {}
    return {"spark.jars": ",".join(map(str, found))}


def jars(*names: str, without: tuple[str, ...] = ()) -> list[Path]:
    """The jars of these artifacts ("group:artifact:version") and of all they need, except what is `without`."""
    text = " ".join((*names, "-", *without))
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skyband-test-jars"
    folder = cache / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not folder.exists():
        _copy(names, without, folder)
    return sorted(folder.glob("*.jar"))


def _copy(names: tuple[str, ...], without: tuple[str, ...], folder: Path) -> None:
    if shutil.which("mvn") is None:
        missing("mvn, which brings jars")
    new = folder.with_suffix(f".{os.getpid()}")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    exclusions = "".join(
        _EXCLUSION.format(group=group, artifact=artifact) for group, artifact in (name.split(":") for name in without)
    )
    dependencies = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=version, exclusions=exclusions)
        for group, artifact, version in (name.split(":") for name in names)
    )
    (new / "pom.xml").write_text(_POM.format(dependencies=dependencies))
    command = ["mvn", "-q", "-B", "-U", "-f", str(new / "pom.xml"), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={new}", "-DincludeScope=runtime"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        shutil.rmtree(new)
        missing(f"{', '.join(names)} from Maven: {(done.stdout + done.stderr).strip()[-600:]}")
    try:
        new.rename(folder)
    except OSError:  # another run was faster, and brought the same
        shutil.rmtree(new)
        if not folder.exists():
            raise
