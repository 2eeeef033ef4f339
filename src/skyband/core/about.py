"""What a snapshot says of its query, so that a reader who has only the snapshot can ask it: a query as JSON, and back.

Only plain values are written: numbers, texts, spans and windows. Reading calls the query's own constructor, which
checks them as if a user had written them. Nothing else is built, and nothing is executed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from skyband.core.problem import Problem
from skyband.core.query import Query, options_of
from skyband.core.registry import problem_named
from skyband.errors import InvalidQuery, SnapshotMismatch
from skyband.windows import Window

About = dict[str, Any]

_MICROSECOND: Final = timedelta(microseconds=1)


def about(query: Query, schema: pa.Schema) -> About | None:
    """The query and the columns of its rows as JSON; None if one of its options is more than text and numbers."""
    given = {each.name: (getattr(query, each.name), each.default) for each in options_of(type(query))}
    try:
        options = {name: _written(value) for name, (value, default) in given.items() if value is not default}
    except TypeError:
        return None
    return {"problem": query.problem, "options": options, "columns": _columns(schema)}


def read_about(said: Mapping[str, Any]) -> tuple[Problem[Any], Query, pa.Schema]:
    """The problem, the query and the columns of its rows."""
    try:
        problem = problem_named(said["problem"])
        options = {str(name): _read(value) for name, value in said["options"].items()}
        return problem, problem.query(**options), _schema(said["columns"])
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException, InvalidQuery) as error:
        raise SnapshotMismatch(
            "What this state says of its query cannot be read: another version of Skyband wrote it, or it is damaged "
            f"({type(error).__name__}: {error})."
        ) from error


def _written(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            return {"microseconds": value // _MICROSECOND}
        case Window(size, every, on, order):
            return {"size": _written(size), "every": _written(every), "on": on, "order": order}
        case tuple():
            return [_written(each) for each in value]
        case pa.Table():  # queries that come and go: the state has them
            return {"columns": _columns(value.schema)}
    raise TypeError(value)


def _read(value: Any) -> Any:
    match value:
        case {"microseconds": int(span)}:
            return timedelta(microseconds=span)
        case {"size": size, "every": every, "on": on, "order": order}:
            return Window(_read(size), _read(every), on, order)
        case {"columns": str(columns)}:
            return _schema(columns).empty_table()
        case list():
            return tuple(map(_read, value))
        case dict():
            raise ValueError(f"no query has {value!r}")
    return value


def _columns(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _schema(columns: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(columns, validate=True)))
