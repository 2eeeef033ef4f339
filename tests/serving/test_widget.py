"""Example tests of session.live(): what the kernel sends, and what a browser draws of it."""

from __future__ import annotations

import notebooks
import pyarrow as pa
import pytest
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.errors import InvalidInput

ROWS = pa.schema({"minute": pa.int64(), "symbol": pa.string(), "price": pa.int64()})


def test_a_widget_is_told_of_what_is_pushed_and_draws_it() -> None:
    pytest.importorskip("anywidget")
    session = sb.TopK(k=2, by="price", window=sb.sliding(4, every=2, on="minute")).open(ROWS)
    widget = session.live()
    rows = [(0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)]
    session.push(pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS))
    wait_until(lambda: bool(widget.answer.get("rows")), "the first answer")
    assert [row["symbol"] for row in widget.answer["rows"]] == ["ELM", "OAK"]
    assert widget.answer["about"]["title"] == "top 2 by price"
    assert widget.picture["dots"]["id"] == [0, 1, 2]
    _drawn(widget)
    widget.close()
    session.push(pa.Table.from_pylist([], ROWS))  # nobody looks on any more
    assert session._observers == ()


def test_a_widget_has_the_colours_of_its_notebook_whatever_the_system_has() -> None:
    from serving.browser import chromium

    from skyband.serving.widget import styles

    dark, light = "rgb(19, 26, 46)", "rgb(255, 255, 255)"
    themes = {
        '<body data-jp-theme-light="false">': dark,
        '<body data-jp-theme-light="true">': light,
        '<body class="vscode-dark">': dark,
        '<body class="vscode-light">': light,
        '<html class="dark"><body>': dark,
        "<body>": light,
    }
    with chromium() as browser:
        page = browser.new_page(color_scheme="light")
        for begin, wanted in themes.items():
            page.set_content(f'<!doctype html>{begin}<style>{styles()}</style><div class="skyband-widget">x</div>')
            found = page.evaluate("getComputedStyle(document.querySelector('.skyband-widget')).backgroundColor")
            assert found == wanted, begin


def test_what_is_no_running_query_is_refused() -> None:
    for given in ("best", None, sb.TopK(k=1, by="price", window=sb.sliding(2))):
        with pytest.raises(InvalidInput, match="live takes a session"):
            sb.live(given)


@pytest.mark.spark
def test_a_streaming_query_is_followed_through_its_memory_sink(spark, tmp_path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("anywidget")
    rows = [(0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7), (5, "ASH", 1), (9, "ASH", 2)]
    (tmp_path / "in").mkdir()
    spark.createDataFrame(rows, "minute int, symbol string, price int").write.json(str(tmp_path / "in"), mode="append")
    stream = spark.readStream.schema("minute int, symbol string, price int").json(str(tmp_path / "in"))
    answer = sb.top_k(stream, k=2, by="price", window=sb.sliding(4, every=2, on="minute"))
    query = answer.writeStream.format("memory").queryName("live_best").start()
    try:
        query.processAllAvailable()
        widget = sb.live(query)
        wait_until(lambda: bool(widget.answer.get("rows")), "the first answer")
        latest = max(row["window_end"] for row in spark.table("live_best").collect())
        assert {row["window_end"] for row in widget.answer["rows"]} == {latest}
        assert [row["rank"] for row in widget.answer["rows"]] == [*range(1, len(widget.answer["rows"]) + 1)]
        assert f"window until {latest}" in widget.answer["note"]
    finally:
        query.stop()
    wait_until(lambda: "has ended" in widget.answer["note"], "the end")


def _drawn(widget: object) -> None:
    from serving.browser import chromium

    state = {name: getattr(widget, name) for name in ("_css", "_esm", "answer", "picture")}
    with chromium() as browser:
        page, problems = browser.new_page(viewport={"width": 900, "height": 420}), []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.set_content(f"<!doctype html>{notebooks.widget(state)}")
        page.wait_for_selector("#widget .board li", timeout=1_000 * PATIENCE_S)
        assert page.locator("#widget .board b").all_inner_texts() == ["ELM", "OAK"]
        assert page.locator("#widget canvas").bounding_box()["height"] == 300
        assert problems == []
