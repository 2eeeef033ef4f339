"""An object's score from its values, compiled: one loop for every way to combine them.

An expression is not compiled but interpreted, from a program in postfix order: compiling takes a second, and every
expression would have to.
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
    """How scores are made, as kernels read it. Few arrays, since each costs when it is handed on."""

    kind: int
    divisor: float
    table: Floats  # WEIGHT, LOW, HIGH and GIVEN, by stream
    program: Floats  # its steps, their arguments, and scratch for a stack
    chance: Floats  # by set of streams, and stream: how likely an object that came there comes here; of one row: surely


# Rows of the table. What is missing counts as LOW, and may become HIGH; GIVEN are the values that `score` combines.
WEIGHT, LOW, HIGH, GIVEN = 0, 1, 2, 3


def scoring_of(spec: AcrossSpec) -> Scoring:
    combine = spec.combine
    table = np.array([combine.weights, spec.low, spec.high, spec.low], np.float64)
    steps, arguments = zip(*combine.program, strict=True) if combine.program else ((), ())
    program = np.array([steps, arguments, np.zeros(len(steps))], np.float64)
    return Scoring(combine.kind, combine.divisor, table, program, np.ones((1, spec.streams)))


@part
def _compute(scoring):
    """The program's result for the values given; not a number becomes -inf, which beats nothing."""
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
    """The score of an object with the values in the table. Sums, which are most common, are computed in place."""
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
