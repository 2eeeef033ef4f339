"""Example tests: queries are checked once, when they are made, and say what was wrong with them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

WINDOW = sb.sliding(10, every=5, on="t")
SCHEMA = pa.schema({"t": pa.int64(), "price": pa.float64(), "volume": pa.int64(), "symbol": pa.string()})


def query(**parts: Any) -> sb.TopK:
    return sb.TopK(**{"k": 1, "by": "price", "window": WINDOW, **parts})


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True, 2**31, float("nan")])
def test_k_is_a_whole_number_from_one(k: object) -> None:
    with pytest.raises(sb.InvalidQuery, match="k must be a whole number, at least 1") as error:
        query(k=k)
    assert repr(k) in str(error.value)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("", "by is empty. Give a column, an SQL expression"),
        ("  ", "by is empty"),
        (3, "by must be a column, an SQL expression or a function, got int"),
        (None, "got NoneType"),
        ({"price"}, "got set"),
        ([], "names no sort key"),
        ([3], "A sort key is a text such as 'price'"),
    ],
)
def test_by_can_be_a_score(by: object, message: str) -> None:
    with pytest.raises(sb.InvalidQuery, match=message):
        query(by=by)


@pytest.mark.parametrize("window", [10, "10 minutes", None, ("10 minutes", "1 minute")])
def test_window_is_a_window(window: object) -> None:
    with pytest.raises(sb.InvalidQuery, match=r"window must come from sliding\(\), tumbling\(\) or landmark\(\), got"):
        query(window=window)


TWO = {"a": sb.sliding(30, on="t"), "b": sb.relation(where="v > 0")}


@pytest.mark.parametrize(
    "made",
    [
        sb.TopK(k=3, by=["v DESC", "g"], window=WINDOW, per=["g", "h"], lateness=3),
        sb.TopK(k=3, by="v", window=sb.sliding("1 hour", every="1 minute", on="t"), lateness="5 minutes", error=0.1),
        sb.TopKPairs(k=3, by="abs(a.v - b.v)", window=WINDOW, same="g", different=["h"]),
        sb.TopKAcross(k=3, id="g", value="v", streams=["r", "s"], bounds=(0, 1), window=WINDOW),
        sb.TopKAcross(k=3, id="g", value="v", streams=["r", "s"], bounds={"r": (0, 1), "s": (0, 2)}, window=WINDOW),
        sb.TopKAcross(k=3, id=["g", "h"], value={"r": "v", "s": "w"}, streams=["r", "s"], repeat="sum", window=WINDOW),
        sb.TopKForEach(
            k="q.k", by="v * q.w", window=WINDOW, queries=pa.table({"w": [1], "k": [2], "id": [1]}), key="id"
        ),
        sb.JoinAggregate(inputs=TWO, on="a.g = b.g", group_by="a.g", aggregates={"n": "COUNT(*)"}, every=10),
        sb.JoinAggregate(inputs=WINDOW, aggregates={"n": "COUNT(*)"}, group_by="g", order_by="n", k=2),
    ],
    ids=lambda made: type(made).__name__,
)
def test_a_copy_with_another_option_takes_all_others_as_they_are(made: Any) -> None:
    assert dataclasses.replace(made) == made
    assert dataclasses.replace(made, emit="changes") == dataclasses.replace(made, emit="changes")
    assert dataclasses.replace(made, emit="changes") != made


def test_emit_depends_on_every() -> None:
    assert query().emit == "windows"
    assert query(window=sb.sliding(10)).emit == "changes"
    with pytest.raises(sb.InvalidQuery, match="emit must be one of windows, changes, entries, got 'all'"):
        query(emit="all")
    with pytest.raises(
        sb.InvalidQuery, match=r"emit='windows' emits the answer of each closed window.*Use emit='changes'"
    ):
        query(window=sb.sliding(10), emit="windows")


def test_lateness_is_for_windows_by_value_with_a_slide() -> None:
    with pytest.raises(sb.InvalidQuery, match="lateness=5 has no meaning in a window of arrivals"):
        query(window=sb.sliding(10, every=5), lateness=5)
    with pytest.raises(sb.InvalidQuery, match="lateness=5 has no meaning without `every`"):
        query(window=sb.sliding(10, on="t"), lateness=5)
    with pytest.raises(sb.InvalidQuery, match="lateness must be more than 0, got -1"):
        query(lateness=-1)
    with pytest.raises(sb.InvalidQuery, match="lateness='soon' is not a duration"):
        query(lateness="soon")
    assert query(lateness=0).lateness is None
    assert query(lateness=dt.timedelta(0)).lateness is None
    assert query(lateness="5 minutes").lateness == dt.timedelta(minutes=5)


def test_lateness_in_the_unit_of_the_column() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"lateness is a duration \(1 second\), but column 't' is int64"):
        query(lateness="1 s").open(SCHEMA)


@pytest.mark.parametrize("per", [3, [3], None, ["symbol", 3]])
def test_per_is_names(per: object) -> None:
    with pytest.raises(sb.InvalidQuery, match="per"):
        query(per=per)


def test_per_is_each_name_once() -> None:
    assert query(per="symbol").per == ("symbol",)
    assert query(per=["symbol", "volume"]).per == ("symbol", "volume")
    with pytest.raises(sb.InvalidQuery, match="per names a column twice: symbol, volume, symbol"):
        query(per=["symbol", "volume", "symbol"])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"by": "prise"}, "No column 'prise' for .*Did you mean 'price'[?] Columns: t, price, volume, symbol"),
        ({"by": "prise * volume"}, "No column 'prise' for the expression 'prise [*] volume'. Did you mean 'price'"),
        ({"by": "Price"}, "Did you mean 'price'"),
        ({"by": lambda cost: cost}, "No column 'cost' for a parameter of the function '<lambda>'"),
        ({"per": "symbols"}, "No column 'symbols' for per=. Did you mean 'symbol'"),
        ({"per": ["symbol", "xyz"]}, "No column 'xyz' for per=. Columns:"),
        ({"window": sb.tumbling(5, on="time")}, "No column 'time' for the window's on="),
        ({"window": sb.tumbling(5, order="seq")}, "No column 'seq' for the window's order="),
    ],
)
def test_unknown_columns_are_named_with_the_nearest(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.UnknownColumn, match=message):
        query(**parts).open(SCHEMA)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("symbol", "A score must be a number, but column 'symbol' is string"),
        ("price > 1", "A score must be a number, but 'price > 1' gives bool"),
        ("symbol + 1", r"'symbol' in 'symbol [+] 1' is not a number"),
        ("price +", "Cannot read 'price [+]' as an expression.*Possible: [+]"),
        (
            "SUM(price)",
            r"'SUM\(price\)' cannot be part of an expression.*Possible: .*Pass a Python function of the columns",
        ),
        (lambda: 1, "has no parameters. Name them after the columns it needs"),
    ],
)
def test_scores_that_are_not_numbers(by: Any, message: str) -> None:
    with pytest.raises(sb.InvalidExpression, match=message):
        query(by=by).open(SCHEMA)


def test_algorithms_by_name() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"No algorithm 'quick'. There are: budgeted, relaxed.prob"):
        query(algorithm="quick").open(SCHEMA)
    with pytest.raises(
        sb.InvalidQuery, match=r"'mintopk' cannot answer this: the window slides with each arrival.*Possible here: "
    ):
        query(window=sb.sliding(10), algorithm="mintopk").open(SCHEMA)
    with pytest.raises(sb.InvalidQuery, match="'mintopk' cannot answer this: ad-hoc queries"):
        query(ad_hoc=True, algorithm="mintopk").open(SCHEMA)


def test_queries_are_values() -> None:
    assert query() == query()
    assert hash(query(per="symbol")) == hash(query(per=["symbol"]))
    assert query() != query(ascending=True)
    with pytest.raises(AttributeError):
        query().k = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "data", [5, "rows.parquet", None, {"t": [1]}, {pa.record_batch({"t": [1]}).num_rows}, np.zeros(3), object()]
)
def test_data_of_no_known_family(data: object) -> None:
    with pytest.raises(
        sb.InvalidInput, match=f"Cannot read rows from {type(data).__name__}. Possible: a pyarrow Table"
    ):
        sb.top_k(data, k=1, by="price", window=WINDOW)


def test_iterators_that_give_something_else() -> None:
    with pytest.raises(sb.InvalidInput, match="The iterator gave no batch, so its columns are unknown"):
        sb.top_k(iter([]), k=1, by="price", window=WINDOW)
    with pytest.raises(sb.InvalidInput, match="must give pyarrow record batches, got int"):
        sb.top_k(iter([1, 2]), k=1, by="price", window=WINDOW)
    batch = pa.record_batch({"t": [1], "price": [1.0]})
    for second in (5, pa.record_batch({"t": [1]})):
        with pytest.raises(sb.InvalidInput):
            sb.top_k(iter([batch, second]), k=1, by="price", window=WINDOW).read_all()


@pytest.mark.parametrize("rows", [{"t": [1]}, 5, "rows", None])
def test_push_takes_rows(rows: object) -> None:
    with pytest.raises(sb.InvalidInput, match=f"Cannot read rows from {type(rows).__name__}"):
        query().open(SCHEMA).push(rows)


def test_open_takes_a_schema() -> None:
    with pytest.raises(sb.InvalidInput, match=r"must be a pyarrow.Schema, got list"):
        query().open(["t", "price"])  # type: ignore[arg-type]


def test_columns_of_the_same_name_are_refused() -> None:
    schema = pa.schema([("t", pa.int64()), ("price", pa.float64()), ("a", pa.int64()), ("a", pa.int64())])
    with pytest.raises(sb.SkybandError, match=r"'?a'?"):
        query().open(schema)


def test_errors_come_before_rows_are_consumed() -> None:
    def rows():  # type: ignore[no-untyped-def]
        yield pa.record_batch({"t": [1], "price": [1.0]})
        raise AssertionError("a second batch was asked for")

    with pytest.raises(sb.UnknownColumn):
        sb.top_k(rows(), k=1, by="prise", window=WINDOW)


SESSION_ERRORS: dict[str, tuple[Any, str]] = {
    "k = 0": (lambda session: session.top(0), "k must be a whole number from 1 to the query's 2, got 0"),
    "k too large": (lambda session: session.top(3), "from 1 to the query's 2, got 3"),
    "k of text": (lambda session: session.top("x"), "got 'x'"),
    "k = True": (lambda session: session.top(True), "got True"),
    "k = 1.0": (lambda session: session.top(1.0), r"got 1\.0"),
    "size = 0": (lambda session: session.top(1, 0), "size must be more than 0, got 0"),
    "size too large": (lambda session: session.top(1, 11), r"size=11 is larger than the query's window"),
    "size in another unit": (lambda session: session.top(1, "1 s"), "size is a duration"),
    "a clock of text": (lambda session: session.advance("now"), "cannot be 'now'"),
    "a clock of halves": (lambda session: session.advance(1.5), r"cannot be 1\.5"),
    "a clock in another unit": (lambda session: session.advance(dt.datetime(2024, 1, 1)), "cannot be datetime"),
}


@pytest.mark.parametrize("name", SESSION_ERRORS)
def test_what_a_session_refuses(name: str) -> None:
    call, message = SESSION_ERRORS[name]
    with pytest.raises(sb.InvalidQuery, match=message):
        call(query(k=2).open(SCHEMA))


@pytest.mark.parametrize("window", [sb.sliding(10, every=5), sb.sliding(10), sb.sliding(10, on="t")], ids=str)
def test_only_windows_by_value_with_a_slide_close_with_the_clock(window: sb.Window) -> None:
    with pytest.raises(sb.InvalidQuery, match="Only windows by value with a slide close as time advances"):
        query(window=window).open(SCHEMA).advance(5)


def test_every_error_is_a_skyband_error() -> None:
    errors = [value for value in vars(sb).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(errors) >= 10
    assert all(issubclass(error, sb.SkybandError | Warning) for error in errors)
