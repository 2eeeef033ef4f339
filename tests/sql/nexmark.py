"""The questions of the Nexmark suite in our words, those that can be asked and those that cannot, and why."""

from __future__ import annotations

from typing import Final, NamedTuple


class Asked(NamedTuple):
    """A question: what it asks, our statement, and what DuckDB is asked instead."""

    about: str
    ours: str
    duckdb: str
    last_window: bool = False  # only the last answer of ours is about all rows


_TEN: Final = "time_bucket(INTERVAL 10 SECONDS, date_time) + INTERVAL 10 SECONDS"
_DAY: Final = "time_bucket(INTERVAL 1 DAY, date_time)"
_RANGES: Final = (
    "COUNT(*) FILTER (WHERE price < 100) AS low, COUNT(*) FILTER (WHERE price >= 100 AND price < 1000) AS mid, "
    "MIN(price) AS least, MAX(price) AS most, AVG(price) AS mean, SUM(price) AS total"
)
_DIFFERENT: Final = ", ".join(
    f"COUNT(DISTINCT {column}){f' FILTER (WHERE {where})' if where else ''} AS {column}s_{number}"
    for column in ("bidder", "auction")
    for number, where in enumerate(["", "price < 100", "price >= 100 AND price < 1000", "price >= 1000"])
)
_CHANNEL: Final = (
    "SELECT auction, channel, CASE WHEN LOWER(channel) = 'apple' THEN '0' WHEN LOWER(channel) = 'google' THEN '1' "
    "ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid WHERE CONTAINS(url, "
    "'channel_id=') OR LOWER(channel) IN ('apple', 'google')"
)
_CALCULATED: Final = (
    "SELECT auction, 0.908 * price AS euros, CASE WHEN {hour} >= 8 AND {hour} <= 18 THEN 'day' WHEN {hour} <= 6 OR "
    "{hour} >= 20 THEN 'night' ELSE 'other' END AS part, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts "
    "FROM bid WHERE 0.908 * price > 400 AND 0.908 * price < 900"
)
_WITHIN: Final = (
    "FROM auction a, bid b WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires AND b.price IS NOT "
    "NULL"
)
_HIGHEST: Final = (
    f"SELECT {{}}a.id, a.seller, b.price, b.date_time {_WITHIN} QUALIFY ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY "
    "b.price DESC, b.date_time) = 1"
)
_BOTH: Final = (
    "(SELECT id, seller, 1 AS listed, NULL AS bidder, NULL AS price, date_time FROM auction UNION ALL "
    "SELECT auction, NULL, 0, bidder, price, date_time FROM bid) AS both"
)
_SESSION_OF: Final = "(PARTITION BY bidder ORDER BY date_time)"
_NOW: Final = "WINDOW [UNTIL NOW EVERY 1 MINUTE ON date_time]"

