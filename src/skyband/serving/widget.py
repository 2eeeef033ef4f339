"""`session.live()` and `sb.live(query)`: the board and the picture in a notebook, as answers come. Needs anywidget.

It draws with the modules of the console, put into one text: a notebook loads a widget as one module.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.errors import EnvironmentProblem, SkybandError
from skyband.serving import formats
from skyband.serving.watching import Watched

if TYPE_CHECKING:
    from skyband.core.session import Session

ASSETS: Final = Path(__file__).with_name("assets")
_MODULES: Final = ("format.js", "board.js", "picture.js", "lanes.js", "widget.js")
_SECONDS: Final = 0.2  # between two updates
_SPARK_SECONDS: Final = 1.0  # between two looks at a streaming query
_MOST_ROWS: Final = 20


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
            # Notebooks have themes of their own: of Jupyter, VS Code and marimo.
            *(f"{_under(theme)} {{ {' '.join(kind)} }}" for theme, kind in (("light", light), ("dark", colours))),
            *board,
            (ASSETS / "widget.css").read_text(encoding="utf-8"),
        ]
    )


def _under(theme: str) -> str:
    """The widget in a notebook that has this theme, whatever the system has."""
    jupyter = f'[data-jp-theme-light="{"true" if theme == "light" else "false"}"]'
    return ", ".join(f"{place} .skyband-widget" for place in (jupyter, f".vscode-{theme}", f"html.{theme}"))


def live(session: Session) -> Any:
    """A widget that follows a session, until `close()` of either."""
    watched = Watched(session, "live")
    widget = _made(watched.close)

    def follow() -> None:
        while watched.state == "running":
            tell(widget, watched)
            time.sleep(_SECONDS)

    Thread(target=follow, name="skyband live", daemon=True).start()
    return widget


def live_on_spark(query: Any) -> Any:
    """A widget that follows what a streaming query writes to a memory sink, until the query or the widget ends."""
    from skyband.engines.spark.memory_sink import MemorySink

    sink, closed = MemorySink(query), Event()
    widget = _made(closed.set)

    def follow() -> None:
        told: int | None = -1
        while not closed.is_set():
            is_active, batch = sink.is_active, sink.batch
            if batch != told:
                told = batch
                tell_window(widget, sink.name, sink.latest(), sink.note())
            if not is_active:
                widget.answer = {**widget.answer, "note": f"{sink.note()}. The query has ended."}
                return
            closed.wait(_SPARK_SECONDS)

    Thread(target=follow, name="skyband live", daemon=True).start()
    return widget


def _made(close: Callable[[], None]) -> Any:
    """A widget without content; `close` is called with its own."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise EnvironmentProblem(f"live() needs the package {error.name}: pip install 'skyband[notebook]'.") from error

    class Live(anywidget.AnyWidget):
        """A query, followed."""

        _esm = bundle()
        _css = styles()
        answer = traitlets.Dict().tag(sync=True)
        picture = traitlets.Dict().tag(sync=True)

        def close(self) -> None:
            close()
            super().close()

    return Live()


def tell_window(widget: Any, title: str, table: pa.Table, note: str) -> None:
    """Send a window that was read from elsewhere."""
    end = f"window until {formats.value(table.column('window_end')[0].as_py())}, " if table.num_rows else ""
    rows = formats.rows_of(table.slice(0, _MOST_ROWS))
    widget.answer = {"about": {"title": title, "picture": None, "identity": []}, "rows": rows, "note": end + note}


def tell(widget: Any, watched: Watched) -> None:
    """Send what is there now."""
    try:
        latest, figures = watched.board.latest(), watched.figures()
        rows = [] if latest is None else formats.rows_of(latest.table.slice(0, _MOST_ROWS))
        held, within = figures.get("rows_held"), figures.get("rows_in_window")
        note = f"{held:,} rows held"
        if within is not None:  # an algorithm may sweep out rows some time after they have left the window
            note += f"{',' if held > within else ' of'} {within:,} in the window"
        widget.answer = {"about": watched.describe(), "rows": rows, "note": note}
        if watched.picture is not None:
            widget.picture = {"form": watched.picture.form, **watched.picture.draw()}
    except SkybandError as error:  # the session has failed: the last picture stays
        widget.answer = {**widget.answer, "note": str(error)}
