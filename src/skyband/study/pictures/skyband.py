"""The skyband as dots, while a window slides over them: which rows are shown, which may still be, which are dropped."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.problems.rows.query import TopK
from skyband.study.pictures.drawing import BLUE, DARK, FAINT, INK, ORANGE, PALE_BLUE, SOFT, Sheet
from skyband.windows import sliding

K: Final = 3
WINDOW: Final = 60
ROWS: Final = 120
SECONDS_A_ROW: Final = 0.35
LEFT, TOP, WIDTH, HEIGHT = 56, 92, 828, 270
SHOWN, KEPT, GONE, UNSEEN = ORANGE, BLUE, FAINT, "transparent"
# Style sheets animate the picture, not SMIL: it stands still for readers who prefer that, and it is dark on dark pages.
NAMES: Final = {SHOWN: "var(--shown)", KEPT: "var(--kept)", GONE: "var(--gone)", UNSEEN: UNSEEN}
STILL: Final = "@media (prefers-reduced-motion: reduce) {* {animation: none !important}}"


def draw() -> str:
    """An animation of a strict skyband with k = 3 over the last 60 rows; without animation, its last moment."""
    scores = np.random.default_rng(4).beta(1.4, 1.8, ROWS).round(3)
    colours = _colours(scores)
    sheet = Sheet(940, 440, "The rows that Skyband keeps while a window slides")
    _rules(sheet, SECONDS_A_ROW * len(colours))
    sheet.text(LEFT, 38, f"Top {K} of the last {WINDOW} rows: what Skyband keeps", size=20, bold=True)
    entries = [(SHOWN, "in the answer"), (KEPT, "may enter later"), (GONE, f"dropped: {K} later rows are better")]
    sheet.legend(LEFT, 68, entries)
    _counts(sheet, [sum(colour in (SHOWN, KEPT) for colour in moment) for moment in colours])
    step = WIDTH / ROWS
    sheet.add(
        f'<rect class="window" x="{LEFT + (ROWS - WINDOW) * step:g}" y="{TOP - 8}" width="{WINDOW * step:g}" '
        f'height="{HEIGHT + 16}" rx="6" fill="{PALE_BLUE}" opacity="0.55"/>'
    )
    for i in range(ROWS):
        x, y = LEFT + (i + 0.5) * step, TOP + HEIGHT * (1 - float(scores[i]))
        _dot(sheet, f"row-{i}", x, y, [moment[i] for moment in colours])
    sheet.line([(LEFT, TOP + HEIGHT + 12), (LEFT + WIDTH, TOP + HEIGHT + 12)], colour=SOFT, width=1)
    sheet.text(LEFT + WIDTH, TOP + HEIGHT + 34, "arrival →", anchor="end", colour=SOFT)
    sheet.text(LEFT, TOP + HEIGHT + 34, "score ↑", colour=SOFT)
    sheet.text(LEFT + WIDTH / 2, TOP + HEIGHT + 34, "shaded: the window", anchor="middle", colour=BLUE)
    return sheet.svg()


def _rules(sheet: Sheet, seconds: float) -> None:
    """What moves and how: the window slides, and dots and counts change from one moment to the next."""
    for scheme, colour_of in (("light", lambda colour: colour), ("dark", DARK.__getitem__)):
        named = f"--shown:{colour_of(SHOWN)};--kept:{colour_of(KEPT)};--gone:{colour_of(GONE)}"
        sheet.rule(f"@media (prefers-color-scheme: {scheme}) {{svg {{{named}}}}}")
    sheet.rule(f"circle, .count {{animation-duration: {seconds:g}s; animation-timing-function: step-end}}")
    sheet.rule("circle, .count, .window {animation-iteration-count: infinite}")
    sheet.rule(f".window {{animation: slide {seconds:g}s linear infinite}}")
    sheet.rule(f"@keyframes slide {{from {{transform: translateX({-(ROWS - WINDOW) * WIDTH / ROWS:g}px)}}}}")
    sheet.rule(STILL)


def _colours(scores: np.ndarray) -> list[list[str]]:
    """For each moment from the first full window on, the colour of every row."""
    rows = pa.table({"score": scores})
    session = TopK(k=K, by="score", window=sliding(WINDOW), algorithm="strict").open(rows.schema)
    moments = []
    for i in range(ROWS):
        session.push(rows.slice(i, 1))
        if i + 1 < WINDOW:
            continue
        held = set(session._operator.held().tolist())
        shown = sorted(held, key=lambda row: (-scores[row], -row))[:K]
        assert [scores[row] for row in shown] == session.top()["score"].to_pylist()
        moments.append([_colour(row, i, held, shown) for row in range(ROWS)])
    return moments


def _colour(row: int, now: int, held: set[int], shown: list[int]) -> str:
    if row > now:
        return UNSEEN
    return SHOWN if row in shown else KEPT if row in held else GONE


def _dot(sheet: Sheet, name: str, x: float, y: float, colours: list[str]) -> None:
    """A dot that changes its colour when the row becomes something else."""
    changes = _changes(colours)
    if len(changes) == 1:
        sheet.dot(x, round(y, 1), fill=colours[-1], radius=4.5)
        return
    frames = "".join(f"{moment} {{fill:{NAMES[colour]}}}" for moment, colour in changes)
    sheet.rule(f"@keyframes {name} {{{frames}}}")
    sheet.add(f'<circle cx="{x:g}" cy="{y:.1f}" r="4.5" fill="{colours[-1]}" style="animation-name:{name}"/>')


def _counts(sheet: Sheet, kept: list[int]) -> None:
    """How many rows are kept, at each moment: one text for each number, of which one is visible at a time."""
    for number in sorted(set(kept)):
        name = f"kept-{number}"
        seen = ["visible" if each == number else "hidden" for each in kept]
        frames = "".join(f"{moment} {{visibility:{each}}}" for moment, each in _changes(seen))
        sheet.rule(f"@keyframes {name} {{{frames}}}")
        sheet.add(
            f'<text class="count" x="{LEFT + WIDTH}" y="68" font-size="14" font-weight="600" fill="{INK}" '
            f'text-anchor="end" visibility="{seen[-1]}" style="animation-name:{name}">'
            f"{number} of {WINDOW} rows kept</text>"
        )


def _changes(states: list[str]) -> list[tuple[str, str]]:
    """When each state begins, in percent of the animation."""
    found = [(i, state) for i, state in enumerate(states) if i == 0 or states[i - 1] != state]
    return [(f"{100 * i / len(states):.4g}%", state) for i, state in found]
