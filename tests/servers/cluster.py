"""A standalone Spark cluster for tests: a master and workers, each a process of its own, on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pyspark
from servers.ports import free_port, wait_for_port
from waiting import wait_until

from skyband.engines.spark.java import ensure_java

_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m"


@dataclass(frozen=True)
class Cluster:
    master: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster of workers with one core each, until the end of the block."""
    java = ensure_java() / "bin" / "java"
    home = Path(pyspark.__file__).parent
    port, page = free_port(), free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in (os.environ.get("PYTHONPATH", ""), *_sources()) if path),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(java), *_JAVA_OPTIONS.split(), *_opens(), "-cp", f"{home}/jars/*"]
    master = f"spark://127.0.0.1:{port}"
    processes: list[subprocess.Popen[bytes]] = []
    with (folder / "cluster.log").open("wb") as log:

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, env=environment, start_new_session=True
            )
            processes.append(process)
            return process

        try:
            name = "org.apache.spark.deploy.{0}.{1}"
            where = ["--host", "127.0.0.1", "--port"]
            wait_for_port(port, start(name.format("master", "Master"), *where, str(port), "--webui-port", str(page)))
            for number in range(workers):
                work = folder / f"worker-{number}"
                work.mkdir()
                options = [*where, "0", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(work)]
                start(name.format("worker", "Worker"), *options, master)
            _wait_for_workers(page, workers)
            yield Cluster(master, processes[1:])
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _sources() -> list[str]:
    """Where the package and what tests share are, for the workers' Python."""
    import skyband

    return [str(Path(skyband.__file__).parents[1]), str(Path(__file__).parents[1])]


def _opens() -> list[str]:
    packages = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")
    return [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in packages] + [
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
    ]


def _wait_for_workers(page: int, workers: int) -> None:
    def all_came() -> bool:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{page}/json/") as answer:
            return bool(answer.read().decode().count("ALIVE") > workers)  # the master is, too
        return False

    wait_until(all_came, f"{workers} workers")
