"""Secrets: a pipeline file names them, the environment has them, and nothing ever prints them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from skyband.errors import InvalidPipeline

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET: Final = (
    r"password|passwd|pwd|passphrase|secret|token|credential|azure\.sas\."
    r"|(?:private|access|account|api).?key(?!provider)"
)
_SECRET_NAME: Final = re.compile(rf"{_SECRET}|jaas", re.IGNORECASE)
# Where a secret is, of which class, whether there is one: the name has the word in it, and the value is no secret.
_ABOUT_SECRETS: Final = re.compile(r"(file|path|dir|location|provider|class|type|enabled|endpoint|url)$", re.IGNORECASE)
_IN_ADDRESS: Final = re.compile(r"://[^/@:]*:([^/@]+)@")  # user:password@host
_ASSIGNED: Final = re.compile(rf"[\w.-]*(?:{_SECRET})[\w.-]*\s*=\s*[\"']?([^\s&;,\"']*)", re.IGNORECASE)
_HAS_ASSIGNMENTS: Final = re.compile(r"jaas|java_?options", re.IGNORECASE)  # as addresses have
_NO_SECRET: Final = re.compile(r"((Bearer|Basic) )?(\$\{\w+\})*", re.IGNORECASE)  # all of it is elsewhere
# What is no secret: shown without it, paths and addresses could not be read.
_PLAIN_NAME: Final = re.compile(r"user|host|port$|path|dir|folder|home|database|topic|table|region", re.IGNORECASE)
_SHORTEST: Final = 4  # what is shorter would be replaced in ordinary words


def references(text: str) -> list[str]:
    """The names that `text` takes from the environment."""
    return _REFERENCE.findall(text)


def is_exposed(name: str, value: str) -> bool:
    """Does the file itself hold what by its name, or by its form, is a secret?"""
    written = _IN_ADDRESS.findall(value)
    if "://" in value or value.startswith("jdbc:") or _HAS_ASSIGNMENTS.search(name):
        written += _ASSIGNED.findall(value)
    is_one = _SECRET_NAME.search(name) and not _ABOUT_SECRETS.search(name)
    if is_one and not (_HAS_ASSIGNMENTS.search(name) and references(value)):  # which has other words besides
        written.append(value)
    return not all(_NO_SECRET.fullmatch(one) for one in written)


def resolve(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """`text` with what the environment has for each ${NAME}."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise InvalidPipeline(
                f"The pipeline needs ${{{found[1]}}}, which the environment does not have: export {found[1]}=…."
            )
        return environment[found[1]]

    return _REFERENCE.sub(value, text)


def hide(text: str, names: Iterable[str], environment: Mapping[str, str] = os.environ) -> str:
    """`text` without the secrets among the values of these names: each is written as the file writes it."""
    secret = [name for name in names if _SECRET_NAME.search(name) or not _PLAIN_NAME.search(name)]
    values = {environment[name]: name for name in secret if len(environment.get(name, "")) >= _SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, f"${{{values[value]}}}")
    return text
