"""Example tests: what expressions over two rows mean, what is refused, and what the loops are made of.

Wide sums also have an oracle test.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import InvalidExpression, InvalidQuery, SkybandError, UnknownColumn
from skyband.expressions.pairs import bind, check_by
from skyband.problems.pairs.drivers.loop_texts import LOOPS
from skyband.problems.pairs.drivers.scoring import Scoring, scoring_of

NAN, INF = math.nan, math.inf
SCHEMA = pa.schema(
    [("x", pa.float64()), ("y", pa.int32()), ("z", pa.float64()), ("flag", pa.bool_()), ("name", pa.string()),
     ("when", pa.timestamp("us")), ("tags", pa.list_(pa.int64()))]
)  # fmt: skip
A = {"x": 3.0, "y": 2.0, "z": NAN, "flag": 1.0}  # the earlier row; z is null
B = {"x": -4.0, "y": 0.0, "z": 1.0, "flag": NAN}  # the later one; its flag is null

# All in one kernel, so that there is one to compile: the i-th of these is the score where a.pick is i.
MEANINGS = {
    "a.x + b.x": -1.0,
    "a.x - b.x": 7.0,
    "a.x * b.x": -12.0,
    "a.x / b.x": -0.75,
    "a.x / b.y": INF,
    "b.x / b.y": -INF,
    "b.y / b.y": NAN,
    "b.x % 3": -1.0,
    "a.x % b.y": NAN,
    "a.x ** 2": 9.0,
    "power(a.x, 3)": 27.0,
    "-a.x": -3.0,
    "abs(b.x)": 4.0,
    "sign(b.x) + sign(b.y)": -1.0,
    "sqrt(b.x)": NAN,
    "sqrt(a.x + 1)": 2.0,
    "exp(b.y)": 1.0,
    "ln(b.y)": -INF,
    "log10(100)": 2.0,
    "log2(8)": 3.0,
    "floor(-2.5) + ceil(-2.5)": -5.0,
    "greatest(a.x, b.x, a.z)": 3.0,
    "least(a.z, b.z)": 1.0,
    "a.z + 1": NAN,
    "coalesce(a.z, b.z, 5)": 1.0,
    "nullif(a.x, 3)": NAN,
    "nullif(a.x, 4)": 3.0,
    "case when a.x > b.x then 1 else 0 end": 1.0,
    "case when a.z > 0 then 1 when not (a.z > 0) then 2 else 3 end": 3.0,
    "case a.y when 1 then 10 when 2 then 20 end": 20.0,
    "case when a.x < 0 then 1 end": NAN,
    "if(a.x between 1 and 3, 1, 0)": 1.0,
    "if(a.y in (1, 2), 1, 0)": 1.0,
    "if(a.z is null and b.z is not null, 1, 0)": 1.0,
    "if(a.flag, 1, 0) + if(b.flag or not b.flag, 10, 20) + if(b.flag is null, 100, 0)": 121.0,
    "if(a.x <> b.x or a.z > 0, 1, 0)": 1.0,
    "sin(b.y) + cos(b.y) + tan(b.y) + atan2(b.y, a.x)": 1.0,
    "1e999": INF,
    "null": NAN,
}


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    whens = " ".join(f"WHEN a.pick = {i} THEN ({text})" for i, text in enumerate(MEANINGS))
    schema = SCHEMA.append(pa.field("pick", pa.float64()))
    scoring = scoring_of(bind(f"CASE {whens} END", None, False, schema))
    found = {}
    for i, text in enumerate(MEANINGS):
        rows = [{**A, "pick": float(i)}, {**B, "pick": NAN}]
        columns = np.array([[row[name] for row in rows] for name in scoring.score.columns])
        out = np.empty(1)
        scoring.scores(columns, np.empty((0, 2)), 1, 0, 1, out)
        found[text] = float(out[0])
    return found


@pytest.mark.parametrize("text", MEANINGS)
def test_meaning(text: str, values: dict[str, float]) -> None:
    assert values[text] == pytest.approx(MEANINGS[text], nan_ok=True)


REFUSED: list[tuple[str, type[SkybandError], str]] = [
    ("x + b.x", InvalidExpression, "belongs to neither row.*Write a.x"),
    ("c.x + b.x", InvalidExpression, "'c.x' cannot be part of an expression"),
    ("a.prise", UnknownColumn, "No column 'prise'"),
    ("a.name = b.name", InvalidExpression, "'a.name = b.name' .* is not a number. CASE"),
    ("a.name + 1", InvalidExpression, "'a.name' .* is not a number. You can only compare it"),
    ("if(a.name > 3, 1, 0)", InvalidExpression, "a.name is text, 3 is a number"),
    ("if(a.when < 'noon', 1, 0)", InvalidExpression, "'noon' .* is not a time"),
    ("cast(a.x as int)", InvalidExpression, "is a conversion"),
    ("a.tags", InvalidExpression, "Column 'tags' is list<item: int64>, which an expression cannot read"),
    ("a.x > b.x", InvalidExpression, "'a.x > b.x' .* is not a number. CASE"),
    ("a.flag + 1", InvalidExpression, "'a.flag' .* is not a number"),
    ("sum(a.x)", InvalidExpression, "cannot be part of an expression"),
    ("a.x +", InvalidExpression, "Cannot read"),
    ("'text'", InvalidExpression, "is not a number"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED)
def test_refused(text: str, error: type[SkybandError], message: str) -> None:
    with pytest.raises(error, match=message):
        bind(text, None, False, SCHEMA)


def test_where_is_a_condition() -> None:
    with pytest.raises(InvalidExpression, match=r"'a.x \+ 1' .* is not a condition"):
        bind("a.x", "a.x + 1", False, SCHEMA)


@pytest.mark.parametrize("by", ["", "  ", 3, None])
def test_what_cannot_be_a_score(by: object) -> None:
    with pytest.raises(InvalidQuery, match="by"):
        check_by(by)


# -- functions ---------------------------------------------------------------------------------------------------------


def test_a_function_reads_the_columns_it_names() -> None:
    score = bind(lambda a, b: a.x - b.y, None, False, SCHEMA)
    assert score.columns == ("x", "y")


def test_a_function_of_one_row_is_refused() -> None:
    with pytest.raises(InvalidExpression, match="must take two rows"):
        bind(lambda a: a.x, None, False, SCHEMA)


@pytest.mark.parametrize("function", [lambda a, b: (a.x, b.x), lambda a, b: "no", lambda a, b: a.nothing])
def test_a_function_that_gives_no_number_is_refused(function: Any) -> None:
    with pytest.raises(InvalidExpression, match="numba cannot compile"):
        scoring_of(bind(function, None, False, SCHEMA))


# -- what is known from distances --------------------------------------------------------------------------------------

KNOWN: dict[str, tuple[list[str], list[bool]] | None] = {
    # the columns, and whether the nearest come first when the largest score is best
    "abs(a.x - b.x) + abs(a.y - b.y)": (["x", "y"], [False, False]),
    "-(abs(a.x - b.x) + 2 * abs(b.y - a.y))": (["x", "y"], [True, True]),
    "abs(a.x - b.x) * abs(a.y - b.y)": (["x", "y"], [False, False]),
    "-abs(a.x - b.x) * abs(a.y - b.y)": (["x", "y"], [True, True]),
    "abs(a.x - b.x) / (abs(a.y - b.y) * abs(a.z - b.z))": (["x", "y", "z"], [False, True, True]),
    "abs(a.x - b.x) - abs(a.y - b.y)": (["x", "y"], [False, True]),
    "sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2)": (["x", "y"], [False, False]),
    "greatest(abs(a.x - b.x), abs(a.y - b.y))": (["x", "y"], [False, False]),
    "abs(a.x - b.x) - (a.x - b.x) ** 2": None,
    "abs(a.x - b.y)": None,
    "a.x + b.x": None,
    "ln(1 + abs(a.x - b.x))": (["x"], [False]),
    "-ln(abs(a.x - b.x))": (["x"], [True]),
    "ln(1 + abs(a.x - b.x)) * 2 + power(abs(a.y - b.y), 1.5)": (["x", "y"], [False, False]),
    "abs(a.x - b.x) / (1 + ln(2 + abs(a.y - b.y)))": (["x", "y"], [False, True]),
    "sqrt(power(abs(a.x - b.x), 3) + power(abs(a.y - b.y), 3))": (["x", "y"], [False, False]),
    "ln(1 + abs(a.x - b.x)) - ln(1 + abs(a.y - b.y))": None,  # what each is off by may be all that is left
    "ln(abs(a.x - b.x)) + abs(a.y - b.y)": None,
    "power(abs(a.x - b.x), 17)": None,
    "exp(abs(a.x - b.x))": None,
    "(abs(a.x - b.x) - 1) * abs(a.y - b.y)": None,
    "1": None,
}


@pytest.mark.parametrize("text", KNOWN)
def test_known_from_distances(text: str) -> None:
    score = bind(text, None, False, SCHEMA)
    turned = bind(text, None, True, SCHEMA)
    if KNOWN[text] is None:
        assert score.distances is None
        return
    columns, nearest = KNOWN[text]
    assert score.distances is not None
    assert [score.columns[c] for c in score.distances.columns] == columns
    assert list(score.distances.nearest) == nearest
    assert list(turned.distances.nearest) == [not near for near in nearest]


# -- nothing of a user's text is executed ------------------------------------------------------------------------------


def test_no_text_of_a_user_gets_into_the_loops() -> None:
    name = "x); import os; (y"
    schema = pa.schema([(name, pa.float64())])
    by = f"abs(a.`{name}` - b.`{name}`) * 1e-3"
    where = f"a.`{name}` > 0.125 /* __import__('os') */"
    scoring = Scoring(bind(by, where, True, schema), same=True, different=True)
    for loop in LOOPS:
        source = scoring.source(loop)
        assert "import" not in source
        assert "os" not in re.findall(r"\w+", source)
        assert set(re.findall(r"[a-z]\w*\.\w+", source)) <= {"np.nan", "np.inf", "np.floor", "np.ceil"}
    assert scoring_of(scoring.score, same=True, different=True) is scoring_of(
        bind(by, where, True, schema), same=True, different=True
    ), "the same lines are compiled once"


# -- sums of many terms that are alike ---------------------------------------------------------------------------------


TERMS = 13


def over(columns: int) -> tuple[str, pa.Schema]:
    """A weighted distance over so many columns."""
    text = " + ".join(f"{i % 3 + 0.5} * (a.c{i} - b.c{i}) ** 2" for i in range(columns))
    return f"sqrt({text})", pa.schema([(f"c{i}", pa.float64()) for i in range(columns)])


def test_the_loops_of_64_columns_are_no_longer_than_those_of_16() -> None:
    few, many = (
        Scoring(bind(text, None, True, schema), same=False, different=False) for text, schema in map(over, (16, 64))
    )
    for loop in set(LOOPS) - {"walk"}:  # which goes from distance to distance, and is not for so many
        assert many.source(loop).count("\n") == few.source(loop).count("\n")


@given(st.data())
@settings(max_examples=50)
def test_a_sum_of_many_terms_is_what_numpy_says(data: st.DataObject) -> None:
    numbers = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e9, NAN, INF])
    columns = np.array(data.draw(st.lists(numbers, min_size=2 * TERMS, max_size=2 * TERMS))).reshape(TERMS, 2)
    text, schema = over(TERMS)
    scoring, out = scoring_of(bind(text, None, False, schema)), np.empty(1)
    scoring.scores(columns, np.empty((0, 2)), 1, 0, 1, out)
    weights = np.arange(TERMS) % 3 + 0.5
    with np.errstate(invalid="ignore"):
        expected = np.sqrt((weights * (columns[:, 0] - columns[:, 1]) ** 2).sum())
    assert float(out[0]) == pytest.approx(expected, nan_ok=True)
