"""Writes docs/reference/options.md from the options that the queries declare: `python tests/options_page.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import skyband as sb
from skyband.core.query import REQUIRED, Query, QueryOption, given_types, options_of, type_text

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"

HEAD = """# Every option of every query

`python tests/options_page.py` generates this page from the declarations of the queries. Functions such as `sb.top_k`
take the same options; `help(sb.top_k)` shows them with examples.

In a statement you can set every option that has an SQL clause: with `sb.sql`, with `skyband sql`, and as the `sql` of a
query in a pipeline file. The other options are for Python; a pipeline file refuses them by name.
"""
PROBLEMS: dict[type[Query], str] = {
    sb.TopK: "The best rows: `sb.TopK`, `sb.top_k`",
    sb.TopKForEach: "The best rows for each subscription: `sb.TopKForEach`, `sb.top_k(…, for_each=queries)`",
    sb.TopKPairs: "The best pairs of rows: `sb.TopKPairs`, `sb.top_k_pairs`",
    sb.TopKAcross: "The best objects across streams: `sb.TopKAcross`, `sb.top_k_across`",
    sb.JoinAggregate: "Aggregates over joins: `sb.JoinAggregate`, `sb.join_aggregate`",
}
IN_A_FILE = {"lateness": "in the statement, or `lateness` of its source"}


def page() -> str:
    """The page as it should be."""
    return "\n".join([HEAD, *(line for kind, title in PROBLEMS.items() for line in _section(kind, title))])


def _section(kind: type[Query], title: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| option | type | default | meaning | SQL clause | pipeline file |"
    yield "|---|---|---|---|---|---|"
    for each in options_of(kind):
        yield f"| {' | '.join(_cells(each, type_text(given_types(kind)[each.name])))} |"
    yield ""


def _cells(each: QueryOption, kind: str) -> Iterator[str]:
    yield f"`{each.name}`"
    yield f"`{kind}`".replace("|", "\\|")
    yield "required" if each.default is REQUIRED else f"`{each.default!r}`"
    yield each.doc.replace("|", "\\|")
    yield f"`{each.sql}`" if each.sql else "none"
    yield IN_A_FILE.get(each.name, "in the statement") if each.sql else "no"


if __name__ == "__main__":
    PAGE.write_text(page())
