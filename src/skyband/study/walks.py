"""Which files a call walks through, and how often it switches between them: for docs/explanation/architecture.md.

    python -m skyband.study.walks             # in this process
    python -m skyband.study.walks --spark     # and on Spark: what the driver walks through

It prints the counts, and draws docs/pictures/walk-<name>.svg.

Only code of Skyband counts. Compiled loops are one step: a profiler does not see into them. A file is entered when one
of its functions is called from another file; what numba, pyarrow and Spark do in between is passed over.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skyband
from skyband.study.pictures.drawing import (
    BLUE,
    FAINT,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    SHADE,
    SOFT,
    Point,
    Sheet,
    width_of,
)

PACKAGE = Path(skyband.__file__).parent
TRADES = 50_000
NAMES = ("top-k", "join", "spark", "pipeline")  # of the pictures


class Walk(NamedTuple):
    files: list[str]  # in the order in which they are first entered
    edges: Counter[tuple[str, str]]  # how often each file calls each other one

    @property
    def switches(self) -> int:
        """Calls from one file to another."""
        return sum(self.edges.values())

    def by_room(self) -> Walk:
        """The same walk through rooms: a package, or for a problem each of its folders."""
        edges: Counter[tuple[str, str]] = Counter()
        for (caller, called), count in self.edges.items():
            if room(caller) != room(called):
                edges[room(caller), room(called)] += count
        return Walk([*dict.fromkeys(map(room, self.files))], edges)


def trace(call: Callable[[], Any]) -> Walk:
    """What `call` walks through. Call it once before: the first time compiles, and imports."""
    files: dict[str, None] = {}
    edges: Counter[tuple[str, str]] = Counter()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (called := _file(frame)) is None:
            return
        caller = next((file for file in _callers(frame) if file is not None), None)
        if called != caller:
            files[called] = None
            if caller is not None:
                edges[caller, called] += 1

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(list(files), edges)


def _callers(frame: FrameType) -> Any:
    above = frame.f_back
    while above is not None:
        yield _file(above)
        above = above.f_back


def _file(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    inside = path.is_relative_to(PACKAGE) and not frame.f_code.co_name.startswith("<")
    return str(path.relative_to(PACKAGE)) if inside and "study" not in path.parts else None


def room(file: str) -> str:
    """The package of a file; of a problem, the folder in it."""
    parts = Path(file).parts
    if parts[0] == "problems" and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] in ("core", "engines") and len(parts) > 2:
        return "/".join(parts[:2])
    return "/".join(parts[:2]) if parts[0] == "problems" else parts[0]


def _trades(rows: int = TRADES) -> pa.Table:
    times = pa.array(np.arange(rows) * 1000, pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "symbol": np.arange(rows) % 50, "price": np.random.default_rng(0).random(rows)})


_JOIN = (
    "SELECT a.symbol, COUNT(*) AS n FROM sold AS a [WINDOW 10 SECONDS EVERY 1 SECOND ON ts], "
    "bought AS b [WINDOW 10 SECONDS ON ts] WHERE a.symbol = b.symbol GROUP BY a.symbol"
)
_PIPELINE = """
trigger = "available now"
[sources.trades]
format = "parquet"
path = "trades"
[queries.best]
sql = "SELECT * FROM trades [WINDOW 10 SECONDS EVERY 1 SECOND ON ts] ORDER BY price DESC LIMIT 3 BY symbol"
to = "files"
[sinks.files]
format = "parquet"
path = "answers"
"""


def in_this_process() -> dict[str, Callable[[], Any]]:
    trades, window = _trades(), skyband.sliding("10 seconds", every="1 second", on="ts")
    return {
        "sb.top_k over a table": lambda: skyband.top_k(trades, k=10, by="price * symbol", window=window),
        "sb.sql, a join": lambda: skyband.sql(_JOIN, sold=trades.slice(0, 2_000), bought=trades.slice(0, 5_000)),
    }


def on_spark(folder: Path) -> dict[str, Callable[[], Any]]:
    """What the driver does: workers run a session, as in this process."""
    from skyband.engines.spark import local_session
    from skyband.pipelines.file import load
    from skyband.pipelines.running import Running

    (folder / "trades").mkdir()
    pq.write_table(_trades(1_000), folder / "trades" / "0.parquet")
    (folder / "pipeline.toml").write_text(_PIPELINE)
    spark = local_session("walks", fast_start=True)
    window = skyband.sliding("10 seconds", every="1 second", on="ts")
    stream = spark.readStream.schema(spark.read.parquet(str(folder / "trades")).schema).parquet(str(folder / "trades"))

    def pipeline() -> None:
        running = Running(spark, load(folder / "pipeline.toml"), print)
        running.start()
        for _ in running.follow():
            pass
        running.stop()

    return {
        "sb.top_k on Spark, per group": lambda: skyband.top_k(stream, k=3, by="price", window=window, per="symbol"),
        "a pipeline of one statement": pipeline,
    }


# A room stands in the first row that names it, or the folder that it is in.
ROWS: Final = (
    (("api.py", "pipelines", "sql", "accessors.py"), SHADE),
    (("engines", "dialect"), PALE_BLUE),
    (("problems",), PALE_ORANGE),
    (("core", "expressions"), PALE_GREEN),
    (("kernels", "windows.py", "errors.py", "streams"), SHADE),
)
WIDTH, TOP, BOX, GAP, STEP = 940, 92, 58, 16, 128
OFTEN: Final = 10  # calls between two packages, from which on the line is thick


def draw(title: str, walk: Walk) -> str:
    """The packages of a walk as boxes, with the files entered and the calls between them as lines."""
    files, calls = Counter(map(room, walk.files)), walk.by_room().edges
    rows = [[place for place in files if _row(place) == number] for number in range(len(ROWS))]
    rows = [line for row in rows for line in _lines(row)]
    sheet = Sheet(WIDTH, TOP + STEP * len(rows) - 30, title)
    sheet.text(40, 40, title, size=20, bold=True)
    counted = f"{len(walk.files)} files, {walk.switches} calls from one file to another"
    sheet.text(40, 64, f"{counted}; thick line: {OFTEN} calls or more", size=14, colour=SOFT)
    places = {name: place for number, row in enumerate(rows) for name, place in _places(row, number).items()}
    called, between = Counter[str](), Counter[tuple[str, ...]]()
    for (caller, name), count in calls.items():
        called[name] += count
        between[tuple(sorted((caller, name)))] += count
    # Lines first, so that boxes cover them, and thick lines after the others.
    for pair, count in sorted(between.items(), key=lambda each: each[1]):
        often = count >= OFTEN
        sheet.line([places[name] for name in pair], colour=BLUE if often else FAINT, width=3 if often else 1.5)
    for name, (x, y) in places.items():
        width = _width(name)
        fill = ROWS[_row(name)][1]
        counts = [(files[name], "file"), (called[name], "call")]
        counted = ", ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count)
        sheet.card(x - width / 2, y - BOX / 2, width, [_label(name), counted], fill=fill)
    return sheet.svg()


def _row(place: str) -> int:
    return next((number for number, (names, _) in enumerate(ROWS) if place.split("/")[0] in names), len(ROWS) - 1)


def _lines(row: list[str]) -> list[list[str]]:
    """The rooms of a row, on as many lines as they need."""
    lines: list[list[str]] = []
    room_left = 0.0
    for name in row:
        needed = _width(name) + GAP
        if needed > room_left:
            lines.append([])
            room_left = WIDTH - 2.0 * GAP
        lines[-1].append(name)
        room_left -= needed
    return lines


def _places(row: list[str], number: int) -> dict[str, Point]:
    """Where the middle of each room is: the row is centred."""
    x = (WIDTH - sum(map(_width, row)) - GAP * (len(row) - 1)) / 2
    places = {}
    for name in row:
        places[name] = (x + _width(name) / 2, TOP + BOX / 2 + STEP * number)
        x += _width(name) + GAP
    return places


def _label(place: str) -> str:
    return place.removeprefix("problems/").removesuffix(".py")


def _width(place: str) -> float:
    return max(width_of(_label(place), 15), width_of("99 files, 999 calls", 13)) + 24


def main(pictures: Path = Path("docs/pictures")) -> None:
    """Trace each walk the second time that it is made, and draw it."""
    with tempfile.TemporaryDirectory(prefix="skyband-walks-") as folder:
        calls = in_this_process() | (on_spark(Path(folder)) if "--spark" in sys.argv[1:] else {})
        for (title, call), name in zip(calls.items(), NAMES, strict=False):
            call()
            walk = trace(call)
            (pictures / f"walk-{name}.svg").write_text(draw(title, walk))
            print(f"{title}: {len(walk.files)} files, {walk.switches} calls between files")


if __name__ == "__main__":
    main()
