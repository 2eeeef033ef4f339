"""The base of all queries. A query is a frozen value; each option is declared once, as a field with all its facts.

    class TopK(Query):
        k: int = option(check_k, "How many rows a window shows.", sql="LIMIT k")
        window: Window = option(check_window, "…", sql="[WINDOW …]")
        per: Names = option(names("per"), "…", default=(), sql="LIMIT k BY per")
        emit: Emits = emit_option("the ranked rows", …)  # an option that several queries share

From these lines `Query` makes the constructor with its checks, `==`, `hash` and `repr`, the fingerprint of snapshots,
the docstring's Parameters and `inspect.signature`. docs/reference/options.md and the tests read them, too.

A check takes the value that the user gave and returns the value that the query keeps. Its further parameters are other
attributes of the query, by name: `check_emit(emit, window)`. Options are checked in the order of the fields. So a check
sees the kept values of the options above it, and the given values of those below.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final, Protocol, TypeVar, dataclass_transform

import numpy as np
import pyarrow as pa

from skyband.core import notebook
from skyband.core.emit import Emit, check_emit
from skyband.errors import InvalidQuery
from skyband.expressions.functions import described
from skyband.windows import Span, Window, parse_span, whole_number

REQUIRED: Final = dataclasses.MISSING
_DECLARATION: Final = "skyband"  # the key of the declaration in a field's metadata
_WIDTH: Final = 100  # of generated text in docstrings

G = TypeVar("G", contravariant=True)
K = TypeVar("K", covariant=True)
Q = TypeVar("Q", bound="Query")


class Converted(Protocol[G, K]):
    """The type of a field that takes a G and keeps a K. Only type checkers see it; at run time the field is the K."""

    def __get__(self, query: Any, kind: Any) -> K: ...
    def __set__(self, query: Any, value: G) -> None: ...


Names = Converted[str | Sequence[str], tuple[str, ...]]
Length = Converted[Span | None, int | timedelta | None]
Emits = Converted[Emit | None, Emit]


@dataclass(frozen=True, slots=True)
class QueryOption:
    """The declaration of one option of a query."""

    name: str
    doc: str
    default: Any = REQUIRED
    sql: str | None = None  # the SQL clause that sets it; None: SQL cannot
    fingerprint: bool = True  # must a query have the same value to read a snapshot?
    newer: bool = False  # was it added after snapshots that are still read? The default then leaves fingerprints alone
    check: Callable[..., Any] | None = None
    reads: tuple[str, ...] = ()  # the other attributes that `check` takes


def option(
    check: Callable[..., Any],
    doc: str,
    *,
    default: Any = REQUIRED,
    sql: str | None = None,
    fingerprint: bool = True,
    newer: bool = False,
    compare: bool = True,
) -> Any:
    """Declare a field of a query: how its value is checked, what it means, and which SQL clause sets it."""
    declared = QueryOption("", doc, default, sql, fingerprint, newer, check, _further_parameters(check))
    return dataclasses.field(default=default, compare=compare, metadata={_DECLARATION: declared})


def _further_parameters(check: Callable[..., Any]) -> tuple[str, ...]:
    code = getattr(check, "__code__", None)  # built-in functions have none, and take one value
    return () if code is None else code.co_varnames[1 : code.co_argcount]


_REFUSES: Final = """Raises
------
InvalidQuery
    An option is out of range, or two options contradict each other.
"""
_OPENS: Final = """Parameters
----------
schema
    The columns of the rows that you will push; for a join, a mapping from the inputs' names to their schemas.
state
    What `snapshot()` of an earlier session returned. None: start without rows.

Returns
-------
A session: `push` feeds it rows.

Raises
------
UnknownColumn
    The query names a column that `schema` does not have.
InvalidExpression
    A score or condition cannot be read, or does not give numbers.
SnapshotMismatch
    Another query took the snapshot, or the columns have changed.
SnapshotCorrupt
    The snapshot is damaged.
SnapshotTooNew
    A newer version of Skyband took the snapshot.
