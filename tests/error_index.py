"""Writes docs/reference/errors.md from the docstrings of the error classes: `python tests/error_index.py`.

The examples are doctests, which tests/test_docstrings.py runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import skyband as sb
from skyband import errors

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"

HEAD = """# Errors: what each means, and what to do

Every error that Skyband raises on purpose is a subclass of `sb.SkybandError`, and its message says what was wrong, what
was given and what is possible. Search this page for the name in front of the message. `python tests/error_index.py`
generates the page from the classes, and the tests run every example that begins with `>>>`.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([HEAD, *_index(), *(line for kind in kinds() for line in _section(kind))])


def _index() -> Iterator[str]:
    """A table of all errors, to look one up."""
    yield "| error | what is wrong |\n|---|---|"
    yield from (f"| [{kind.__name__}](#{kind.__name__.lower()}) | {parts(kind)[0]} |" for kind in kinds())
    yield ""


def kinds() -> list[type[Exception]]:
    """Every error and warning of the module, as it lists them."""
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    ]


def _section(kind: type[Exception]) -> Iterator[str]:
    means, to_do, example = parts(kind)
    name = f"sb.{kind.__name__}" if kind.__name__ in sb.__all__ else f"skyband.errors.{kind.__name__}"
    yield f"## {kind.__name__}\n"
    base = kind.__bases__[0]
    yield f"{means} (`{name}`, a subclass of `{base.__name__}`.)\n"
    yield f"**What to do.** {to_do[0].upper()}{to_do[1:]}\n"
    assert example, f"the docstring of {kind.__name__} has an example"
    yield f"```{'pycon' if example.startswith('>>>') else 'text'}\n{example}\n```\n"


def parts(kind: type[Exception]) -> tuple[str, str, str]:
    """What an error means, what to do, and an example of it, from its docstring."""
    text, _, example = inspect.cleandoc(kind.__doc__ or "").partition("Examples\n--------\n")
    means, found, to_do = text.partition("What to do: ")
    assert found, f"the docstring of {kind.__name__} has a paragraph that begins with 'What to do: '"
    example = re.sub(r"  # doctest: \S+", "", example).strip()
    return " ".join(means.split()), " ".join(to_do.split()), example


if __name__ == "__main__":
    PAGE.write_text(page())
