"""`skyband top`: the ranking of a pipeline's query right now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyband.cli.options import Format
from skyband.errors import InvalidInput
from skyband.pipelines.commands import File, looked_up

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.pipelines.model import Pipeline


def top(
    file: File,
    query: Annotated[
        str | None, typer.Argument(help="The query. You may leave it out if there is only one.", show_default=False)
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--k", min=1, help="How many rows. [default: the query's k]", show_default=False)
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            help="Rank only the last so many: rows (1000) or a duration ('5 minutes'). It is whole slides "
            "less than the window's size. [default: the window that closes next]",
            show_default=False,
        ),
    ] = None,
    how: Annotated[Format, typer.Option("--format", help="How to print the rows.")] = Format.table,
) -> None:
    """Print the ranking of a query right now, as of its last micro-batch. The pipeline may be running or stopped."""
    from skyband.cli.answers import check_format, show
    from skyband.pipelines.held import answer_of

    check_format(how)

    def ask(spark: Any, pipeline: Pipeline) -> pa.Table:
        names = [*pipeline.queries]
        if query is None and len(names) > 1:
            raise InvalidInput(f"Which query? Possible: {', '.join(names)}.")
        return answer_of(spark, pipeline, query or names[0], k, int(size) if size and size.isdecimal() else size)

    show(looked_up(file, query, ask), how, None)
