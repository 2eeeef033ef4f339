-- Every statement here runs on both engines and equals recomputation; docs/sql-reference.md is made of this file.
-- '# ' begins a section; other comments say what the statements below them show. Empty lines separate statements.

-- # Windows

-- The last 10 minutes of a timestamp column, every minute.
SELECT * FROM trades [WINDOW 10 MINUTES EVERY 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 10

-- If an input has one timestamp column, you may leave out ON. Keywords may be in any case.
SELECT * FROM trades [WINDOW 10 MINUTES EVERY 5 MINUTES] ORDER BY price DESC LIMIT 3

select symbol, price from trades [window 10 minutes every 5 minutes] order by price desc limit 3

-- The same on a column of whole numbers.
SELECT symbol FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price LIMIT 2

-- Units of time, from microseconds to weeks.
SELECT seq FROM trades [WINDOW 1800 SECONDS EVERY 600 SECONDS] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 1 DAY EVERY 1 HOUR ON ts] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 1 WEEK EVERY 30 MINUTES] ORDER BY price DESC LIMIT 1

-- The size of a window need not be a multiple of its slide.
SELECT seq FROM trades [WINDOW 17 EVERY 5 ON t] ORDER BY price DESC LIMIT 3

-- Windows that do not overlap: each row is in one window.
SELECT seq FROM trades [WINDOW 10 EVERY 10 ON t] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 15 MINUTES EVERY 15 MINUTES] ORDER BY price DESC LIMIT 1

-- The last n rows, whenever they came. On Spark, ORDER BY names the column that gives their order.
SELECT * FROM trades [WINDOW 30 ROWS EVERY 10 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4

SELECT seq FROM trades [WINDOW 12 ROWS EVERY 12 ROWS ORDER BY seq] ORDER BY volume DESC LIMIT 1

-- From the start of the stream.
SELECT seq FROM trades [WINDOW UNTIL NOW EVERY 10 ON t] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW UNTIL NOW EVERY 20 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 3

SELECT seq FROM trades [WINDOW UNTIL NOW EVERY 30 MINUTES ON ts] ORDER BY price LIMIT 1

-- Without EVERY, the answer may change with each row. It then lists the rows that enter and leave.
SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4

SELECT seq FROM trades [WINDOW 20 ON t] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 10 MINUTES] ORDER BY price DESC LIMIT 1

SELECT seq FROM trades [WINDOW 90 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 2

-- LATENESS: windows wait for rows that are out of order.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t LATENESS 3] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 1 HOUR EVERY 30 MINUTES ON ts LATENESS 5 SECONDS] ORDER BY price DESC LIMIT 2 EMIT WINDOWS

-- FORGET AFTER: a group that was silent for longer starts anew. This bounds memory if new groups keep coming.
SELECT seq FROM trades [WINDOW 3 ROWS EVERY 1 ROWS FORGET AFTER 40 ROWS] ORDER BY price DESC LIMIT 1 BY symbol

SELECT seq FROM trades [WINDOW 3 ROWS EVERY 1 ROWS ORDER BY ts FORGET AFTER 10 MINUTES] ORDER BY price DESC LIMIT 1 BY symbol

-- A window at the end of the statement applies to all inputs.
SELECT seq FROM trades ORDER BY price DESC LIMIT 2 WINDOW [20 EVERY 5 ON t]

SELECT seq FROM trades ORDER BY price DESC LIMIT 2 WINDOW [20 EVERY 5 ON t] EMIT CHANGES

-- # Windows as others write them

-- Table functions of Flink and RisingWave. The answer has only the columns of the SELECT list.
SELECT window_start, window_end, symbol, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end, symbol

SELECT symbol, SUM(price) AS paid, window_start FROM HOP(trades, ts, INTERVAL '5 MINUTES', INTERVAL '20 MINUTES') AS h GROUP BY h.symbol, window_start

SELECT MAX(price) AS high, window_end FROM HOP(DATA => TABLE trades, TIMECOL => DESCRIPTOR(t), SLIDE => 5, SIZE => 10) GROUP BY window_end HAVING COUNT(*) > 2

-- Spark's window() in GROUP BY.
SELECT window.start, window.end AS until, symbol, COUNT(*) AS n FROM trades GROUP BY symbol, window(ts, '20 minutes', '10 minutes')

-- CUMULATE: windows that grow and then begin anew. SESSION: windows that end with a pause.
SELECT window_start, window_end, symbol, COUNT(*) AS n FROM CUMULATE(trades, ts, INTERVAL '10 MINUTES', INTERVAL '30 MINUTES') GROUP BY window_start, window_end, symbol

SELECT window_start, window_end, seq, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn FROM CUMULATE(trades, t, 5, 20)) WHERE rn <= 2

SELECT symbol, window_start, window_end, COUNT(*) AS n FROM SESSION(TABLE trades PARTITION BY symbol, DESCRIPTOR(ts), INTERVAL '3' MINUTES) GROUP BY symbol, window_start, window_end

SELECT session_window.start, session_window.end, venue, SUM(price) AS paid FROM trades WHERE price > 5 GROUP BY session_window(t, 2), venue

-- The first rows of each window, or of each window and group.
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn FROM TUMBLE(trades, ts, INTERVAL 10 MINUTES)) WHERE rn <= 3

SELECT symbol, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, symbol) AS rn FROM (SELECT symbol, COUNT(*) AS n, window_end FROM HOP(trades, t, 5, 20) GROUP BY symbol, window_end)) WHERE rn = 1

-- You can also select the bounds of Skyband's own windows. The answer then has only the columns of the SELECT list.
SELECT window_start, window_end, symbol, price FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT symbol, window_end - INTERVAL 1 MINUTE AS newest, COUNT(*) AS n FROM trades [WINDOW 20 MINUTES EVERY 10 MINUTES] GROUP BY symbol ORDER BY window_end, n DESC, symbol

-- # Aggregates beside rows and groups

