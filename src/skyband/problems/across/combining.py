"""How to compute an object's score from its values, one per stream: sums, extremes, products, or an expression.

A score must never fall when a value rises: otherwise no object could be ruled out before its score is complete. For an
expression, this module proves that from its parts if it can, and otherwise tests it on a grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.errors import InvalidExpression, InvalidQuery

# Kinds.
ADD, LARGEST, SMALLEST, MULTIPLY, PROGRAM = 0, 1, 2, 3, 4
BY_NAME: Final = {"sum": ADD, "mean": ADD, "max": LARGEST, "min": SMALLEST, "product": MULTIPLY}

# The steps of a program, in postfix order. The first two have an argument: the number, or the number of the stream.
NUMBER, STREAM, PLUS, MINUS, TIMES, DIVIDE, POWER = 0, 1, 2, 3, 4, 5, 6
NEGATE, ABSOLUTE, ROOT, EXPONENTIAL, LOGARITHM, FLOOR, CEILING, GREATER, LESSER = 7, 8, 9, 10, 11, 12, 13, 14, 15

_POSSIBLE: Final = "+ - * / **, ABS, SQRT, POWER, EXP, LN, LOG, LOG2, LOG10, FLOOR, CEIL, GREATEST, LEAST"

Program = tuple[tuple[int, float], ...]
Floats = npt.NDArray[np.float64]


class Combine(NamedTuple):
    """How to compute a score from one value for each stream. A missing value counts as the stream's lower bound."""

    kind: int
    weights: tuple[float, ...]  # ADD: the weight of each stream; the sum goes from the first to the last
    divisor: float = 1.0  # ADD: the sum is divided by it
    program: Program = ()


def resolve(
    combine: str | Mapping[str, float], streams: Sequence[str], low: Sequence[float], high: Sequence[float]
) -> Combine:
    """Check a user's `combine` for streams with these names and bounds."""
    if isinstance(combine, Mapping):
        return Combine(ADD, _weights(combine, streams))
    if not isinstance(combine, str) or not combine.strip():
        raise InvalidQuery(
            f"combine must be one of {', '.join(BY_NAME)}, a weight for each stream, or an expression over the "
            f"streams' names; got {combine!r}."
        )
    ones = (1.0,) * len(streams)
    if combine == "product" and min(low) < 0:
        raise InvalidQuery(
            "combine='product' falls when a negative value is multiplied: bounds must start at 0 or more."
        )
    if combine in BY_NAME:
        return Combine(BY_NAME[combine], ones, float(len(streams)) if combine == "mean" else 1.0)
    program = _read(combine, streams)
    _check_rising(program, combine, streams, low, high)
    return Combine(PROGRAM, ones, 1.0, program)


def _weights(combine: Mapping[str, float], streams: Sequence[str]) -> tuple[float, ...]:
    if unknown := [name for name in combine if name not in streams]:
        raise InvalidQuery(f"combine weighs {unknown[0]!r}, which is no stream. Streams: {', '.join(streams)}.")
    if missing := [name for name in streams if name not in combine]:
        raise InvalidQuery(f"combine has no weight for the stream {missing[0]!r}; 0 leaves it out.")
    for name, weight in combine.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
            raise InvalidQuery(f"A weight must be a number, 0 or more: that of {name!r} is {weight!r}.")
    return tuple(float(combine[name]) for name in streams)


# -- from text to program ---------------------------------------------------------------------------------------------


def _read(text: str, streams: Sequence[str]) -> Program:
    # Deferred: most queries have no expression, and parsing one takes a package that costs a second to import.
    from skyband.expressions import tree as expression_tree

    tree = expression_tree.parse(text, possible=_POSSIBLE)
    for name in expression_tree.column_names(tree):
        if name not in streams:
            raise InvalidExpression(f"No stream {name!r} for combine={text!r}. Streams: {', '.join(streams)}.")
    return tuple(_compile(tree, tuple(streams), text))


