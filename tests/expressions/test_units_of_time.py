"""Oracle tests: times of different units are computed with in the finest of them, as whole numbers of Python are."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband import expressions

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNITS = list(PER_SECOND)
NANOS = PER_SECOND["ns"]
NEAR = 2  # seconds, so that times of coarse units are often equal


def stamps(unit: str) -> st.SearchStrategy[int | None]:
    """Counts of a unit: near 1970, near the middle of a coarser unit, and, rarely, far away."""
    per = PER_SECOND[unit]
    around = st.builds(
        lambda second, more: second * per + more, st.integers(-NEAR, NEAR), st.sampled_from([-1, 0, 1, per // 2])
    )
    return st.one_of(st.none(), around, st.integers(-(2**63), 2**63 - 1))


def spans() -> st.SearchStrategy[tuple[str, int]]:
    """Intervals as they are written, and how many nanoseconds they have."""
    units = {"MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9, "DAY": 86_400 * 10**9}
    return st.builds(
        lambda number, unit: (f"INTERVAL {number} {unit}S", number * units[unit]),
        st.sampled_from([0, 1, 3, 1_500, 40_000]),
        st.sampled_from(list(units)),
    )


def given_by(text: str, rows: pa.Table) -> pa.Array:
    return expressions.bind_value(text, rows.schema).values(rows.to_batches()[0])


def given_or_refused(text: str, rows: pa.Table) -> pa.Array | None:
    """What an expression gives; None: it is refused, since a time does not fit."""
    value = expressions.bind_value(text, rows.schema)
    try:
        return value.values(rows.to_batches()[0])
    except sb.InvalidInput as error:
        if "does not fit in 64 bits" not in str(error):
            raise
        return None


def nanos(column: pa.Array) -> list[int | None]:
    """Times or spans as nanoseconds; dates as those at midnight."""
    if pa.types.is_date(column.type):
        return [None if v is None else v * 86_400 * NANOS for v in column.view(pa.int32()).to_pylist()]
    scale = NANOS // PER_SECOND[column.type.unit]
    return [None if v is None else v * scale for v in column.view(pa.int64()).to_pylist()]


def fits(number: int | None, unit: str) -> bool:
    return number is None or -(2**63) <= Fraction(number * PER_SECOND[unit], NANOS) < 2**63


@st.composite
def two_columns(draw: st.DrawFn) -> pa.Table:
    x, y = draw(st.sampled_from(UNITS)), draw(st.sampled_from(UNITS))
    zone = draw(st.sampled_from([None, "UTC"]))
    rows = draw(st.lists(st.tuples(stamps(x), stamps(y)), min_size=1, max_size=4))
    return pa.table(
        {
            "x": pa.array([row[0] for row in rows], pa.timestamp(x, zone)),
            "y": pa.array([row[1] for row in rows], pa.timestamp(y, zone)),
            "i": range(len(rows)),
        }
    )


def both(x: int | None, y: int | None, what: Any) -> Any:
    return None if x is None or y is None else what(x, y)


CHOSEN = {
    "COALESCE(x, y)": lambda x, y, i: y if x is None else x,
    "CASE WHEN i % 2 = 0 THEN x ELSE y END": lambda x, y, i: y if i % 2 else x,
    "IF(i % 2 = 0, x, y)": lambda x, y, i: y if i % 2 else x,
    "GREATEST(x, y)": lambda x, y, i: max((v for v in (x, y) if v is not None), default=None),
    "LEAST(x, y)": lambda x, y, i: min((v for v in (x, y) if v is not None), default=None),
    "NULLIF(x, y)": lambda x, y, i: None if x == y else x,
    "x - y": lambda x, y, i: both(x, y, lambda a, b: a - b),
    "ABS(x - y)": lambda x, y, i: both(x, y, lambda a, b: abs(a - b)),
}
COMPARED = {
    "x = y": lambda x, y: x == y,
    "x <> y": lambda x, y: x != y,
    "x < y": lambda x, y: x < y,
    "x >= y": lambda x, y: x >= y,
    "x BETWEEN y AND y": lambda x, y: x == y,
    "x IN (y)": lambda x, y: x == y,
    "CASE x WHEN y THEN TRUE ELSE FALSE END": lambda x, y: x == y,
}


@given(two_columns(), st.sampled_from([*CHOSEN, *COMPARED]))
def test_times_of_two_units_are_whole_numbers_of_the_finer_one(rows: pa.Table, text: str) -> None:
    unit = max(rows.schema.field("x").type.unit, rows.schema.field("y").type.unit, key=UNITS.index)
    x, y = (nanos(rows[name].combine_chunks()) for name in "xy")
    # Milliseconds are the coarsest unit that is computed with.
    reach = unit if unit != "s" else "ms"
    found = given_or_refused(text, rows)
    if found is None:
        reached = [*x, *y, *(both(*pair, lambda a, b: a - b) for pair in zip(x, y, strict=True))]
        assert not all(fits(each, reach) for each in reached)
        return
    if text in COMPARED:
        expected = [both(*pair, COMPARED[text]) for pair in zip(x, y, strict=True)]
        if text.startswith("CASE"):
            expected = [bool(each) for each in expected]
        assert found.to_pylist() == expected
    else:
        assert found.type.unit == unit
        assert nanos(found) == [CHOSEN[text](*each) for each in zip(x, y, range(len(x)), strict=True)]


@given(two_columns(), spans(), st.sampled_from("+-"))
def test_an_interval_moves_a_time_by_exactly_that(rows: pa.Table, span: tuple[str, int], sign: str) -> None:
    written, more = span
    x = nanos(rows["x"].combine_chunks())
    expected = [None if each is None else each + (more if sign == "+" else -more) for each in x]
    own = rows.schema.field("x").type.unit
    needed = next(unit for unit in UNITS if more % (NANOS // PER_SECOND[unit]) == 0)
    unit = max(own, needed, key=UNITS.index)
    found = given_or_refused(f"x {sign} {written}", rows)
    if found is None:
        assert not all(fits(each, "ms" if unit == "s" else unit) for each in [*x, *expected])
        return
    assert found.type == pa.timestamp(unit, rows.schema.field("x").type.tz)
    assert nanos(found) == expected
    moved = given_by(f"x {sign} {written} > x", rows).to_pylist()
    assert moved == [None if each is None else (more if sign == "+" else -more) > 0 for each in x]


@given(st.sampled_from(UNITS), st.lists(st.integers(-(10**5), 10**5), min_size=1, max_size=4), st.data())
def test_dates_beside_times_begin_at_midnight(unit: str, days: list[int], data: st.DataObject) -> None:
    times = data.draw(st.lists(stamps(unit), min_size=len(days), max_size=len(days)))
    rows = pa.table({"x": pa.array(times, pa.timestamp(unit)), "d": pa.array(days, pa.date32())})
    x, d = nanos(rows["x"].combine_chunks()), nanos(rows["d"].combine_chunks())
    found = given_or_refused("x >= d", rows)
    if found is None:
        assert not all(fits(each, "ms" if unit == "s" else unit) for each in [*x, *d])
        return
    assert found.to_pylist() == [both(*pair, lambda a, b: a >= b) for pair in zip(x, d, strict=True)]


LITERALS = {
    "ms > '1970-01-01 00:00:00.001500'": [False, True],
    "ms = '1970-01-01 00:00:00.001'": [True, False],
    "s < '1970-01-01 00:00:01.000000001'": [True, False],
    "day < TIMESTAMP '1970-01-02 12:00:00'": [True, False],
    "s - ms > INTERVAL 998500 MICROSECONDS": [True, True],
    "s - ms > INTERVAL 1500 MILLISECONDS": [False, True],
    "ms - s = INTERVAL 0 SECONDS": [False, False],
}
ROWS = pa.table(
    {
        "ms": pa.array([1, 2], pa.timestamp("ms")),
        "s": pa.array([1, 2], pa.timestamp("s")),
        "ns": pa.array([1, 10**18], pa.timestamp("ns")),
        "zoned": pa.array([1, 2], pa.timestamp("ms", "UTC")),
        "day": pa.array([date(1970, 1, 2), date(1970, 1, 3)]),
        "far": pa.array([0, 253_402_300_799_000_000], pa.timestamp("us")),
    }
)


@pytest.mark.parametrize("text", LITERALS)
def test_what_is_written_out_may_be_finer_than_the_column(text: str) -> None:
    assert given_by(text, ROWS).to_pylist() == LITERALS[text]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ns > '3000-01-01'", "nanoseconds reach from 1677 to 2262"),
        ("ms > '2024-01-31 12:00:00+00:00'", "has a time zone, but timestamp.ms. has none"),
        ("day > '2024-01-31 12:00:00'", "is a time, but the values beside it are dates"),
        ("day > '0000-01-01'", "is not a time"),
        ("ms > 'noon'", "is not a time"),
        ("ns + INTERVAL 110000 DAYS", "does not fit in duration.ns."),
        ("TIMESTAMP '3000-01-01 00:00:00' - ns", "is not possible as timestamp.ns."),
        ("zoned - ms", "a time with a zone and a time without"),
        ("INTERVAL 1 SECOND * 2", "is duration.us., not a number"),
        ("INTERVAL 1 SECOND / 2", "is duration.us., not a number"),
        ("(ms - s) * 2", "is duration.ms., not a number"),
        ("ms + INTERVAL '0.5' MICROSECONDS", "a whole number of microseconds"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(sb.InvalidExpression, match=why):
        given_by(text, ROWS)


@pytest.mark.parametrize("text", ["far > ns", "COALESCE(far, ns)", "far - ns", "ns + INTERVAL 106751 DAYS"])
def test_a_time_that_does_not_fit_in_the_finer_unit_is_refused_by_name(text: str) -> None:
    with pytest.raises(sb.InvalidInput, match="a time does not fit in 64 bits, in the finest unit"):
        given_by(text, ROWS)


def test_a_join_on_nanoseconds_matches_what_lies_within_the_interval() -> None:
    ten = 10 * NANOS
    a = pa.table({"k": [1], "ts": pa.array([1], pa.timestamp("ns"))})
    b = pa.table({"k": [1] * 3, "id": [0, 1, 2], "ts": pa.array([ten + 1, ten + 2, ten + 999], pa.timestamp("ns"))})
    answer = sb.sql(
        """SELECT b.id FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS
           WINDOW [1 MINUTE EVERY 1 MINUTE]""",
        a=a,
        b=b,
    )
    assert answer["id"].to_pylist() == [0]


@pytest.mark.parametrize("unit", UNITS)
def test_bounds_of_windows_have_the_type_of_the_column(unit: str) -> None:
    rows = pa.table({"t": pa.array([PER_SECOND[unit]], pa.timestamp(unit))})
    answer = sb.sql(
        "SELECT window.start, window.end, COUNT(*) AS n FROM rows GROUP BY window(t, '1 second')", rows=rows
    )
    assert answer.schema.field("start").type == answer.schema.field("end").type == pa.timestamp(unit)
    assert answer["end"][0].as_py() - answer["start"][0].as_py() == timedelta(seconds=1)
