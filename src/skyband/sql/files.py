"""Files as inputs of a statement: whole tables, of which those in order of time are read as they go by."""

from __future__ import annotations

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
