"""Ad-hoc queries as users write them: a k and a size, checked, and converted to the window's units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.ad_hoc import NEXT_WINDOW
from skyband.core.codec import Codec
from skyband.core.operator import Ints
from skyband.errors import InvalidQuery
from skyband.windows import NEVER, Span, parse_span, span_ticks, whole_number


def question(codec: Codec[Any, Any], k: Any, size: Span | None) -> tuple[int, int | None]:
    """A question's k, and its size in ticks; None: of the window that closes next."""
    number = None if k is None else whole_number(k)
    if k is not None and number is None:
        raise InvalidQuery(f"k must be a whole number, got {k!r}.")
    on = codec.query.window.on
    ticks = None if size is None else span_ticks(parse_span(size, "size"), on, codec.on_type, "size")
    return codec.check_question(number, ticks, size), ticks


def read_questions(codec: Codec[Any, Any], questions: Sequence[tuple[int | None, Span | None]]) -> tuple[Ints, Ints]:
    """Of many questions each k, and each size in ticks or NEXT_WINDOW."""
    if not isinstance(questions, Iterable):
        raise InvalidQuery(f"top_many takes a list of (k, size), got {questions!r}.")
    # The largest size that may be asked for without a unit.
    plain = codec.on_type is None or pa.types.is_integer(codec.on_type)
    longest = min(codec.window.size, NEVER - 1) if plain and codec.any_size else 0
    asked = [_read(codec, each, longest) for each in questions]
    size = [NEXT_WINDOW if ticks is None else ticks for _, ticks in asked]
    return np.array([k for k, _ in asked], np.int64), np.array(size, np.int64)


def _read(codec: Codec[Any, Any], asked: Any, longest: int) -> tuple[int, int | None]:
    if not isinstance(asked, (tuple, list)) or len(asked) != 2:
        raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {asked!r}.")
    k, size = asked
    # Most questions are two numbers, and there may be many: these need no more than this.
    if type(k) is type(size) is int and 1 <= size <= longest and 1 <= k <= codec.k:
        return k, size
    return question(codec, k, size)
