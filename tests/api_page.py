"""Writes docs/reference/api.md from the docstrings of the public names: `python tests/api_page.py`.

The examples are doctests, which tests/test_docstrings.py runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import skyband as sb
from skyband.problems.across.session import AcrossSession
from skyband.problems.joins.session import JoinSession
from skyband.problems.subscriptions.session import SubscriptionsSession

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"

HEAD = """# Functions and classes

`python tests/api_page.py` generates this page from the docstrings, and the tests run every example. [Errors](errors.md)
have their own page, and [one table](options.md) lists every option of every query with its SQL clause.
"""
CHAPTERS = {
    "Ask a question": ["top_k", "top_k_pairs", "top_k_across", "join_aggregate", "sql", "run_all", "explain"],
    "Windows": ["sliding", "tumbling", "landmark", "Window"],
    "Queries": [
        "TopK",
        "TopKForEach",
        "TopKPairs",
        "TopKAcross",
        "JoinAggregate",
        "stream_input",
        "relation",
        "Statistics",
    ],
    "A running query": ["Session", "Stats", "Store", "live", "progress"],
    "Charts": ["plots"],
    "Functions of your own": ["function"],
    "Spark sessions": ["spark", "read_state"],
}
SESSIONS = {  # what the sessions of some queries can do beside `Session`
    "TopKForEach": (SubscriptionsSession, ["add", "remove", "change"]),
    "TopKAcross": (AcrossSession, ["push"]),
    "JoinAggregate": (JoinSession, ["push", "statistics"]),
}
# Methods that only Skyband itself calls, and a function that has an entry of its own.
INTERNAL = {"check_columns", "columns", "combined", "fingerprint", "of", "planned", "schemas", "ticks", "read_state"}
SECTION = re.compile(r"^(Parameters|Returns|Raises|Examples|References|Attributes)\n-+\n", re.MULTILINE)


def page() -> str:
    """The page as it should be."""
    lines = [HEAD]
    for chapter, names in {**CHAPTERS, "Everything else": _others()}.items():
        if names:
            lines.append(f"## {chapter}\n")
            lines += (line for name in names for line in _entry(name, getattr(sb, name)))
        if chapter == "A running query":
            lines += (line for query in SESSIONS for line in _session(query))
    return "\n".join(lines)


def _others() -> list[str]:
    """Public names that no chapter has, but errors, so that none is forgotten."""
    chosen = {name for names in CHAPTERS.values() for name in names}
    errors = {
        name for name in sb.__all__ if isinstance(kind := getattr(sb, name), type) and issubclass(kind, Exception)
    }
    return sorted(set(sb.__all__) - chosen - errors)


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if not isinstance(value, ModuleType) and value is not sb.Session:
        yield f"```py\n{_signature(name, value)}\n```\n"
    yield from _sections(inspect.getdoc(value) or "")
    for method, function in methods(value).items():
        yield from _method(f"{name}.{method}", function)


def _session(query: str) -> Iterator[str]:
    kind, names = SESSIONS[query]
    yield f"### Sessions of {query}\n"
    yield f"`{query}(…).open(…)` opens a `Session` that also has these methods.\n"
    for name in names:
        yield from _method(f"session.{name}", getattr(kind, name))


def _method(name: str, function: Any) -> Iterator[str]:
    yield f"#### {name}\n"
    yield f"```py\n{_signature(name, function)}\n```\n"
    yield from _sections(inspect.getdoc(function) or "")


def methods(value: Any) -> dict[str, Any]:
    """The methods of a class, also those of its bases, or the functions of a module, that users call."""
    if isinstance(value, ModuleType):
        found = dict(vars(value))
    elif isinstance(value, type) and value.__module__.startswith("skyband"):
        found = {name: getattr(value, name) for base in value.__mro__ for name in vars(base)}
    else:
        return {}
    return {
        name: each
        for name, each in found.items()
        if name not in INTERNAL and name[0] != "_" and inspect.isfunction(each) and each.__doc__
    }


def _signature(name: str, value: Any) -> str:
    parameters = [each for each in inspect.signature(value).parameters.values() if each.name != "self"]
    shown = [
        re.sub(r"\bskyband\.[\w.]+\.", "", str(each).replace("'", '"' if '"' not in str(each) else "'"))
        for each in parameters
    ]
    shown = [re.sub(r': "([^"]+)"', r": \1", each) for each in shown]
    keyword = next((i for i, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY), None)
    if keyword is not None:
        shown.insert(keyword, "*")
    one = f"{name}({', '.join(shown)})"
    return one if len(one) <= 100 else f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + ")"


def _sections(doc: str) -> Iterator[str]:
    parts = SECTION.split(doc)
    yield _plain(parts[0]) + "\n"
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if title == "Examples":
            yield "**Example**\n"
            yield from _examples(text)
        elif title in ("Parameters", "Raises", "Attributes"):
            yield f"**{title}**\n"
            for name, says in re.findall(r"^(\S.*)\n((?:    .*\n?|\n)+)", text + "\n", re.MULTILINE):
                yield f"- `{name}`: {' '.join(says.split())}"
            yield ""
        else:
            yield f"**{title}.** {_plain(text)}\n"


def _examples(text: str) -> Iterator[str]:
    """Paragraphs of words as they are, and what Python is told as a block."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.lstrip().startswith(">>>"):
            code = re.sub(r"(\n\.\.\.)?  ?# doctest: [^\n]*", "", paragraph)
            yield f"```pycon\n{inspect.cleandoc(code)}\n```\n"
        else:
            yield _plain(paragraph) + "\n"


def _plain(text: str) -> str:
    """Paragraphs on one line each; lists stay lists. Words in angle brackets are no HTML."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n").rstrip()):
        if paragraph.startswith("    "):
            paragraphs.append(f"```py\n{inspect.cleandoc(paragraph)}\n```")
        else:
            paragraphs.append(paragraph if paragraph.startswith("- ") else " ".join(paragraph.split()))
    return "\n\n".join(paragraphs)


if __name__ == "__main__":
    PAGE.write_text(page())