def _compile(node: Any, streams: tuple[str, ...], text: str) -> list[tuple[int, float]]:
    from sqlglot import exp

    def inside(*parts: Any) -> list[tuple[int, float]]:
        return [step for part in parts for step in _compile(part, streams, text)]

    binary = {exp.Add: PLUS, exp.Sub: MINUS, exp.Mul: TIMES, exp.Div: DIVIDE, exp.Pow: POWER}
    unary = {
        exp.Neg: NEGATE,
        exp.Abs: ABSOLUTE,
        exp.Sqrt: ROOT,
        exp.Exp: EXPONENTIAL,
        exp.Ln: LOGARITHM,
        exp.Floor: FLOOR,
        exp.Ceil: CEILING,
    }
    if isinstance(node, exp.Paren):
        return inside(node.this)
    if isinstance(node, exp.Column):
        return [(STREAM, float(streams.index(node.name)))]
    if isinstance(node, exp.Literal) and node.is_number:
        return [(NUMBER, float(node.this))]
    if type(node) in binary:
        return [*inside(node.this, node.expression), (binary[type(node)], 0.0)]
    if type(node) in unary:
        return [*inside(node.this), (unary[type(node)], 0.0)]
    if isinstance(node, exp.Log):
        if not node.args.get("expression"):
            return [*inside(node.this), (LOGARITHM, 0.0)]
        return [*inside(node.expression), (LOGARITHM, 0.0), *inside(node.this), (LOGARITHM, 0.0), (DIVIDE, 0.0)]
    if isinstance(node, (exp.Greatest, exp.Least)):
        step = GREATER if isinstance(node, exp.Greatest) else LESSER
        return [*inside(node.this), *(s for other in node.expressions for s in [*inside(other), (step, 0.0)])]
    raise InvalidExpression(f"{node.sql('spark')!r} cannot be part of combine={text!r}. Possible: {_POSSIBLE}.")


def evaluate(program: Program, given: Sequence[Floats]) -> Floats:
    """Run the program on arrays of values, one array for each stream."""
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for step, argument in program:
            if step == NUMBER:
                stack.append(np.full(len(given[0]), argument))
            elif step == STREAM:
                stack.append(given[int(argument)])
            elif step in _UNARY:
                stack.append(_UNARY[step](stack.pop()))
            else:
                right = stack.pop()
                stack.append(_BINARY[step](stack.pop(), right))
    return np.asarray(stack.pop(), np.float64)


_UNARY: Final[dict[int, Any]] = {
    NEGATE: np.negative,
    ABSOLUTE: np.abs,
    ROOT: np.sqrt,
    EXPONENTIAL: np.exp,
    LOGARITHM: np.log,
    FLOOR: np.floor,
    CEILING: np.ceil,
}
_BINARY: Final[dict[int, Any]] = {
    PLUS: np.add,
    MINUS: np.subtract,
    TIMES: np.multiply,
    DIVIDE: np.divide,
    POWER: np.power,
    GREATER: np.maximum,
    LESSER: np.minimum,
}


# -- does it rise with every stream? ----------------------------------------------------------------------------------

UP, DOWN, LEVEL, UNKNOWN = 1, -1, 0, 2


class _Part(NamedTuple):
    """What is known about a part of an expression, for all values within the bounds."""

    low: float
    high: float
    goes: tuple[int, ...]  # for each stream: the direction of the part when the stream's value rises

    @property
    def sign(self) -> int:
        return UP if self.low >= 0 else DOWN if self.high <= 0 else UNKNOWN

    def times(self, sign: int) -> tuple[int, ...]:
        return tuple(LEVEL if way == LEVEL else UNKNOWN if UNKNOWN in (way, sign) else way * sign for way in self.goes)


def _check_rising(
    program: Program, text: str, streams: Sequence[str], low: Sequence[float], high: Sequence[float]
) -> None:
    """Raise unless the score is a number everywhere within the bounds and never falls when a value rises."""
    stack: list[_Part] = []
    for step, argument in program:
        if step == NUMBER:
            stack.append(_Part(argument, argument, (LEVEL,) * len(streams)))
        elif step == STREAM:
            s = int(argument)
            stack.append(_Part(low[s], high[s], tuple(UP if i == s else LEVEL for i in range(len(streams)))))
        elif step in _UNARY:
            stack.append(_of_one(step, stack.pop(), text))
        else:
            right = stack.pop()
            stack.append(_of_two(step, stack.pop(), right, text))
    for s, way in enumerate(stack.pop().goes):
        if way not in (UP, LEVEL):
            _look_for_fall(program, text, streams, low, high, s)


