"""Example tests of the progress bar: what it says on a terminal, and that it is silent elsewhere."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

import skyband as sb
from skyband.engines.embedded import running as shown

TRADES = pa.table({"price": list(range(1_000))})
WINDOW = sb.sliding(100, every=100)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error, as rich sees it: a terminal."""
    written = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=written, force_terminal=True, width=100))
    monkeypatch.setattr(shown, "_SECONDS", 0.0)
    return written


def test_a_terminal_sees_the_rows_read_and_held_and_the_answer_stays_the_same(terminal: io.StringIO) -> None:
    alone = sb.top_k(TRADES, k=3, by="price", window=WINDOW)
    with sb.progress():
        best = sb.top_k(TRADES, k=3, by="price", window=WINDOW)
        sb.sql("SELECT price FROM trades [WINDOW 100 ROWS EVERY 100 ROWS] ORDER BY price DESC LIMIT 3", trades=TRADES)
    assert best.equals(alone)
    assert terminal.getvalue().count("1,000 read") >= 2


def test_outside_the_block_and_without_a_terminal_nothing_is_written(
    terminal: io.StringIO, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sb.progress():
        pass
    sb.top_k(TRADES, k=3, by="price", window=WINDOW)
    assert terminal.getvalue() == ""
    monkeypatch.undo()
    with sb.progress():
        sb.top_k(TRADES, k=3, by="price", window=WINDOW)
    assert capsys.readouterr().err == ""
