"""Oracle: every option of every algorithm, at hostile values, is refused by name or changes nothing of the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest
from conformance.option_walk import PROBLEMS

import skyband as sb
from skyband.core.options import Count, Growth, declared
from skyband.core.registry import find

LONG = 600  # seconds for one question: what has not ended by then never will


def lines_of(walk: list[str]) -> Iterator[str]:
    """What a process writes, line by line; fails if the next one does not come."""
    said: Queue[str | None] = Queue()

    def pass_on(lines: Iterable[str]) -> None:
        for line in lines:
            said.put(line)
        said.put(None)

    with subprocess.Popen(walk, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        Thread(target=pass_on, args=(process.stdout,), daemon=True).start()
        last = "nothing was said"
        try:
            while (line := said.get(timeout=LONG)) is not None:
                last = line
                yield line
        except Empty:
            process.kill()
            pytest.fail(f"This does not end: {last}")
    assert process.returncode == 0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_options_are_refused_by_name_or_harmless(problem: str) -> None:
    lines = lines_of([sys.executable, str(Path(__file__).with_name("option_walk.py")), problem])
    told = [json.loads(line) for line in lines]
    outcomes = [line for line in told if line[-1] != "asked"]
    assert len(told) == 2 * len(outcomes)
    for name, option, possible, value, said in outcomes:
        expected = f"{name!r}: {option} must be {possible}, got {value}."
        assert said in ("right", expected), f"{name}({option}={value}): {said}"
    seen = {(name, option) for name, option, *_ in outcomes}
    known = {(name, option) for name, each in PROBLEMS[problem][0].items() for option in declared(each.open)}
    assert seen == known
    assert {said == "right" for *_, said in outcomes} == {True, False}, "some are refused, others are not"


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e-3", 0.001), ("1_000", 1000.0), (".5", 0.5), ("0", 0.0), ("+2", 2.0), ("1e+2", 100.0), ("-0.0", 0.0)],
)
def test_numbers_are_read_as_python_reads_them(text: str, number: float) -> None:
    """And are what the option is declared to be: compiled code sees one type, whichever way a number is written."""
    read = find(f"relaxed(gamma={text})", "rows").open.keywords["gamma"]  # type: ignore[attr-defined]
    assert (type(read), read) == (float, number)


def test_an_option_is_said_once() -> None:
    with pytest.raises(sb.InvalidQuery, match="has 'block' twice"):
        find("relaxed(block=2, block=3)", "rows")


def test_an_option_needs_a_range() -> None:
    def open(spec: object, *, few: Count = 3, growth: Growth | None = None, more: int = 3) -> None: ...

    with pytest.raises(TypeError, match="'more' is <class 'int'>: declare its range"):
        declared(open)
