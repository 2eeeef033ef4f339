"""Ports on loopback."""

from __future__ import annotations

import socket
import subprocess

from waiting import PATIENCE_S, wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    def listens() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
                return True
        except OSError:
            return False

    wait_until(listens, f"a server on port {port}", process)