def _of_one(step: int, part: _Part, text: str) -> _Part:
    if step == NEGATE:
        return _Part(-part.high, -part.low, part.times(DOWN))
    if step == ABSOLUTE:
        ends = (abs(part.low), abs(part.high))
        return _Part(0.0 if part.sign == UNKNOWN else min(ends), max(ends), part.times(part.sign))
    if step in (ROOT, LOGARITHM) and part.low < 0:
        what = "square root" if step == ROOT else "logarithm"
        raise InvalidExpression(f"combine={text!r} takes the {what} of what can be {part.low:g} within the bounds.")
    low, high = (_number(_UNARY[step], end) for end in (part.low, part.high))
    return _Part(low, high, part.goes)


def _of_two(step: int, a: _Part, b: _Part, text: str) -> _Part:
    if step == POWER:
        return _power(a, b, text)
    if step == DIVIDE and b.low <= 0 <= b.high:
        raise InvalidExpression(f"combine={text!r} divides by what can be 0 within the bounds.")
    ends = [_number(_BINARY[step], x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if step == MINUS:
        goes = _both(a.goes, b.times(DOWN))
    elif step == TIMES:
        goes = _both(a.times(b.sign), b.times(a.sign))
    elif step == DIVIDE:
        goes = _both(a.times(b.sign), b.times(UNKNOWN if a.sign == UNKNOWN else -a.sign))
    else:
        goes = _both(a.goes, b.goes)
    return _Part(min(ends), max(ends), goes)


def _power(a: _Part, b: _Part, text: str) -> _Part:
    whole = b.low == b.high and b.low == math.floor(b.low)
    if (a.low < 0 and not whole) or (a.low <= 0 and b.low < 0):
        raise InvalidExpression(f"combine={text!r} raises what can be {a.low:g} to a power that has no value there.")
    ends = [_number(np.power, x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high = (0.0, max(ends)) if a.low < 0 < a.high else (min(ends), max(ends))
    if a.low < 0:  # a whole exponent
        low = min(ends) if b.low % 2 else low
        return _Part(low, high, a.goes if b.low % 2 else a.times(a.sign))
    rises_with_b = UP if a.low >= 1 else DOWN if a.high <= 1 else UNKNOWN
    rises_with_a = UP if b.low >= 0 else DOWN if b.high <= 0 else UNKNOWN
    return _Part(low, high, _both(a.times(rises_with_a), b.times(rises_with_b)))


def _both(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x if y in (LEVEL, x) else y if x == LEVEL else UNKNOWN for x, y in zip(a, b, strict=True))


def _number(function: Any, *given: float) -> float:
    """Compute a bound. 0 times infinity is 0 here, because values are finite."""
    with np.errstate(all="ignore"):
        result = float(function(*(np.float64(x) for x in given)))
    return 0.0 if math.isnan(result) else result


def _look_for_fall(
    program: Program, text: str, streams: Sequence[str], low: Sequence[float], high: Sequence[float], s: int
) -> None:
    """Raise if the score falls somewhere on a grid when the value of stream s rises."""
    most = [end if math.isfinite(end) else start + 1e6 for start, end in zip(low, high, strict=True)]
    others = [[low[i], (low[i] + most[i]) / 2, most[i]] if i != s else [low[s]] for i in range(len(streams))]
    corners = itertools.islice(itertools.product(*others), 2_000)
    line = np.linspace(low[s], most[s], 33)
    for corner in corners:
        given = [line if i == s else np.full(len(line), corner[i]) for i in range(len(streams))]
        scores = evaluate(program, given)
        falls = np.flatnonzero(scores[1:] < scores[:-1])
        if len(falls):
            i = int(falls[0])
            where = ", ".join(
                f"{name}={value:g}" for j, (name, value) in enumerate(zip(streams, corner, strict=True)) if j != s
            )
            raise InvalidExpression(
                f"combine={text!r} falls when {streams[s]} rises: from {scores[i]:g} to {scores[i + 1]:g} when it goes "
                f"from {line[i]:g} to {line[i + 1]:g}{f' (with {where})' if where else ''}. A score may rise with each "
                "value, or stay, but never fall."
            )
