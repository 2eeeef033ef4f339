"""Examples: what one types into the shell, and what one sees; keys as a terminal sends them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from skyband.cli.completion import completions
from skyband.cli.options import Format
from skyband.cli.shell import Shell, history_file, is_complete, prompting, statements_in
from skyband.sql.run import answer_given

TRADES = pa.table({"minute": [0, 1, 3], "symbol": ["OAK", "ELM", "FIR"], "price": [10, 20, 5]})
BEST = "SELECT symbol FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1;"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def shell() -> Shell:
    return Shell({"trades": TRADES}, answer_given, Format.csv, None)


def said(shell: Shell, typed: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert shell.execute(typed)
    printed = capsys.readouterr()
    return printed.out + printed.err


# -- what lines do ----------------------------------------------------------------------------------------------------


def test_statements_are_answered_one_after_the_other(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    answer = '"window_start","window_end","rank","score","symbol"\n0,2,1,20,"ELM"\n2,4,1,5,"FIR"\n'
    assert said(shell, BEST, capsys) == answer
    assert said(shell, f"{BEST}\n{BEST}", capsys) == answer * 2
    assert said(shell, " ; ", capsys) == ""


def test_a_mistake_is_said_and_the_shell_goes_on(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'price'?" in said(shell, BEST.replace("price", "prise"), capsys)
    assert "Write .open quotes=FILE." in said(shell, BEST.replace("trades", "quotes"), capsys)
    assert "Write .open quotes=FILE." in said(shell, f".explain {BEST.replace('trades', 'quotes')}", capsys)
    assert said(shell, ".tabels", capsys).startswith("Error: There is no command '.tabels'. Possible: .tables,")


def test_ctrl_c_stops_a_statement_and_not_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(*_: object) -> Any:
        raise KeyboardInterrupt

    assert said(Shell({}, stopped, Format.table, None), BEST, capsys) == "Stopped.\n"


def test_commands(shell: Shell, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert said(shell, ".tables", capsys) == "trades\n"
    assert said(shell, ".schema TRADES", capsys) == "trades\n  minute int64\n  symbol string\n  price int64\n"
    assert said(shell, ".schema", capsys).startswith("trades\n")
    assert "There is no table 'x'. Tables: trades." in said(shell, ".schema x", capsys)
    assert said(shell, f".explain {BEST}", capsys).startswith("top 1 by price\n")
    (tmp_path / "more.csv").write_text("a,b\n1,2\n")
    assert said(shell, f".open {tmp_path / 'more.csv'}", capsys) == "more: a, b\n"
    assert said(shell, f".open m='{tmp_path}/*.csv'", capsys) == "m: a, b\n"
    assert said(shell, ".tables", capsys) == "trades\nmore\nm\n"
    assert "There is no file" in said(shell, ".open none.csv", capsys)
    helped = said(shell, ".help", capsys)
    assert [line.split()[0] for line in helped.splitlines()] == [
        *(".tables", ".schema", ".open", ".explain", ".help", ".quit")
    ]
    assert not shell.execute(".quit")


def test_a_table_is_shown_with_how_many_rows_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(Shell({"trades": TRADES}, answer_given, Format.table, None), BEST, capsys)
    assert shown.splitlines()[-1].startswith("(2 rows, ")


def test_a_text_is_cut_at_semicolons_outside_quotes() -> None:
    assert statements_in("SELECT ';' ; SELECT 2") == ["SELECT ';' ;", "SELECT 2"]
    assert statements_in("SELECT 'a") == ["SELECT 'a"]
    for text, complete in (
        *(("", True), (".help", True), ("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';", False)),
        *(("SELECT 1 -- ;", False), ("SELECT 1; \n", True), ("SELECT 1\n;", True)),
    ):
        assert is_complete(text) is complete, text


# -- what is offered --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "length", "offered"),
    [
        (".ta", 3, [".tables"]),
        (".schema tr", 2, ["trades"]),
        (".explain SELECT sym", 3, ["symbol"]),
        ("SELECT sym", 3, ["symbol"]),
        ("SELECT SU", 2, ["SUBSTR", "SUBSTRING", "SUBSTRING_INDEX", "SUM"]),
        ("SELECT t.p", 1, ["price"]),
        ("SELECT trades.", 0, ["minute", "symbol", "price"]),
        ("SELECT x.", 0, []),
        ("SELECT symbol FROM trades [WIND", 4, ["WINDOW", "WINDOWS"]),
        ("SELECT ", 0, []),
        ("SELECT symbol", 6, []),
    ],
)
def test_what_is_offered(before: str, length: int, offered: list[str]) -> None:
    after = " FROM trades AS t [WINDOW 1 HOUR]"
    found, words = completions(before, after, {"trades": TRADES.schema}, [".tables", ".schema"])
    assert (found, words) == (length, offered)


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def test_lines_are_read_until_there_is_a_semicolon(shell: Shell, keys: PipeInput) -> None:
    session = prompting(shell, input=keys, output=DummyOutput())
    keys.send_text("SELECT symbol\rFROM trades;\r")
    assert session.prompt() == "SELECT symbol\nFROM trades;"
    keys.send_text(".tables\r")
    assert session.prompt() == ".tables"


def test_the_line_offers_words(shell: Shell, keys: PipeInput) -> None:
    completer = prompting(shell, input=keys, output=DummyOutput()).completer
    assert completer is not None
    offered = completer.get_completions(Document("SELECT sym, price", len("SELECT sym")), CompleteEvent())
    assert [(each.text, each.start_position) for each in offered] == [("symbol", -3)]


def test_ctrl_c_and_ctrl_d_leave_the_line(shell: Shell, keys: PipeInput) -> None:
    session = prompting(shell, input=keys, output=DummyOutput())
    keys.send_text("SELECT \x03")
    with pytest.raises(KeyboardInterrupt):
        session.prompt()
    keys.send_text("\x04")
    with pytest.raises(EOFError):
        session.prompt()


def test_what_was_typed_is_remembered_for_nobody_else(shell: Shell, keys: PipeInput) -> None:
    first = prompting(shell, input=keys, output=DummyOutput())
    keys.send_text("SELECT 1\r, 2;\r")
    first.prompt()
    assert stat.S_IMODE(history_file().stat().st_mode) == 0o600
    again = prompting(shell, input=keys, output=DummyOutput())
    assert list(again.history.load_history_strings()) == ["SELECT 1\n, 2;"]
