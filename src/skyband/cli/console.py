"""`skyband ui`: the console over files, or over a generated stream of trades."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.console import Console

from skyband.cli.options import Inputs
from skyband.errors import InvalidInput

DEMO_STATEMENT: Final = """SELECT symbol, price, volume, ts
FROM trades [WINDOW 1 MINUTE ON ts]
ORDER BY price * volume DESC
LIMIT 10"""
DEMO_ROWS_PER_SECOND: Final = 1_500.0


def ui(
    statement: Annotated[
        str | None, typer.Argument(help="A statement to run at the start (see docs/sql.md).", show_default=False)
    ] = None,
    inputs: Inputs = None,
    rows_per_second: Annotated[
        float | None,
        typer.Option(
            min=0, help="How many rows a second to replay; 0: as fast as possible. [default: 1500]", show_default=False
        ),
    ] = None,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to serve. Any host but 127.0.0.1 requires a token.")
    ] = "127.0.0.1:8765",
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = True,
) -> None:
    """Watch continuous queries in the browser, see which rows are kept and why, and run more queries.

    For example: `skyband ui --input trades=trades.parquet`. Without `--input` there is a stream of trades that never
    ends.
    """
    from skyband.serving import require

    require()
    from skyband.cli.inputs import open_inputs
    from skyband.pipelines.model import Address
    from skyband.serving.catalog import Catalog
    from skyband.serving.server import Server
    from skyband.serving.workshop import Feed, Workshop, table_feed
    from skyband.streams.trades import SCHEMA, trades

    where = Address.read(address)
    if where is None:
        raise InvalidInput(f"--address takes a host and a port, such as 127.0.0.1:8765; got {address!r}.")
    pace = DEMO_ROWS_PER_SECOND if rows_per_second is None else rows_per_second or None
    feeds: dict[str, Feed] = {}
    for name, table in open_inputs(inputs).items():
        feeds[name] = table_feed(name, table, pace)
    if not feeds:
        feeds["trades"] = Feed("trades", SCHEMA, lambda rows: trades(2**50, batch_rows=rows), pace)
        statement = DEMO_STATEMENT if statement is None else statement
    catalog = Catalog(", ".join(feeds))
    catalog.workshop = workshop = Workshop(catalog, feeds)
    if statement is not None:
        workshop.start(statement)
    with Server(catalog, host=where.host, port=where.port) as server:
        Console(stderr=True).print(
            f"The console is at {server.page}  (Ctrl-C stops it)", soft_wrap=True, highlight=False, markup=False
        )
        if open_page:
            server.open()
        try:
            server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            workshop.close()