-- Aggregates over all rows of the window with the same symbol.
SELECT seq, price - AVG(price) OVER (PARTITION BY symbol) AS above FROM trades [WINDOW 20 EVERY 10 ON t] QUALIFY COUNT(*) OVER (PARTITION BY symbol) > 2

-- The share of each group in the whole.
SELECT symbol, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol ORDER BY share DESC, symbol LIMIT 2

-- # The best rows

-- Rank by an expression or by its alias, and compute further columns.
SELECT symbol, price * volume AS value FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

SELECT symbol, price * volume AS value, volume / 10 AS lots FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

-- The smallest first, without DESC.
SELECT symbol, price FROM trades [WINDOW 10 EVERY 10 ON t] ORDER BY price ASC LIMIT 3

-- The absolute value between bars, and powers.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY |price - 5| LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY |price - 5| + |volume - 3| DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY 2 * |price - |volume - 3| * 2| LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price ** 2 - volume DESC LIMIT 2

-- Functions and CASE.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY CASE WHEN symbol = 'OAK' THEN price ELSE 0 END DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY SQRT(price) + LN(volume) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY GREATEST(price, volume) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY COALESCE(volume, 0) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY LEAST(price, COALESCE(volume, 5)) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY CASE WHEN volume IS NULL THEN 0 WHEN volume > 6 THEN price ELSE price / 2 END DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY FLOOR(price / 2) * 2 + CEIL(volume / 3) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY ABS(price - 6) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price - volume LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY -price LIMIT 2

-- Division gives floats. A number divided by zero is infinite, so the row comes first or last. NULLIF leaves such
-- rows unranked.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price / (volume - 4) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price / NULLIF(volume - 4, 0) DESC LIMIT 2

-- A ranking for each value of one or more columns.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 BY symbol

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 BY symbol, venue

SELECT seq FROM trades [WINDOW 20 EVERY 10 ON t] ORDER BY price DESC LIMIT 2 BY seq % 3

-- The same in standard SQL.
SELECT symbol, seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) <= 2

SELECT symbol, seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price) < 3

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) = 1

SELECT seq, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) AS rn FROM trades [WINDOW 20 EVERY 10 ON t] QUALIFY rn <= 2

SELECT venue, seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (PARTITION BY venue, symbol ORDER BY price * 2 DESC) = 1

-- RANK(), DENSE_RANK() and WITH TIES give equal rows the same rank, and show all of them.
SELECT symbol, seq, volume FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY RANK() OVER (PARTITION BY symbol ORDER BY volume DESC) <= 2

SELECT seq, volume FROM trades [WINDOW 20 MINUTES EVERY 10 MINUTES ON ts] QUALIFY DENSE_RANK() OVER (ORDER BY volume) < 3

SELECT seq, rnk FROM (SELECT seq, RANK() OVER (ORDER BY volume DESC, symbol) AS rnk FROM trades [WINDOW 20 ROWS EVERY 10 ROWS ORDER BY seq]) WHERE rnk BETWEEN 2 AND 3

SELECT seq, volume FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY volume DESC FETCH FIRST 2 ROWS WITH TIES

SELECT seq, volume FROM trades [WINDOW 15 ON t] ORDER BY volume DESC LIMIT 1 WITH TIES BY symbol

-- The output: each row once, when it first enters; the changes from window to window; or each window.
SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4 EMIT ENTRIES

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 4 EMIT CHANGES

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 EMIT WINDOWS

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 BY venue EMIT ENTRIES

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 1 BY symbol EMIT CHANGES

-- The answer may miss a few rows.
SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 2 WITH ERROR 0.001

SELECT seq FROM trades [WINDOW 40 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 1 WITH ERROR 0.01 EMIT ENTRIES

-- # Rows that count

-- WHERE drops rows before the window counts them.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 5 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 5 AND symbol = "OAK" ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol IN ('OAK', 'ELM') OR price < 3 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE price BETWEEN 2 AND 9 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume IS NOT NULL ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE NOT symbol <> 'FIR' ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 30 ROWS EVERY 10 ROWS ORDER BY seq] WHERE volume > 5 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume IS NULL OR price >= 9 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol NOT IN ('OAK') AND NOT (price < 3 OR price > 10) ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE price * volume > 20 AND venue <> 'x' ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol = venue OR symbol > 'F' ORDER BY price DESC LIMIT 2

-- Times, durations and strings.
SELECT seq, ts FROM trades [WINDOW 20 EVERY 5 ON t] WHERE ts >= '2026-03-01 00:10:00' ORDER BY price DESC LIMIT 2

SELECT seq, ts + INTERVAL 10 MINUTES AS later FROM trades [WINDOW 20 EVERY 5 ON t] WHERE ts - TIMESTAMP '2026-03-01 00:00:00' < INTERVAL 1 HOUR ORDER BY price DESC LIMIT 2

SELECT seq, LOWER(symbol) || '-' || SUBSTRING(venue, 1, 1) AS name FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol NOT LIKE '%A%' AND LENGTH(venue) = 1 ORDER BY price DESC LIMIT 2

-- Days. DATEDIFF(a, b) counts them from b to a.
SELECT seq, CAST(ts AS DATE) + INTERVAL 3 DAYS AS due, DATE_ADD(ts, seq) AS later, DATEDIFF(DATE_SUB(ts, 1), '2027-01-01') AS days FROM trades [WINDOW 20 EVERY 5 ON t] WHERE CAST(ts AS DATE) - INTERVAL 1 WEEK < '2026-03-01' ORDER BY price DESC LIMIT 2

SELECT seq, DATE_TRUNC('month', DATE_ADD(ts, seq)) AS month FROM trades [WINDOW 20 EVERY 5 ON t] WHERE DATE_TRUNC('week', CAST(ts AS DATE)) < ts ORDER BY price DESC LIMIT 2

