"""Ports on loopback."""

from __future__ import annotations

import socket
import subprocess
import time


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < deadline, f"nobody listens on port {port} after {seconds} s"
            time.sleep(0.05)
