"""Example tests: how windows are written, what they are in whole numbers, and which are refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import skyband as sb
from skyband.windows import FOREVER, Ticks, parse_span

MICROSECONDS = pa.schema({"ts": pa.timestamp("us"), "t": pa.int64()})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("10 minutes", 600),
        ("10minutes", 600),
        ("  2 Hours ", 7_200),
        ("1 hour 30 min", 5_400),
        ("1 day", 86_400),
        ("1 week", 604_800),
        ("1500 milliseconds", 1.5),
        ("1500 ms", 1.5),
        ("7 us", 0.000007),
        ("1h30m5s", 5_405),
        ("2 mins", 120),
        ("1 sec", 1),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_span(text, "size") == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "minutes", "ten minutes", "1 month", "1 year", "-1 second", "1.5 hours", "5", "1 hour,", "1 sx"]
)
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=r"is not a duration. Write a number and a unit") as error:
        sb.sliding(text, on="ts")
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("size", [0, -1, "0 seconds", dt.timedelta(0), dt.timedelta(seconds=-1)])
def test_sizes_are_more_than_nothing(size: sb.windows.Span) -> None:
    with pytest.raises(sb.InvalidQuery, match="size must be more than 0, got"):
        sb.sliding(size, on="ts")
    with pytest.raises(sb.InvalidQuery, match="every must be more than 0, got"):
        sb.landmark(every=size, on="ts")


@pytest.mark.parametrize("size", [True, 2.5, None, [1], b"1 second"])
def test_sizes_are_whole_numbers_or_durations(size: object) -> None:
    with pytest.raises(sb.InvalidQuery, match="size must be a whole number, a duration or a timedelta, got"):
        sb.sliding(size)  # type: ignore[arg-type]


def test_sizes_that_no_clock_measures() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"less than 2\*\*61.*landmark\(\) has no end"):
        sb.sliding(2**62)
    with pytest.raises(sb.InvalidQuery, match="10000000000000 days"):
        sb.tumbling("10000000000000 days", on="ts")
    with pytest.raises(sb.InvalidQuery, match="size"):
        sb.tumbling("10000000 days", on="ts").ticks(pa.schema({"ts": pa.timestamp("ns")}))


def test_a_slide_larger_than_the_size_is_refused() -> None:
    with pytest.raises(sb.InvalidQuery, match="every=11 is larger than size=10: some rows would be in no window"):
        sb.sliding(10, every=11)
    with pytest.raises(sb.InvalidQuery, match=r"every=1 hour 1 second is larger than size=1 hour"):
        sb.sliding("1 hour", every="3601 s", on="ts")
    assert sb.sliding(10, every=10) == sb.tumbling(10)


def test_a_duration_needs_a_column() -> None:
    with pytest.raises(sb.InvalidQuery, match="A duration needs the column that holds the time: add on="):
        sb.sliding("1 hour")
    with pytest.raises(sb.InvalidQuery, match="A duration needs the column"):
        sb.landmark(every="1 hour")


def test_durations_and_numbers_do_not_mix() -> None:
    with pytest.raises(sb.InvalidQuery, match="must both be durations or both be numbers"):
        sb.sliding("1 hour", every=5, on="ts")


def test_on_and_order_are_names() -> None:
    with pytest.raises(sb.InvalidQuery, match="on"):
        sb.sliding(5, on=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (sb.sliding(10, every=2), Ticks(10, 2, 0, by_count=True)),
        (sb.sliding(10), Ticks(10, 0, 0, by_count=True)),
        (sb.landmark(), Ticks(FOREVER, 0, 0, by_count=True)),
        (sb.landmark(every=5, on="t"), Ticks(FOREVER, 5, 0, by_count=False)),
        (sb.tumbling(10, on="t"), Ticks(10, 10, 0, by_count=False)),
        (sb.sliding("1 minute", every="1 s", on="ts"), Ticks(60_000_000, 1_000_000, 0, by_count=False)),
        (sb.landmark(on="ts"), Ticks(FOREVER, 0, 0, by_count=False)),
    ],
    ids=str,
)
def test_in_whole_numbers(window: sb.Window, expected: Ticks) -> None:
    assert window.ticks(MICROSECONDS) == expected


@pytest.mark.parametrize(("unit", "ticks"), [("s", 90), ("ms", 90_000), ("us", 90_000_000), ("ns", 90_000_000_000)])
def test_in_the_unit_of_the_column(unit: str, ticks: int) -> None:
    schema = pa.schema({"ts": pa.timestamp(unit)})
    assert sb.tumbling("90 s", on="ts").ticks(schema, dt.timedelta(minutes=3)) == Ticks(
        ticks, ticks, 2 * ticks, by_count=False
    )


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (sb.tumbling("1 hour", on="t"), r"size is a duration \(1 hour\), but column 't' is int64, not a timestamp"),
        (
            sb.tumbling(60, on="ts"),
            r"size=60 has no unit, but column 'ts' is timestamp\[us\]. Write it as '60 seconds'",
        ),
        (sb.tumbling(60, on="v"), "A window needs a timestamp or integer column, but 'v' is double"),
        (sb.tumbling(60, on="day"), r"A window needs a timestamp or integer column, but 'day' is date32"),
        (sb.tumbling("5 ms", on="s"), r"size=5 milliseconds is finer than the unit of column 's' \(timestamp\[s\]\)"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_windows_that_do_not_fit_the_column(window: sb.Window, message: str) -> None:
    schema = pa.schema(
        {"t": pa.int64(), "ts": pa.timestamp("us"), "v": pa.float64(), "day": pa.date32(), "s": pa.timestamp("s")}
    )
    with pytest.raises(sb.InvalidQuery, match=message):
        window.ticks(schema)


def test_unknown_columns_with_the_nearest_name() -> None:
    with pytest.raises(
        sb.UnknownColumn, match=r"No column 'tss' for the window's on=. Did you mean 'ts'[?] Columns: ts, t"
    ):
        sb.tumbling(5, on="tss").ticks(MICROSECONDS)
    with pytest.raises(sb.UnknownColumn, match="No column 'seq' for the window's order="):
        sb.tumbling(5, order="seq").ticks(MICROSECONDS)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (sb.sliding(1_000, every=10), "the last 1,000 rows, every 10 rows"),
        (sb.sliding(40), "the last 40 rows, with each arrival"),
        (sb.sliding("1 hour", every="1 minute", on="ts"), "the last hour, every minute, on ts"),
        (
            sb.sliding("90 minutes", every="500 ms", on="ts"),
            "the last 1 hour 30 minutes, every 500 milliseconds, on ts",
        ),
        (sb.landmark(every="1 day", on="ts"), "from the start, every day, on ts"),
        (sb.landmark(every=5, on="t"), "from the start, every 5, on t"),
    ],
)
def test_in_words(window: sb.Window, text: str) -> None:
    assert str(window) == text


def test_windows_are_values() -> None:
    assert (
        sb.sliding("60 s", on="ts") == sb.sliding("1 minute", on="ts") == sb.sliding(dt.timedelta(minutes=1), on="ts")
    )
    assert hash(sb.sliding(5)) == hash(sb.sliding(5))
    with pytest.raises(AttributeError):
        sb.sliding(5).size = 6  # type: ignore[misc]