SELECT DATEDIFF(DATE_ADD(ts, seq), ts) % 3 AS day, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY DATEDIFF(DATE_ADD(ts, seq), ts) % 3 ORDER BY MAX(DATEDIFF(DATE_ADD(ts, seq), '2026-03-01')) DESC LIMIT 2

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND DATEDIFF(DATE_ADD(b.ts, b.seq), DATE_ADD(a.ts, a.seq)) BETWEEN 2 AND 4 ORDER BY |a.price - b.price| LIMIT 2 WINDOW [20 EVERY 5 ON t]

-- A number other than 0 is true, and so are 't', 'true', 'y', 'yes' and '1'.
SELECT seq, CAST(seq % 3 AS BOOLEAN) AS is_left, CAST(venue = 'x' AS INT) AS at_x FROM trades [WINDOW 20 EVERY 5 ON t] WHERE CAST(volume % 2 AS BOOLEAN) AND CAST(REPLACE(venue, 'x', 'Yes') AS BOOLEAN) ORDER BY price DESC LIMIT 2

-- Decimals are exact. A value that does not fit is null.
SELECT seq, CAST(0.908 * seq AS DECIMAL(9, 2)) AS euros FROM trades [WINDOW 20 EVERY 5 ON t] WHERE CAST(seq AS DECIMAL(9, 1)) <> 3.5 ORDER BY CAST(seq % 7 AS DECIMAL(6, 2)) * 0.05 DESC LIMIT 2

SELECT symbol, SUM(CAST(seq * 0.125 AS DECIMAL(9, 2))) AS lots FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol

-- A comparison with null is unknown: neither true nor false. IS NOT TRUE and IS DISTINCT FROM are always known.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE (volume > 5) IS NOT TRUE ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume IS DISTINCT FROM 7 ORDER BY price DESC LIMIT 2

-- The name of an input may follow its window.
SELECT a.seq FROM trades [WINDOW 20 EVERY 5 ON t] AS a WHERE a.volume > 3 ORDER BY a.price DESC LIMIT 2

SELECT a.sellerID, COUNT(*) AS n FROM auction [WINDOW 1 HOUR EVERY 30 MINUTES] a, bid [WINDOW 1 HOUR] b WHERE a.auctionID = b.auctionID GROUP BY a.sellerID

-- Names of inputs, and columns with their input in front.
SELECT t.seq, t.symbol FROM trades AS t [WINDOW 20 EVERY 5 ON t] WHERE t.volume > 5 ORDER BY t.price DESC LIMIT 2

SELECT tr.seq FROM trades tr [WINDOW 20 EVERY 5 ON t] ORDER BY tr.price DESC LIMIT 2

SELECT Seq, TR.Symbol FROM Trades AS tr [WINDOW 20 EVERY 5 ON T] WHERE Volume > 5 ORDER BY PRICE DESC LIMIT 2

-- # Columns that are shown

-- If a name is taken, the column gets an underscore.
SELECT seq, price AS score FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT seq AS rank, symbol AS window_end FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

-- The answer does not repeat the column that is the score, unless you select it again.
SELECT price, price AS again FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

-- Backticks make names, double quotes strings.
SELECT `seq`, `price` FROM `trades` [WINDOW 20 EVERY 5 ON `t`] ORDER BY `price` DESC LIMIT 2

SELECT `symbol` AS `the symbol` FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol = "ELM" ORDER BY price DESC LIMIT 2

-- Computed columns.
SELECT seq, price * 2 AS twice, |price - 5| AS off FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT *, price + COALESCE(volume, 0) AS both FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY both DESC LIMIT 2

SELECT * EXCEPT (ts, venue) FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT seq, CASE WHEN volume > 6 THEN 'large' ELSE symbol END AS kind FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC FETCH FIRST 2 ROWS ONLY

-- # Tables of its own

