"""A PostgreSQL server for tests: a new database in a folder, on loopback, under a user that is not root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers.missing import missing
from servers.ports import free_port, wait_for_port
from waiting import wait_until

USER, PASSWORD = "skyband", "not-a-secret-42"


@dataclass(frozen=True)
class Database:
    port: int

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def _psql(self) -> list[str]:
        return ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", "postgres", "-AtF", "\t"]

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"PGPASSWORD": PASSWORD}

    def is_up(self) -> bool:
        return (
            subprocess.run([*self._psql, "-c", "SELECT 1"], capture_output=True, env=self._environment).returncode == 0
        )

    def ask(self, statement: str) -> list[list[str]]:
        command = [*self._psql, "-c", statement]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=self._environment)
        return [line.split("\t") for line in done.stdout.splitlines()]


@contextmanager
def database() -> Iterator[Database]:
    """A server that runs until the end of the block."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="skyband-postgresql-") as name:
        folder, port = Path(name), free_port()
        (folder / "password").write_text(PASSWORD)
        as_user: dict[str, Any] = {"cwd": folder}
        if os.getuid() == 0:  # which the server refuses
            for path in (folder, folder / "password"):
                shutil.chown(path, "nobody")
            as_user["user"] = "nobody"
        made = [str(programs / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256", "-N"]
        made += [f"--pwfile={folder / 'password'}", "--locale=C", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, **as_user)
        command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port), "-k", str(folder)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, **as_user)
            try:
                wait_for_port(port, process)
                wait_until(Database(port).is_up, "PostgreSQL, which listens before it is ready", process)
                yield Database(port)
            finally:
                process.terminate()
                process.wait()


def _programs() -> Path:
    """Where Debian puts the server, or the PATH has it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if (not found and on_path is None) or shutil.which("psql") is None:
        missing("PostgreSQL's server and psql: apt-get install postgresql")
    return found[-1].parent if found else Path(str(on_path)).resolve().parent
