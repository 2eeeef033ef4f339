"""Several statements at once: each answers as if it were alone, and what can be shared is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from skyband.dialect import text as texts
from skyband.problems.pairs.codec import PairsCodec
from skyband.problems.rows.codec import ViewsCodec
from skyband.sql import recognise

PAIRS = "SELECT {shown} FROM rows a, rows b WHERE a.n < b.n{where} ORDER BY |a.x - b.x| LIMIT {k} WINDOW [{window}]"
BY_COUNT = [("20 ROWS EVERY 5 ROWS", 4), ("7 ROWS EVERY 5 ROWS", 2), ("5 ROWS EVERY 5 ROWS", 6)]
BY_VALUE = [("20 EVERY 5 ON t", 3), ("10 EVERY 5 ON t", 5), ("5 EVERY 5 ON t", 1)]


def some_rows(seed: int, count: int) -> pa.Table:
    """Few values, so that scores tie; times that rise, mostly."""
    random = np.random.default_rng(seed)
    time = np.arange(count) - random.integers(0, 4, count) * (random.random(count) < 0.3)
    return pa.table(
        {"n": np.arange(count), "t": time, "x": random.integers(0, 6, count), "y": random.integers(0, 3, count)}
    )


def stream(rows: pa.Table, cut: int) -> pa.RecordBatchReader:
    """In which some rows are late."""
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=cut))


@pytest.mark.filterwarnings("ignore::skyband.LateRows")
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1_000),
    count=st.integers(0, 60),
    windows=st.sampled_from([BY_COUNT, BY_VALUE]),
    where=st.sampled_from(["", " AND a.y = b.y"]),
    cut=st.integers(1, 20),
)
def test_statements_about_pairs_answer_as_alone(
    seed: int, count: int, windows: list[tuple[str, int]], where: str, cut: int
) -> None:
    rows = some_rows(seed, count)
    shown = ["a.n, b.n", "b.y, a.n", "*"]
    statements = {
        f"q{i}": PAIRS.format(shown=shown[i], where=where, k=k, window=window) for i, (window, k) in enumerate(windows)
    }
    together = sb.run_all(statements, rows=rows)
    assert together == {name: sb.sql(text, rows=rows) for name, text in statements.items()}
    streamed = {name: answer.read_all() for name, answer in sb.run_all(statements, rows=stream(rows, cut)).items()}
    assert streamed == {name: sb.sql(text, rows=stream(rows, cut)).read_all() for name, text in statements.items()}


def test_what_differs_only_in_k_size_and_columns_shares_a_skyband(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    bind = PairsCodec.__init__

    def counted(self: PairsCodec, *args: object, **options: object) -> None:
        opened.append(1)
        bind(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(PairsCodec, "__init__", counted)
    alike = {f"q{i}": PAIRS.format(shown="a.n", where="", k=k, window=window) for i, (window, k) in enumerate(BY_COUNT)}
    other = {
        "other score": PAIRS.format(shown="a.n", where="", k=1, window="9 EVERY 3 ON t").replace(".x", ".y"),
        "other slide": PAIRS.format(shown="a.n", where="", k=2, window="8 ROWS EVERY 4 ROWS"),
        "other condition": PAIRS.format(shown="a.n", where=" AND a.y = b.y", k=2, window="20 ROWS EVERY 5 ROWS"),
        "no pairs": "SELECT n FROM rows [WINDOW 5 ROWS EVERY 5 ROWS] ORDER BY x LIMIT 1",
    }
    answers = sb.run_all({**alike, **other}, rows=some_rows(1, 40))
    assert [*answers] == [*alike, *other]
    assert len(opened) == 4


ROWS = "SELECT {shown} FROM rows [WINDOW {window}] {where} ORDER BY {by} LIMIT {k}"
ROWS_BY_COUNT = ["20 ROWS EVERY 5 ROWS", "7 ROWS EVERY 3 ROWS", "8 ROWS EVERY 4 ROWS", "20 ROWS EVERY 20 ROWS"]
ROWS_BY_VALUE = ["20 EVERY 5 ON t", "11 EVERY 10 ON t", "4 EVERY 4 ON t", "9 EVERY 5 ON t"]


@pytest.mark.filterwarnings("ignore::skyband.LateRows")
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1_000),
    count=st.integers(0, 60),
    windows=st.sampled_from([ROWS_BY_COUNT, ROWS_BY_VALUE]),
    by=st.sampled_from(["x", "x * 2 - y DESC", "x / y DESC"]),
    where=st.sampled_from(["", "WHERE y < 2"]),
    cut=st.integers(1, 20),
)
def test_statements_about_rows_answer_as_alone(
    seed: int, count: int, windows: list[str], by: str, where: str, cut: int
) -> None:
    rows = some_rows(seed, count)
    shown, k = ["n", "y, n", "*", "t, x + y AS z"], [3, 1, 2, 7]
    statements = {
        f"q{i}": ROWS.format(shown=shown[i], window=window, where=where, by=by, k=k[i])
        for i, window in enumerate(windows)
    }
    together = sb.run_all(statements, rows=rows)
    assert together == {name: sb.sql(text, rows=rows) for name, text in statements.items()}
    streamed = {name: answer.read_all() for name, answer in sb.run_all(statements, rows=stream(rows, cut)).items()}
    assert streamed == {name: sb.sql(text, rows=stream(rows, cut)).read_all() for name, text in statements.items()}


def test_of_rows_too_what_differs_only_in_k_size_and_slide_shares_a_skyband(monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[int] = []
    bind = ViewsCodec.__init__

    def counted(self: ViewsCodec, widest: sb.TopK, schema: pa.Schema, seen: list[sb.TopK]) -> None:
        views.append(len(seen))
        bind(self, widest, schema, seen)

    monkeypatch.setattr(ViewsCodec, "__init__", counted)
    alike = [ROWS.format(shown="n", window=window, where="", by="x", k=2) for window in ROWS_BY_COUNT]
    others = [
        ROWS.format(shown="n", window="20 ROWS EVERY 5 ROWS", where="", by="y", k=2),
        ROWS.format(shown="n", window="20 ROWS EVERY 5 ROWS", where="", by="x DESC", k=2),
        ROWS.format(shown="n", window="20 ROWS EVERY 5 ROWS", where="WHERE y > 1", by="x", k=2),
        ROWS.format(shown="n", window="20 EVERY 5 ON t", where="", by="x", k=2),
        ROWS.format(shown="n", window="20 ROWS", where="", by="x", k=2),
    ]
    statements = {str(i): text for i, text in enumerate([*alike, *others])}
    rows = some_rows(1, 40)
    sb.run_all(statements, rows=rows)
    assert views == [len(alike)]
    # A column whose name is taken comes out under another one, which depends on the columns beside it.
    renamed = rows.rename_columns(["n", "t", "x", "rank"])
    taken = {"a": alike[0], "b": alike[1].replace("SELECT n", "SELECT rank")}
    assert sb.run_all(taken, rows=renamed) == {name: sb.sql(text, rows=renamed) for name, text in taken.items()}
    assert views == [len(alike)]


def test_each_statement_is_read_and_recognised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it shares a skyband or not."""
    counts: Counter[str] = Counter()
    for module, name in ((texts, "read"), (recognise, "asked")):
        monkeypatch.setattr(module, name, counted(counts, name, getattr(module, name)))
    alike = [ROWS.format(shown="n", window=window, where="", by="x", k=2) for window in ROWS_BY_COUNT]
    alone = "SELECT y, COUNT(*) AS n FROM rows [WINDOW 20 ROWS EVERY 5 ROWS] GROUP BY y"
    sb.run_all({str(i): text for i, text in enumerate([*alike, alone])}, rows=some_rows(1, 40))
    assert counts == {"read": len(alike) + 1, "asked": len(alike) + 1}


def counted(counts: Counter[str], name: str, call: Callable[..., object]) -> Callable[..., object]:
    def counting(*args: object) -> object:
        counts[name] += 1
        return call(*args)

    return counting