-- WITH computes columns and filters rows, one row at a time. A WITH query may read another one.
WITH worth AS (SELECT symbol, t, price * volume AS value FROM trades WHERE volume > 3) SELECT symbol, value FROM worth [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

WITH cheap AS (SELECT * FROM trades WHERE price < 5) SELECT seq FROM cheap [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

WITH cheap AS (SELECT *, price * 2 AS twice FROM trades [WINDOW 20 EVERY 5 ON t] WHERE price < 5) SELECT seq, twice FROM cheap ORDER BY twice DESC LIMIT 2

WITH a AS (SELECT *, price * 2 AS x FROM trades), b AS (SELECT seq, t, x + 1 AS y FROM a WHERE x > 4) SELECT * FROM b [WINDOW 20 EVERY 5 ON t] ORDER BY y DESC LIMIT 2

WITH a AS (SELECT seq, t AS moment, price FROM trades) SELECT seq FROM a AS b [WINDOW 20 EVERY 5 ON moment] WHERE b.moment > 3 ORDER BY b.price DESC LIMIT 2

WITH big AS (SELECT *, price * volume AS worth FROM trades) SELECT symbol, SUM(worth) AS total FROM big [WINDOW 20 EVERY 10 ON t] WHERE worth > 10 GROUP BY symbol

WITH t1 AS (SELECT seq, t, price / 2 AS half FROM trades) SELECT a.seq, b.seq FROM t1 a, t1 b WHERE a.seq < b.seq ORDER BY |a.half - b.half| LIMIT 2 WINDOW [10 EVERY 5 ON t]

WITH turned AS (SELECT seq, t, 100 - price AS price FROM trades) SELECT seq FROM turned [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

WITH c(id, moment, x) AS (SELECT seq, t * 2, price FROM trades) SELECT id FROM c [WINDOW 20 EVERY 10 ON moment] ORDER BY x DESC LIMIT 2

-- A query in FROM does the same.
SELECT seq FROM (SELECT seq, t, price FROM trades WHERE volume > 3) AS some [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

-- A query in FROM need not have a name.
SELECT seq, twice FROM (SELECT seq, t, price * 2 AS twice FROM trades WHERE volume > 2) [WINDOW 20 EVERY 10 ON t] ORDER BY twice DESC LIMIT 2

-- UNION ALL in FROM or WITH: rows of several inputs as one, in the order that the window's column gives them.
SELECT name, size FROM (SELECT flow AS name, size, t FROM r1 UNION ALL SELECT flow, amount, t FROM r2 WHERE amount > 0.2) AS r [WINDOW 20 EVERY 10 ON t] ORDER BY size DESC LIMIT 3

WITH said AS (SELECT flow, size AS x, t, 1 AS which FROM r1 UNION ALL SELECT flow, amount, t, 2 FROM r2 UNION ALL SELECT flow, weight * 2, t, 3 FROM r3) SELECT which, COUNT(*) AS n, MAX(x) AS most FROM said [WINDOW 30 EVERY 15 ON t] GROUP BY which

-- ROW_NUMBER() in a subquery, and its limit in the outer WHERE. Other conditions of that WHERE filter the answer.
SELECT symbol, price, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) AS rn FROM trades [WINDOW 20 EVERY 10 ON t]) AS r WHERE 2 >= rn AND price > 5

WITH ranked AS (SELECT seq, price * 2 AS twice, ROW_NUMBER() OVER (ORDER BY price DESC) AS rn FROM trades [WINDOW 20 EVERY 10 ON t] WHERE volume > 2) SELECT seq, twice FROM ranked WHERE rn BETWEEN 2 AND 3

-- OFFSET skips the first ranks.
SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 OFFSET 3

SELECT symbol, venue, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol, venue ORDER BY n DESC, symbol, venue LIMIT 2 OFFSET 1

-- # The best pairs

-- The same input twice; a condition says which row of a pair comes first.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a [WINDOW 20 EVERY 5 ON t], trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| * 2 + |a.volume - b.volume| LIMIT 3

SELECT a.seq AS one, b.seq AS other, a.price - b.price AS gap FROM trades a, trades b WHERE a.seq > b.seq ORDER BY gap DESC LIMIT 3 WINDOW [20 EVERY 5 ON t]

-- Pairs with the same value of a column, or with different ones.
SELECT a.*, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol ORDER BY |a.price - b.price| DESC LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT * FROM trades p JOIN trades q ON p.seq < q.seq WHERE p.symbol <> q.symbol ORDER BY |p.price - q.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol AND a.venue <> b.venue ORDER BY |a.price - b.price| DESC LIMIT 2 WINDOW [20 EVERY 10 ON t]

-- The best pairs of each group. Both rows are in the group.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol ORDER BY |a.price - b.price| LIMIT 2 BY a.symbol WINDOW [20 EVERY 5 ON t]

SELECT a.symbol, b.venue, a.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol AND a.venue = b.venue QUALIFY ROW_NUMBER() OVER (PARTITION BY a.symbol, b.venue ORDER BY |a.price - b.price|) <= 1 WINDOW [20 EVERY 10 ON t]

-- Pairs of two streams: UNION ALL says of each row from which one it comes, and the condition which one is `a`.
WITH both AS (SELECT flow, size AS x, t, 1 AS side FROM r1 UNION ALL SELECT flow, amount, t, 2 FROM r2) SELECT a.flow AS one, b.flow AS other FROM both a, both b WHERE a.side < b.side ORDER BY |a.x - b.x| LIMIT 3 WINDOW [20 EVERY 10 ON t]

-- Other conditions, on one row or on both.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.volume > 3 AND b.price < 9 ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.price + b.price > 12 ORDER BY |a.price - b.price| LIMIT 2 WINDOW [20 EVERY 10 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.price < b.price ORDER BY b.price - a.price DESC LIMIT 2 WINDOW [15 EVERY 15 ON t]

-- Conditions also compare strings and times. The difference of two times is a number of microseconds.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.symbol < b.symbol AND a.venue <> b.venue ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.symbol < b.symbol ORDER BY a.price - 2 * b.price LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = 'OAK' AND b.venue IN ('x', 'z') ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.ts < b.ts AND b.ts >= '2026-03-01 00:10:00' ORDER BY |a.ts - b.ts| * a.volume LIMIT 3 WINDOW [20 EVERY 5 ON t]

-- Functions of one row, spans of time between two, and the window itself.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND LEFT(a.symbol, 1) <> LEFT(b.symbol, 1) AND b.ts - a.ts < INTERVAL 8 MINUTES ORDER BY |LENGTH(a.venue) + a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT window_end, a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.ts + INTERVAL 3 MINUTES <= b.ts AND a.symbol LIKE 'O%' ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

-- Any score of both rows.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY a.price * b.price DESC LIMIT 2 WINDOW [15 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.t < b.t ORDER BY (b.t - a.t) * 2 + |a.price - b.price| LIMIT 2 WINDOW [15 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY SQRT((a.price - b.price) ** 2 + (a.volume - b.volume) ** 2) LIMIT 2 WINDOW [12 EVERY 6 ON t]

-- An answer with each row, over the last rows or a duration: the changes, or only new pairs.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 3 WINDOW [15 ROWS ORDER BY seq]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 1 WINDOW [10 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| DESC LIMIT 2 WINDOW [15 MINUTES EVERY 5 MINUTES]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 2 WINDOW [10 EVERY 5 ON t] EMIT CHANGES

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 2 WINDOW [10 EVERY 5 ON t] EMIT ENTRIES

-- # Tables that say something of each row

-- A table has no window: it is there from the start. Its columns become columns of the row.
SELECT auctionID, price, state FROM bid [WINDOW 30 MINUTES EVERY 10 MINUTES] JOIN auction a USING (auctionID) JOIN person ON sellerID = personID ORDER BY price DESC LIMIT 2

SELECT auctionID, p.state FROM auction [WINDOW UNTIL NOW EVERY 20 MINUTES], person p WHERE p.personID = sellerID AND state <> 'NH' ORDER BY auctionID LIMIT 2

-- LEFT JOIN keeps rows without a partner.
SELECT b.auctionID, b.price, a.sellerID FROM bid b [WINDOW 30 MINUTES EVERY 30 MINUTES] LEFT JOIN (SELECT * FROM auction WHERE sellerID <> 8) a ON a.auctionID = b.auctionID ORDER BY b.price DESC, b.ts LIMIT 3

SELECT a.sellerID, COUNT(*) AS n, COUNT(DISTINCT a.auctionID) AS auctions FROM bid b [WINDOW 30 MINUTES EVERY 30 MINUTES] LEFT JOIN auction a ON a.auctionID = b.auctionID AND a.sellerID > 7 GROUP BY a.sellerID

-- Rows that have a partner in a table, and rows that have none.
SELECT price FROM bid [WINDOW 30 MINUTES EVERY 10 MINUTES] WHERE EXISTS (SELECT 1 FROM auction WHERE auction.auctionID = bid.auctionID AND sellerID = 7) ORDER BY price DESC, ts LIMIT 2

SELECT b.price FROM bid b [WINDOW 30 MINUTES EVERY 10 MINUTES] LEFT ANTI JOIN auction a ON a.auctionID = b.auctionID AND a.sellerID = 7 ORDER BY b.price DESC, b.ts LIMIT 2

SELECT auctionID, COUNT(*) AS n FROM bid [WINDOW 30 MINUTES EVERY 10 MINUTES] WHERE auctionID IN (SELECT auctionID FROM auction WHERE sellerID <> 7) AND price > 3 GROUP BY auctionID

SELECT auctionID, MAX(price) AS high FROM bid [WINDOW 30 MINUTES EVERY 10 MINUTES] WHERE NOT EXISTS (SELECT * FROM auction a WHERE a.auctionID = bid.auctionID AND a.sellerID = 9) GROUP BY auctionID ORDER BY high DESC, auctionID LIMIT 2

-- # Groups

-- Aggregates of one window, for each group or for all rows.
SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol

SELECT COUNT(*), AVG(price), MIN(price), MAX(volume) FROM trades [WINDOW 20 EVERY 5 ON t]

SELECT symbol, venue, COUNT(volume) FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol, venue

SELECT venue, MIN(price) AS low, MAX(price) AS high, AVG(volume) AS mean FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY venue

SELECT SUM(price) AS paid FROM trades [WINDOW UNTIL NOW EVERY 30 ON t]

-- Group by an expression, by its alias or by its place in the SELECT list.
SELECT price * 2, COUNT(*) FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY price * 2

SELECT CASE WHEN price > 6 THEN 'high' ELSE symbol END AS kind, MAX(volume) AS most FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY kind

SELECT symbol, COUNT(1) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY 1 ORDER BY 2 DESC LIMIT 2

-- Aggregates of some of the rows.
SELECT symbol, COUNT(*) FILTER (WHERE price > 3) AS n, SUM(volume) FILTER (WHERE venue = 'x') AS s FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol

SELECT symbol, SUM(volume) AS volume FROM trades [WINDOW 30 MINUTES EVERY 10 MINUTES] GROUP BY symbol

-- DISTINCT gives each row of a window once, like GROUP BY of all columns.
SELECT DISTINCT symbol, venue FROM trades [WINDOW 20 EVERY 5 ON t]

SELECT DISTINCT price FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 2 ORDER BY price DESC LIMIT 2

-- The number of different values of a column or an expression, over all rows of a group or some of them.
SELECT symbol, COUNT(DISTINCT venue) AS venues, COUNT(DISTINCT price) AS prices FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol

SELECT venue, COUNT(DISTINCT UPPER(symbol)) AS n, COUNT(DISTINCT symbol) FILTER (WHERE price > 3) AS dear FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY venue HAVING COUNT(DISTINCT symbol) > 1 ORDER BY n DESC, venue LIMIT 2

SELECT COUNT(DISTINCT symbol) AS n, MIN(DISTINCT price) AS low FROM trades [WINDOW 20 ON t]

-- MIN and MAX of strings, booleans, dates and times, of columns or expressions. COUNT_IF counts rows that meet a condition.
SELECT venue, MIN(symbol) AS first, MAX(LOWER(symbol) || venue) AS last FROM trades [WINDOW 10 EVERY 5 ON t] GROUP BY venue

SELECT symbol, MAX(price > 50) AS dear, MIN(ts) AS since, MAX(CAST(ts AS DATE)) AS day, COUNT_IF(volume > 5) AS large FROM trades [WINDOW 10 EVERY 5 ON t] GROUP BY symbol

SELECT symbol, MAX(venue) FILTER (WHERE price > 20) AS v FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol HAVING MIN(venue) > '' ORDER BY v DESC, symbol LIMIT 2

SELECT seq, MIN(venue) OVER (PARTITION BY symbol) AS first FROM trades [WINDOW 10 EVERY 10 ON t] QUALIFY venue = MIN(venue) OVER (PARTITION BY symbol)

SELECT a.auctionID, MAX(p.state) AS state, COUNT(*) AS n FROM auction a [WINDOW 1 HOUR EVERY 30 MINUTES], bid b [WINDOW 1 HOUR EVERY 30 MINUTES], person p WHERE a.auctionID = b.auctionID AND a.sellerID = p.personID GROUP BY a.auctionID

-- Months and years move dates and timestamps; the last day of a month stays the last day of a shorter one.
SELECT LAST_DAY(ts) AS month, COUNT(*) AS n, MAX(ts + INTERVAL 1 MONTH) AS due FROM trades [WINDOW 1 DAY EVERY 1 DAY] WHERE ts + INTERVAL 1 YEAR > '2000-01-31' GROUP BY LAST_DAY(ts)

-- Strings and conditions, as Spark has them.
SELECT LPAD(symbol, 5, '*') AS name, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 20 ON t] WHERE INSTR(symbol, 'A') > 0 OR symbol RLIKE '^E' GROUP BY LPAD(symbol, 5, '*') ORDER BY n DESC, name LIMIT 2

-- The best groups, by an aggregate or an expression over aggregates.
SELECT symbol, COUNT(*) AS n, SUM(price * volume) AS worth FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol ORDER BY worth DESC LIMIT 2

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 ROWS EVERY 5 ROWS] GROUP BY 1 ORDER BY n DESC, symbol LIMIT 2

SELECT symbol, AVG(price) AS mean FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol ORDER BY mean DESC LIMIT 1

SELECT symbol, MAX(price) - MIN(price) AS spread FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol ORDER BY spread DESC LIMIT 2

SELECT venue, symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY venue, symbol ORDER BY n DESC, venue, symbol LIMIT 3

-- The best groups for each value of a column, and groups that share a rank.
SELECT venue, symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY venue, symbol ORDER BY n DESC LIMIT 1 BY venue

SELECT venue, symbol, SUM(price) AS paid FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY venue, symbol QUALIFY RANK() OVER (PARTITION BY venue ORDER BY paid DESC) <= 2

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol ORDER BY n DESC FETCH FIRST 1 ROWS WITH TIES

-- HAVING drops groups, WHERE rows.
SELECT symbol, SUM(price) / COUNT(*) AS mean FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 2 GROUP BY symbol HAVING COUNT(*) > 1 ORDER BY mean LIMIT 2

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] WHERE price > 3 GROUP BY symbol HAVING n > 3

SELECT symbol, SUM(price) AS paid FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol HAVING SUM(price) > 30 AND COUNT(*) < 9

-- An answer with each row: groups that changed, and groups that are gone.
SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 ON t] GROUP BY symbol

SELECT symbol, MAX(price) AS high FROM trades [WINDOW 15 ON t] GROUP BY symbol

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol EMIT CHANGES

-- Conditions on groups, and the best groups, written as outer queries.
SELECT symbol FROM (SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol) WHERE n > 6

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC, symbol) <= 2

-- Without GROUP BY, all rows form one group.
SELECT COUNT(*) AS n, SUM(price * volume) AS worth FROM trades [WINDOW 10 EVERY 10 ON t]

-- # Joins

-- An input with a window is a stream, one without is a table that is there from the start.
SELECT A.auctionID, COUNT(B.*) FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 1 HOUR], Person AS P WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = "VT" GROUP BY A.auctionID;

