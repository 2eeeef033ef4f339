"""Draw every picture: `python -m skyband.study.pictures` writes docs/pictures/<name>.svg."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

from skyband.study import pictures

NOT_PICTURES = {"bars", "drawing", "walking", "__main__"}  # python -m skyband.study.walks draws walks


def drawn() -> dict[str, Callable[[], str]]:
    """What draws each picture, by its name."""
    names = [module.name for module in pkgutil.iter_modules(pictures.__path__) if module.name not in NOT_PICTURES]
    return {name: importlib.import_module(f"skyband.study.pictures.{name}").draw for name in names}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in drawn().items():
        (folder / f"{name}.svg").write_text(draw())
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
