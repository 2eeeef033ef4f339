"""Golden tests: what is not accepted, and what is said of it, word for word."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql.test_statements import ACCEPTED, INPUTS

import skyband as sb

GOLDEN = Path(__file__).parent / "rejected.txt"


def cases() -> list[tuple[str, str]]:
    """Each statement with what is said of it: the lines below it, which are indented."""
    blocks = [block.split("\n", 1) for block in GOLDEN.read_text().strip().split("\n\n")]
    return [(statement, "\n".join(line[4:] for line in said.split("\n"))) for statement, said in blocks]


@pytest.mark.parametrize(("statement", "said"), cases())
def test_says_what_is_wrong_and_where(statement: str, said: str) -> None:
    with pytest.raises(sb.SkybandError) as caught:
        sb.sql(statement, **INPUTS)
    assert str(caught.value) == said
    assert any(line.strip() == "^" for line in said.split("\n")), "it says where"


WORDS = sorted({word for statement in ACCEPTED for word in statement.replace("[", " [ ").replace("]", " ] ").split()})


@given(st.sampled_from(ACCEPTED), st.integers(0, 2**32), st.sampled_from(["drop", "swap", "repeat", "replace", "cut"]))
def test_whatever_is_written_nothing_else_is_raised(statement: str, seed: int, how: str) -> None:
    chance = random.Random(seed)
    words = statement.split(" ")
    i, j = (chance.randrange(len(words)) for _ in range(2))
    if how == "drop":
        del words[i]
    elif how == "swap":
        words[i], words[j] = words[j], words[i]
    elif how == "repeat":
        words.insert(i, words[j])
    elif how == "replace":
        words[i] = chance.choice(WORDS)
    else:
        words = words[:i]
    try:
        sb.sql("EXPLAIN " + " ".join(words), **INPUTS)
    except sb.SkybandError as error:
        assert str(error)  # noqa: PT017  # most of them are errors, and some are not