ASKED: Final = {
    "q0": Asked(
        "every bid",
        "SELECT auction, bidder, price, date_time FROM bid",
        "SELECT auction, bidder, price, date_time FROM bid",
    ),
    "q1": Asked(
        "prices in another currency",
        "SELECT auction, 0.908 * price AS price FROM bid",
        "SELECT auction, 0.908 * price FROM bid",
    ),
    "q2": Asked(
        "bids on some auctions",
        "SELECT auction, price FROM bid WHERE MOD(auction, 3) = 0",
        "SELECT auction, price FROM bid WHERE auction % 3 = 0",
    ),
    "q3": Asked(
        "who sells something of a category, of some states",
        "SELECT window_end, p.name, p.state, a.id FROM auction a, person p WHERE a.seller = p.id AND a.category = 10 "
        "AND p.state IN ('OR', 'ID') WINDOW [UNTIL NOW EVERY 1 MINUTE ON date_time]",
        "SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE a.category = 10 AND "
        "p.state IN ('OR', 'ID')",
        last_window=True,
    ),
    "q4": Asked(
        "the mean, over the auctions of a category, of the highest bid that came within each",
        f"SELECT window_end, category, AVG(final) AS mean FROM (SELECT MAX(b.price) AS final, a.category {_WITHIN} "
        f"GROUP BY a.id, a.category) GROUP BY category {_NOW}",
        f"SELECT category, AVG(final) FROM (SELECT MAX(b.price) AS final, a.category {_WITHIN} GROUP BY a.id, "
        "a.category) GROUP BY category",
        last_window=True,
    ),
    "q5": Asked(
        "the auction with most bids, of the last 10 seconds, every 2; of equal ones the first",
        "SELECT auction, num, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY num DESC, "
        "auction) AS rn FROM (SELECT auction, COUNT(*) AS num, window_end FROM HOP(bid, date_time, INTERVAL 2 SECONDS, "
        "INTERVAL 10 SECONDS) GROUP BY auction, window_end)) WHERE rn = 1",
        "SELECT auction, num, w FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY w ORDER BY num DESC, auction) AS rn "
        "FROM (SELECT auction, COUNT(*) num, time_bucket(INTERVAL 2 SECONDS, date_time) + INTERVAL 2 SECONDS * n AS w "
        "FROM bid, range(1, 6) AS s(n) GROUP BY auction, w)) WHERE rn = 1",
    ),
    "q6": Asked(
        "the mean, over the last ten auctions of a seller, of the highest bid that came within each",
        f"SELECT window_end, seller, AVG(price) AS mean FROM (SELECT seller, price, ROW_NUMBER() OVER (PARTITION BY "
        f"seller ORDER BY date_time DESC) AS rn FROM ({_HIGHEST.format('')})) WHERE rn <= 10 GROUP BY seller {_NOW}",
        f"SELECT seller, AVG(price) FROM (SELECT seller, price, ROW_NUMBER() OVER (PARTITION BY seller ORDER BY "
        f"date_time DESC) AS rn FROM ({_HIGHEST.format('')})) WHERE rn <= 10 GROUP BY seller",
        last_window=True,
    ),
    "q7": Asked(
        "the highest bid of every 10 seconds",
        "SELECT auction, price, bidder, window_end FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' "
        "SECOND)) QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY price DESC) = 1",
        f"SELECT auction, price, bidder, {_TEN} AS w FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY {_TEN} ORDER BY "
        "price DESC) = 1",
    ),
    "q8": Asked(
        "who came and sold something within the same 10 seconds",
        "SELECT p.id, p.name, window_end FROM person p, auction a WHERE p.id = a.seller GROUP BY p.id, p.name "
        "WINDOW [10 SECONDS EVERY 10 SECONDS ON date_time]",
        f"SELECT DISTINCT p.id, p.name, p.w FROM (SELECT *, {_TEN} AS w FROM person) p JOIN (SELECT *, "
        f"{_TEN} AS w FROM auction) a ON p.id = a.seller AND p.w = a.w",
    ),
    "q9": Asked(
        "the highest bid that came within each auction; of equal ones the first",
        f"{_HIGHEST.format('window_end, ')} {_NOW}",
        _HIGHEST.format(""),
        last_window=True,
    ),
    "q10": Asked(
        "bids with their day and time as text",
        "SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS day, DATE_FORMAT(date_time, 'HH:mm') AS hm FROM bid",
        "SELECT auction, strftime(date_time, '%Y-%m-%d'), strftime(date_time, '%H:%M') FROM bid",
    ),
    "q11": Asked(
        "how many bids of each bidder came without a pause of more than 10 seconds",
        "SELECT bidder, COUNT(*) AS bids, window_start, window_end FROM SESSION(TABLE bid PARTITION BY bidder, "
        "DESCRIPTOR(date_time), INTERVAL 10 SECONDS) GROUP BY bidder, window_start, window_end",
        "SELECT bidder, COUNT(*), MIN(date_time), MAX(date_time) + INTERVAL 10 SECONDS FROM (SELECT *, SUM(first) OVER "
        f"{_SESSION_OF} AS session FROM (SELECT *, CASE WHEN date_time - LAG(date_time) OVER {_SESSION_OF} <= INTERVAL "
        "10 SECONDS THEN 0 ELSE 1 END AS first FROM bid)) GROUP BY bidder, session",
    ),
    "q13": Asked(
        "bids with what a table says of their auctions",
        "SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid AS b JOIN side AS s ON b.auction = s.key",
        "SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid AS b JOIN side AS s ON b.auction = s.key",
    ),
    "q14": Asked(
        "bids, computed with", _CALCULATED.format(hour="HOUR(date_time)"), _CALCULATED.format(hour="HOUR(date_time)")
    ),
    "q15": Asked(
        "how many bids, bidders and auctions of each day, in ranges of prices",
        "SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd') AS day, COUNT(*) AS bids, "
        f"{_DIFFERENT} FROM TUMBLE(bid, date_time, INTERVAL 1 DAY) GROUP BY window_start",
        f"SELECT strftime({_DAY}, '%Y-%m-%d'), COUNT(*), {_DIFFERENT} FROM bid GROUP BY {_DAY}",
    ),
    "q16": Asked(
        "the same of each channel and day, and when its last bid was",
        "SELECT channel, DATE_FORMAT(window_start, 'yyyy-MM-dd') AS day, DATE_FORMAT(MAX(date_time), 'HH:mm') AS hm, "
        f"COUNT(*) AS bids, {_DIFFERENT} FROM TUMBLE(bid, date_time, INTERVAL 1 DAY) GROUP BY channel, window_start",
        f"SELECT channel, strftime({_DAY}, '%Y-%m-%d'), strftime(MAX(date_time), '%H:%M'), COUNT(*), {_DIFFERENT} "
        f"FROM bid GROUP BY channel, {_DAY}",
    ),
    "q17": Asked(
        "figures of each auction and day",
        f"SELECT auction, DATE_FORMAT(window_start, 'yyyy-MM-dd') AS day, COUNT(*) AS bids, {_RANGES} FROM TUMBLE(bid, "
        "date_time, INTERVAL 1 DAY) GROUP BY auction, window_start",
        f"SELECT auction, strftime({_DAY}, '%Y-%m-%d'), COUNT(*), {_RANGES} FROM bid GROUP BY auction, {_DAY}",
    ),
    "q18": Asked(
        "the last bid of each bidder on each auction",
        "SELECT window_end, auction, bidder, price FROM (SELECT *, window_end, ROW_NUMBER() OVER (PARTITION BY bidder, "
        "auction ORDER BY date_time DESC) AS rn FROM bid [WINDOW UNTIL NOW EVERY 1 MINUTE ON date_time]) WHERE rn <= 1",
        "SELECT auction, bidder, price FROM bid QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY "
        "date_time DESC) = 1",
        last_window=True,
    ),
    "q19": Asked(
        "the ten highest bids on each auction",
        "SELECT window_end, auction, price, rn FROM (SELECT *, window_end, ROW_NUMBER() OVER (PARTITION BY auction "
        "ORDER BY price DESC) AS rn FROM bid [WINDOW UNTIL NOW EVERY 1 MINUTE ON date_time]) WHERE rn <= 10",
        "SELECT auction, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid "
        "QUALIFY rn <= 10",
        last_window=True,
    ),
    "q20": Asked(
        "bids with their auctions, of a category",
        "SELECT window_end, b.auction, b.bidder, b.price, a.seller, a.date_time AS since FROM bid b JOIN auction a ON "
        "b.auction = a.id WHERE a.category = 10 WINDOW [UNTIL NOW EVERY 1 MINUTE ON date_time]",
        "SELECT b.auction, b.bidder, b.price, a.seller, a.date_time FROM bid b JOIN auction a ON b.auction = a.id "
        "WHERE a.category = 10",
        last_window=True,
    ),
    "q21": Asked("bids with the number of their channel", _CHANNEL, _CHANNEL),
    "q22": Asked(
        "the parts of an address",
        "SELECT auction, SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2 FROM bid",
        "SELECT auction, SPLIT_PART(url, '/', 4), SPLIT_PART(url, '/', 5) FROM bid",
    ),
    "q101": Asked(
        "auctions with the highest bid of each, if there is one",
        "SELECT window_end, a.id, a.seller, MAX(b.price) AS highest FROM auction a LEFT JOIN bid b ON a.id = b.auction "
        f"GROUP BY a.id, a.seller {_NOW}",
        "SELECT a.id, a.seller, b.highest FROM auction a LEFT JOIN (SELECT auction, MAX(price) AS highest FROM bid "
        "GROUP BY auction) b ON a.id = b.auction",
        last_window=True,
    ),
    "q102": Asked(
        "auctions with at least as many bids as the mean auction that has any",
        "SELECT window_end, id, seller, n FROM (SELECT id, MAX(seller) AS seller, MAX(listed) AS listed, COUNT(bidder) "
        f"AS n FROM {_BOTH} GROUP BY id) QUALIFY listed = 1 AND n > 0 AND n >= SUM(n) OVER () / "
        f"COUNT(NULLIF(n, 0)) OVER () {_NOW}",
        "SELECT a.id, a.seller, COUNT(b.auction) FROM auction a JOIN bid b ON a.id = b.auction GROUP BY a.id, a.seller "
        "HAVING COUNT(b.auction) >= (SELECT COUNT(*) / COUNT(DISTINCT auction) FROM bid)",
        last_window=True,
    ),
    "q103": Asked(
        "auctions with at least 20 bids",
        "SELECT window_end, a.id, a.seller FROM auction a JOIN bid b ON a.id = b.auction GROUP BY a.id, a.seller "
        f"HAVING COUNT(*) >= 20 {_NOW}",
        "SELECT id, seller FROM auction WHERE id IN (SELECT auction FROM bid GROUP BY auction HAVING COUNT(*) >= 20)",
        last_window=True,
    ),
    "q104": Asked(
        "auctions without bids, or with at least 20",
        "SELECT window_end, a.id, a.seller FROM auction a LEFT JOIN bid b ON a.id = b.auction GROUP BY a.id, a.seller "
        f"HAVING COUNT(b.*) = 0 OR COUNT(b.*) >= 20 {_NOW}",
        "SELECT id, seller FROM auction WHERE id NOT IN (SELECT auction FROM bid GROUP BY auction HAVING COUNT(*) < "
        "20)",
        last_window=True,
    ),
    "q105": Asked(
        "the 1,000 auctions with most bids",
        "SELECT window_end, a.id, a.seller, COUNT(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction "
        f"GROUP BY a.id, a.seller ORDER BY bids DESC LIMIT 1000 {_NOW}",
        "SELECT a.id, a.seller, COUNT(b.auction) AS bids FROM auction a JOIN bid b ON a.id = b.auction "
        "GROUP BY a.id, a.seller ORDER BY bids DESC LIMIT 1000",
        last_window=True,
    ),
    "q106": Asked(
        "the lowest, over all auctions, of the highest bid that came within each",
        f"SELECT window_end, MIN(final) AS m FROM (SELECT MAX(b.price) AS final, a.id {_WITHIN} GROUP BY a.id) {_NOW}",
        f"SELECT MIN(final) FROM (SELECT MAX(b.price) AS final, a.id {_WITHIN} GROUP BY a.id)",
        last_window=True,
    ),
}

CANNOT: Final = {
    "q12": "windows of the time at which rows are processed; windows here measure a column",
}
