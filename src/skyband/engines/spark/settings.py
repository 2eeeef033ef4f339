"""The settings of Spark that matter to Skyband: what each should be, why, and whether a query can do without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

STATE_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ENCODING: Final = "spark.sql.streaming.stateStore.encodingFormat"
CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ARROW_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
COLUMNAR_INPUT: Final = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
TIME_ZONE: Final = "spark.sql.session.timeZone"
ANSI: Final = "spark.sql.ansi.enabled"
REUSE: Final = "spark.python.worker.reuse"
PARTITIONS: Final = "spark.sql.shuffle.partitions"

MANY_PARTITIONS: Final = 64  # each keeps a state store of its own for a query, and costs a task a micro-batch
_FEW_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, what we set it to, and what is wrong with other values."""

    name: str
    ours: str | None  # what `configure` sets; None: it stays what it is
    why: str
    is_fine: Callable[[str], bool]
    needed: bool = False  # by every query on a stream
    at_start: bool = False  # can it be set only before the session starts?


def _is(value: str) -> Callable[[str], bool]:
    return lambda found: found.lower() == value.lower()


SETTINGS: Final = (
    Setting(STATE_STORE, ROCKSDB, "Spark runs stateful Python in this state store only.", _is(ROCKSDB), needed=True),
    Setting(
        ENCODING,
        "avro",
        "A later version of Skyband can add to a state that is kept in Avro, and not to one that is kept otherwise. "
        "A checkpoint keeps the encoding that it was begun with.",
        _is("avro"),
    ),
    Setting(CHANGELOG, "true", "A micro-batch then writes what changed, not a copy of its state.", _is("true")),
    Setting(
        ARROW_ROWS,
        "65536",
        "Each batch that crosses to Python costs as much as some thousand rows.",
        lambda found: not _whole(found) or int(found) <= 0 or int(found) >= _FEW_ROWS,
    ),
    Setting(
        ARROW_BYTES,
        str(2**31 - 1),
        "To keep a limit in bytes, Spark adds up the size of every row: a quarter of the crossing to Python. Rows of "
        "more than some 30 kB need it.",
        lambda found: not _whole(found) or int(found) <= 0 or int(found) >= 2**31 - 1,
    ),
    Setting(
        COLUMNAR_INPUT,
        "false",
        "Rows that wait in Spark for an answer of Python's are otherwise made one value at a time: a sixth more work.",
        _is("false"),
    ),
    Setting(
        TIME_ZONE,
        "UTC",
        "Windows are instants, the same in every zone; but Spark shows times, and reads them from text, in this zone.",
        lambda found: found.upper() in ("UTC", "GMT", "Z", "ETC/UTC", "+00:00"),
    ),
    Setting(
        ANSI,
        "true",
        "Skyband's own arithmetic does not depend on it, but without it what you compute before wraps around or "
        "becomes null in silence, and aggregates of whole tables are not added up by Spark.",
        _is("true"),
    ),
    Setting(REUSE, "true", "A new Python for each task takes seconds.", _is("true"), at_start=True),
    Setting(
        PARTITIONS,
        None,
        "A stream keeps a state store for each and starts a task for each in every micro-batch: as many as there are "
        "cores are enough, and a checkpoint keeps the number that it was begun with.",
        lambda found: not _whole(found) or int(found) <= MANY_PARTITIONS,
    ),
)


def _whole(text: str) -> bool:
    return text.lstrip("-").isdigit()
