"""Answers over HTTP, and a console to look at. Needs the extra `skyband[serve]`: Starlette and uvicorn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skyband.core.session import Session
from skyband.errors import EnvironmentProblem, InvalidInput

if TYPE_CHECKING:
    from skyband.serving.server import Server

__all__ = ["live", "require", "serve"]


def serve(session: Session, *, name: str = "query", host: str = "127.0.0.1", port: int = 0) -> Server:
    """Serve the answers of a session while it is pushed to, until `close()`.

    Parameters
    ----------
    session
        Any session. It goes on as before; what it says is on the server as soon as it is said.
    name
        What the query is called in addresses: letters, digits and _.
    host
        The address to listen on. On any other than this machine's own, a token is required: `server.token`.
    port
        0: any that is free; `server.url` says which.

    Examples
    --------
    >>> import json, urllib.request
    >>> import pyarrow as pa, skyband as sb
    >>> session = sb.TopK(k=1, by="price", window=sb.sliding(2, every=2)).open(pa.schema({"price": pa.int64()}))
    >>> with session.serve(name="best") as server:
    ...     _ = session.push(pa.table({"price": [10, 30]}))
    ...     answer = json.load(urllib.request.urlopen(server.url + "queries/best/top"))
    >>> answer["rows"]
    [{'window_start': 0, 'window_end': 2, 'rank': 1, 'score': 30}]
    """
    require()
    from skyband.serving.catalog import Catalog
    from skyband.serving.server import Server
    from skyband.serving.watching import Watched

    if not (name.isascii() and name.replace("_", "a").isalnum()):
        raise InvalidInput(f"name={name!r}: a name has letters, digits and _.")
    catalog = Catalog(title=name)
    watched = Watched(session, name)
    catalog.add(watched)
    try:
        return Server(catalog, host=host, port=port)
    except BaseException:
        watched.close()
        raise


def live(query: Any) -> Any:
    """Show the answer of a running query in a notebook widget that updates as answers come.

    The widget works in Jupyter, JupyterLab, VS Code and marimo. This needs `pip install 'skyband[notebook]'`.

    Parameters
    ----------
    query
        A session, as for `session.live()`; or a streaming query on Spark that writes windows to a memory sink:
        `answer.writeStream.format("memory").queryName("best").start()`.

    Returns
    -------
    The widget. It follows the query until you call its `close()`, or the query ends.

    Raises
    ------
    InvalidInput
        This is no session, and no streaming query whose windows can be read.

    Examples
    --------
    >>> import skyband as sb
    >>> try:
    ...     sb.live("a query")
    ... except sb.InvalidInput as error:
    ...     print(str(error).splitlines()[0][:51])
    live takes a session, such as query.open(schema), o
    """
    from skyband.serving import widget

    return widget.live(query) if isinstance(query, Session) else widget.live_on_spark(query)


def require() -> None:
    """Raise unless the packages are there."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise EnvironmentProblem(f"Serving needs the package {error.name}: pip install 'skyband[serve]'.") from error
