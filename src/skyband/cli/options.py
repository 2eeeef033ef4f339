"""Options that several commands have. Nothing heavy is imported here, so that help comes at once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=FILE",
        help="A table: a file, a folder or a pattern such as `'day=*/*.csv'`, and its name in statements. "
        "Without a name, the table has the name of the file. May be repeated.",
        show_default=False,
    ),
]

Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE]...", help="More tables, as --input takes them.", show_default=False),
]


class Format(StrEnum):
    """How an answer is printed."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"
    markdown = "markdown"
