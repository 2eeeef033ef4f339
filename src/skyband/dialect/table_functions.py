"""Windows as other engines write them: TUMBLE and HOP of Flink and RisingWave, window() of Spark. Each becomes a window
of ours, and the names of its columns become `window_start` and `window_end`.

    SELECT window_end, g, COUNT(*) FROM HOP(bid, ts, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS) GROUP BY g, window_end
    SELECT window.end, g, COUNT(*) FROM bid GROUP BY g, window(ts, '10 seconds', '2 seconds')
"""

from __future__ import annotations

from typing import Final, NoReturn

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
        window = _window(self._text, self._name, self._arguments, column, source.name, self._function)
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
    text: str, name: str, arguments: dict[str, exp.Expr], column: exp.Column, source: str, where: exp.Expr
) -> StreamWindow:
    size = _span(text, arguments.get("SIZE") or arguments.get("GAP"), where, name)
    every = next((arguments[each] for each in ("SLIDE", "STEP") if each in arguments), None)
    slide = size if every is None else _span(text, every, where, name)
    if name in ("SESSION", "CUMULATE"):
        _refuse(text, name, source, column, size, slide, where)
    if (offset := arguments.get("OFFSET")) is not None:
        texts.refuse(text, "Windows end on whole multiples of their slide, so there is no offset", offset)
    if name == "HOP" and every is None:
        texts.refuse(text, "HOP takes the slide, and then the size", where, _example(name))
    return StreamWindow(this=size, every=slide.copy(), on=column.this)


def _refuse(
    text: str, name: str, source: str, column: exp.Column, size: Span, slide: Span, where: exp.Expr
) -> NoReturn:
    """Say what comes next to a window that there is not."""
    of, on = source or "t", f"ON {column.name}"
    if name == "CUMULATE":
        texts.refuse(
            text,
            "CUMULATE is not supported: Skyband has no cumulating windows",
            where,
            f"From the start of the stream on, write FROM {of} [WINDOW UNTIL NOW EVERY {_said(slide)} {on}]; for whole "
            f"windows, FROM {of} [WINDOW {_said(size)} EVERY {_said(size)} {on}].",
        )
    texts.refuse(
        text,
        "Session windows are not supported: their length depends on their rows",
        where,
        f"For the rows of that span before each moment, write FROM {of} [WINDOW {_said(size)} {on}].",
    )


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


def _said(span: Span) -> str:
    return f"{span.this.name} {span.args['unit'].name}" if span.args.get("unit") else span.this.name


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
    window = _window(text, name, arguments, column, source.name, function)
    holder.set("this", Stream(this=source.copy(), window=window, function=exp.var(name)))
    group.set("expressions", [_bound(BOUNDS[1], function), *(one for one in group.expressions if one is not function)])
    for node in list(select.find_all(exp.Column, exp.Dot, exp.Anonymous)):
        if (bound := _end_of(node, function)) is not None:
            column = _bound(bound, node)
            name = bound if isinstance(node, exp.Anonymous) else bound.removeprefix("window_")  # as it is called there
            node.replace(exp.alias_(column, name) if node.parent is select else column)


def _grouping(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper().removesuffix("_WINDOW") in _IN_GROUPS


def _end_of(node: exp.Expr, function: exp.Expr) -> str | None:
    """Which bound of the window this is: window.start, window(…).end, TUMBLE_START(…)."""
    if isinstance(node, exp.Anonymous):
        same = node.expressions == function.expressions
        return _ENDS.get(node.name.upper()) if same else None
    of_window = node.table.lower() == "window" if isinstance(node, exp.Column) else node.this == function
    name = node.name.lower() if isinstance(node, exp.Column) else node.expression.name.lower()
    return {"start": BOUNDS[0], "end": BOUNDS[1]}.get(name) if of_window else None


def _bound(name: str, where: exp.Expr) -> exp.Column:
    column = exp.column(name)
    if (place := texts.place_of(where)) is not None:
        column.this.meta["start"] = place
    return column
