"""Example tests of the shape: a problem is a package, an algorithm a folder, and one place knows kinds of queries."""

from __future__ import annotations

import ast
import inspect
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import algorithms_table
import pyarrow as pa
import pytest
from conformance import test_answers, test_held, test_restart, test_top
from conformance.discovery import found
from conformance.suite import AnyAlgorithm, Suite
from sql.test_statements import ACCEPTED, INPUTS

import skyband as sb
from skyband import problems as packages
from skyband.core import registry
from skyband.core.explain import explained
from skyband.core.plan import Draft, Read
from skyband.dialect.resolving import resolved
from skyband.dialect.statement import understand
from skyband.problems.rows import algorithms
from skyband.sql.unions import with_unions

SOURCE = Path(sb.__file__).parent
QUERIES = {problem.query.__name__ for problem in registry.problems().values()}

SCHEMA = pa.schema({"t": pa.int64(), "id": pa.int64(), "name": pa.string(), "x": pa.float64(), "y": pa.float64()})
WINDOW = sb.sliding(600, every=60, on="t")
PEOPLE = pa.table({"id": range(50), "x": [0.5] * 50})


# -- one lookup --------------------------------------------------------------------------------------------------------


def dispatches(tree: ast.AST) -> Iterator[ast.AST]:
    """Where code asks which kind of query it has: isinstance, match, singledispatch, a comparison of types."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            asked = node.args[1:] if node.func.id in ("isinstance", "issubclass") else []
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.FunctionDef) and any("register" in ast.unparse(each) for each in node.decorator_list):
            asked = [*node.decorator_list, *(each.annotation for each in node.args.args if each.annotation)]
        elif isinstance(node, ast.Compare) and any(isinstance(each, (ast.Is, ast.IsNot, ast.Eq)) for each in node.ops):
            asked = [node.left, *node.comparators]
        names = {each.id for part in asked for each in ast.walk(part) if isinstance(each, ast.Name)}
        names |= {each.attr for part in asked for each in ast.walk(part) if isinstance(each, ast.Attribute)}
        if names & QUERIES:
            yield node


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(query, TopK | JoinAggregate)",
        "isinstance(query, (sb.TopK, int))",
        "match query:\n    case TopKPairs(k=k): pass",
        "@title.register\ndef _(query: TopKAcross): pass",
        "type(query) is TopKForEach",
    ],
)
def test_a_dispatch_is_seen(code: str) -> None:
    assert list(dispatches(ast.parse(code)))


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_only_the_registry_asks_which_kind_of_query_it_has(file: Path) -> None:
    if file != SOURCE / "core" / "registry.py":
        assert not [ast.unparse(node) for node in dispatches(ast.parse(file.read_text()))]


def test_every_package_is_a_problem() -> None:
    names = {each.name for each in Path(packages.__path__[0]).iterdir() if (each / "__init__.py").exists()}
    assert names == set(registry.problems())
    assert all(name == problem.name for name, problem in registry.problems().items())


def test_a_query_has_its_problem_and_other_things_have_none() -> None:
    assert registry.problem_of(sb.TopK(k=1, by="x", window=WINDOW)).name == "rows"
    with pytest.raises(sb.InvalidQuery, match=r"A query such as sb.TopK\(…\) is needed, got int"):
        registry.problem_of(3)


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_statement_is_of_one_problem(text: str) -> None:
    understood = understand(text).innermost
    by_name = with_unions(understood, {name: rows.schema for name, rows in INPUTS.items()})
    statement, _ = resolved(understood, {one.name: by_name[one.name.lower()] for one in understood.inputs})
    able = [each for each in registry.problems().values() if each.takes_partners or not statement.partners]
    assert sum(problem.matches(statement) for problem in able) == 1


# -- what EXPLAIN prints is what runs ----------------------------------------------------------------------------------

NEAREST = "abs(a.x - b.x) + abs(a.y - b.y)"
ASKED = {
    "rows": sb.TopK(k=3, by="x * y", window=WINDOW),
    "rows for each name": sb.TopK(k=3, by="x", window=sb.sliding(1_000), per="name", emit="changes"),
    "rows, some missed": sb.TopK(k=3, by="x", window=sb.sliding(1_000), error=0.01),
    "rows by name": sb.TopK(k=3, by="x", window=WINDOW, algorithm="relaxed(gamma=0.5)"),
    "pairs": sb.TopKPairs(k=3, by=NEAREST, window=WINDOW, ascending=True),
    "pairs of names": sb.TopKPairs(k=3, by="CASE WHEN a.name = b.name THEN a.x END", window=WINDOW),
    "across": sb.TopKAcross(k=3, id="id", value="x", streams=["r", "s"], stream="name", window=WINDOW),
    "subscriptions": sb.TopKForEach(queries=PEOPLE, k=3, by="abs(x - q.x)", window=WINDOW, key="id"),
    "a join": sb.JoinAggregate(inputs={"a": WINDOW}, aggregates={"n": "SUM(a.x)"}, group_by="a.id", every=60),
}


@pytest.mark.parametrize("name", ASKED)
def test_explain_prints_what_a_session_runs(name: str) -> None:
    query = ASKED[name]
    plan = explained(Draft(query, (Read("a", SCHEMA, tuple(SCHEMA.names)),))).plan
    assert registry.problem_of(query).open(query, SCHEMA).algorithm == plan.algorithm == query.open(SCHEMA).algorithm


# -- an algorithm is a folder ------------------------------------------------------------------------------------------


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shutil.copytree(Path(__file__).parent / "algorithms" / "toy", tmp_path / "toy")
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path)])
    registry.algorithms_of.cache_clear()
    yield
    registry.algorithms_of.cache_clear()
    sys.modules.pop(f"{algorithms.__name__}.toy", None)


@pytest.mark.usefixtures("toy")
def test_a_folder_is_enough_for_an_algorithm() -> None:
    query = sb.TopK(k=2, by="x", window=sb.sliding(4, every=2))
    said = str(sb.explain(query))
    assert "toy" in registry.algorithms_of("rows")
    assert "algorithm  toy: the window slides by panes; lowest cost per row" in said
    assert "costs      0.001 ns a row" in said
    table = pa.table({"x": [3.0, 1.0, 2.0, 5.0, 4.0, 0.0]})
    assert query.open(table.schema).algorithm == "toy"
    answers = sb.top_k(table, k=2, by="x", window=query.window)
    assert answers.equals(sb.top_k(table, k=2, by="x", window=query.window, algorithm="recompute"))
    for_each = sb.TopK(k=2, by="x", per="name", window=sb.sliding(4, every=2))
    assert "toy                   cannot: toys are for one ranking" in str(sb.explain(for_each))
    with pytest.raises(sb.InvalidQuery, match="'toy' cannot answer this: toys are for one ranking"):
        sb.explain(sb.TopK(k=2, by="x", per="name", window=sb.sliding(4, every=2), algorithm="toy"))


def the_toy() -> tuple[Suite[Any], AnyAlgorithm]:
    """As the conformance suite finds it."""
    (toy,) = [(suite, algorithm) for suite, algorithm in found() if algorithm.name == "toy"]
    return toy


CHECKS = [
    check
    for module in (test_answers, test_restart, test_top, test_held)
    for name, check in vars(module).items()
    if name.startswith("test_") and list(inspect.signature(check).parameters) == ["suite", "algorithm"]
]


@pytest.mark.usefixtures("toy")
def test_the_conformance_suite_finds_it_and_runs_every_check() -> None:
    ran = 0
    for check in CHECKS:
        with suppress(pytest.skip.Exception):  # it refuses groups, so there is nothing to forget
            check(*the_toy())
            ran += 1
    assert ran == len(CHECKS) - 1 == 11


@pytest.mark.usefixtures("toy")
def test_the_conformance_suite_sees_that_it_is_wrong() -> None:
    rows, toy = the_toy()
    shows_too_few = replace(toy, open=lambda spec: toy.open(replace(spec, k=max(1, spec.k - 1))))
    with pytest.raises(AssertionError):
        test_answers.test_agrees_with_the_oracle(rows, shows_too_few)


@pytest.mark.usefixtures("toy")
def test_the_table_of_the_docs_has_it() -> None:
    assert "| `toy` | Toy: `recompute` under another name" in algorithms_table.table("rows")


def test_the_tables_of_the_docs_are_those_of_the_algorithms() -> None:
    assert algorithms_table.PAGE.read_text() == algorithms_table.page(), "run python tests/algorithms_table.py"


def test_the_toy_is_gone_again() -> None:
    assert "toy" not in registry.algorithms_of("rows")


# -- what EXPLAIN prints is what runs ----------------------------------------------------------------------------------

COUNTED = sb.sliding(600, every=60)
QUESTIONS = {
    "rows": (sb.TopK(k=3, by="x", window=COUNTED, per="name"), SCHEMA),
    "pairs": (sb.TopKPairs(k=3, by="abs(a.x - b.x)", window=COUNTED), SCHEMA),
    "across": (
        sb.TopKAcross(k=3, id="id", value="x", stream="name", streams=["a", "b"], bounds=(0, 1), window=COUNTED),
        SCHEMA,
    ),
    "subscriptions": (
        sb.TopKForEach(k=3, queries=PEOPLE, by="abs(x - q.x)", key="id", window=COUNTED),
        SCHEMA,
    ),
    "joins": (
        sb.JoinAggregate(
            inputs={"a": sb.sliding(600, on="t"), "b": sb.sliding(600, on="t")},
            on="a.id = b.id",
            aggregates={"n": "COUNT(*)"},
            every=60,
        ),
        {"a": SCHEMA, "b": SCHEMA},
    ),
}


@pytest.mark.parametrize("problem", registry.problems())
def test_what_explain_prints_is_what_a_session_runs(problem: str) -> None:
    query, schema = QUESTIONS[problem]
    session = query.open(schema)
    shown = sb.explain(query).plan
    assert session.plan.algorithm == shown.algorithm == session.algorithm
    assert session.plan.why == shown.why
    assert {each.algorithm for each in session.plan.considered} == {each.algorithm for each in shown.considered}
    resumed = query.open(schema, session.snapshot())
    assert (resumed.plan.algorithm, resumed.plan.why) == (shown.algorithm, "it took the snapshot")