"""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Query:
    """The base of all queries. It makes each subclass a frozen dataclass whose fields are its options."""

    problem: ClassVar[str]  # the package under `problems/` that answers it
    _options: ClassVar[tuple[QueryOption, ...]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # mypy sees no dataclass in a base
        cls._options = tuple(dataclasses.replace(each.metadata[_DECLARATION], name=each.name) for each in fields)
        cls.__doc__ = with_parameters(cls.__doc__ or "", options_of(cls), _REFUSES)
        opens = cls.__dict__.get("open")
        if opens is not None:
            opens.__doc__ = f"{inspect.cleandoc(opens.__doc__ or '')}\n\n{_OPENS}"
        cls.__signature__ = _LazySignature()  # type: ignore[attr-defined]

    def __post_init__(self) -> None:
        for each in options_of(type(self)):
            assert each.check is not None
            others = (getattr(self, name) for name in each.reads)
            object.__setattr__(self, each.name, each.check(getattr(self, each.name), *others))

    def _repr_html_(self) -> str:
        said = {each.name: getattr(self, each.name) for each in options_of(type(self))}
        # Options with their default value are not shown.
        given = {each.name: said[each.name] for each in options_of(type(self)) if said[each.name] != each.default}
        shown = {
            name: ", ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in given.items()
        }
        return notebook.page(f"sb.{type(self).__name__}", notebook.facts(shown))

    def fingerprint(self, schema: pa.Schema | Mapping[str, pa.Schema]) -> str:
        """A short text that is equal for queries that can read each other's snapshots: same question, same columns."""
        options = [each for each in options_of(type(self)) if each.fingerprint]
        values = {each.name: getattr(self, each.name) for each in options}
        asked = {
            each.name: _as_json(values[each.name])
            for each in options
            if not (each.newer and values[each.name] == each.default)
        }
        schemas = schema if isinstance(schema, Mapping) else {"": schema}
        columns = {name: _as_json(each) for name, each in schemas.items()}
        text = json.dumps([type(self).__name__, asked, columns], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def replace_unchecked(query: Q, **changes: Any) -> Q:
    """Copy `query` with other values in some fields. The values must be as a query keeps them; nothing checks them."""
    assert set(changes) <= {each.name for each in options_of(type(query))}, "a query has these fields"
    copied = copy.copy(query)
    for name, value in changes.items():
        object.__setattr__(copied, name, value)
    return copied


def options_of(kind: type[Query]) -> tuple[QueryOption, ...]:
    """The options of a kind of query, in the order of its arguments."""
    return kind._options


def given_types(kind: type[Query]) -> Mapping[str, Any]:
    """The type that the user may give for each option, by name: the field's type, or the first of a `Converted`."""
    hints = typing.get_type_hints(kind)
    return {
        each.name: typing.get_args(hint)[0] if typing.get_origin(hint) is Converted else hint
        for each, hint in ((each, hints[each.name]) for each in options_of(kind))
    }


def signature_of(options: Iterable[QueryOption], given: Mapping[str, Any], *, first: str = "") -> inspect.Signature:
    """The signature of a function that takes these options by keyword, after the argument `first` if it is given."""
    kind = inspect.Parameter
    data = [kind(first, kind.POSITIONAL_OR_KEYWORD)] if first else []
    options = sorted(options, key=lambda each: each.default is not REQUIRED)
    return inspect.Signature(
        [
            *data,
            *(
                kind(
                    each.name,
                    kind.KEYWORD_ONLY,
                    default=kind.empty if each.default is REQUIRED else each.default,
                    annotation=_Text(type_text(given[each.name])),
                )
                for each in options
            ),
        ]
    )


class _Text(str):
    """An annotation that `help()` shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def type_text(hint: Any) -> str:
    """Write a type as a reader would: without modules, None last."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = sorted(typing.get_args(hint), key=lambda part: part is types.NoneType)
        return " | ".join(map(type_text, parts))
    if hint is types.NoneType:
        return "None"
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else repr(hint)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def with_parameters(doc: str, options: Iterable[QueryOption], then: str = "") -> str:
    """Insert a Parameters section for these options, and `then`, into a docstring, before its other sections."""
    doc = inspect.cleandoc(doc)
    text = "\n".join(["Parameters", "----------", *map(_described, options), "", then])
    first_section = re.search(r"^(Returns|Raises|Examples)\n-+\n", doc, re.MULTILINE)
    cut = first_section.start() if first_section else len(doc)
    return f"{doc[:cut].rstrip()}\n\n{text}\n{doc[cut:]}".rstrip() + "\n"


def _described(each: QueryOption) -> str:
    return f"{each.name}\n" + textwrap.fill(each.doc, _WIDTH, initial_indent="    ", subsequent_indent="    ")


class _LazySignature:
    """Makes the signature of a query when somebody asks for it; programs that only run queries never ask."""

    def __get__(self, query: object, kind: type[Query]) -> inspect.Signature:
        return signature_of(options_of(kind), given_types(kind))


def _as_json(value: Any) -> Any:
    """Convert a value to JSON that is the same in every process. Expressions include the source of the functions that
    they call."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return described(value)
        case tuple():
            return [_as_json(each) for each in value]
        case pa.Schema():
            return [f"{field.name}: {field.type}" for field in value]
        case pa.Table():
            return _as_json(value.schema)  # not its rows: queries come and go while a session runs
    if callable(value):
        return source_of(value)
    return described(repr(value))


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function, or its name if Python has no source. Both are the same in every process."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__qualname__)


# -- checks and options that several queries share -------------------------------------------------------------------


def check_window(window: object) -> Window:
    if not isinstance(window, Window):
        raise InvalidQuery(f"window must come from sliding(), tumbling() or landmark(), got {window!r}.")
    return window


def check_k(k: object) -> int:
    number = whole_number(k)
    if number is None or not 1 <= number < 2**31:
        raise InvalidQuery(f"k must be a whole number, at least 1 (and below 2**31), got {k!r}.")
    return number


def names(option: str) -> Callable[[object], tuple[str, ...]]:
    """Make the check of an option that takes the name of a column, or a list of names."""

    def check_names(columns: object) -> tuple[str, ...]:
        given = several(columns)
        if not all(isinstance(name, str) for name in given):
            raise InvalidQuery(f"{option} must be the name of a column or a list of names, got {columns!r}.")
        if len(set(given)) != len(given):
            raise InvalidQuery(f"{option} names a column twice: {', '.join(map(str, given))}.")
        return given

    return check_names


def flag(option: str) -> Callable[[object], bool]:
    """Make the check of an option that is True or False. Any other value is probably a mistake, such as "no"."""

    def check_flag(given: object) -> bool:
        if not isinstance(given, (bool, np.bool_)):
            raise InvalidQuery(f"{option} must be True or False, got {given!r}.")
        return bool(given)

    return check_flag


def several(given: object) -> tuple[Any, ...]:
    """Make a tuple from one value or a list of values."""
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


def by_name(given: Any) -> Any:
    """Make a mapping from the pairs that a query keeps instead: `dataclasses.replace` passes them back to the check."""
    kept = isinstance(given, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in given)
    return dict(given) if kept else given


def check_lateness(lateness: Span | None, window: Window) -> int | timedelta | None:
    if lateness is None:
        return None
    if window.by_count:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning in a window of arrivals: no row arrives late to its own arrival."
        )
    if window.every is None:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning without `every`: a window that slides with each arrival closes "
            "nothing, and takes rows out of order as they come, as long as they are inside it."
        )
    if lateness == 0 or lateness == timedelta(0):
        return None
    return parse_span(lateness, "lateness")


def check_jump(max_jump: Span | None, window: Window) -> int | timedelta | None:
    if max_jump is None:
        return None
    if window.by_count:
        raise InvalidQuery(f"max_jump={max_jump!r} has no meaning in a window of arrivals: no time moves it.")
    return parse_span(max_jump, "max_jump")


def ascending_option() -> Any:
    return option(flag("ascending"), "Rank the smallest score first.", default=False, sql="ORDER BY by")


def emit_option(
    windows: str, changes: str, entries: str | None = None, *, check: Callable[..., Emit] = check_emit
) -> Any:
    """`windows`, `changes` and `entries` say what each mode emits. Without `entries` the query has no such mode."""
    once = "" if entries is None else f'; "entries" {entries}, when it first enters'
    doc = f'"windows" emits {windows} of each closed window (the default with `every`); "changes" {changes} '
    return option(check, f"{doc}(the default without `every`){once}.", default=None, sql="EMIT emit")


def lateness_option(sql: str = "[WINDOW … LATENESS lateness]") -> Any:
    doc = "How long windows by value wait for rows that arrive out of order."
    return option(check_lateness, doc, default=None, sql=sql)


def max_jump_option() -> Any:
    return option(
        check_jump,
        "How far a row's time may be ahead of all earlier times. Skyband drops a row beyond that and counts it in "
        "`rows_jumped`, unless it dropped the row before as well and their times are that close. So one wrong time "
        "does not make all later rows late. None: Skyband accepts every time.",
        default=None,
    )


def algorithm_option(example: str | None = None) -> Any:
    """`example` is an algorithm with an option to show, if the problem has one."""
    with_options = "" if example is None else f'; it may have options: "{example}"'
    doc = f"The algorithm to run, for experiments{with_options}. None: the planner chooses."
    return option(lambda algorithm: algorithm, doc, default=None, fingerprint=False)  # the registry checks it
