"""A sheet of SVG: shapes and words in the few colours that all pictures share, on light and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

INK: Final = "#1f2937"
SOFT: Final = "#6b7280"
FAINT: Final = "#d1d5db"
PAPER: Final = "#ffffff"
SHADE: Final = "#f3f4f6"
BLUE: Final = "#2563eb"
PALE_BLUE: Final = "#dbeafe"
ORANGE: Final = "#ea580c"
PALE_ORANGE: Final = "#ffedd5"
PALE_GREEN: Final = "#dcfce7"
PALE_SHADE: Final = "#f9fafb"
GRID: Final = "#e5e7eb"
TEAL: Final = "#0d9488"
PURPLE: Final = "#8b5cf6"

# What each colour becomes where the reader prefers dark pages.
DARK: Final = {
    INK: "#e6edf3",
    SOFT: "#9aa4b2",
    FAINT: "#5b6678",
    PAPER: "#151b26",
    SHADE: "#242c3a",
    BLUE: "#6ea8fe",
    PALE_BLUE: "#1d3557",
    ORANGE: "#fb8b4b",
    PALE_ORANGE: "#4a2c17",
    PALE_GREEN: "#173a26",
    PALE_SHADE: "#1b2230",
    GRID: "#2f3848",
    TEAL: "#2dd4bf",
    PURPLE: "#a78bfa",
}

FONT: Final = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
Point = tuple[float, float]


class Sheet:
    """A sheet with round corners: white, or dark where the reader prefers that."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []
        self._rules: list[str] = []

    def rule(self, css: str) -> None:
        """Add a rule to the style sheet of the picture."""
        self._rules.append(css)

    def add(self, element: str) -> None:
        """Put raw SVG on the sheet."""
        self._parts.append(element)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 15,
        colour: str = INK,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Write words whose baseline starts, is centred or ends at (x, y)."""
        weight = ' font-weight="600"' if bold else ""
        self.add(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = SHADE,
        stroke: str = FAINT,
        corner: int = 6,
    ) -> None:
        """Draw a rectangle with its upper left corner at (x, y)."""
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner}" fill="{fill}" '
            f'stroke="{stroke}"/>'
        )

    def dot(self, x: float, y: float, *, fill: str, radius: float = 5, stroke: str = "none") -> None:
        """Draw a filled circle around (x, y)."""
        self.add(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}"/>')

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
        """Name the colours of dots, one beside the other: each entry takes as much room as its words."""
        for colour, words in entries:
            self.dot(x + 5, y - 5, fill=colour)
            self.text(x + 17, y, words, size=14)
            x += 17 + width_of(words, 14) + 22

    def line(self, points: Sequence[Point], *, colour: str = SOFT, width: float = 1.5, dashed: bool = False) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self.add(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}/>')

    def arrow(self, start: Point, end: Point, *, colour: str = SOFT) -> None:
        """Draw a straight arrow."""
        self.add(
            f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="{colour}" '
            'stroke-width="1.5" marker-end="url(#head)"/>'
        )

    def card(self, x: float, y: float, width: float, lines: Sequence[str], *, fill: str = SHADE) -> float:
        """Draw a box with a bold first line and softer lines below; return where the box ends."""
        height = 16 + 21 * len(lines)
        self.box(x, y, width, height, fill=fill)
        for i, words in enumerate(lines):
            self.text(x + width / 2, y + 24 + 21 * i, words, anchor="middle", bold=i == 0, size=15 if i == 0 else 13)
        return y + height

    def svg(self) -> str:
        """The whole sheet."""
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{SOFT}"/></marker></defs>'
        )
        paper = f'<rect width="{self.width}" height="{self.height}" rx="12" fill="{PAPER}"/>'
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" font-family="{FONT}" role="img">'
        )
        return "\n".join(
            [
                opening,
                f"<title>{escape(self.title)}</title>",
                "<style>",
                *_dark_rules([head, paper, *self._parts]),
                *self._rules,
                "</style>",
                head,
                paper,
                *self._parts,
                "</svg>\n",
            ]
        )


def width_of(words: str, size: float) -> float:
    """How wide words are at most, in any of the fonts: DejaVu Sans is the widest."""
    return size * sum(_EMS.get(letter, 0.64) for letter in words)


_EMS: Final = {
    **dict.fromkeys("ijlI.,:;'|! ", 0.33),
    **dict.fromkeys("frt()-", 0.42),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ", 0.75),
    **dict.fromkeys("mwMW→", 0.98),
}


def _dark_rules(parts: Sequence[str]) -> list[str]:
    """What changes on dark pages: one rule for each colour that the picture has. Rules win over attributes."""
    drawn = "".join(parts)
    return [
        f'@media (prefers-color-scheme: dark) {{[{what}="{light}"] {{{what}: {dark}}}}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
        if f'{what}="{light}"' in drawn
    ]
