"""Windows as other engines write them: TUMBLE, HOP, CUMULATE and SESSION of Flink and RisingWave, window() and
session_window() of Spark. Each becomes a window of ours, and the names of its columns become `window_start` and
`window_end`.

    SELECT window_end, g, COUNT(*) FROM HOP(bid, ts, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS) GROUP BY g, window_end
    SELECT window.end, g, COUNT(*) FROM bid GROUP BY g, window(ts, '10 seconds', '2 seconds')
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.nodes import BOUNDS, Continuous, Span, Stream, StreamWindow, TableFunction

_NAMES: Final = {  # of the arguments, in their order, behind the input and its column
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
_IN_GROUPS: Final = {"WINDOW": ("SIZE", "SLIDE", "OFFSET"), **_NAMES}  # in GROUP BY, behind the column
_ENDS: Final = {f"{name}_{end}": bound for name in _NAMES for end, bound in zip(("START", "END"), BOUNDS, strict=True)}


def with_windows(text: str, tree: Continuous) -> Continuous:
    """The statement with a window of ours in place of each of these."""
    for function in list(tree.find_all(TableFunction)):
        function.replace(_Reader(text, function).stream())
    for select in list(tree.find_all(exp.Select)):
        _group_window(text, select)
    return tree


class _Reader:
    """TUMBLE, HOP and the like, in FROM."""

    def __init__(self, text: str, function: TableFunction) -> None:
        self._text, self._function = text, function
        self._name = function.this.name
        self._arguments = _by_name(text, function, ("DATA", "TIMECOL", *_NAMES[self._name]))

    def stream(self) -> Stream:
        source, column = self._arguments.get("DATA"), self._arguments.get("TIMECOL")
        if isinstance(column, exp.Anonymous) and column.name.upper() == "DESCRIPTOR" and len(column.expressions) == 1:
            column = column.expressions[0]
        if isinstance(source, exp.Column) and not source.table:
            source = exp.Table(this=source.this)
        if not isinstance(source, (exp.Table, exp.Subquery)) or not isinstance(column, exp.Column):
            texts.refuse(
                self._text, f"{self._name} takes an input and a column of it", self._function, _example(self._name)
            )
        per = self._function.args.get("per") or []
        window = _window(self._text, self._name, self._arguments, column, per, self._function)
        if alias := self._function.args.get("alias"):
            source.set("alias", alias)
        return Stream(this=source, window=window, function=self._function.this)


def _by_name(text: str, function: exp.Expr, names: tuple[str, ...]) -> dict[str, exp.Expr]:
    """The arguments of a function, each by its name, whether that was written or follows from its place."""
    found: dict[str, exp.Expr] = {}
    for place, argument in enumerate(function.expressions):
        name, value = names[place] if place < len(names) else "", argument
        if isinstance(argument, exp.Kwarg):
            name, value = argument.this.name.upper(), argument.expression
        if name not in names or name in found:
            texts.refuse(text, f"{function.name} takes {', '.join(names)}", argument)
        found[name] = value
    return found


def _window(
    text: str, name: str, arguments: dict[str, exp.Expr], column: exp.Column, per: list[exp.Expr], where: exp.Expr
) -> StreamWindow:
    size = _span(text, arguments.get("SIZE") or arguments.get("GAP"), where, name)
    every = next((arguments[each] for each in ("SLIDE", "STEP") if each in arguments), None)
    slide = size if every is None else _span(text, every, where, name)
    if (offset := arguments.get("OFFSET")) is not None:
        texts.refuse(text, "Windows end on whole multiples of their slide, so there is no offset", offset)
    if name == "HOP" and every is None:
        texts.refuse(text, "HOP takes the slide, and then the size", where, _example(name))
    if per and name != "SESSION":
        texts.refuse(text, f"{name} has the same windows for all rows", per[0], "Leave PARTITION BY out here.")
    return StreamWindow(this=size, every=slide.copy(), on=column.this, per=per)


def _span(text: str, node: exp.Expr | None, where: exp.Expr, name: str) -> Span:
    """INTERVAL '10' SECOND, INTERVAL '10 seconds', '10 seconds', or a number."""
    if (
        isinstance(node, exp.Interval)
        and isinstance(node.this, exp.Literal)
        and isinstance(node.args.get("unit"), exp.Var)
    ):
        number, unit = node.this.name, node.args["unit"].name.upper()
    elif isinstance(node, exp.Literal) and node.is_string and len(node.name.split()) == 2:
        number, unit = node.name.split()[0], node.name.split()[1].upper()
    elif isinstance(node, exp.Literal) and not node.is_string:
        number, unit = node.name, ""
    else:
        texts.refuse(text, f"{name} needs the length of a window", node or where, _example(name))
    if not number.replace(".", "", 1).isdigit():
        texts.refuse(text, f"{number!r} is not a number: {name} needs the length of a window", node, _example(name))
    literal = exp.Literal.number(number)
    if (place := texts.place_of(node)) is not None:
        literal.meta["start"] = place
    return Span(this=literal, unit=exp.var(unit) if unit else None)


def _example(name: str) -> str:
    if name == "WINDOW":
        return "Write GROUP BY window(ts, '10 seconds', '2 seconds')."
    arguments = "INTERVAL 2 SECONDS, INTERVAL 10 SECONDS" if len(_NAMES[name]) == 3 else "INTERVAL 10 SECONDS"
    return f"Write FROM {name}(bid, ts, {arguments})."


# -- in GROUP BY -------------------------------------------------------------------------------------------------------


def _group_window(text: str, select: exp.Select) -> None:
    """Move a window from GROUP BY to the input that it is about."""
    group = select.args.get("group")
    found = [one for one in group.expressions if _grouping(one)] if group else []
    if group is None or not found:
        return
    holder = select.args["from_"]
    if len(found) > 1 or select.args.get("joins") or isinstance(holder.this, Stream):
        texts.refuse(text, "GROUP BY can set the window of a single input that has none yet", found[-1])
    function, source = found[0], holder.this
    name = function.name.upper().removesuffix("_WINDOW")
    arguments = _by_name(text, function, ("TIMECOL", *_IN_GROUPS[name]))
    column = arguments.get("TIMECOL")
    if not isinstance(column, exp.Column):
        texts.refuse(text, f"{function.name} takes a column and the size of the window", function, _example(name))
    per = _others(text, found, group.expressions) if name == "SESSION" else []
    window = _window(text, name, arguments, column, per, function)
    source = source.copy() if name != "SESSION" else _where_first(select, source)
    holder.set("this", Stream(this=source, window=window, function=exp.var(name)))
    bounds = BOUNDS if name == "SESSION" else BOUNDS[1:]
    others = (one for one in group.expressions if one is not function)
    group.set("expressions", [*(_bound(bound, function) for bound in bounds), *others])
    for node in list(select.find_all(exp.Column, exp.Dot, exp.Anonymous)):
        if (bound := _end_of(node, function)) is not None:
            column = _bound(bound, node)
            name = bound if isinstance(node, exp.Anonymous) else bound.removeprefix("window_")  # as it is called there
            node.replace(exp.alias_(column, name) if node.parent is select else column)


def _where_first(select: exp.Select, source: exp.Expr) -> exp.Expr:
    """The rows of the input that meet WHERE, which comes before GROUP BY: what is left out ends no pause."""
    where = select.args.get("where")
    if where is None:
        return source.copy()
    select.set("where", None)
    filtered = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source.copy()), where=where)
    return exp.Subquery(this=filtered, alias=exp.TableAlias(this=exp.to_identifier(source.alias_or_name)))


def _others(text: str, found: list[exp.Expr], listed: list[exp.Expr]) -> list[exp.Expr]:
    """The columns beside a session in GROUP BY: they say whose it is."""
    others = [one for one in listed if one not in found]
    for one in others:
        if not isinstance(one, exp.Column):
            texts.refuse(
                text,
                "A session is grouped by columns, not by expressions",
                one,
                "Name it in FROM: (SELECT *, price % 2 AS odd FROM bid) GROUP BY session_window(ts, '1 hour'), odd.",
            )
    return [one.this.copy() for one in others]


def _grouping(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper().removesuffix("_WINDOW") in _IN_GROUPS


def _end_of(node: exp.Expr, function: exp.Expr) -> str | None:
    """Which bound of the window this is: window.start, window(…).end, TUMBLE_START(…)."""
    if isinstance(node, exp.Anonymous):
        same = node.expressions == function.expressions
        return _ENDS.get(node.name.upper()) if same else None
    of_window = node.table.lower() == function.name.lower() if isinstance(node, exp.Column) else node.this == function
    name = node.name.lower() if isinstance(node, exp.Column) else node.expression.name.lower()
    return {"start": BOUNDS[0], "end": BOUNDS[1]}.get(name) if of_window else None


def _bound(name: str, where: exp.Expr) -> exp.Column:
    column = exp.column(name)
    if (place := texts.place_of(where)) is not None:
        column.this.meta["start"] = place
    return column
