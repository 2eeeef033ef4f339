"""What functions of several strings and numbers give, in polars and in Spark SQL: see `calls`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from skyband.expressions.calls import Given
from skyband.expressions.function_spec import RowFunction, quoted

Maker = Callable[[list[Given]], RowFunction | str]

LONGEST: Final = 10_000  # characters that LPAD, RPAD and REPEAT make of a number that is written out
# Without $, (?…), x++ and classes such as \d, which differ between engines.
_SAFE_PATTERN: Final = re.compile(r"(?:[^\\$]|\\[^\w\s])*")
PATTERNS: Final = (
    "the pattern must be a literal without $, (?…), x++ and classes such as \\d, which differ between engines"
)


def wrong_pattern(pattern: str | None) -> str | None:
    """Why engines would not all match this pattern alike; None: they do."""
    if pattern is None or not _SAFE_PATTERN.fullmatch(pattern) or re.search(r"\(\?|[+*?}]\+", pattern):
        return PATTERNS
    try:
        re.compile(pattern)
    except re.error as error:
        return f"the pattern is wrong: {error}"
    return None


def _are_texts(given: list[Given], least: int, most: int) -> bool:
    return least <= len(given) <= most and all(one.category == "text" for one in given)


def _padded(at_left: bool) -> Maker:
    def make(given: list[Given]) -> RowFunction | str:
        fill = " " if len(given) == 2 else given[2].text if len(given) == 3 else None
        if len(given) not in (2, 3) or given[0].category != "text" or given[1].number is None or fill is None:
            return "it takes a string, a number of characters as written, and the literal to fill with"
        if given[1].number > LONGEST:
            return f"it makes at most {LONGEST:,} characters"
        size, name = max(given[1].number, 0), "LPAD" if at_left else "RPAD"
        filling = (fill * (size // max(len(fill), 1) + 1))[:size]

        def pad(x: pl.Expr, *_: pl.Expr) -> pl.Expr:
            length = x.str.len_chars().cast(pl.Int64)
            more = pl.lit(filling).str.slice(0, pl.max_horizontal(size - length, pl.lit(0)))
            return (
                pl.when(length >= size)
                .then(x.str.head(size))
                .otherwise(pl.concat_str(more, x) if at_left else pl.concat_str(x, more))
            )

        return RowFunction("text", pad, lambda x, *_: f"{name}({x}, {size}, {quoted(fill)})")

    return make


def _joined(given: list[Given]) -> RowFunction | str:
    if not given or given[0].text is None or not _are_texts(given, 2, 1000):
        return "it takes a literal that separates the strings, and strings; write CAST(x AS STRING)"
    between = given[0].text
    return RowFunction(
        "text",
        lambda _, *x: pl.concat_str(x, separator=between, ignore_nulls=True),
        lambda _, *x: f"CONCAT_WS({quoted(between)}, {', '.join(x)})",
    )


def _translated(given: list[Given]) -> RowFunction | str:
    if not _are_texts(given, 3, 3) or given[1].text is None or given[2].text is None:
        return "it takes a string, and two literals: characters, and those that replace them"
    old, new = given[1].text, given[2].text
    pairs = {one: new[place : place + 1] for place, one in reversed(list(enumerate(old)))}

    def translate(x: pl.Expr, *_: pl.Expr) -> pl.Expr:
        return x.str.replace_many(list(pairs), list(pairs.values())) if pairs else x

    return RowFunction("text", translate, lambda x, *_: f"TRANSLATE({x}, {quoted(old)}, {quoted(new)})")


def _repeated(given: list[Given]) -> RowFunction | str:
    if len(given) != 2 or given[0].category != "text" or given[1].number is None:
        return "it takes a string, and a number as written"
    times = max(given[1].number, 0)
    if times > 100:
        return "it repeats at most 100 times"
    return RowFunction(
        "text",
        lambda x, _: pl.concat_str([x] * times) if times else pl.when(x.is_not_null()).then(pl.lit("")),
        lambda x, _: f"REPEAT({x}, {times})",
    )


def _replaced(given: list[Given]) -> RowFunction | str:
    if not _are_texts(given, 3, 3):
        return "it takes a string, a pattern and a replacement"
    pattern, new = given[1].text, given[2].text
    if (wrong := wrong_pattern(pattern)) is not None:
        return wrong
    if new is None or re.search(r"[$\\]", new):
        return "the replacement must be a literal without $ and \\"
    assert pattern is not None
    if re.search(pattern, ""):
        return "the pattern matches the empty string, which engines replace differently"
    rust = as_in_java(pattern)
    return RowFunction(
        "text",
        lambda x, *_: x.str.replace_all(rust, new),
        lambda x, *_: f"REGEXP_REPLACE({x}, {quoted(pattern)}, {quoted(new)})",
    )


def _matches(given: list[Given]) -> RowFunction | str:
    if not _are_texts(given, 2, 2):
        return "it takes a string and a pattern"
    pattern = given[1].text
    if (wrong := wrong_pattern(pattern)) is not None:
        return wrong
    assert pattern is not None
    rust = as_in_java(pattern)
    return RowFunction("truth", lambda x, _: x.str.contains(rust), lambda x, _: f"({x} RLIKE {quoted(pattern)})")


def as_in_java(pattern: str) -> str:
    """The pattern for polars: a dot stands for no end of a line, of which Java knows more."""
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL)
    return "".join("[^\\n\\r\\x{85}\\x{2028}\\x{2029}]" if part == "." else part for part in parts)


def _part_before(given: list[Given]) -> RowFunction | str:
    if len(given) != 3 or not _are_texts(given[:2], 2, 2) or given[2].number is None:
        return "it takes a string, a separator, and the number of parts, as written"
    separator, count = given[1].text, given[2].number
    if separator is None or len(separator) != 1:
        return "the separator must be a literal of one character"

    def cut(x: pl.Expr, *_: pl.Expr) -> pl.Expr:
        parts = x.str.split(separator)
        return (parts.list.head(count) if count >= 0 else parts.list.tail(-count)).list.join(separator)

    return RowFunction("text", cut, lambda x, *_: f"SUBSTRING_INDEX({x}, {quoted(separator)}, {count})")


def _place(x: pl.Expr, word: pl.Expr) -> pl.Expr:
    before = x.str.splitn(word, 2).struct.field("field_0").str.len_chars().cast(pl.Int128) + 1
    # Where the word is null, nothing is known: `contains` says so.
    found = pl.when(x.str.contains(word, literal=True)).then(before).when(word.is_not_null() & x.is_not_null())
    return (
        pl.when(word == "")
        .then(pl.when(x.is_not_null()).then(pl.lit(1, pl.Int128)))
        .otherwise(found.then(pl.lit(0, pl.Int128)))
    )


def _located(*, word_first: bool) -> Maker:
    def make(given: list[Given]) -> RowFunction | str:
        start = 1 if len(given) == 2 else given[2].number if len(given) == 3 and word_first else None
        if not _are_texts(given[:2], 2, 2) or start is None or start < 1:
            return "it takes two strings" + " and the place to begin at, as written, from 1 on" * word_first

        def find(*x: pl.Expr) -> pl.Expr:
            word, text = x[:2] if word_first else x[1::-1]
            if start == 1:
                return _place(text, word)
            place = _place(text.str.slice(start - 1), word)
            return pl.when((place > 0) & (word != "")).then(place + (start - 1)).otherwise(place)

        def in_spark(*x: str) -> str:
            word, text = x[:2] if word_first else x[1::-1]
            return f"CAST(LOCATE({word}, {text}, {start}) AS BIGINT)"

        return RowFunction("whole", find, in_spark, 31)

    return make


def _bytes(bits: int) -> Maker:
    def make(given: list[Given]) -> RowFunction | str:
        if not _are_texts(given, 1, 1):
            return "it takes a string; write CAST(x AS STRING)"
        return RowFunction(
            "whole",
            lambda x: x.str.len_bytes().cast(pl.Int128) * bits,
            lambda x: f"CAST(OCTET_LENGTH({x}) * {bits} AS BIGINT)",
            34,
        )

    return make


def _divided(given: list[Given]) -> RowFunction | str:
    if [one.category for one in given] != ["whole", "whole"]:
        return "DIV takes whole numbers; CAST(x / y AS BIGINT) divides others"

    if max(one.bits for one in given) > 64:
        return "a product of columns may not fit in 64 bits; write CAST(x AS BIGINT)"

    def divide(x: pl.Expr, y: pl.Expr) -> pl.Expr:
        size = x.abs() // pl.when(y != 0).then(y.abs())
        return size * x.sign() * y.sign()

    return RowFunction(
        "whole", divide, lambda x, y: f"CASE WHEN {y} <> 0 THEN CAST({x} AS DECIMAL(38, 0)) DIV {y} END", 64
    )


def _root(given: list[Given]) -> RowFunction | str:
    if len(given) != 1 or given[0].category != "float":
        return "CBRT takes a float: write CAST(x AS DOUBLE)"
    return RowFunction("float", lambda x: x.cbrt(), lambda x: f"CBRT({x})")


STRING_CALLS: Final[dict[str, Maker]] = {
    "LPAD": _padded(at_left=True),
    "RPAD": _padded(at_left=False),
    "CONCAT_WS": _joined,
    "TRANSLATE": _translated,
    "REPEAT": _repeated,
    "REGEXP_REPLACE": _replaced,
    "REGEXP_LIKE": _matches,
    "SUBSTRING_INDEX": _part_before,
    "LOCATE": _located(word_first=True),
    "CHARINDEX": _located(word_first=True),
    "INSTR": _located(word_first=False),
    "BIT_LENGTH": _bytes(8),
    "OCTET_LENGTH": _bytes(1),
    "DIV": _divided,
    "CBRT": _root,
}
