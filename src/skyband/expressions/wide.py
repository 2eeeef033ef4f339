"""Sums of many terms that are alike but for their columns, such as a distance over 64 of them.

Written out, each term is lines of its own, and what is compiled from them takes long: so such a sum is one term and a
loop over columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp

WIDE: Final = 12  # terms; fewer are written out, which is faster then


@dataclass(frozen=True)
class Sum:
    """The lines compute `term` from as0, bs0, as1, …: in the i-th term these are the slots' i-th columns or numbers."""

    count: int
    slots: tuple[tuple[int, ...] | tuple[float, ...], ...]  # whole numbers: of columns; floats: what is written out
    lines: tuple[str, ...]
    term: str
    sides: tuple[str, ...]  # by slot: which of its rows the lines read: a, b or both


class Term(NamedTuple):
    """A term of a sum."""

    shape: str  # what it has in common with those that are alike
    columns: tuple[str, ...]  # by slot
    numbers: tuple[str, ...]  # as they are written


def terms_of(node: exp.Expr) -> list[exp.Expr]:
    """What a sum adds up, from left to right."""
    from sqlglot import exp

    terms = []
    while isinstance(node, exp.Add):
        terms.append(node.expression)
        node = node.this
    return [node, *reversed(terms)]


def read_term(node: exp.Expr) -> Term:
    from sqlglot import exp

    slots: dict[str, int] = {}
    numbers = []
    shape = []
    for part in node.walk(bfs=False):
        if isinstance(part, exp.Identifier):
            continue
        shape.append(type(part).__name__)
        if isinstance(part, exp.Column):
            shape.append(f"{part.table}{slots.setdefault(part.name, len(slots))}")
        elif isinstance(part, exp.Literal):
            # A power is written out by its exponent.
            plain = not part.is_string and not isinstance(part.parent, exp.Pow)
            shape.append("number" if plain else part.this)
            numbers += [part.this] if plain else []
    return Term(" ".join(shape), tuple(slots), tuple(numbers))


def template(node: exp.Expr, columns: Sequence[str], varying: Sequence[int]) -> exp.Expr:
    """A term with its columns, and those of its numbers that vary, called after their slots."""
    from sqlglot import exp

    node = exp.Paren(this=node.copy())
    slot = {name: number for number, name in enumerate(columns)}
    number = 0
    for part in list(node.walk(bfs=False)):
        if isinstance(part, exp.Column):
            part.replace(exp.column(f"s{slot[part.name]}", part.table))
        elif isinstance(part, exp.Literal) and not part.is_string and not isinstance(part.parent, exp.Pow):
            if number in varying:
                part.replace(exp.column(f"s{len(columns) + varying.index(number)}", "a"))
            number += 1
    return node
