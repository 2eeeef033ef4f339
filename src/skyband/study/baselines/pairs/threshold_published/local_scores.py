"""The local scores of a score: of one column of both rows, loosely monotonic. The score is monotonic in each of them.

Loosely monotonic: as one row's value goes away from the other's, to either side, the local score only rises or only
falls there. All of these are symmetric in the two rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from skyband.expressions.exact_values import FLOAT
from skyband.expressions.lines import distance_of
from skyband.expressions.pairs import SLACK, PairScore, _NotKnown, _parse, _shape

if TYPE_CHECKING:
    from sqlglot import exp

DISTANCE, SUM, PRODUCT, GREATEST, LEAST = range(5)  # of two values

# What stands for a local score in the tree that says in which of them the score rises: of those that are never below
# 0, and of the others.
_STAND_INS: Final = {True: "abs(a.{0} - b.{0})", False: "(abs(a.{0} - b.{0}) - 1)"}


class LocalScores(NamedTuple):
    columns: tuple[int, ...]  # of the score's columns, by number: one for each local score
    kinds: tuple[int, ...]  # DISTANCE, …
    ways: tuple[int, ...]  # 1: the score, of which higher is better, rises with the local score; -1: it falls
    slack: float  # the share that the score may be off by, where it is made of logarithms and powers


@lru_cache(maxsize=256)
def local_scores(score: PairScore) -> LocalScores | None:
    """None: the score is of another kind, or reads other columns than of floats."""
    from sqlglot import exp

    if score.function is not None or score.calls or score.is_key or score.sums:
        return None
    kinds: dict[str, int] = {}

    def replaced(node: exp.Expr) -> exp.Expr:
        found = _local(node)
        if found is None:
            return node
        name, kind = found
        if kinds.setdefault(name, kind) != kind:
            raise _NotKnown  # it rises with one local score of the column and maybe falls with the other
        return _parse(_STAND_INS[kind == DISTANCE].format(exp.to_identifier(name, quoted=True).sql("spark")))

    numbers = {column.name: number for number, column in enumerate(score.kept)}
    try:
        shape = _shape(_parse(score.text).transform(replaced))
    except _NotKnown:
        return None
    if not shape.rises or any(score.kept[numbers[name]].kind != FLOAT for name in shape.rises):
        return None
    sign = -1 if any(line.startswith("s = -") for line in score.lines) else 1
    return LocalScores(
        tuple(numbers[name] for name in shape.rises),
        tuple(kinds[name] for name in shape.rises),
        tuple(sign * way for way in shape.rises.values()),
        0.0 if shape.exact else SLACK,
    )


def _local(node: exp.Expr) -> tuple[str, int] | None:
    """The column and the kind, if the node is a local score. A squared distance ranks as the distance does."""
    from sqlglot import exp

    if found := distance_of(node):
        return found[0], DISTANCE
    match node:
        case exp.Add() | exp.Mul():
            sides = [node.this.unnest(), node.expression.unnest()]
            if isinstance(node, exp.Mul) and sides[0] == sides[1] and isinstance(sides[0], exp.Sub):
                name = _column([sides[0].this.unnest(), sides[0].expression.unnest()])
                return None if name is None else (name, DISTANCE)
            kind = SUM if isinstance(node, exp.Add) else PRODUCT
        case exp.Greatest() | exp.Least():
            sides = [part.unnest() for part in (node.this, *node.expressions)]
            kind = GREATEST if isinstance(node, exp.Greatest) else LEAST
        case _:
            return None
    name = _column(sides)
    return None if name is None else (name, kind)


def _column(sides: list[exp.Expr]) -> str | None:
    """The name, if these are one column of both rows."""
    from sqlglot import exp

    columns = [(side.name, side.table) for side in sides if isinstance(side, exp.Column)]
    if len(sides) == len(columns) == 2 and {table for _, table in columns} == {"a", "b"}:
        name, other = (name for name, _ in columns)
        return name if name == other else None
    return None
