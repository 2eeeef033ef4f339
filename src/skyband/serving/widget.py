"""`session.live()`: the board and the skyband picture in a notebook, as rows are pushed. Needs anywidget.

It draws with the modules of the console, put into one text: a notebook loads a widget as one module.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from skyband.errors import EnvironmentProblem, SkybandError
from skyband.serving import formats
from skyband.serving.watching import Watched

if TYPE_CHECKING:
    from skyband.core.session import Session

ASSETS: Final = Path(__file__).with_name("assets")
_MODULES: Final = ("format.js", "board.js", "picture.js", "lanes.js", "widget.js")
_SECONDS: Final = 0.2  # between two updates


def bundle() -> str:
    """The widget's modules as one: without the lines that import one from another."""
    texts = [(ASSETS / name).read_text(encoding="utf-8") for name in _MODULES]
    joined = [re.sub(r"^import .*;$", "", text, flags=re.MULTILINE) for text in texts]
    return "\n".join([re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE) for text in joined])


def styles() -> str:
    """The console's colours and its board, for the widget alone."""
    text = (ASSETS / "style.css").read_text(encoding="utf-8")
    colours = re.findall(r"(--[\w-]+: #[0-9a-f]+;)", text.partition("@media")[0])
    light = re.findall(r"(--[\w-]+: #[0-9a-f]+;)", text.partition("@media")[2].partition("}")[0])
    board = re.findall(r"^\.board[^}]*\}(?: \.board[^}]*\})*", text, flags=re.MULTILINE)
    return "\n".join(
        [
            f".skyband-widget {{ {' '.join(light)} --radius: 12px; }}",
            f"@media (prefers-color-scheme: dark) {{ .skyband-widget {{ {' '.join(colours)} }} }}",
            *board,
            (ASSETS / "widget.css").read_text(encoding="utf-8"),
        ]
    )


def live(session: Session) -> Any:
    """A widget that follows a session, until `close()` of either."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise EnvironmentProblem(f"live() needs the package {error.name}: pip install 'skyband[notebook]'.") from error

    watched = Watched(session, "live")

    class Live(anywidget.AnyWidget):
        """A session, followed."""

        _esm = bundle()
        _css = styles()
        answer = traitlets.Dict().tag(sync=True)
        picture = traitlets.Dict().tag(sync=True)

        def close(self) -> None:
            watched.close()
            super().close()

    widget = Live()
    Thread(target=_follow, args=(widget, watched), name="skyband live", daemon=True).start()
    return widget


def _follow(widget: Any, watched: Watched) -> None:
    while watched.state == "running":
        tell(widget, watched)
        time.sleep(_SECONDS)


def tell(widget: Any, watched: Watched) -> None:
    """Send what is there now."""
    try:
        latest, figures = watched.board.latest(), watched.figures()
        rows = [] if latest is None else formats.rows_of(latest.table.slice(0, 20))
        held, within = figures.get("rows_held"), figures.get("rows_in_window")
        note = f"{held:,} rows held" + ("" if within is None else f" of {within:,} in the window")
        widget.answer = {"about": watched.describe(), "rows": rows, "note": note}
        if watched.picture is not None:
            widget.picture = {"form": watched.picture.form, **watched.picture.draw()}
    except SkybandError as error:  # the session has failed: the last picture stays
        widget.answer = {**widget.answer, "note": str(error)}