SELECT a.auctionID, COUNT(*) AS bids, MAX(b.price) AS highest FROM auction a [WINDOW UNTIL NOW EVERY 10 MINUTES] JOIN bid b [WINDOW 20 MINUTES EVERY 10 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.auctionID ORDER BY bids DESC LIMIT 3

SELECT p.state, SUM(b.price) AS paid FROM auction a [WINDOW UNTIL NOW EVERY 10 MINUTES], bid b [WINDOW 20 MINUTES], person p WHERE a.auctionID = b.auctionID AND p.personID = a.sellerID GROUP BY p.state

SELECT p.state, COUNT(*) AS auctions FROM auction a [WINDOW UNTIL NOW EVERY 20 MINUTES], person p WHERE a.sellerID = p.personID GROUP BY p.state

-- Windows of rows: each has the last rows of its own input. EVERY counts the rows of all streams, in the order of the columns after ORDER BY.
SELECT a.auctionID, COUNT(*) AS bids, MAX(b.price) AS highest FROM auction a [WINDOW 8 ROWS ORDER BY ts], bid b [WINDOW 20 ROWS EVERY 5 ROWS ORDER BY ts] WHERE a.auctionID = b.auctionID AND b.price > 2 GROUP BY a.auctionID

SELECT a.sellerID, SUM(b.price) AS paid FROM auction a [WINDOW UNTIL NOW EVERY 5 ROWS ORDER BY ts] JOIN bid b [WINDOW 10 ROWS ORDER BY ts] USING (auctionID) GROUP BY a.sellerID

-- JOIN … ON, JOIN … USING, or conditions in WHERE.
SELECT a.sellerID, COUNT(*) AS bids FROM auction a JOIN bid b USING (auctionID) GROUP BY a.sellerID WINDOW [30 MINUTES EVERY 10 MINUTES]

SELECT auctionID, COUNT(*) AS bids FROM auction a JOIN bid b USING (auctionID) GROUP BY auctionID WINDOW [30 MINUTES EVERY 10 MINUTES]

SELECT a.auctionID, b.auctionID, COUNT(*) AS bids FROM auction a, bid b WHERE (a.auctionID = b.auctionID AND b.price > 2) GROUP BY a.auctionID, b.auctionID WINDOW [30 MINUTES EVERY 10 MINUTES]

SELECT a.auctionID, MIN(b.price) AS low FROM auction a JOIN bid b ON a.auctionID = b.auctionID GROUP BY a.auctionID WINDOW [60 MINUTES EVERY 20 MINUTES]

SELECT a.sellerID, COUNT(DISTINCT b.price) AS prices, COUNT(DISTINCT a.auctionID) AS auctions, COUNT(*) AS bids FROM auction a JOIN bid b USING (auctionID) GROUP BY a.sellerID WINDOW [60 MINUTES EVERY 20 MINUTES]

SELECT COUNT(*) AS matches FROM auction a JOIN bid b USING (auctionID) WINDOW [60 MINUTES EVERY 20 MINUTES]

-- Conditions on rows of either side, and groups that are ranked.
SELECT a.auctionID, COUNT(*) AS bids FROM auction a [WINDOW UNTIL NOW EVERY 20 MINUTES], bid b [WINDOW 40 MINUTES] WHERE a.auctionID = b.auctionID AND b.price > 10 GROUP BY a.auctionID ORDER BY bids DESC, auctionID LIMIT 2

SELECT a.sellerID, SUM(b.price) AS paid, COUNT(*) AS bids FROM auction a [WINDOW UNTIL NOW EVERY 20 MINUTES], bid b [WINDOW 40 MINUTES] WHERE a.auctionID = b.auctionID AND a.sellerID <> 8 GROUP BY a.sellerID HAVING COUNT(*) > 1

-- An input joined with itself.
SELECT a.symbol, COUNT(*) AS n FROM trades a, trades b WHERE a.venue = b.venue GROUP BY a.symbol WINDOW [10 EVERY 10 ON t]

-- Without GROUP BY, a join gives all its rows of each window. Conditions may compare columns of both inputs.
SELECT a.auctionID, sellerID, b.price FROM auction a JOIN bid b ON a.auctionID = b.auctionID AND b.ts > a.ts WINDOW [30 MINUTES EVERY 10 MINUTES]

SELECT * FROM auction a [WINDOW UNTIL NOW EVERY 30 MINUTES] JOIN bid b [WINDOW 30 MINUTES] USING (auctionID)

SELECT p.state, b.price * 2 AS double, window_end FROM auction a [WINDOW UNTIL NOW EVERY 30 MINUTES], bid b [WINDOW 30 MINUTES], person p WHERE a.auctionID = b.auctionID AND p.personID = a.sellerID AND b.price > a.sellerID

-- The best rows of a join, of each window, or of each value of a column. If all keys are equal, the row with the smaller values comes first.
SELECT a.auctionID, sellerID, b.price FROM auction a JOIN bid b ON a.auctionID = b.auctionID ORDER BY b.price DESC LIMIT 3 WINDOW [30 MINUTES EVERY 10 MINUTES]

SELECT a.sellerID, b.price, b.ts FROM auction a [WINDOW UNTIL NOW EVERY 30 MINUTES], bid b [WINDOW 1 HOUR] WHERE a.auctionID = b.auctionID AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 40 MINUTES QUALIFY ROW_NUMBER() OVER (PARTITION BY a.sellerID ORDER BY b.price DESC, b.ts) <= 2

SELECT p.state, b.price FROM auction a [WINDOW UNTIL NOW EVERY 20 MINUTES], bid b [WINDOW 1 HOUR], person p WHERE a.auctionID = b.auctionID AND p.personID = a.sellerID QUALIFY RANK() OVER (PARTITION BY p.state ORDER BY b.price DESC) = 1

-- If conditions compare columns of several inputs, Skyband groups the joined rows of each window.
SELECT a.sellerID, COUNT(*) AS bids, MAX(b.price) AS high FROM auction a JOIN bid b ON a.auctionID = b.auctionID AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 40 MINUTES GROUP BY a.sellerID WINDOW [1 HOUR EVERY 20 MINUTES]

SELECT a.symbol, COUNT(*) AS n FROM trades a, trades b WHERE a.venue = b.venue AND a.seq < b.seq GROUP BY a.symbol WINDOW [10 EVERY 10 ON t]

-- # Rows without a partner

-- Windows of streams: each auction of a window with the number of its bids, also where there is none.
SELECT a.auctionID, COUNT(*) AS lines, COUNT(b.*) AS bids, SUM(b.price) AS total FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 20 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.auctionID

SELECT a.sellerID, COUNT(b.price) AS bids FROM auction a LEFT OUTER JOIN bid b USING (auctionID) GROUP BY a.sellerID WINDOW [UNTIL NOW EVERY 20 MINUTES] EMIT CHANGES

SELECT a.auctionID, COUNT(b.*) AS bids FROM auction a [WINDOW 1 HOUR] LEFT JOIN bid b [WINDOW 5 MINUTES] ON a.auctionID = b.auctionID AND b.price > 9 GROUP BY a.auctionID

-- What ON says of the left decides who has a partner, and WHERE comes after the join.
SELECT a.auctionID, b.price FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID AND a.sellerID > 7 AND b.price > 20

SELECT a.auctionID, b.price FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID + 1 = b.auctionID WHERE b.price IS NULL OR b.ts > a.ts ORDER BY b.price DESC NULLS FIRST, a.auctionID LIMIT 3

SELECT a.sellerID, MIN(b.price) AS low, MAX(a.auctionID) AS last FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.sellerID HAVING COUNT(*) > COUNT(b.*)

SELECT COALESCE(b.price, 0) AS price, COUNT(*) AS n FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY COALESCE(b.price, 0) ORDER BY n DESC, price LIMIT 2

SELECT a.sellerID, b.auctionID, b.price FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] RIGHT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID AND a.sellerID <> 7

