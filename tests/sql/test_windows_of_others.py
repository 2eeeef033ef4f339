"""Example tests: windows as Flink, RisingWave and Spark write them, ROW_NUMBER() in subqueries, and what is refused."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import skyband as sb

START = datetime(2026, 3, 1)
BIDS = pa.table(
    {
        "ts": [START + timedelta(seconds=second) for second in (0, 4, 8, 12, 13, 21)],
        "auction": [1, 2, 1, 1, 2, 2],
        "price": [5.0, 7.0, None, 2.0, 9.0, 1.0],
    }
)
TUMBLED = "FROM TUMBLE(bid, ts, INTERVAL 10 SECONDS)"
COUNTS = [("00:00", "00:10", 1, 2), ("00:00", "00:10", 2, 1), ("00:10", "00:20", 1, 1), ("00:10", "00:20", 2, 1)]


def rows(statement: str) -> list[tuple[object, ...]]:
    def plain(value: object) -> object:
        return value.strftime("%M:%S") if isinstance(value, datetime) else value

    return [tuple(map(plain, row.values())) for row in sb.sql(statement, bid=BIDS).to_pylist()]


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT window_start, window_end, auction, COUNT(*) {TUMBLED} GROUP BY window_start, window_end, auction",
        f"SELECT window_start, window_end, b.auction, COUNT(*) {TUMBLED} AS b GROUP BY 1, b.window_end, b.auction",
        (
            "SELECT window_start, window_end, auction, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), "
            "INTERVAL '10' SECOND)) GROUP BY auction, window_start"
        ),
        (
            "SELECT window_start, window_end, auction, COUNT(*) FROM HOP(DATA => TABLE bid, TIMECOL => DESCRIPTOR(TS), "
            "SIZE => INTERVAL '10 SECONDS', SLIDE => INTERVAL '10 SECONDS') GROUP BY auction, WINDOW_END"
        ),
        "SELECT window.start, window.end, auction, COUNT(*) FROM bid GROUP BY window(ts, '10 seconds'), auction",
        (
            "SELECT window(ts, '10 seconds').start, window.end, auction, COUNT(*) FROM bid "
            "GROUP BY auction, window(ts, '10 seconds')"
        ),
        (
            "SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), TUMBLE_END(ts, INTERVAL '10' SECOND), auction, COUNT(*) "
            "FROM bid GROUP BY auction, TUMBLE(ts, INTERVAL '10' SECOND)"
        ),
        (
            "WITH b AS (SELECT * FROM bid) SELECT window_start, window_end, auction, COUNT(*) "
            "FROM TUMBLE(b, ts, INTERVAL 10 SECONDS) GROUP BY auction, window_end"
        ),
        (
            "SELECT window_start, window_end, auction, COUNT(*) FROM bid [WINDOW 10 SECONDS EVERY 10 SECONDS] "
            "GROUP BY auction"
        ),
    ],
)
def test_one_question_in_the_words_of_each(statement: str) -> None:
    assert rows(statement)[:4] == COUNTS


def test_only_what_is_named_is_shown_where_a_bound_is_named_or_the_window_is_a_function() -> None:
    ours = "SELECT {} FROM bid [WINDOW 10 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 1"
    assert sb.sql(ours.format("auction"), bid=BIDS).column_names[:2] == ["window_start", "window_end"]
    assert sb.sql(ours.format("auction, window_end AS until"), bid=BIDS).column_names == ["auction", "until"]
    counted = sb.sql(f"SELECT COUNT(*) AS n {TUMBLED} GROUP BY window_end", bid=BIDS)
    assert counted.to_pydict() == {"n": [3, 2, 1]}


def test_a_star_has_the_bounds_of_a_function_behind_the_columns() -> None:
    first = f"SELECT * {TUMBLED} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC) = 1"
    assert rows(first) == [
        ("00:04", 2, 7.0, "00:00", "00:10"),
        ("00:13", 2, 9.0, "00:10", "00:20"),
        ("00:21", 2, 1.0, "00:20", "00:30"),
    ]


def test_a_column_of_that_name_is_the_column() -> None:
    table = pa.table({"t": [1, 2, 12], "window_end": [7, 8, 9]})
    asked = "SELECT window_end FROM t [WINDOW 10 EVERY 10 ON t] ORDER BY window_end DESC LIMIT 1"
    answer = sb.sql(asked, t=table)
    assert answer["window_end"].to_pylist() == [10, 20]
    assert answer["window_end_"].to_pylist() == [8, 9]


def test_the_start_of_windows_of_rows_is_where_they_begin() -> None:
    counted = "SELECT window_start, window_end, COUNT(*) FROM bid [WINDOW 4 ROWS EVERY 2 ROWS]"
    assert rows(counted) == [(0, 2, 2), (0, 4, 4), (2, 6, 4)]
    ranked = "SELECT window_start, window_end, price FROM bid [WINDOW 4 ROWS EVERY 2 ROWS] ORDER BY price DESC LIMIT 1"
    assert rows(ranked) == [(0, 2, 7.0), (0, 4, 7.0), (2, 6, 9.0)]


def test_conditions_around_a_ranking_are_about_its_answer() -> None:
    ranked = (
        "SELECT auction, price, ROW_NUMBER() OVER (ORDER BY price DESC) AS rn FROM bid [WINDOW 1 MINUTE EVERY 1 MINUTE]"
    )
    around = f"SELECT price, rn, window_end FROM ({ranked}) WHERE rn <= 3 AND auction = 2"
    with pytest.raises(sb.InvalidSql, match="There is no column 'window_end'"):
        rows(around)
    ranked = ranked.replace("auction,", "auction, window_end AS until,")
    assert rows(f"SELECT price, rn, until FROM ({ranked}) WHERE rn <= 3 AND auction = 2") == [
        (9.0, 1, "01:00"),
        (7.0, 2, "01:00"),
    ]
    assert rows(f"SELECT price, rn, until FROM ({ranked}) WHERE rn <= 3 AND (auction = 1 AND rn > 2)") == [
        (5.0, 3, "01:00")
    ]


@pytest.mark.parametrize(
    ("statement", "why", "advice"),
    [
        (
            f"SELECT COUNT(*) {TUMBLED}",
            "Nothing separates the windows of TUMBLE",
            "GROUP BY window_start, window_end",
        ),
        (
            f"SELECT auction, COUNT(*) {TUMBLED} GROUP BY auction",
            "GROUP BY does not separate the windows",
            "GROUP BY window",
        ),
        (f"SELECT * {TUMBLED} ORDER BY price LIMIT 2", "LIMIT counts the rows of all windows", "QUALIFY ROW_NUMBER()"),
        (
            f"SELECT * {TUMBLED} QUALIFY ROW_NUMBER() OVER (ORDER BY price) = 1",
            "PARTITION BY does not separate",
            "PARTITION BY window_start",
        ),
        (
            f"SELECT auction, COUNT(*) AS n {TUMBLED} GROUP BY auction, window_end ORDER BY n",
            "Answers come window by window",
            "ORDER BY window_end",
        ),
        (
            "SELECT COUNT(*) FROM CUMULATE(bid, ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY window_start",
            "GROUP BY does not separate the windows of CUMULATE",
            "GROUP BY window_start, window_end",
        ),
        (
            "SELECT COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '5' SECOND))",
            "Nothing separates the windows of SESSION",
            "GROUP BY window_start, window_end",
        ),
        (f"SELECT COUNT(*) {TUMBLED[:-1]}, INTERVAL 1 SECOND) GROUP BY window_end", "there is no offset", ""),
        (
            "SELECT COUNT(*) FROM HOP(bid, ts, INTERVAL 3 SECONDS, INTERVAL 10 SECONDS) GROUP BY window_end",
            "must be a multiple of its slide",
            "",
        ),
        (
            "SELECT COUNT(*) FROM HOP(bid, ts, INTERVAL 3 SECONDS) GROUP BY window_end",
            "HOP needs the length",
            "FROM HOP(",
        ),
        (
            "SELECT COUNT(*) FROM TUMBLE(bid, INTERVAL 3 SECONDS) GROUP BY window_end",
            "takes an input and a column",
            "TUMBLE(",
        ),
        (
            "SELECT COUNT(*) FROM TUMBLE(bid, ts, LENGTH => 3) GROUP BY window_end",
            "TUMBLE takes DATA, TIMECOL, SIZE",
            "",
        ),
        (f"SELECT COUNT(*) {TUMBLED} GROUP BY window_end EMIT CHANGES", "A part of the answer|GROUP BY", ""),
        (
            "SELECT window_start FROM bid [WINDOW 10 SECONDS] ORDER BY price LIMIT 1",
            "not with EMIT CHANGES",
            "EMIT WINDOWS",
        ),
        ("SELECT price FROM bid [WINDOW 9 SECONDS] ORDER BY price LIMIT 1 OFFSET 2", "not with EMIT CHANGES", ""),
        ("SELECT COUNT(*) FROM bid GROUP BY window(ts, 'ten seconds')", "'ten' is not a number", "GROUP BY window("),
        (
            (
                f"SELECT auction FROM (SELECT auction, COUNT(*) AS n {TUMBLED} GROUP BY auction, window_end) "
                "WHERE n > (SELECT MAX(price) FROM bid)"
            ),
            "Skyband does not support a subquery here",
            "",
        ),
        (f"SELECT window_time {TUMBLED} GROUP BY window_end", "There is no column 'window_time'", ""),
        (f"SELECT COUNT(*) {TUMBLED} WHERE window_end > '2026-01-01' GROUP BY window_end", "known when a window", ""),
        ("SELECT window_start, COUNT(*) FROM bid [WINDOW UNTIL NOW EVERY 10 SECONDS]", "no single window_start", ""),
        (
            "SELECT *, ROW_NUMBER() OVER (ORDER BY price) AS rn FROM bid [WINDOW 9 SECONDS EVERY 9 SECONDS]",
            "The number of rows is missing",
            "WHERE rn <= 10",
        ),
        (
            (
                "SELECT * FROM (SELECT *, NTILE(2) OVER (ORDER BY price) AS r FROM bid [WINDOW 3 ROWS EVERY 3 ROWS]) "
                "WHERE r < 3"
            ),
            "OVER is not supported",
            "ROW_NUMBER()",
        ),
        (
            (
                "SELECT * FROM (SELECT price, ROW_NUMBER() OVER (ORDER BY ts) r FROM bid [WINDOW 3 ROWS EVERY 3 ROWS]) "
                "WHERE r < 3 OR price > 3"
            ),
            "can only ask for the first rows",
            "ROW_NUMBER()",
        ),
        (
            (
                "SELECT * FROM (SELECT a.price AS p FROM bid a, bid b WHERE a.ts < b.ts ORDER BY a.price - b.price "
                "LIMIT 1) WHERE p > 3 WINDOW [9 SECONDS EVERY 9 SECONDS]"
            ),
            "from rankings of one input and of groups only",
            "Leave out",
        ),
    ],
)
def test_what_would_mean_something_else_is_refused(statement: str, why: str, advice: str) -> None:
    with pytest.raises(sb.InvalidSql, match=why) as caught:
        rows(statement)
    assert advice in str(caught.value)


JOINED = (
    "SELECT a.auction, COUNT(*), a.window_end FROM TUMBLE(bid, ts, INTERVAL 10 SECONDS) a "
    "JOIN TUMBLE(bid, ts, INTERVAL 10 SECONDS) b ON a.auction = b.auction{} GROUP BY a.auction, a.window_end"
)


def test_windows_are_joined_where_it_is_said_that_they_are_the_same() -> None:
    found = rows(JOINED.format(" AND a.window_end = b.window_end AND a.window_start = b.window_start"))
    assert found == [(1, 4, "00:10"), (2, 1, "00:10"), (1, 1, "00:20"), (2, 1, "00:20"), (2, 1, "00:30")]
    for said in ("", " AND a.window_end = a.window_end", " AND a.window_end = b.window_start"):
        with pytest.raises(sb.InvalidSql, match=r"same window|known when a window"):
            rows(JOINED.format(said))


def test_windows_can_be_chosen_around_a_query() -> None:
    counted = f"SELECT auction, COUNT(*) AS n, window_end {TUMBLED} GROUP BY auction, window_end"
    late = "window_end > TIMESTAMP '2026-03-01 00:00:10'"
    assert rows(f"SELECT auction, n FROM ({counted}) WHERE {late}") == [(1, 1), (2, 1), (2, 1)]
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, auction) AS rn FROM ({counted})"
    assert rows(f"SELECT auction, n, rn FROM ({numbered}) WHERE rn = 1 AND {late}") == [(1, 1, 1), (2, 1, 1)]


def test_the_advice_works() -> None:
    for window in ("UNTIL NOW EVERY 2 SECOND ON ts", "5 SECONDS ON ts", "10 SECOND EVERY 10 SECOND ON ts"):
        assert rows(f"SELECT COUNT(*) FROM bid [WINDOW {window}]")
    ranked = f"SELECT * {TUMBLED} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC) <= 10"
    assert len(rows(ranked)) == 5
    assert rows(f"SELECT auction, COUNT(*) AS n {TUMBLED} GROUP BY auction, window_end ORDER BY window_end, n DESC")


@pytest.mark.parametrize(
    "statement",
    [
        (
            "SELECT window_start, window_end, auction, COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY auction, "
            "DESCRIPTOR(ts), INTERVAL '6' SECOND)) GROUP BY window_start, window_end, auction"
        ),
        (
            "SELECT session_window.start, session_window.end, auction, COUNT(*) FROM bid "
            "GROUP BY auction, session_window(ts, '6 seconds')"
        ),
        (
            "SELECT SESSION_START(ts, INTERVAL 6 SECONDS), SESSION_END(ts, INTERVAL 6 SECONDS), auction, COUNT(*) "
            "FROM bid GROUP BY SESSION(ts, INTERVAL 6 SECONDS), auction"
        ),
    ],
)
def test_a_session_goes_on_until_there_is_a_pause(statement: str) -> None:
    table = BIDS.set_column(0, "ts", pa.array([START + timedelta(seconds=s) for s in (0, 4, 8, 12, 13, 21)]))
    found = sb.sql(statement, bid=table).to_pylist()
    told = [tuple(v.strftime("%M:%S") if isinstance(v, datetime) else v for v in row.values()) for row in found]
    assert told == [
        *(("00:00", "00:06", 1, 1), ("00:04", "00:10", 2, 1), ("00:08", "00:18", 1, 2)),
        *(("00:13", "00:19", 2, 1), ("00:21", "00:27", 2, 1)),
    ]


COUNTED = (
    "SELECT g, window_start, window_end, COUNT(*) AS n FROM SESSION(r PARTITION BY g, t, 4) "
    "GROUP BY g, window_start, window_end"
)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_sessions_of_a_stream_are_those_of_the_table(size: int) -> None:
    times = [0, 3, 2, 9, 8, 13, 30, 27, 31, None, 60]  # some out of order, and none of them late
    table = pa.table({"t": pa.array(times, pa.int64()), "g": list("ababaabbaab")})
    whole = sb.sql(COUNTED, r=table).to_pylist()
    stream = sb.sql(COUNTED, r=table.to_reader(max_chunksize=size)).read_all().to_pylist()
    assert stream == whole
    assert sum(row["n"] for row in whole) == 10


def test_a_row_is_late_whose_session_would_have_ended() -> None:
    batches = [pa.record_batch({"t": [t], "g": ["a"]}) for t in (0, 3, 20, 17, 2, 40)]
    with pytest.warns(sb.LateRows, match="1 rows came after their sessions"):
        found = sb.sql(COUNTED, r=iter(batches)).read_all()
    assert [tuple(row.values())[1:] for row in found.to_pylist()] == [(0, 7, 2), (17, 24, 2), (40, 44, 1)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::skyband.errors.LateRows")
def test_sessions_are_the_same_however_a_stream_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    clock, times = 0, []
    for _ in range(60):
        clock += chance.choice([0, 1, 2, 9])
        times.append(None if chance.random() < 0.1 else clock - chance.choice([0, 0, 0, 3, 8, 15]))
    table = pa.table({"t": pa.array(times, pa.int64()), "g": chance.choices("abc", k=60)})
    found = [
        sorted(map(str, sb.sql(COUNTED, r=table.to_reader(max_chunksize=size)).read_all().to_pylist()))
        for size in (1, 7, 60)
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 10


def test_windows_that_grow_begin_anew() -> None:
    grown = (
        "SELECT window_start, window_end, COUNT(*) AS n FROM CUMULATE(r, t, 5, 10) GROUP BY window_start, window_end"
    )
    table = pa.table({"t": [-1, 0, 4, 5, 12]})
    assert [tuple(row.values()) for row in sb.sql(grown, r=table).to_pylist()] == [
        *((-10, 0, 1), (0, 5, 2), (0, 10, 3), (10, 15, 1), (10, 20, 1))
    ]
