"""Answers of the command line: a table on the terminal, or CSV, JSON, Arrow, Markdown and Parquet for others."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyband.cli.options import Format
from skyband.errors import InvalidInput
from skyband.serving.formats import as_arrow, as_csv, encode, in_micros, rows_of

FIRST_ROWS: Final = 50  # of a table on the terminal
_ANY_WIDTH: Final = 1_000_000  # of a table that goes into a file or a pipe, where no screen is too narrow


def as_json(answer: pa.Table) -> bytes:
    """An object a line, as `--input` reads it."""
    return b"".join(encode(row) + b"\n" for row in rows_of(answer))


def as_markdown(answer: pa.Table) -> bytes:
    lines = [_markdown_row(answer.column_names), _markdown_row(":--" for _ in answer.column_names)]
    lines += (_markdown_row(row.values()) for row in in_micros(answer).to_pylist())
    return "".join(f"{line}\n" for line in lines).encode()


def _markdown_row(values: Any) -> str:
    return f"| {' | '.join(cell(each).replace('|', chr(92) + '|') for each in values)} |"


def as_arrow_file(answer: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, answer.schema) as writer:
        writer.write_table(answer)
    return out.getvalue()


def as_parquet(answer: pa.Table) -> bytes:
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(answer, out)
    return out.getvalue()


Encode = Callable[[pa.Table], bytes]
_PRINTED: Final[Mapping[Format, Encode]] = {
    Format.csv: as_csv,
    Format.json: as_json,
    Format.arrow: as_arrow,
    Format.markdown: as_markdown,
}
_WRITTEN: Final[Mapping[str, Encode]] = {
    ".parquet": as_parquet,
    ".csv": as_csv,
    ".json": as_json,
    ".jsonl": as_json,
    ".arrow": as_arrow_file,
    ".feather": as_arrow_file,
    ".md": as_markdown,
}


def check_output(path: Path, inputs: Iterable[str]) -> None:
    """Raise if the ending of the name does not tell the kind of file, if its folder does not exist, or if it names one
    of the inputs."""
    if path.suffix.lower() not in _WRITTEN:
        raise InvalidInput(f"Cannot tell how to write {str(path)!r}. Possible endings: {', '.join(_WRITTEN)}.")
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {str(path.parent)!r} to write {path.name!r} to.")
    for given in inputs:
        # An input is a file, `name=file`, a folder or a pattern; the last two may contain the output.
        if any(path.resolve() == Path(name).resolve() for name in (given, given.partition("=")[2])):
            raise InvalidInput(f"--output {str(path)!r} would overwrite an input. Name another file.")


def write(answer: pa.Table, path: Path) -> None:
    """Write an answer as the ending of the name says."""
    try:
        path.write_bytes(_WRITTEN[path.suffix.lower()](answer))
    except OSError as error:
        raise InvalidInput(f"Cannot write {str(path)!r}: {error.strerror}.") from error


def check_format(how: Format) -> None:
    """Raise if it would print bytes on a terminal."""
    if how is Format.arrow and sys.stdout.isatty():
        raise InvalidInput("--format arrow prints bytes, and this is a terminal: write --output answer.arrow.")


def show(answer: pa.Table, how: Format, rows: int | None) -> None:
    """Print an answer; of a table for people the first rows, unless they say how many."""
    if how is not Format.table:
        typer.echo(_PRINTED[how](answer if rows is None else answer.slice(0, rows)), nl=False)
        return
    most, total = FIRST_ROWS if rows is None else rows, answer.num_rows
    shown = table_of(answer.slice(0, most))
    print_table(shown)
    if total > most:
        typer.echo(f"{most:,} of {total:,} rows; --rows shows more, --output writes them all.")


def print_table(shown: Table) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = _ANY_WIDTH
    console.print(shown)


def table_of(answer: pa.Table) -> Table:
    """An answer as a table for people: numbers to the right."""
    shown = Table(box=None)
    for each in answer.schema:
        shown.add_column(Text(each.name), overflow="fold", justify="right" if is_number(each.type) else "left")
    for row in in_micros(answer).to_pylist():
        shown.add_row(*(Text(cell(value)) for value in row.values()))
    return shown


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def cell(value: Any) -> str:
    """A value in one line, without characters that would move the cursor of a terminal or change its colours."""
    if value is None:
        return ""
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
