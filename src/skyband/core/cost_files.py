"""Files of measured costs. The package ships files from another machine; `skyband calibrate` measures on this one and
saves its files in the user's cache. Only ratios of costs matter for a choice.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from skyband.errors import SkybandError

VERSION: Final = 1

Costs = TypeVar("Costs")


def cache_folder() -> Path:
    """The folder of the user's cache in which Skyband keeps files."""
    if folder := os.environ.get("SKYBAND_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skyband"


def machine() -> str:
    return platform.processor() or platform.machine()


def _two_fields(costs: Any) -> tuple[str, Any]:
    machine, ns = (getattr(costs, field.name) for field in fields(costs))
    return machine, ns


@dataclass(frozen=True)
class File(Generic[Costs]):
    """The cost file of one problem: the machine, and nanoseconds at each point of a grid."""

    problem: str
    grid: Mapping[str, Any]  # the points at which costs are measured
    command: str  # the command that measures them again
    costs: Callable[[str, Any], Costs]
    parts: Callable[[Costs], tuple[str, Any]] = _two_fields  # the inverse of `costs`: machine and nanoseconds

    def cache_file(self) -> Path:
        """The file with the costs of this machine."""
        return cache_folder() / f"costs-{self.problem}.json"

    def shipped_file(self) -> Path:
        """The file that comes with the package."""
        return Path(__file__).parents[1] / "problems" / self.problem / "costs.json"

    def write(self, costs: Costs, path: Path) -> None:
        machine, ns = self.parts(costs)
        path.parent.mkdir(parents=True, exist_ok=True)
        described = {"version": VERSION, "machine": machine, "grid": self.grid, "ns": ns}
        path.write_text(_text(described) + "\n")

    def read(self, path: Path) -> Costs:
        try:
            described: Any = json.loads(path.read_text())
            if described["version"] != VERSION or described["grid"] != self.grid:
                raise ValueError("another version of Skyband wrote them")
            machine, ns = str(described["machine"]), described["ns"]
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise SkybandError(
                f"Cannot use the costs in {path}: {error}. `{self.command}` measures them again."
            ) from None
        return self.costs(machine, ns)

    def known(self) -> Costs:
        """Read the costs of this machine; if there are none, or they cannot be used, those of the package."""
        try:
            return self.read(self.cache_file())
        except SkybandError:
            return self.read(self.shipped_file())


def _text(value: Any, indent: str = "") -> str:
    """Write JSON with each innermost table on one line, so that a new measurement changes few lines."""
    if _depth(value) <= 2:
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, Mapping):
        lines = [f"{json.dumps(key)}: {_text(of, inner)}" for key, of in value.items()]
        return "{" + ",".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}}}"
    return "[" + ",".join(f"\n{inner}{_text(of, inner)}" for of in value) + f"\n{indent}]"


def _depth(value: Any) -> int:
    """How deeply lists are nested; a mapping counts as three levels."""
    if isinstance(value, Mapping):
        return 3
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0
