"""Key columns of every type, with everything that makes two keys one or one key two: for tests of all problems."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from skyband.core.encoding.groups import is_whole

# One NaN is as good as another: a quiet one, a negative one, one with a number in it.
NANS = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 7], np.uint64).view(np.float64)
FLOATS = [None, 0.0, -0.0, *NANS, 1.5, float("inf")]
TEXTS = [None, "", "a", "b", "c"]
DAY = dt.date(2024, 2, 29)

POOLS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 7, 0, -1, 2**62]),
    (pa.int8(), [None, 7, 0, -128]),
    (pa.uint64(), [None, 7, 0, 2**64 - 1]),
    (pa.timestamp("us", "UTC"), [None, 0, 7, -(2**40)]),
    (pa.timestamp("ns"), [None, 0, 7]),
    (pa.date32(), [None, DAY, DAY + dt.timedelta(1)]),
    (pa.time64("us"), [None, dt.time(1), dt.time(2)]),
    (pa.duration("ms"), [None, 0, 7]),
    (pa.bool_(), [None, True, False]),
    (pa.decimal128(5, 2), [None, Decimal("0.00"), Decimal("7.10"), Decimal("-7.10")]),
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.binary(), [None, b"", b"a", b"\0"]),
    (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    (pa.dictionary(pa.int8(), pa.float64()), FLOATS),
    (pa.dictionary(pa.int8(), pa.int64()), [None, 7, 0]),
]
TYPES = [data_type for data_type, _ in POOLS]


class Keys(NamedTuple):
    """The types of key columns, and what each can hold."""

    schema: pa.Schema
    pools: list[list[Any]]

    def columns(self, rows: list[tuple[int, ...]]) -> list[pa.Array]:
        """A column of each type; a row says which value of the pool each has."""
        return [
            column([pool[row[c] % len(pool)] for row in rows], field.type)
            for c, (field, pool) in enumerate(zip(self.schema, self.pools, strict=True))
        ]


def column(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """Floats go through numpy, which keeps the bits of a NaN."""
    inner = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    if pa.types.is_floating(inner):
        numbers = np.array([0.0 if value is None else value for value in values], inner.to_pandas_dtype())
        plain = pa.array(numbers, mask=np.array([value is None for value in values], np.bool_), from_pandas=False)
    else:
        plain = pa.array(values, inner)
    return plain.dictionary_encode().cast(data_type) if pa.types.is_dictionary(data_type) else plain


def label(value: Any) -> str | None:
    """The same for equal keys, whatever their bits."""
    if value is None:
        return None
    if isinstance(value, float):
        return "nan" if value != value else repr(value + 0.0)
    return repr(value)


@st.composite
def key_columns(draw: st.DrawFn, most: int = 3) -> Keys:
    whole = [i for i, (data_type, _) in enumerate(POOLS) if is_whole(data_type)]
    # Whole numbers have codes of their own kind; all others go through dictionaries.
    which = st.one_of(st.sampled_from(whole), st.sampled_from(range(len(POOLS))))
    chosen = draw(st.lists(which, min_size=1, max_size=most))
    schema = pa.schema([(f"g{i}", POOLS[which][0]) for i, which in enumerate(chosen)])
    return Keys(schema, [POOLS[which][1] for which in chosen])


def batches_of(rows: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    """Batches of rows, some empty, some of one row: a restart between two of them."""
    return st.lists(st.lists(rows, max_size=6), min_size=3, max_size=6)


def picks() -> st.SearchStrategy[tuple[int, ...]]:
    """Which values of up to three columns a row has: mostly the first ones, so that keys come again."""
    return st.tuples(*[st.sampled_from([0, 1, 2, 0, 1, 3, 4, 5])] * 3)
