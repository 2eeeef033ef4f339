"""Draw every picture: `python -m skyband.study.pictures` writes docs/pictures/<name>.svg."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

from skyband.study import pictures

NOT_PICTURES = {"drawing", "__main__"}


def drawn() -> dict[str, Callable[[], str]]:
    """What draws each picture, by its name: a module's `draw` or, if it has several pictures, those in its `DRAWN`."""
    found: dict[str, Callable[[], str]] = {}
    for name in (each.name for each in pkgutil.iter_modules(pictures.__path__) if each.name not in NOT_PICTURES):
        module = importlib.import_module(f"skyband.study.pictures.{name}")
        found |= {each.__name__: each for each in module.DRAWN} if hasattr(module, "DRAWN") else {name: module.draw}
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in drawn().items():
        (folder / f"{name}.svg").write_text(draw())
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
