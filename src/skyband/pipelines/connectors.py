"""The jars with which Spark reads and writes Kafka: the newest connector that Maven has and this Spark can use.

Spark's pip package has none, and Maven may not have that of Spark's own version, or not all of its parts. So we look
for it with the Ivy that comes with Spark, before Spark starts, take the few jars that Spark lacks, and keep them in the
user's cache: the next run needs no network.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

import pyspark

from skyband.core.cost_files import cache_folder
from skyband.engines.spark.java import ensure_java
from skyband.errors import EnvironmentProblem
from skyband.pipelines.model import Pipeline

JARS, PACKAGES, REPOSITORIES = "spark.jars", "spark.jars.packages", "spark.jars.repositories"
_SETTINGS, _JAVA_OPTIONS = "spark.jars.ivySettings", "spark.driver.extraJavaOptions"

_ARTIFACT: Final = "spark-sql-kafka-0-10_2.13"
_OLDEST: Final = "4.2.0"  # the tests run with it on Spark 4.3
# What it needs besides, where Maven lacks the parts that it names itself; tried together.
_PARTS: Final = (
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
KAFKA_JARS: Final = (f"org.apache.spark:{_ARTIFACT}:{_OLDEST}", *_PARTS)
_CLASS: Final = "org/apache/spark/sql/kafka010/KafkaSourceProvider.class"
_PATIENCE_S: Final = 600  # for Maven
_REASONS: Final = re.compile(r"^.*(?:PKIX|Host .* not found|UnknownHost|refused|timed out|;[^;]*: not found).*$", re.M)

_ASKED: Final = """<ivy-module version="2.0"><info organisation="skyband" module="connectors"/>
<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies></ivy-module>"""
_DEPENDENCY: Final = "<dependency org={} name={} rev={} transitive={} conf='default->default'>{}</dependency>"
_SPARK_HAS: Final = "".join(f"<exclude org={quoteattr(org)}/>" for org in ("org.apache.hadoop", "org.scala-lang"))
_MAVEN: Final = """<ivysettings><settings defaultResolver="all"/><resolvers><chain name="all">
<ibiblio name="central" m2compatible="true"/>{others}</chain></resolvers></ivysettings>"""
_REPOSITORY: Final = "<ibiblio name={} m2compatible='true' root={}/>"


class Connector(NamedTuple):
    version: str
    jars: tuple[Path, ...]

    def __str__(self) -> str:
        return f"Spark's connector for Kafka, version {self.version}, in {self.jars[0].parent}"


def needs_kafka(pipeline: Pipeline, given: Mapping[str, str]) -> bool:
    """Does a pipeline use Kafka, and bring no connector of its own? `given`: the settings that it gives Spark."""
    formats = {source.format for source in pipeline.sources.values()}
    formats |= {sink.format for sink in pipeline.sinks.values()}
    jars = [jar for jar in given.get(JARS, "").split(",") if jar]
    return "kafka" in formats and _ARTIFACT not in given.get(PACKAGES, "") and not any(map(_is_connector, jars))


def _is_connector(jar: str) -> bool:
    try:
        with zipfile.ZipFile(jar.removeprefix("local:").removeprefix("file:")) as archive:
            return _CLASS in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return "kafka" in jar  # it is elsewhere


def is_kept() -> bool:
    """Are the jars here already?"""
    return _folder().exists()


def kafka_connector(given: Mapping[str, str]) -> Connector:
    """The connector, from the cache or from Maven; raises `EnvironmentProblem` if it cannot be had."""
    folder = _folder()
    if not folder.exists():
        _fetch(folder, given)
    jars = tuple(sorted(folder.glob("*.jar")))
    (named,) = (jar for jar in jars if jar.name.startswith(_ARTIFACT))
    return Connector(named.stem.removeprefix(f"{_ARTIFACT}-"), jars)


def _folder() -> Path:
    return cache_folder() / "jars" / f"kafka-for-spark-{pyspark.__version__}"


def _fetch(folder: Path, given: Mapping[str, str]) -> None:
    newest = f"org.apache.spark:{_ARTIFACT}:[{_OLDEST},{pyspark.__version__}]"
    new = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        said = _ivy(new, [newest], given, whole=True) and _ivy(new, [newest, *_PARTS], given, whole=False)
        if said:
            raise _not_to_be_had(said)
        try:
            (new / "jars").rename(folder)
        except OSError:  # another run was faster
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _ivy(new: Path, names: list[str], given: Mapping[str, str], *, whole: bool) -> str:
    """Bring the jars with these names; `whole`: with all that they need and Spark lacks. What Ivy said if it failed."""
    shutil.rmtree(new, ignore_errors=True)
    (new / "jars").mkdir(parents=True)
    asked, settings = new / "ivy.xml", new / "settings.xml"
    dependencies = "".join(
        _DEPENDENCY.format(*map(quoteattr, (*name.split(":", 2), str(whole).lower())), _SPARK_HAS if whole else "")
        for name in names
    )
    asked.write_text(_ASKED.format(dependencies=dependencies))
    others = [address for address in given.get(REPOSITORIES, "").split(",") if address]
    more = "".join(_REPOSITORY.format(*map(quoteattr, (f"given-{n}", root))) for n, root in enumerate(others))
    settings.write_text(_MAVEN.format(others=more))
    spark = Path(pyspark.__file__).parent / "jars"
    command = [str(ensure_java() / "bin" / "java"), *shlex.split(given.get(_JAVA_OPTIONS, "")), "-cp", f"{spark}/*"]
    command += ["org.apache.ivy.Main", "-settings", given.get(_SETTINGS, str(settings)), "-cache", str(new / "cache")]
    command += ["-ivy", str(asked), "-retrieve", f"{new}/jars/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {_PATIENCE_S} seconds"
    if done.returncode:
        return done.stdout + done.stderr
    there = {_without_version(jar) for jar in spark.glob("*.jar")}
    for jar in (new / "jars").iterdir():
        if _without_version(jar) in there or jar.suffix != ".jar":
            jar.unlink()
    return ""


def _without_version(jar: Path) -> str:
    return re.sub(r"-\d[^-]*(-.*)?$", "", jar.stem)


def _not_to_be_had(said: str) -> EnvironmentProblem:
    reasons = [" ".join(line.split()).strip(": ") for line in _REASONS.findall(said)]
    bring = "\n".join(f"  mvn dependency:copy -Dartifact={name} -DoutputDirectory=jars" for name in KAFKA_JARS)
    return EnvironmentProblem(
        f"Spark {pyspark.__version__} needs a connector for Kafka, and Maven gave none: "
        f"{reasons[0] if reasons else said.strip().splitlines()[-1]}.\n"
        f'If a mirror has it, name the mirror under [spark]: "{REPOSITORIES}" = "https://…". Otherwise copy these '
        f"four jars from a machine that reaches Maven:\n{bring}\n"
        f'and name all of them with their paths under [spark]: "{JARS}" = "jars/…,jars/…,jars/…,jars/…".'
    )
