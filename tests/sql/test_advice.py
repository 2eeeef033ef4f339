"""Examples: no advice that does not work. What an error says to write is written, and is then accepted."""

from __future__ import annotations

import re

import pytest
from sql.test_rejected import cases
from sql.test_statements import INPUTS

import skyband as sb

MEANT = re.compile(r"Did you mean '?([^?']+)'?\?")
LISTS = ("Columns:", "Inputs:", "Given:", "Units:", "Functions:")  # they say what there is, not what to write
TOP, GROUPS = "ORDER BY price DESC LIMIT 3", "GROUP BY symbol"
T = "FROM trades [WINDOW 10 EVERY 5 ON t]"
PAIRS = "FROM trades a, trades b WHERE a.seq < b.seq ORDER BY {} LIMIT 3 WINDOW [10 EVERY 5 ON t]"
JOIN = "SELECT a.auctionID, COUNT(*) FROM auction a [WINDOW 1 HOUR]{} GROUP BY a.auctionID"
ON_OF_WINDOWS = (
    "Possible: equal columns or expressions of both, as in ON a.id = b.id, and conditions on rows of one of them; all "
    "joined by AND."
)
ACROSS = "SELECT * FROM r1 FULL JOIN r2 USING (flow) ORDER BY {} DESC LIMIT 3 WINDOW [10 ON t]"

UNITED = "SELECT * FROM ({}) AS u [WINDOW 10 EVERY 5 ON t] ORDER BY t LIMIT 1"

