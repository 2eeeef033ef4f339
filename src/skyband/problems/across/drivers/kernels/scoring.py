"""Computes an object's score from its values, in one compiled loop for every way to combine them.

An expression is a program in postfix order that the loop interprets, because compiling each expression would take a
second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.core.operator import Floats
from skyband.kernels.compiling import inlined, part
from skyband.problems.across.combining import (
    ABSOLUTE,
    ADD,
    DIVIDE,
    EXPONENTIAL,
    FLOOR,
    GREATER,
    LARGEST,
    LOGARITHM,
    MINUS,
    MULTIPLY,
    NEGATE,
    NUMBER,
    PLUS,
    POWER,
    ROOT,
    SMALLEST,
    STREAM,
    TIMES,
)
from skyband.problems.across.operator import AcrossSpec


class Scoring(NamedTuple):
    """How to compute scores, as kernels read it. It has few arrays, because passing each one costs time."""

    kind: int
    divisor: float
    table: Floats  # rows WEIGHT, LOW, HIGH and GIVEN, a column for each stream
    program: Floats  # steps, their arguments, and scratch space for a stack
    # chance[set of streams, stream]: the probability that an object that came in these streams comes in this one. With
    # one row only, every object is expected in every stream.
    chance: Floats


# Rows of the table. A missing value counts as LOW, and may become HIGH; GIVEN are the values that `score` combines.
WEIGHT, LOW, HIGH, GIVEN = 0, 1, 2, 3


def scoring_of(spec: AcrossSpec) -> Scoring:
    combine = spec.combine
    table = np.array([combine.weights, spec.low, spec.high, spec.low], np.float64)
    steps, arguments = zip(*combine.program, strict=True) if combine.program else ((), ())
    program = np.array([steps, arguments, np.zeros(len(steps))], np.float64)
    return Scoring(combine.kind, combine.divisor, table, program, np.ones((1, spec.streams)))


@part
def _compute(scoring):
    """Run the program on the given values. A result of NaN becomes -inf, the lowest score."""
    stack, depth = scoring.program[2], 0
    for i in range(scoring.program.shape[1]):
        step, argument = int(scoring.program[0, i]), scoring.program[1, i]
        if step in (NUMBER, STREAM):
            stack[depth] = argument if step == NUMBER else scoring.table[GIVEN, int(argument)]
            depth += 1
        elif step in (PLUS, MINUS, TIMES, DIVIDE, POWER) or step >= GREATER:
            depth -= 1
            a, b = stack[depth - 1], stack[depth]
            if step == PLUS:
                a += b
            elif step == MINUS:
                a -= b
            elif step == TIMES:
                a *= b
            elif step == DIVIDE:
                a = a / b if b != 0 else np.nan
            elif step == POWER:
                a = math.pow(a, b)
            elif step == GREATER:
                a = a if a >= b else b
            else:
                a = a if a <= b else b
            stack[depth - 1] = a
        else:
            a = stack[depth - 1]
            if step == NEGATE:
                a = -a
            elif step == ABSOLUTE:
                a = abs(a)
            elif step == ROOT:
                a = math.sqrt(a) if a >= 0 else np.nan
            elif step == EXPONENTIAL:
                a = math.exp(a)
            elif step == LOGARITHM:
                a = math.log(a) if a > 0 else (-np.inf if a == 0 else np.nan)
            elif step == FLOOR:
                a = math.floor(a) if abs(a) < 2.0**53 else a
            else:
                a = math.ceil(a) if abs(a) < 2.0**53 else a
            stack[depth - 1] = a
    return stack[0] if stack[0] == stack[0] else -np.inf


@inlined
def score(scoring):
    """The score for the given values in the table. Sums, the most common case, are computed inline."""
    if scoring.kind != ADD:
        return _other_score(scoring)
    total = 0.0
    for s in range(scoring.table.shape[1]):
        total += scoring.table[WEIGHT, s] * scoring.table[GIVEN, s]
    return total / scoring.divisor


@part
def _other_score(scoring):
    given = scoring.table[GIVEN]
    if scoring.kind == LARGEST:
        best = given[0]
        for s in range(1, len(given)):
            best = max(best, given[s])
        return best
    if scoring.kind == SMALLEST:
        worst = given[0]
        for s in range(1, len(given)):
            worst = min(worst, given[s])
        return worst
    if scoring.kind == MULTIPLY:
        product = 1.0
        for s in range(len(given)):
            product *= given[s]
        return product
    return _compute(scoring)
