"""Example tests: a long statement runs, and one that is too long is refused: neither ends the process."""

from __future__ import annotations

import pyarrow as pa
import pytest

import skyband as sb
from skyband.expressions import bind_condition

ROWS = pa.table({"t": range(8), "x": [float(i) for i in range(8)], "i": range(8), "s": list("abcdefgh")})
BEST = "SELECT i FROM rows [WINDOW 8 EVERY 8 ON t] {} ORDER BY {} LIMIT 1"


def best(where: str = "", by: str = "x DESC") -> list[int]:
    return sb.sql(BEST.format(where, by), rows=ROWS)["i"].to_pylist()


def test_long_conditions_and_lists_are_answered() -> None:
    assert best("WHERE " + " AND ".join(f"x > -{n}" for n in range(1, 151))) == [7]
    assert best("WHERE " + " OR ".join(f"i = -{n}" for n in range(1, 150)) + " OR i = 3") == [3]
    assert best(f"WHERE i IN ({', '.join(map(str, range(-1_000, 5)))})") == [4]
    assert best(f"WHERE s NOT IN ({', '.join(repr(f'{c}') for c in 'efghijklmnopqrstuvwxyz')})") == [3]
    assert best(f"WHERE x IN ({', '.join(f'{n}.5' for n in range(500))}, 2)") == [2]
    assert best(by="+".join(f"x * {n}" for n in range(100)) + " DESC") == [7]


@pytest.mark.parametrize(
    ("where", "by"),
    [
        ("WHERE " + " AND ".join(f"x > -{n}" for n in range(10_000)), "x"),
        ("", " + ".join(f"x * {n}" for n in range(8_000))),
        ("", "(" * 2_000 + "x" + ")" * 2_000),
        ("", "ABS(" * 500 + "x" + ")" * 500),
        ("WHERE " + "NOT " * 1_000 + "x > 1", "x"),
        (f"WHERE i IN ({', '.join(map(str, range(60_000)))})", "x"),
    ],
    ids=["ANDs", "terms", "parentheses", "calls", "NOTs", "list"],
)
def test_what_is_too_large_is_refused(where: str, by: str) -> None:
    with pytest.raises(sb.InvalidSql, match=r"too large: .* at most 150 levels|nested too deeply") as caught:
        best(where, by)
    assert len(str(caught.value)) < 2_000


def test_what_is_not_in_a_long_list_with_a_null_is_unknown() -> None:
    batch = pa.record_batch({"i": pa.array([1, 99, None])})
    listed = ", ".join(map(str, range(30)))
    for text, met in (
        (f"i IN ({listed})", [True, False, False]),
        (f"i NOT IN ({listed})", [False, True, False]),
        (f"i NOT IN ({listed}, NULL)", [False, False, False]),
        (f"(i IN ({listed}, NULL)) IS NULL", [False, True, True]),
        (f"i IN (-1, {listed})", [True, False, False]),
    ):
        assert bind_condition(text, batch.schema, used_as="WHERE").evaluate(batch).tolist() == met, text
