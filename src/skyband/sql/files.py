"""Files as inputs of a statement, read as they go by."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from skyband.errors import InvalidInput

_POSSIBLE = ".parquet, .csv, .json or .jsonl (an object a line), .arrow or .feather; each of text also with .gz"


def open_file(path: Path) -> pa.RecordBatchReader:
    """The rows of a file, in its order; the kind of file is known by the ending of its name."""
    if not path.is_file():
        raise InvalidInput(f"There is no file {str(path)!r}.")
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    try:
        match ending.lower():
            case ".parquet":
                import pyarrow.parquet as pq

                file = pq.ParquetFile(path)
                return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
            case ".csv":
                import pyarrow.csv

                return pyarrow.csv.open_csv(path)
            case ".json" | ".jsonl":
                import pyarrow.json

                with pa.input_stream(path, compression="detect") as stream:
                    return pyarrow.json.read_json(stream).to_reader()
            case ".arrow" | ".feather":
                import pyarrow.feather

                return pyarrow.feather.read_table(path).to_reader()
    except pa.ArrowException as error:
        raise InvalidInput(f"Cannot read {str(path)!r}: {error}") from error
    raise InvalidInput(f"Cannot tell what kind of file {str(path)!r} is. Possible: {_POSSIBLE}.")
