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
    Setting(STATE_STORE, ROCKSDB, "Spark runs stateful Python only with this state store.", _is(ROCKSDB), needed=True),
    Setting(
        ENCODING,
        "avro",
        "A later version of Skyband can extend a state in Avro, but not in another encoding. A checkpoint keeps the "
        "encoding with which it began.",
        _is("avro"),
    ),
    Setting(CHANGELOG, "true", "Each micro-batch then writes only what changed, not a copy of its state.", _is("true")),
    Setting(
        ARROW_ROWS,
        "65536",
        "Each batch that Spark sends to Python costs as much as a few thousand rows.",
        lambda found: not _whole(found) or int(found) <= 0 or int(found) >= _FEW_ROWS,
    ),
    Setting(
        ARROW_BYTES,
        str(2**31 - 1),
        "To keep a limit in bytes, Spark measures every row, which takes a quarter of the time to send rows to Python. "
        "Only rows above about 30 kB need the limit.",
        lambda found: not _whole(found) or int(found) <= 0 or int(found) >= 2**31 - 1,
    ),
    Setting(
        COLUMNAR_INPUT,
        "false",
        "Otherwise Spark copies rows that wait for Python value by value, which is a sixth more work.",
        _is("false"),
    ),
    Setting(
        TIME_ZONE,
        "UTC",
        "Windows are the same in every zone, but Spark prints and parses times in this one.",
        lambda found: found.upper() in ("UTC", "GMT", "Z", "ETC/UTC", "+00:00"),
    ),
    Setting(
        ANSI,
        "true",
        "Without it, your own expressions before Skyband may overflow or become null silently, and Spark does not "
        "aggregate tables before Skyband does. Skyband's own arithmetic does not depend on it.",
        _is("true"),
    ),
    Setting(
        REUSE,
        "true",
        "Otherwise Spark starts a new Python for each task, which takes seconds.",
        _is("true"),
        at_start=True,
    ),
    Setting(
        PARTITIONS,
        None,
        "In every micro-batch, a stream starts a task and opens a state store for each partition. One partition for "
        "each core is enough. A checkpoint keeps the number with which it began.",
        lambda found: not _whole(found) or int(found) <= MANY_PARTITIONS,
    ),
)


def _whole(text: str) -> bool:
    return text.lstrip("-").isdigit()