-- Rows that have a partner, and rows that have none.
SELECT auctionID FROM auction [WINDOW 40 MINUTES EVERY 20 MINUTES] WHERE EXISTS (SELECT 1 FROM bid [WINDOW 40 MINUTES EVERY 20 MINUTES] WHERE bid.auctionID = auction.auctionID AND price > 20)

SELECT a.sellerID, COUNT(*) AS unsold FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT ANTI JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.sellerID ORDER BY unsold DESC LIMIT 1

SELECT price FROM bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] WHERE b.auctionID IN (SELECT auctionID FROM auction [WINDOW 20 MINUTES EVERY 20 MINUTES] WHERE sellerID <> 8) ORDER BY price DESC, b.ts LIMIT 3

SELECT a.auctionID, COUNT(*) AS n FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] WHERE NOT EXISTS (SELECT * FROM bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] WHERE b.auctionID = a.auctionID) GROUP BY a.auctionID EMIT CHANGES

-- Beside other joins, with windows and with tables.
SELECT p.state, COUNT(*) AS n, COUNT(b.*) AS bids FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] JOIN person p ON p.personID = a.sellerID LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY p.state

SELECT a.auctionID, b.price, c.price AS other FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID LEFT JOIN bid c [WINDOW 20 MINUTES EVERY 20 MINUTES] ON c.auctionID = a.auctionID AND c.price < 5

