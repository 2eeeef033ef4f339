"""Files as inputs of a statement: whole tables, of which those in order of time are read as they go by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyband.errors import InvalidInput

_POSSIBLE = ".parquet, .csv, .json or .jsonl (an object a line), .arrow or .feather; each of text also with .gz"


def open_file(path: Path) -> Any:
    """The rows of a file, as a pyarrow Dataset or Table; the kind of file is known by the ending of its name."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.")
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    try:
        match ending.lower():
            case ".parquet" | ".csv":
                import pyarrow.dataset

                return pyarrow.dataset.dataset(path, format=ending.lower()[1:])
            case ".json" | ".jsonl":
                import pyarrow.json

                with pa.input_stream(path, compression="detect") as stream:
                    return pyarrow.json.read_json(stream)
            case ".arrow" | ".feather":
                import pyarrow.feather

                return pyarrow.feather.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"Cannot read {str(path)!r}: {error}") from error
    raise InvalidInput(f"Cannot tell what kind of file {str(path)!r} is. Possible: {_POSSIBLE}.")


_WRITTEN = (".parquet", ".csv", ".jsonl", ".arrow", ".feather")


def check_ending(path: Path) -> None:
    """Raise if the ending of a name does not say what kind of file is to be written."""
    if path.suffix.lower() not in _WRITTEN:
        raise InvalidInput(f"Cannot tell how to write {str(path)!r}. Possible endings: {', '.join(_WRITTEN)}.")


def write_file(answer: pa.Table, path: Path) -> None:
    """Write an answer as the ending of the name says."""
    check_ending(path)
    match path.suffix.lower():
        case ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(answer, path)
        case ".csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(answer, path)
        case ".jsonl":
            with path.open("w", encoding="utf-8") as file:
                for row in answer.to_pylist():
                    file.write(f"{json.dumps(row, default=str, ensure_ascii=False)}\n")
        case _:
            import pyarrow.feather

            pyarrow.feather.write_feather(answer, path)
