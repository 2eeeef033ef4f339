"""Example tests: every kind of node that sqlglot knows, in a condition and in FROM, is evaluated or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from sql.test_statements import INPUTS
from sqlglot import exp

import skyband as sb
from skyband.dialect import text as texts
from skyband.dialect.clauses import READ
from skyband.dialect.nodes import TableFunction
from skyband.dialect.statement import understand
from skyband.expressions import row_functions
from skyband.expressions.grammar import READ_IN_ROWS
from skyband.sql.recognise import recognise

SCHEMAS = {name: INPUTS[name].schema for name in ("trades",)}
CONDITION = "SELECT price FROM trades [WINDOW 20 EVERY 5 ON t] WHERE ({}) IS NOT NULL ORDER BY price LIMIT 1"
SOURCE = "SELECT price FROM {} [WINDOW 20 EVERY 5 ON t] ORDER BY price LIMIT 1"
# What is replaced by other nodes, or is no value: names of a dialect for what it knows already.
MEANT = {exp.NullSafeEQ, exp.NullSafeNEQ, exp.Anonymous, TableFunction}
EVALUATED = {*READ, *READ_IN_ROWS, *row_functions.READ, *MEANT}


def kinds(of: type[exp.Expr] = exp.Expr) -> Iterator[type[exp.Expr]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def written(kind: type[exp.Expr], name: str) -> Iterator[str]:
    """A node of this kind as text: with what it must have, and with each argument that it may have."""
    column = exp.column(name)
    needed = [part for part, is_needed in kind.arg_types.items() if is_needed]
    for more in ([], *([part] for part in kind.arg_types if part not in needed)):
        parts = {part: [column] if part == "expressions" else column for part in (*needed, *more)}
        try:
            yield kind(**parts).copy().sql(dialect="spark")
        except Exception:  # sqlglot cannot write it so
            continue


def statements(template: str, name: str) -> list[str]:
    found = {text for kind in set(kinds()) for text in written(kind, name)}
    return sorted(template.format(text) for text in found if text)


@pytest.mark.parametrize(("template", "name"), [(CONDITION, "price"), (SOURCE, "trades")], ids=["condition", "source"])
def test_every_kind_of_node_is_evaluated_or_refused(template: str, name: str) -> None:
    asked, accepted = statements(template, name), 0
    for statement in asked:
        with contextlib.suppress(sb.SkybandError):
            understood = understand(statement)
            if [one.name for one in understood.leaves] != ["trades"]:
                continue  # a name for another input, as far as the text says
            recognise(understood, SCHEMAS)
            nodes = {type(node) for node in texts.read(statement).walk()}
            assert nodes <= EVALUATED, (statement, nodes - EVALUATED)
            accepted += 1
    assert len(asked) > 500
    assert accepted > (50 if template == CONDITION else 1)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (CONDITION.format("TRUNCATE(price, 1)"), "There is no function 'TRUNCATE'"),
        ("SELECT MAX(price, 2) AS m FROM trades [WINDOW 20 EVERY 5 ON t]", "MAX takes one argument"),
        (SOURCE.format(":trades"), "A statement has no parameters"),
        (CONDITION.format("MAP(price)"), "a function has too few arguments"),
        (CONDITION.format("price + ?"), "A statement has no parameters"),
    ],
)
def test_what_was_dropped_or_taken_for_another_is_refused(statement: str, why: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why) as caught:
        sb.sql(statement, **INPUTS)
    assert "^" in str(caught.value)
