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
