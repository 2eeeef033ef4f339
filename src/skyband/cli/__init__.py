"""The command line: `skyband sql`, `ui`, `run`, `submit`, `check`, `state`, `top`, `init`, `doctor`, `demo`, `explain`,
`bench`.

Commands import what they need when they run, so that help comes at once.
"""

from collections.abc import Callable
from typing import Final

from skyband.cli import asking, benchmarks, console, demonstration, machine, queries
from skyband.cli.application import app
from skyband.pipelines import commands

app.add_typer(benchmarks.app, name="bench")
COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    *(commands.run, commands.submit, commands.check, commands.state, commands.init, commands.doctor),
    asking.top,
    *(console.ui, demonstration.demo, queries.explain, queries.sql, machine.calibrate, machine.version),
)
for command in COMMANDS:
    app.command()(command)

__all__ = ["app"]