# By the advice, a statement that takes it.
MENDED = {
    "Write WHERE a.symbol = b.symbol … LIMIT k BY a.symbol.": (
        "SELECT * FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol "
        "ORDER BY |a.price - b.price| LIMIT 3 BY a.symbol WINDOW [10 EVERY 5 ON t]"
    ),
    "GROUP BY gives each row once: SELECT symbol FROM trades [WINDOW 1 HOUR] GROUP BY symbol.": (
        "SELECT symbol FROM trades [WINDOW 1 HOUR] GROUP BY symbol"
    ),
    "Write the window once, after the first input.": (
        "SELECT a.seq FROM trades a [WINDOW 10 EVERY 5 ON t], trades b WHERE a.seq < b.seq "
        "ORDER BY |a.price - b.price| LIMIT 3"
    ),
    "Leave one of the windows out.": "SELECT COUNT(*) AS n FROM trades WINDOW [20 EVERY 5 ON t]",
    "Possible: ROW_NUMBER(), RANK(), DENSE_RANK(), and COUNT, SUM, AVG, MIN and MAX, as in SUM(price) OVER "
    "(PARTITION BY symbol).": f"SELECT symbol, SUM(price) OVER (PARTITION BY symbol) AS paid {T}",
    "Leave the frame out: SUM(price) OVER (PARTITION BY symbol).": (
        f"SELECT symbol, SUM(price) OVER (PARTITION BY symbol) AS paid {T}"
    ),
    "Leave ORDER BY out: SUM(price) OVER (PARTITION BY symbol) is of all rows of the window.": (
        f"SELECT symbol, SUM(price) OVER (PARTITION BY symbol) AS paid {T}"
    ),
    "QUALIFY comes after it: QUALIFY price > AVG(price) OVER (PARTITION BY symbol).": (
        f"SELECT symbol {T} QUALIFY price > AVG(price) OVER (PARTITION BY symbol)"
    ),
    "Leave it out here.": f"SELECT a.seq {PAIRS.format('a.price')}",
    "Write the value itself.": f"SELECT seq {T} WHERE symbol = 'a' {TOP}",
    "A join takes TUMBLE and HOP, or windows such as FROM bid [WINDOW 1 HOUR EVERY 1 MINUTE].": (
        "SELECT COUNT(*) FROM bid [WINDOW 1 HOUR EVERY 1 MINUTE] JOIN auction USING (auctionID)"
    ),
    "Name it in FROM: (SELECT *, price % 2 AS odd FROM bid) GROUP BY session_window(ts, '1 hour'), odd.": (
        "SELECT COUNT(*) FROM (SELECT *, price % 2 AS odd FROM bid) GROUP BY session_window(ts, '1 hour'), odd"
    ),
    "Write FROM CUMULATE(bid, ts, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS).": (
        "SELECT COUNT(*) FROM CUMULATE(bid, ts, INTERVAL 2 SECONDS, INTERVAL 10 SECONDS) GROUP BY window_end"
    ),
    "Leave PARTITION BY out here.": "SELECT COUNT(*) FROM TUMBLE(trades, t, 5) GROUP BY window_end",
    "Rename one of them.": (
        f"WITH r AS (SELECT * FROM trades), s AS (SELECT * FROM r) SELECT * FROM s [WINDOW 10 EVERY 5 ON t] {TOP}"
    ),
    "Put the stream first: FROM bid [WINDOW …] LEFT JOIN auction ON ….": (
        "SELECT bid.auctionID FROM bid [WINDOW 1 HOUR EVERY 1 MINUTE] LEFT JOIN auction ON bid.auctionID = "
        "auction.auctionID ORDER BY bid.price LIMIT 3"
    ),
    "Name the inputs: SELECT … FROM trades [WINDOW 1 HOUR].": f"SELECT 1 AS one FROM trades [WINDOW 1 HOUR] {TOP}",
    "Possible: ORDER BY … DESC LIMIT 10; LIMIT 10 BY column; GROUP BY with aggregates.": (
        f"SELECT * {T} ORDER BY price DESC LIMIT 10 BY venue"
    ),
    "Write ROWS: [WINDOW 1000 ROWS]; or name a column of whole numbers: [WINDOW 600 EVERY 60 ON t].": (
        f"SELECT * FROM trades [WINDOW 600 EVERY 60 ON t] {TOP}"
    ),
    "Write EVERY 5 ROWS.": f"SELECT * FROM trades [WINDOW 5 ROWS EVERY 5 ROWS] {TOP}",
    "Leave FORGET AFTER out.": f"SELECT * FROM trades [WINDOW 10 EVERY 5 ON t] {TOP} BY symbol",
    "Write FORGET AFTER 1000 ROWS, or name a timestamp: ORDER BY ts FORGET AFTER 1 HOUR.": (
        f"SELECT * FROM trades [WINDOW 10 ROWS ORDER BY ts FORGET AFTER 1 HOUR] {TOP} BY symbol"
    ),
    "Rank in groups: LIMIT 10 BY symbol.": (
        f"SELECT * FROM trades [WINDOW 10 ROWS FORGET AFTER 3 ROWS] {TOP} BY symbol"
    ),
    "Write 1, in the unit of the column, or ON a timestamp.": f"SELECT * FROM trades [WINDOW 1 ON t] {TOP}",
    "Here: WITH ERROR 0.001.": f"SELECT * {T} {TOP} WITH ERROR 0.001",
    "Leave LATENESS out.": f"SELECT * FROM trades [WINDOW 10 ROWS] {TOP}",
    "Inputs have plain names.": f"SELECT * {T} {TOP}",
    "A common table expression (WITH name AS …) may compute columns and filter rows of one input.": (
        f"WITH a AS (SELECT * FROM trades WHERE price > 3) SELECT * FROM a [WINDOW 10 EVERY 5 ON t] {TOP}"
    ),
    "Possible: one SELECT.": f"SELECT * {T} {TOP}",
    "Write LIMIT 10 BY symbol OFFSET 5.": f"SELECT * {T} ORDER BY price DESC LIMIT 10 BY symbol OFFSET 5",
    "Write UNION ALL.": UNITED.format("SELECT * FROM trades UNION ALL SELECT * FROM trades"),
    "Write CAST(x AS …) so that both have one type.": (
        UNITED.format("SELECT t FROM trades UNION ALL SELECT CAST(price AS INT) FROM trades")
    ),
    "Write SELECT … FROM (SELECT … UNION ALL SELECT …) AS u [WINDOW 1 HOUR] ORDER BY … LIMIT 10.": (
        f"SELECT * FROM (SELECT * FROM trades UNION ALL SELECT * FROM trades) AS u [WINDOW 1 HOUR] {TOP}"
    ),
    "Each part may compute columns and filter rows: SELECT id, price FROM a WHERE price > 0 UNION ALL SELECT …": (
        UNITED.format("SELECT seq, t FROM trades WHERE price > 0 UNION ALL SELECT seq, t FROM trades")
    ),
    "Name the column that defines it: [WINDOW 10 ROWS ORDER BY seq].": (
        "SELECT seq FROM (SELECT seq, price FROM trades UNION ALL SELECT seq, price FROM trades) AS u "
        "[WINDOW 10 ROWS ORDER BY seq] ORDER BY price LIMIT 3"
    ),
    "Name the column that defines it for each: [WINDOW 1000 ROWS ORDER BY seq].": (
        "SELECT a.sellerID, COUNT(*) AS n FROM auction a [WINDOW 10 ROWS ORDER BY ts] JOIN bid b "
        "[WINDOW 5 ROWS ORDER BY ts] USING (auctionID) GROUP BY a.sellerID"
    ),
    "Leave WITH TIES out.": f"SELECT a.seq {PAIRS.format('a.price')}",
    "Write QUALIFY RANK() OVER (ORDER BY x DESC) BETWEEN 3 AND 5.": (
        f"SELECT * {T} QUALIFY RANK() OVER (ORDER BY price DESC) BETWEEN 3 AND 5"
    ),
    "Write ROW_NUMBER() OVER (…); rows and groups have RANK().": (
        "SELECT a.seq FROM trades a, trades b WHERE a.seq < b.seq QUALIFY ROW_NUMBER() OVER (ORDER BY a.price) <= 2 "
        "WINDOW [10 EVERY 5 ON t]"
    ),
    "Possible: QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) <= 10.": (
        f"SELECT * {T} QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) <= 10"
    ),
    "Write for example WHERE a.id < b.id. Without it every pair would come twice, as (x, y) and as (y, x).": (
        f"SELECT a.seq {PAIRS.format('a.price')}"
    ),
    "Write a.price.": f"SELECT a.seq {PAIRS.format('a.price')}",
    "Write a.symbol.": f"SELECT a.symbol {PAIRS.format('a.price')}",
    "Give each its own name: FROM t AS a, t AS b.": f"SELECT a.seq {PAIRS.format('a.price')}",
    "Add it to GROUP BY, or take MIN, MAX, SUM, AVG or COUNT of it.": f"SELECT symbol, MAX(price) {T} {GROUPS}",
    "Possible: GROUP BY columns or expressions.": f"SELECT COUNT(*) {T} GROUP BY UPPER(symbol)",
    "Add one such as a.id = b.id.": JOIN.format(" JOIN bid b [WINDOW 1 HOUR] ON a.auctionID = b.auctionID"),
    "Possible: JOIN, LEFT JOIN, LEFT SEMI JOIN and LEFT ANTI JOIN with ON or USING, RIGHT JOIN … ON of two windows, "
    "and FULL JOIN … USING of streams.": JOIN.format(" RIGHT JOIN bid b [WINDOW 1 HOUR] ON a.auctionID = b.auctionID"),
    ON_OF_WINDOWS: JOIN.format(
        " LEFT ANTI JOIN bid b [WINDOW 1 HOUR] ON a.auctionID + 1 = b.auctionID AND b.price > 3 AND a.sellerID = 7"
    ),
    f"{ON_OF_WINDOWS} WHERE may compare them in other ways.": (
        "SELECT a.auctionID, b.price FROM auction a LEFT JOIN bid b ON a.auctionID = b.auctionID WHERE b.ts > a.ts OR "
        "b.ts IS NULL WINDOW [1 HOUR EVERY 1 MINUTE]"
    ),
    "Write ON a.id = b.id.": JOIN.format(" RIGHT JOIN bid b [WINDOW 1 HOUR] ON a.auctionID = b.auctionID"),
    "Write LEFT JOIN.": (
        "SELECT c.price, COUNT(a.sellerID) AS n FROM bid c LEFT JOIN auction a ON c.auctionID = a.auctionID LEFT JOIN "
        "bid b ON c.auctionID = b.auctionID GROUP BY c.price WINDOW [1 HOUR]"
    ),
    "Put the stream first: FROM stream [WINDOW …] LEFT JOIN a ON ….": (
        "SELECT a.auctionID, COUNT(*) FROM bid b [WINDOW 1 HOUR] LEFT JOIN auction a ON a.auctionID = b.auctionID "
        "GROUP BY a.auctionID"
    ),
    "Possible: equal columns of both, as in ON t.id = p.id, and conditions on columns of bid; all joined by AND.": (
        JOIN.format(" LEFT SEMI JOIN bid ON a.auctionID = bid.auctionID AND bid.price > 3")
    ),
    "Possible: WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = t.person).": (
        f"SELECT * {T} WHERE EXISTS (SELECT 1 FROM person p WHERE p.state = trades.symbol) {TOP}"
    ),
    "Write WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = t.person).": (
        f"SELECT * {T} WHERE NOT EXISTS (SELECT 1 FROM person p WHERE p.state = trades.symbol) {TOP}"
    ),
    "Write a.auctionID.": JOIN.format(", bid b [WINDOW 1 HOUR] WHERE a.auctionID = b.auctionID"),
    "Leave that stream out, or add its value.": ACROSS.format("r1.size + r2.amount"),
    "Possible: FROM r1 FULL JOIN r2 USING (id) FULL JOIN r3 USING (id), each with the same window.": ACROSS.format(
        "r1.size + r2.amount"
    ),
    "Set the smallest value with WITH BOUNDS (smallest, largest).": ACROSS.format("r1.size + r2.amount")
    + " WITH BOUNDS (0, 9)",
    "Write one expression. Only rows of one input can be ranked by several.": (
        f"SELECT seq {T} ORDER BY price, volume LIMIT 2"
    ),
    "Possible: EMIT WINDOWS, EMIT CHANGES, EMIT ENTRIES.": f"SELECT * {T} {TOP} EMIT ENTRIES",
    "Leave it out, or give it a score: COALESCE(price, 0).": f"SELECT a.seq {PAIRS.format('COALESCE(a.price, 0)')}",
    "Write 10 SECONDS.": f"SELECT * FROM trades [WINDOW 10 SECONDS ON ts] {TOP}",
    "Write 3 SECONDS.": f"SELECT * FROM trades [WINDOW 1 HOUR EVERY 7 MINUTES LATENESS 3 SECONDS] {TOP}",
    "Put strings in quotes: 'OAK'.": f"SELECT symbol {T} WHERE symbol = 'OAK' {TOP}",
    "Only groups have aggregates: GROUP BY symbol HAVING COUNT(*) > 3 ORDER BY COUNT(*) DESC LIMIT 10.": (
        f"SELECT symbol {T} GROUP BY symbol HAVING COUNT(*) > 3 ORDER BY COUNT(*) DESC LIMIT 10"
    ),
    "Write FROM trades [WINDOW 1 HOUR EVERY 1 HOUR].": (
        f"SELECT symbol, COUNT(*) FROM trades [WINDOW 1 HOUR EVERY 1 HOUR] {GROUPS}"
    ),
    "Write FROM trades [WINDOW 1 HOUR EVERY 10 MINUTES].": (
        f"SELECT symbol, COUNT(*) FROM trades [WINDOW 1 HOUR EVERY 10 MINUTES] {GROUPS}"
    ),
    "Write EMIT WINDOWS.": f"SELECT symbol, COUNT(*) {T} {GROUPS} EMIT WINDOWS",
    "Possible: 500 MILLISECONDS.": f"SELECT seq FROM trades [WINDOW 500 MILLISECONDS ON ts] {TOP}",
    "[WINDOW UNTIL NOW] has no end.": f"SELECT seq FROM trades [WINDOW UNTIL NOW] {TOP}",
    "Write LIMIT at the end: ORDER BY price DESC LIMIT 3.": f"SELECT symbol {T} ORDER BY price DESC LIMIT 3",
    "Compare it: HAVING COUNT(*) > 3.": f"SELECT symbol, SUM(price) {T} {GROUPS} HAVING COUNT(*) > 3",
    "WHERE filters rows.": f"SELECT symbol {T} WHERE price > 3 {TOP}",
    "Say how often: [WINDOW 1 HOUR EVERY 1 MINUTE].": (
        "SELECT a.sellerID, b.price FROM auction a JOIN bid b USING (auctionID) WINDOW [1 HOUR EVERY 1 MINUTE]"
    ),
    "Possible: WHERE a.id = b.id; FROM t AS a, t AS b; streams with FULL JOIN … USING (id); FROM s [WINDOW …], queries "
    "AS q … LIMIT k BY q.id.": (
        "SELECT b.price FROM auction a, bid b WHERE a.auctionID = b.auctionID ORDER BY b.price LIMIT 3 "
        "WINDOW [1 HOUR EVERY 1 MINUTE]"
    ),
    "Write GROUP BY window_start, window_end, ….": (
        "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM TUMBLE(trades, t, 10) GROUP BY symbol, window_end) GROUP BY "
        "window_start, window_end"
    ),
    "Leave EMIT out.": f"SELECT AVG(n) FROM (SELECT COUNT(*) AS n {T} {GROUPS})",
    "Measure a column instead: [WINDOW 1 HOUR EVERY 1 MINUTE ON ts].": (
        "SELECT AVG(price) FROM (SELECT price FROM trades [WINDOW 1 HOUR EVERY 1 MINUTE ON ts] ORDER BY price LIMIT 2 "
        "BY symbol)"
    ),
    "Engines hash differently, so Skyband has no hashes. Compare the values themselves: GROUP BY symbol.": (
        f"SELECT symbol, COUNT(*) AS n {T} {GROUPS}"
    ),
    "An answer follows from its rows alone, so that a restart gives it again. window_end is its time.": (
        f"SELECT window_end, symbol {T} {TOP}"
    ),
    "Engines capitalize differently. Write UPPER(LEFT(s, 1)) || LOWER(SUBSTRING(s, 2)).": (
        f"SELECT UPPER(LEFT(symbol, 1)) || LOWER(SUBSTRING(symbol, 2)) AS name {T} {TOP}"
    ),
    "CAST(x AS BIGINT) cuts off what is behind the point; ROUND(x, 2) rounds.": (
        f"SELECT CAST(price AS BIGINT) AS p, ROUND(price, 2) AS q {T} {TOP}"
    ),
    "Write WHERE rn <= 10 around it, or QUALIFY.": (
        f"SELECT * {T} QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) <= 10"
    ),
    "For each window, write QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY …) <= 10.": (
        "SELECT * FROM TUMBLE(trades, ts, INTERVAL 10 MINUTES) "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price) <= 10"
    ),
}
# They have a second mistake, which is then said.
TWO_MISTAKES = {
    "SELECT a.seq FROM trades a, bid b WHERE a.seq < b.price ORDER BY a.price LIMIT 3 WINDOW [10 EVERY 5 ON t]"
}


