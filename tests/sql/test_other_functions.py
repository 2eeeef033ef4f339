"""Examples: a function that Skyband has not is refused by its name, and what is advised instead is computed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import skyband as sb
from skyband import expressions
from skyband.dialect.functions import known_functions
from skyband.dialect.other_functions import INSTEAD

ROWS = pa.table(
    {
        **{name: pa.array([1.5], pa.float64()) for name in "xy"},
        **{name: pa.array([1], pa.int64()) for name in "ihmn"},
        "s": ["word"],
        **{name: pa.array([0], pa.timestamp("us", "UTC")) for name in ("ts", "a", "b")},
        "d": pa.array([0], pa.date32()),
    }
)
ADVISED = """
ts + INTERVAL 9 HOURS | CAST(x AS BIGINT) | UPPER(LEFT(s, 1)) || LOWER(SUBSTRING(s, 2)) | ROUND(x, 2) | ROUND(x)
SPLIT_PART(s, ',', 1) | REGEXP_EXTRACT(s, '([a-z]+)', 1) | LENGTH(s) - LENGTH(REPLACE(s, 'a', '')) | SUBSTRING(s, 1, 2)
TRIM(s) | REPEAT(' ', 3) | LEFT(s, 1) || 'x' || SUBSTRING(s, 3) | CAST(i AS STRING) || s | CAST(s AS DOUBLE)
DATEADD(HOUR, h, MAKE_DATE(i, m, n)) | DATEADD(MONTH, n, ts) | TIMESTAMPDIFF(SECOND, a, b) | WEEKOFYEAR(d)
x / y | x + y
-x | SQRT(x * x + y * y) | ATAN2(x, 1) | LN(x + 1) | EXP(x) - 1
CASE i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END
"""
TEXTS = [text.strip() for line in ADVISED.strip().splitlines() for text in line.replace(" || ", "\0").split(" | ")]


@pytest.mark.parametrize("text", [text.replace("\0", " || ") for text in TEXTS])
def test_what_is_advised_is_computed(text: str) -> None:
    (batch,) = ROWS.to_batches()
    assert len(expressions.bind_value(text, ROWS.schema).values(batch)) == 1


@pytest.mark.parametrize("name", INSTEAD)
def test_the_function_itself_is_refused_by_name(name: str) -> None:
    assert name not in known_functions()
    for call in (f"{name}(x)", f"{name}()", f"{name}(x, y)", f"{name}(s)"):
        with pytest.raises(sb.SkybandError):
            sb.sql(f"SELECT {call} AS v FROM rows", rows=ROWS)