SELECT a.auctionID, b.price, COUNT(*) OVER (PARTITION BY a.sellerID) AS n FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID AND b.price > 25

SELECT bids, COUNT(*) AS auctions FROM (SELECT a.auctionID, COUNT(b.*) AS bids FROM auction a [WINDOW 40 MINUTES EVERY 20 MINUTES] LEFT JOIN bid b [WINDOW 40 MINUTES EVERY 20 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.auctionID) GROUP BY bids

SELECT a.sellerID, COUNT(b.*) AS n FROM auction a [WINDOW 6 ROWS EVERY 5 ROWS ORDER BY ts] LEFT JOIN bid b [WINDOW 6 ROWS ORDER BY ts] ON a.auctionID = b.auctionID AND b.price > 4 GROUP BY a.sellerID

SELECT a.auctionID, a.window_end, COUNT(b.*) AS n FROM TUMBLE(auction, ts, INTERVAL 20 MINUTES) a LEFT JOIN TUMBLE(bid, ts, INTERVAL 20 MINUTES) b ON a.auctionID = b.auctionID AND a.window_end = b.window_end GROUP BY a.auctionID, a.window_end

-- # Queries about an answer

-- A query around one that ranks or groups reads the answer of each window, and may rank or group it again.
SELECT AVG(n) AS mean, MAX(n) AS most FROM (SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY symbol)

SELECT venue, AVG(high) AS mean FROM (SELECT venue, symbol, MAX(price) AS high FROM trades [WINDOW 20 EVERY 10 ON t] GROUP BY venue, symbol) WHERE high > 5 GROUP BY venue ORDER BY mean DESC LIMIT 2

SELECT symbol, SUM(price) AS paid, window_start FROM (SELECT symbol, price FROM trades [WINDOW 20 EVERY 10 ON t] ORDER BY price DESC LIMIT 5) GROUP BY symbol

WITH best AS (SELECT symbol, venue, price FROM trades [WINDOW 20 EVERY 10 ON t] ORDER BY price DESC LIMIT 2 BY symbol) SELECT venue, symbol, price FROM best QUALIFY ROW_NUMBER() OVER (PARTITION BY venue ORDER BY price) = 1

SELECT window_end, AVG(high) AS mean FROM (SELECT auctionID, MAX(price) AS high, window_end FROM TUMBLE(bid, ts, INTERVAL 30 MINUTES) GROUP BY auctionID, window_end) GROUP BY window_end

SELECT sellerID, AVG(high) AS mean FROM (SELECT a.sellerID, MAX(b.price) AS high FROM auction a, bid b WHERE a.auctionID = b.auctionID AND b.ts > a.ts GROUP BY a.auctionID, a.sellerID) GROUP BY sellerID WINDOW [UNTIL NOW EVERY 30 MINUTES]

-- # Objects across streams

-- FULL JOIN … USING: each stream gives one part of an object's score, at its own time. A missing part counts as the
-- smallest value.
SELECT flow, r1.size, r2.amount FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1)