def advice(said: str) -> str:
    """What stands below the statement, without lists of what there is."""
    below = "\n".join(line for line in said.split("\n")[1:] if not line.startswith("  "))
    for each in LISTS:
        below = re.sub(rf"(^|\s){each}.*", "", below)
    return below.strip()


def is_accepted(statement: str) -> bool:
    sb.sql(f"EXPLAIN {statement}", **INPUTS)
    return True


@pytest.mark.parametrize(("statement", "said"), [(text, said) for text, said in cases() if MEANT.search(said)])
def test_the_word_that_was_meant_will_do(statement: str, said: str) -> None:
    with pytest.raises(sb.InvalidSql) as caught:
        sb.sql(statement, **INPUTS)
    place, meant = caught.value.place, MEANT.search(said)
    assert place is not None
    assert meant is not None
    place += len(re.match(r"(?:\w+\.)?", statement[place:])[0])  # type: ignore[index]  # the column behind its input
    mended = statement[:place] + re.sub(r"^\w+", meant[1], statement[place:])
    if statement in TWO_MISTAKES:
        with pytest.raises(sb.InvalidSql) as second:
            sb.sql(mended, **INPUTS)
        assert second.value.why != caught.value.why
    else:
        assert is_accepted(mended)


@pytest.mark.parametrize("said", sorted({advice(said) for _, said in cases() if not MEANT.search(said)} - {""}))
def test_what_is_advised_is_accepted(said: str) -> None:
    assert is_accepted(MENDED[said])


def test_no_advice_is_tried_that_nobody_gives() -> None:
    assert MENDED.keys() == {advice(said) for _, said in cases() if not MEANT.search(said)} - {""}


def test_there_are_a_hundred_mistakes_and_most_are_pointed_at() -> None:
    pointed = [said for _, said in cases() if re.search(r"\n +\^", said)]
    assert len(cases()) >= 200
    assert len(pointed) >= 0.9 * len(cases())
