"""Which files a call walks through, and how often it switches between them: for docs/architecture.md.

    python -m skyband.study.walks

Only code of Skyband counts. Compiled loops are one step: a profiler does not see into them. A file is entered when one
of its functions is called from another file; what numba, pyarrow and Spark do in between is passed over.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import skyband

PACKAGE = Path(skyband.__file__).parent


class Walk(NamedTuple):
    files: list[str]  # in the order in which they are first entered
    switches: int  # calls from one file to another
    edges: Counter[tuple[str, str]]  # how often each file calls each other one

    def mermaid(self) -> str:
        """As a picture: files, and what calls what, with how often."""
        names = {file: f"f{number}" for number, file in enumerate(self.files)}
        boxes = [f'  {names[file]}["{number}. {file}"]' for number, file in enumerate(self.files, 1)]
        arrows = [
            f"  {names[caller]} -->|{count}| {names[called]}"
            for (caller, called), count in self.edges.items()
            if caller in names and called in names
        ]
        return "\n".join(["graph TD", *boxes, *arrows])


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
    return Walk(list(files), sum(edges.values()), edges)


def _callers(frame: FrameType) -> Any:
    above = frame.f_back
    while above is not None:
        yield _file(above)
        above = above.f_back


def _file(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    inside = path.is_relative_to(PACKAGE) and not frame.f_code.co_name.startswith("<")
    return str(path.relative_to(PACKAGE)) if inside and "study" not in path.parts else None


def rooms(walk: Walk) -> dict[str, int]:
    """How many of the walk's files are in each room; the algorithms that are only asked for their cost are one."""
    found: Counter[str] = Counter()
    for file in walk.files:
        found[_room(file)] += 1
    return dict(found)


def _room(file: str) -> str:
    parts = Path(file).parts
    if parts[0] == "problems" and len(parts) > 3:
        return f"problems/{parts[1]}/{parts[2]}"
    if parts[0] in ("core", "engines") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return parts[0] if len(parts) > 1 and parts[0] != "problems" else "/".join(parts[:2])


def main() -> None:
    """Print the walks of a top-k call and of a join in SQL, the second time that each is made."""
    import numpy as np
    import pyarrow as pa

    n = 50_000
    times = pa.array(np.arange(n) * 1000, pa.timestamp("us"))
    trades = pa.table({"ts": times, "symbol": np.arange(n) % 50, "price": np.random.default_rng(0).random(n)})
    window = skyband.sliding("10 seconds", every="1 second", on="ts")
    text = (
        "SELECT a.symbol, COUNT(*) AS n FROM sold AS a [WINDOW 10 SECONDS EVERY 1 SECOND ON ts], "
        "bought AS b [WINDOW 10 SECONDS ON ts] WHERE a.symbol = b.symbol GROUP BY a.symbol"
    )
    calls: dict[str, Callable[[], Any]] = {
        "sb.top_k over a table": lambda: skyband.top_k(trades, k=10, by="price * symbol", window=window),
        "sb.sql, a join": lambda: skyband.sql(text, sold=trades.slice(0, 2_000), bought=trades.slice(0, 5_000)),
    }
    for name, call in calls.items():
        call()
        walk = trace(call)
        print(f"{name}: {len(walk.files)} files, {walk.switches} switches")
        for room, files in rooms(walk).items():
            print(f"  {files:3} {room}")


if __name__ == "__main__":
    main()
