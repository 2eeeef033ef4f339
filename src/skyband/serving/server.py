"""The server: uvicorn in a thread of its own, on an address of this machine unless another one is asked for."""

from __future__ import annotations

import socket
import webbrowser
from threading import Event, Thread
from typing import Any

import uvicorn

from skyband.errors import EnvironmentProblem, InvalidInput
from skyband.serving.app import application
from skyband.serving.catalog import Catalog
from skyband.serving.events import Events
from skyband.serving.guard import is_loopback, new_token
from skyband.serving.handing import Connections, is_possible, remembering


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the program, and says when it has started."""

    def __init__(self, config: uvicorn.Config, started: Event) -> None:
        super().__init__(config)
        self._began = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._began.set()


class Server:
    """What is served, until `close`. It is a context manager."""

    def __init__(self, catalog: Catalog, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0: any that is free."""
        self.catalog, self.host = catalog, host
        self.token = None if is_loopback(host) else new_token()
        listening = _listening(host, port)
        self.port: int = listening.getsockname()[1]
        connections: Connections = {}
        self._events = Events(catalog, connections if is_possible() else None)
        names = frozenset({host, "127.0.0.1", "localhost", "::1"}) if self.token is None else None
        config = uvicorn.Config(
            application(catalog, self._events, token=self.token, names=names),
            http=remembering(connections),
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="off",
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=32 * 1024,
        )
        started = Event()
        self._server = _Uvicorn(config, started)
        self.thread = Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="skyband serves", daemon=True
        )
        self.thread.start()
        started.wait()

    @property
    def url(self) -> str:
        """Where it is; without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    @property
    def page(self) -> str:
        """The address of the console, with the token if there is one: it is shown once, to the one who started it."""
        return self.url if self.token is None else f"{self.url}?token={self.token}"

    def open(self) -> None:
        """Show the console in the browser of this machine, if it has one."""
        webbrowser.open(self.page)

    def wait(self) -> None:
        """Until somebody closes it, or interrupts this."""
        while self.thread.is_alive():
            self.thread.join(0.5)

    def close(self) -> None:
        self._server.should_exit = True
        self._events.let_go()
        self.thread.join()
        self._events.close()
        for query in self.catalog.queries():
            close: Any = getattr(query, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<skyband serves {self.catalog.title} at {self.url}>"


def _listening(host: str, port: int) -> socket.socket:
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 65_536:
        raise InvalidInput(f"port must be a whole number from 0 to 65,535, got {port!r}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise EnvironmentProblem(
            f"Cannot serve at {host}:{port}: {error.strerror or error}. Name another port, or 0 for any that is free."
        ) from error
    listening.listen(1024)
    return listening
