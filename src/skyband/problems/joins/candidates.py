"""The plans of a join by their names: "late", "early:a,b", "multiply" and any other algorithm of the problem.

`find` reads what a user writes as `plan=`; `candidates` lists what the chooser chooses from. Both give algorithms of
the registry, with the inputs that are early bound to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from skyband.core import registry
from skyband.errors import InvalidQuery
from skyband.problems.joins import costs
from skyband.problems.joins.algorithms.plans import EARLY, LATE, MULTIPLY
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.operator import JoinAlgorithm, Plan, Spec


def find(text: str, names: Sequence[str]) -> JoinAlgorithm:
    """Find the algorithm that a user names, for a join whose inputs have these names."""
    kind, colon, of = text.partition(":")
    chosen = [word.strip() for word in of.split(",") if word.strip()]
    for each in chosen:
        if each not in names:
            raise InvalidQuery(f"plan={text!r} names no input: {each!r}. Inputs: {', '.join(names)}.")
    if kind.strip() == EARLY:
        return _algorithm(Plan(tuple(not chosen or name in chosen for name in names)), names)
    asked = kind.partition("(")[0].strip()
    known = asked in registry.algorithms_of("joins") or asked in registry.baselines_of("joins")
    if colon or not known:
        possible = [f"{each}:{','.join(names)}" if each == EARLY else each for each in registry.algorithms_of("joins")]
        raise InvalidQuery(f"No plan {text!r}. There are: {', '.join(possible)}.")
    return registry.find(text, "joins")


def find_for(text: str, names: Sequence[str], spec: Spec) -> JoinAlgorithm:
    """Find the algorithm that a user names; raises if it cannot answer the query."""
    algorithm = find(text, names)
    if refused := algorithm.refuses(spec):
        able = [name for name, each in registry.algorithms_of("joins").items() if each.refuses(spec) is None]
        possible = ", ".join(f"{name}:…" if name == EARLY else name for name in able)
        raise InvalidQuery(f"plan={text!r} cannot answer this: {refused}. Possible here: {possible}.")
    return algorithm


def candidates(spec: Spec, names: Sequence[str], inputs: Sequence[Statistics]) -> list[JoinAlgorithm]:
    """All plans that are worth considering for inputs with these statistics. Some may refuse the query."""

    def estimate(plan: Plan) -> float:
        return costs.expected_ns(plan, spec, inputs)

    return [
        with_statistics(_algorithm(plan, names), names, inputs)
        for plan in costs.worth_considering(len(inputs), estimate)
    ]


def with_statistics(algorithm: JoinAlgorithm, names: Sequence[str], inputs: Sequence[Statistics]) -> JoinAlgorithm:
    """Give an algorithm the rows and costs to expect with these statistics."""
    rows = sum(each.rows for each in inputs)
    found = replace(algorithm, expected_rows=lambda spec, _: rows)
    plan = _plan(algorithm.name, names)
    if plan is None:
        return found
    return replace(found, expected_ns=lambda spec, _: costs.expected_ns(plan, spec, inputs))


def name_of(plan: Plan, names: Sequence[str]) -> str:
    """The name by which users know a plan, for inputs with these names."""
    if plan.multiply:
        return MULTIPLY
    early = [name for name, is_early in zip(names, plan.early, strict=True) if is_early]
    return f"{EARLY}:{','.join(early)}" if early else LATE


def _plan(name: str, names: Sequence[str]) -> Plan | None:
    """The inverse of `name_of`; None if the name is none of the paper's plans."""
    kind, _, of = name.partition(":")
    if kind == EARLY:
        return Plan(tuple(each in of.split(",") for each in names))
    if kind in (LATE, MULTIPLY):
        return Plan(tuple(kind == MULTIPLY for _ in names), multiply=kind == MULTIPLY)
    return None


def _algorithm(plan: Plan, names: Sequence[str]) -> JoinAlgorithm:
    name, among = name_of(plan, names), registry.algorithms_of("joins")
    if name in among:
        return among[name]
    early = among[EARLY]
    which = sum(1 << i for i, is_early in enumerate(plan.early) if is_early)
    return replace(early, name=name, open=partial(early.open, inputs=which))
