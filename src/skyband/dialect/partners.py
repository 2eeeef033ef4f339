"""Windows that rows are joined with by LEFT, RIGHT, SEMI or ANTI JOIN, [NOT] EXISTS or IN (SELECT …).

    SELECT a.id, COUNT(b.*) FROM a [WINDOW …] LEFT JOIN b [WINDOW …] ON a.id = b.id AND b.price > 5 GROUP BY a.id

Such a window is a partner of the one on its left, whose rows stay what they are. What ON says belongs to the join:
keys, and conditions on rows of the partner. A condition on the rows of the left alone becomes part of the key, which is
null where it is not met: nothing is equal to null. WHERE comes after the join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn, cast

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect import text as texts
from skyband.dialect.query_spec import View
from skyband.dialect.reading import check_conditions, owners_of, row_text
from skyband.dialect.statement import Input, PartnerWindow, Statement
from skyband.dialect.window_bounds import bound_in
from skyband.errors import SkybandError
from skyband.expressions.grammar import parts_of, rewritten

Schemas = dict[str, pa.Schema]

LEFT: Final = "left"
INNER: Final = "inner"  # of a LEFT JOIN, if WHERE drops all rows without a partner
_SAID: Final = {LEFT: "LEFT and RIGHT JOIN", "semi": "EXISTS, IN and SEMI JOIN", "anti": "NOT EXISTS and ANTI JOIN"}
_POSSIBLE: Final = (
    "Possible: equal columns or expressions of both, as in ON a.id = b.id, and conditions on rows of one of them; all "
    "joined by AND."
)


def with_partners(
    statement: Statement, schemas: Mapping[str, pa.Schema], hidden: Sequence[tuple[Input, str, list[exp.Expr]]]
) -> tuple[Statement, Schemas]:
    """The statement with its partners apart: those that LEFT and RIGHT JOIN name, and those that SEMI and ANTI JOIN
    only ask for rows, with what ON says of them."""
    found = dict(schemas)
    while (place := next((i for i, join in enumerate(statement.joins) if _is_outer(join)), None)) is not None:
        join = statement.joins[place]
        one = statement.inputs[0 if join.side == "RIGHT" else place + 1]
        _check_sides(statement, join, one)
        conditions = parts_of([join.args["on"]]) if join.args.get("on") else []
        where = _where(statement)
        statement = _without_side(statement, place)
        how = INNER if any(_drops_nulls(each, one, found[one.alias]) for each in where) else LEFT
        if how == INNER:
            statement, equal = _without_equal(statement, one.alias)
            conditions += equal
        statement, found = _Fold(statement, found, one, how, conditions).made()
        statement = _with_counts(statement, one.alias) if how == LEFT else statement
    for one, kind, conditions in hidden:
        statement, found = _Fold(statement, found, one, kind, conditions).made()
    _check_lefts(statement)
    return statement, found


def _is_outer(join: exp.Join) -> bool:
    return join.side in ("LEFT", "RIGHT")


def refuse_join(statement: Statement, side: str, one: Input, why: str, possible: str = "") -> NoReturn:
    """Raise at the word before JOIN."""
    place = texts.place_of_word(statement.text, (side,), near=one.node)
    texts.refuse(statement.text, why, place, possible)


def _check_sides(statement: Statement, join: exp.Join, one: Input) -> None:
    if join.side != "RIGHT":
        return
    node = statement.inputs[-1]
    if len(statement.inputs) != 2:
        refuse_join(statement, "RIGHT", node, "RIGHT JOIN joins two windows only", "Write LEFT JOIN.")
    if join.meta.get("using"):
        refuse_join(statement, "RIGHT", node, "RIGHT JOIN needs ON", f"Write ON {one.alias}.id = {node.alias}.id.")


def _where(statement: Statement) -> list[exp.Expr]:
    """What WHERE and inner joins ask for, which come after a LEFT JOIN."""
    where = statement.take("where")
    inner = [join.args["on"] for join in statement.joins if not join.side and join.args.get("on")]
    return parts_of([*([where.this] if where else []), *inner])


def _without_side(statement: Statement, place: int) -> Statement:
    select = statement.select.copy()
    join = select.args["joins"][place]
    join.set("side", None)
    join.set("on", None)
    return replace(statement, select=select)


def _filtered(statement: Statement, conditions: list[exp.Expr]) -> Statement:
    """The statement with more conditions in WHERE."""
    select = statement.select.copy()
    there = select.args.get("where")
    whole = [*([there.this] if there else []), *conditions]
    select.set("where", exp.Where(this=exp.and_(*whole)) if whole else None)
    return replace(statement, select=select)


def _without_equal(statement: Statement, alias: str) -> tuple[Statement, list[exp.Expr]]:
    """The statement without what WHERE sets equal to a column of this input, and that, which says how it is joined."""
    select = statement.select.copy()
    where = select.args.get("where")
    conditions = parts_of([where.this]) if where else []
    equal = [each for each in conditions if _sets_equal(each, alias)]
    rest = [each for each in conditions if each not in equal]
    select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    return replace(statement, select=select), equal


def _sets_equal(condition: exp.Expr, alias: str) -> bool:
    """Does it set a column of this input equal to one of another?"""
    sides = [side.unnest() for side in condition.iter_expressions()]
    is_equality = isinstance(condition, exp.EQ) and all(isinstance(side, exp.Column) for side in sides)
    return is_equality and alias in owners_of(condition) and len(owners_of(condition)) == 2


def _drops_nulls(condition: exp.Expr, one: Input, schema: pa.Schema) -> bool:
    """Is the condition met by no row without a partner? Then its join may as well be an inner one, but where a window
    counts rows: WHERE drops rows from the windows of an inner join."""
    owners = owners_of(condition)
    if one.on is None:
        return False
    if _sets_equal(condition, one.alias):
        return True
    if owners != {one.alias} or bound_in(condition) is not None or condition.find(exp.AggFunc) is not None:
        return False
    try:
        met = expressions.bind_condition(row_text(condition), schema, used_as="WHERE")
    except SkybandError:
        return False  # which is said where it is read
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in nullable], schema=nullable)
    return not bool(met.evaluate(nulls)[0])


def _with_counts(statement: Statement, alias: str) -> Statement:
    """COUNT(b.*) counts rows of b, so not those that stand for none: it counts the rows that have a key."""
    key = exp.Not(this=exp.Is(this=statement.partners[-1].keys[0][1].copy(), expression=exp.Null()))
    there = exp.Case(ifs=[exp.If(this=key, true=exp.Literal.number(1))])

    def put(node: exp.Expr) -> exp.Expr:
        is_star = isinstance(node, exp.Count) and isinstance(node.this, exp.Column) and node.this.is_star
        return exp.Count(this=there.copy(), big_int=True) if is_star and node.this.table == alias else node

    return replace(
        statement,
        select=cast(exp.Select, rewritten(statement.select, put)),
        items=tuple(replace(item, tree=rewritten(item.tree, put)) for item in statement.items),
        kept=tuple(rewritten(condition, put) for condition in statement.kept),
    )


def _check_lefts(statement: Statement) -> None:
    """Raise at a partner whose left is a table, or has partners in place of rows itself."""
    for partner in statement.partners:
        (left, *_) = {first.table for first, _ in partner.keys}
        one = next(each for each in statement.inputs if each.alias == left)
        place = partner.keys[0][0]
        if one.window is None and statement.window is None:
            statement.refuse(f"{partner.alias!r} has a window, but {left!r}, whose rows stay, is a table", place)
        if left in statement.nullable:
            statement.refuse(
                f"{left!r} may be without a row here, so {partner.alias!r} cannot be joined with it", place
            )


class _Fold:
    """One partner, on its way out of FROM and WHERE."""

    def __init__(
        self, statement: Statement, schemas: Schemas, one: Input, how: str, conditions: list[exp.Expr]
    ) -> None:
        self._statement, self._schemas, self._one, self._how = statement, schemas, one, how
        self._conditions = conditions

    def made(self) -> tuple[Statement, Schemas]:
        mine = self._one.alias
        own = [each for each in self._conditions if owners_of(each) == {mine}]
        found = [pair for each in self._conditions if (pair := self._pair(each)) is not None]
        first = [each for each in self._conditions if mine not in owners_of(each)]
        others = [each for each in self._conditions if each not in own + first and self._pair(each) is None]
        for condition in self._conditions:
            self._statement.check_rows(condition)
        if others and self._how != INNER:
            self._refuse(others[0])
        self._check_pairs(found, first)
        pairs, alike_left, alike_right = _told_apart(found)
        own, first = own + alike_right, first + alike_left
        check_conditions(self._statement, own, self._schemas[mine])
        check_conditions(self._statement, first, self._schemas[self._left(pairs)])
        if self._how == INNER:
            self._statement = _filtered(self._statement, [*first, *others])
        elif first:
            pairs[0] = (exp.Case(ifs=[exp.If(this=exp.and_(*first), true=pairs[0][0])]), pairs[0][1])
        keys = tuple((self._column(self._left(pairs), left), self._column(mine, right)) for left, right in pairs)
        is_hidden = self._how not in (LEFT, INNER)
        partner = PartnerWindow(mine, self._how, keys, tuple(own), self._one if is_hidden else None)
        return replace(self._statement, partners=(*self._statement.partners, partner)), self._schemas

    def _pair(self, condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """The sides that a condition sets equal: that of another input, and that of the partner."""
        if not isinstance(condition, exp.EQ):
            return None
        sides = [condition.this.unnest(), condition.expression.unnest()]
        sides.sort(key=lambda side: owners_of(side) == {self._one.alias})
        others = owners_of(sides[0])
        is_pair = owners_of(sides[1]) == {self._one.alias} and len(others) == 1 and self._one.alias not in others
        return (sides[0], sides[1]) if is_pair else None

    def _left(self, pairs: list[tuple[exp.Expr, exp.Expr]]) -> str:
        (alias,) = owners_of(pairs[0][0])
        return alias

    def _check_pairs(self, pairs: list[tuple[exp.Expr, exp.Expr]], first: list[exp.Expr]) -> None:
        if not pairs:
            self._statement.refuse(
                f"No condition joins {self._one.alias!r}, so each of its rows would match every other",
                self._one.node,
                _POSSIBLE,
            )
        left = self._left(pairs)
        for tree in (*(one for one, _ in pairs), *first):
            if owners_of(tree) - {left}:
                self._statement.refuse(f"{self._one.alias!r} is joined with {left!r}, so it can be with no other", tree)

    def _refuse(self, condition: exp.Expr) -> NoReturn:
        self._statement.refuse(
            f"{_SAID[self._how]} compare rows of two windows by = only",
            condition,
            _POSSIBLE if self._how != LEFT else f"{_POSSIBLE} WHERE may compare them in other ways.",
        )

    def _column(self, alias: str, tree: exp.Expr) -> exp.Column:
        """The column of an input that has the value of an expression over its rows."""
        if isinstance(tree, exp.Column):
            return tree
        schema, text = self._schemas[alias], row_text(tree)
        value = self._statement.attempt(lambda: expressions.bind_value(text, schema), tree)
        name = free_name(text, set(schema.names))
        whole = schema.append(pa.field(name, value.type))
        view = View(None, (*((column, column) for column in schema.names), (name, text)), whole, is_plain=False)
        self._schemas = {**self._schemas, alias: whole}
        if alias == self._one.alias:
            self._one = replace(self._one, views=(*self._one.views, view))
        inputs = (
            replace(one, views=(*one.views, view)) if one.alias == alias else one for one in self._statement.inputs
        )
        self._statement = replace(self._statement, inputs=tuple(inputs))
        return exp.column(name, alias, quoted=True)


def _told_apart(
    pairs: list[tuple[exp.Expr, exp.Expr]],
) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr], list[exp.Expr]]:
    """The pairs with each side once, and what the others say of the rows of either side: a.x = b.k AND a.y = b.k is
    a.x = b.k AND a.x = a.y."""
    kept: list[tuple[exp.Expr, exp.Expr]] = []
    of_left: list[exp.Expr] = []
    of_right: list[exp.Expr] = []
    for left, right in pairs:
        same_left = next((other for one, other in kept if one == left), None)
        same_right = next((one for one, other in kept if other == right), None)
        if same_left is not None and same_left != right:
            of_right.append(exp.EQ(this=same_left.copy(), expression=right.copy()))
        elif same_right is not None and same_right != left:
            of_left.append(exp.EQ(this=same_right.copy(), expression=left.copy()))
        elif same_left is None:
            kept.append((left, right))
    return kept, of_left, of_right
