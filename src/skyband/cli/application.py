"""The application that commands belong to, and how it shows errors."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from skyband.errors import SkybandError

BAD_REQUEST = 2


class _Commands(TyperGroup):
    """Shows the errors that Skyband raises on purpose as a message, not as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SkybandError as error:
            raise _refusal(str(error)) from error
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "pyspark":
                raise _refusal("This needs Spark, which is not installed: pip install 'skyband[spark]'.") from error
            raise


def show_error(problem: str) -> None:
    Console(stderr=True).print(f"[bold red]Error:[/] {escape(problem)}", soft_wrap=True, highlight=False)


def _refusal(problem: str) -> typer.Exit:
    show_error(problem)
    return typer.Exit(BAD_REQUEST)


app = typer.Typer(
    cls=_Commands,
    help="Continuous top-k over sliding windows: exact answers from few rows, in one Python process or on Spark.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
