"""The most that a score can be, where each column lies in an interval: lines for a compiled loop.

The lines apply the operations of the score to the ends of intervals. Only operations that IEEE 754 rounds correctly are
taken: they keep the order of their arguments, so that a bound holds to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skyband.expressions import lines as code_lines

if TYPE_CHECKING:
    from sqlglot import exp


class _Unbounded(Exception):
    """Something in the score is not known to keep the order of its arguments."""


def bound(tree: exp.Expr, numbers: dict[str, int], ascending: bool) -> tuple[str, ...] | None:
    """The lines that compute `most`, or None if something in the score does not keep the order of its arguments."""
    code = _Intervals(numbers)
    try:
        low, high = code.interval(tree)
    except _Unbounded:
        return None
    return (*code.lines, f"most = {f'-({low})' if ascending else high}")


class _Intervals:
    """As `lines.Lines`, but of the least and the most that each node can be. What is not known is NaN."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.lines: list[str] = []
        self._numbers = numbers

    def _new(self, text: str) -> str:
        name = f"u{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def interval(self, node: exp.Expr) -> tuple[str, str]:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.interval(node.this)
            case exp.Literal() if node.is_number:
                value = repr(float(node.this))
                if value == "inf":
                    raise _Unbounded
                return value, value
            case exp.Column():
                name = f"{node.table}{self._numbers[node.name]}"
                return f"{name}_low", f"{name}_high"
            case exp.Neg():
                low, high = self.interval(node.this)
                return self._new(f"-{high}"), self._new(f"-{low}")
            case exp.Add():
                (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                return self._new(f"{a} + {c}"), self._new(f"{b} + {d}")
            case exp.Sub():
                (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                return self._new(f"{a} - {d}"), self._new(f"{b} - {c}")
            case exp.Mul():
                return self._corners(node, "*")
            case exp.Div():
                divisor = self.interval(node.expression)
                holds_zero = self._new(f"({divisor[0]} <= 0.0) & ({divisor[1]} >= 0.0)")
                low, high = self._corners(node, "/")
                return self._new(f"-np.inf if {holds_zero} else {low}"), self._new(
                    f"np.inf if {holds_zero} else {high}"
                )
            case exp.Abs():
                return self._even(node.this, "abs({0})")
            case exp.Pow() if code_lines.is_two(node.expression):
                return self._even(node.this, "{0} * {0}")
            case exp.Sqrt():
                low, high = self.interval(node.this)
                # Below 0 there is no root, and no score.
                return self._new(f"math.sqrt({low} if {low} > 0.0 else 0.0 * {low})"), self._new(f"math.sqrt({high})")
            case exp.Greatest() | exp.Least():
                # Either passes over NaN, so that any of its parts may be what it is.
                return self._hull([(None, each) for each in (node.this, *node.expressions)])
            case exp.Case():
                default = node.args.get("default")
                branches = [(None if node.this else each.this, each.args["true"]) for each in node.args["ifs"]]
                return self._hull([*branches, *([(None, default)] if default else [])])
            case exp.If():
                otherwise = node.args.get("false")
                return self._hull([(node.this, node.args["true"]), *([(None, otherwise)] if otherwise else [])])
        raise _Unbounded

    def _corners(self, node: exp.Expr, sign: str) -> tuple[str, str]:
        (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
        corners = [self._new(f"{x} {sign} {y}") for x in dict.fromkeys((a, b)) for y in dict.fromkeys((c, d))]
        return self._least(corners), self._most(corners)

    def _even(self, node: exp.Expr, pattern: str) -> tuple[str, str]:
        """A function that falls up to 0 and rises from there."""
        low, high = self.interval(node)
        ends = [self._new(pattern.format(end)) for end in (low, high)]
        across = self._new(f"({low} <= 0.0) & ({high} >= 0.0)")
        return self._new(f"0.0 if {across} else {self._least(ends)}"), self._most(ends)

    def _hull(self, branches: list[tuple[exp.Expr | None, exp.Expr]]) -> tuple[str, str]:
        """Of values, each of which is only taken where its condition holds."""
        from sqlglot import exp

        parts = []
        for condition, node in branches:
            if isinstance(node.unnest(), exp.Null):
                continue
            low, high = self.interval(node)
            if condition is not None and (may := self._may_hold(condition)) is not None:
                # Where it cannot hold there is no value: any bound would be one.
                low, high = self._new(f"{low} if {may} else np.inf"), self._new(f"{high} if {may} else -np.inf")
            parts.append((low, high))
        if not parts:
            raise _Unbounded
        return self._least([low for low, _ in parts]), self._most([high for _, high in parts])

    def _may_hold(self, node: exp.Expr) -> str | None:
        """Can the condition hold? None: always, for all that is known."""
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self._may_hold(node.this)
            case exp.And():
                parts = [part for side in (node.this, node.expression) if (part := self._may_hold(side)) is not None]
                return self._new(" & ".join(parts)) if parts else None
            case exp.EQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                try:
                    (a, b), (c, d) = self.interval(node.this), self.interval(node.expression)
                except _Unbounded:
                    return None
                # Of what is unknown nothing is ruled out.
                too_small, too_large = f"not ({b} < {c})", f"not ({a} > {d})"
                match node:
                    case exp.GT() | exp.GTE():
                        return self._new(f"({too_small})")
                    case exp.LT() | exp.LTE():
                        return self._new(f"({too_large})")
                return self._new(f"({too_small}) & ({too_large})")
        return None

    def _least(self, names: list[str]) -> str:
        return self._outermost(names, "<=")

    def _most(self, names: list[str]) -> str:
        return self._outermost(names, ">=")

    def _outermost(self, names: list[str], sign: str) -> str:
        """NaN if one of them is."""
        value, *others = names
        for other in others:
            value = self._new(f"{value} if ({value} {sign} {other}) | ({value} != {value}) else {other}")
        return value