SELECT * FROM r1 FULL JOIN r2 USING (flow) ORDER BY COALESCE(r1.size, 0) + 2 * COALESCE(r2.amount, 0) DESC LIMIT 3 WINDOW [50 ON t] WITH BOUNDS (0, 1)

-- Weights, and scores that never fall when a value rises.
SELECT flow FROM r1 [WINDOW 50 EVERY 10 ON t] FULL JOIN r2 [WINDOW 50 EVERY 10 ON t] USING (flow) WHERE r1.size > 0.1 ORDER BY GREATEST(r1.size, r2.amount) DESC LIMIT 2 WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY size + amount DESC LIMIT 3 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY 3 * r1.size + r2.amount DESC LIMIT 2 WINDOW [40 EVERY 20 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size * r2.amount DESC LIMIT 2 WINDOW [60 EVERY 20 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY LEAST(r1.size, r2.amount) DESC LIMIT 1 WINDOW [60 EVERY 20 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY SQRT(r1.size) + r2.amount ** 2 DESC LIMIT 2 WINDOW [60 EVERY 20 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY (r1.size + r2.amount) / 2 DESC LIMIT 2 WINDOW [60 EVERY 20 ON t] WITH BOUNDS (0, 1)

-- Three streams, with aliases.
SELECT flow FROM r1 FULL JOIN r2 USING (flow) FULL JOIN r3 USING (flow) ORDER BY r1.size + r2.amount + r3.weight DESC LIMIT 3 WINDOW [50 EVERY 25 ON t] WITH BOUNDS (0, 1)

SELECT flow, a.size AS north, b.amount AS south FROM r1 AS a FULL JOIN r2 AS b USING (flow) ORDER BY a.size + b.amount DESC LIMIT 2 WINDOW [50 EVERY 25 ON t] WITH BOUNDS (0, 1)

-- Only some rows of a stream; the changes; the score by its alias.
SELECT flow FROM r1 FULL JOIN r2 USING (flow) WHERE r1.size > 0.2 AND r2.amount < 0.9 ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1) EMIT CHANGES

SELECT flow, r1.size + r2.amount AS total FROM r1 FULL JOIN r2 USING (flow) ORDER BY total DESC LIMIT 2 WINDOW [50 EVERY 25 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [30 EVERY 30 ON t LATENESS 4]

-- From the start of the stream, with bounds that begin below zero.
SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [UNTIL NOW EVERY 40 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [40 EVERY 40 ON t] WITH BOUNDS (-1, 1)

-- WITH RECALL: a share of the objects is enough. Skyband keeps far fewer rows, and a column has the share that the
-- answer reached.
SELECT flow FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1) WITH RECALL 0.95

SELECT flow, r2.amount FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 ON t] WITH RECALL 0.9 WITH BOUNDS (0, 1)
