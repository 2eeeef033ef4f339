-- One input: the k best rows of a window. Statements are separated by empty lines; every one runs on both engines.
SELECT * FROM trades [WINDOW 10 MINUTES EVERY 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 10

SELECT * FROM trades [WINDOW 10 MINUTES EVERY 5 MINUTES] ORDER BY price DESC LIMIT 3

select symbol, price from trades [window 10 minutes every 5 minutes] order by price desc limit 3

SELECT symbol FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price LIMIT 2

SELECT symbol, price * volume AS value FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

SELECT symbol, price * volume AS value, volume / 10 AS lots FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

SELECT * FROM trades [WINDOW 30 ROWS EVERY 10 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4

SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4

SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 4 EMIT ENTRIES

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 4 EMIT CHANGES

SELECT seq FROM trades [WINDOW UNTIL NOW EVERY 10 ON t] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 10 EVERY 10 ON t] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t LATENESS 3] ORDER BY price DESC LIMIT 2

SELECT seq FROM trades ORDER BY price DESC LIMIT 2 WINDOW [20 EVERY 5 ON t]

SELECT seq FROM trades ORDER BY price DESC LIMIT 2 WINDOW [20 EVERY 5 ON t] EMIT CHANGES

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 BY symbol

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2 BY symbol, venue

SELECT symbol, seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC) <= 2

SELECT symbol, seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price) < 3

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) = 1

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 5 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 5 AND symbol = "OAK" ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE symbol IN ('OAK', 'ELM') OR price < 3 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE price BETWEEN 2 AND 9 ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume IS NOT NULL ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE NOT symbol <> 'FIR' ORDER BY price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 30 ROWS EVERY 10 ROWS ORDER BY seq] WHERE volume > 5 ORDER BY price DESC LIMIT 2

SELECT t.seq, t.symbol FROM trades AS t [WINDOW 20 EVERY 5 ON t] WHERE t.volume > 5 ORDER BY t.price DESC LIMIT 2

SELECT tr.seq FROM trades tr [WINDOW 20 EVERY 5 ON t] ORDER BY tr.price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY |price - 5| LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY |price - 5| + |volume - 3| DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY 2 * |price - |volume - 3| * 2| LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price ** 2 - volume DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY CASE WHEN symbol = 'OAK' THEN price ELSE 0 END DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY SQRT(price) + LN(volume) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY GREATEST(price, volume) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price / (volume - 4) DESC LIMIT 2

SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY COALESCE(volume, 0) DESC LIMIT 2

SELECT seq, price AS score FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT seq AS rank, symbol AS window_end FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT price, price AS again FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

SELECT `seq`, `price` FROM `trades` [WINDOW 20 EVERY 5 ON `t`] ORDER BY `price` DESC LIMIT 2

WITH worth AS (SELECT symbol, t, price * volume AS value FROM trades WHERE volume > 3) SELECT symbol, value FROM worth [WINDOW 20 EVERY 5 ON t] ORDER BY value DESC LIMIT 2

WITH cheap AS (SELECT * FROM trades WHERE price < 5) SELECT seq FROM cheap [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2

WITH cheap AS (SELECT *, price * 2 AS twice FROM trades [WINDOW 20 EVERY 5 ON t] WHERE price < 5) SELECT seq, twice FROM cheap ORDER BY twice DESC LIMIT 2

WITH a AS (SELECT *, price * 2 AS x FROM trades), b AS (SELECT seq, t, x + 1 AS y FROM a WHERE x > 4) SELECT * FROM b [WINDOW 20 EVERY 5 ON t] ORDER BY y DESC LIMIT 2

WITH a AS (SELECT seq, t AS moment, price FROM trades) SELECT seq FROM a AS b [WINDOW 20 EVERY 5 ON t] WHERE b.moment > 3 ORDER BY b.price DESC LIMIT 2

SELECT seq FROM trades [WINDOW 30 ROWS ORDER BY seq] ORDER BY price DESC LIMIT 2 WITH ERROR 0.001

SELECT seq FROM trades [WINDOW 1 HOUR EVERY 30 MINUTES ON ts LATENESS 5 SECONDS] ORDER BY price DESC LIMIT 2 EMIT WINDOWS

-- Pairs of rows of one input.
SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a [WINDOW 20 EVERY 5 ON t], trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| * 2 + |a.volume - b.volume| LIMIT 3

SELECT a.seq AS one, b.seq AS other, a.price - b.price AS gap FROM trades a, trades b WHERE a.seq > b.seq ORDER BY gap DESC LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.*, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol ORDER BY |a.price - b.price| DESC LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT * FROM trades p JOIN trades q ON p.seq < q.seq WHERE p.symbol <> q.symbol ORDER BY |p.price - q.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.volume > 3 AND b.price < 9 ORDER BY |a.price - b.price| LIMIT 3 WINDOW [20 EVERY 5 ON t]

SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 3 WINDOW [15 ROWS ORDER BY seq]

-- Aggregates by group, over one input and over joins.
SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol

SELECT symbol, COUNT(*) AS n, SUM(price * volume) AS worth FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol ORDER BY worth DESC LIMIT 2

SELECT COUNT(*), AVG(price), MIN(price), MAX(volume) FROM trades [WINDOW 20 EVERY 5 ON t]

SELECT symbol, SUM(price) / COUNT(*) AS mean FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 2 GROUP BY symbol HAVING COUNT(*) > 1 ORDER BY mean LIMIT 2

SELECT symbol, venue, COUNT(volume) FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol, venue

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 ROWS EVERY 5 ROWS] GROUP BY 1 ORDER BY n DESC, symbol LIMIT 2

SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 ON t] GROUP BY symbol

SELECT A.auctionID, COUNT(B.*) FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 1 HOUR], Person AS P WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = "VT" GROUP BY A.auctionID;

SELECT a.auctionID, COUNT(*) AS bids, MAX(b.price) AS highest FROM auction a [WINDOW UNTIL NOW EVERY 10 MINUTES] JOIN bid b [WINDOW 20 MINUTES EVERY 10 MINUTES] ON a.auctionID = b.auctionID GROUP BY a.auctionID ORDER BY bids DESC LIMIT 3

SELECT p.state, SUM(b.price) AS paid FROM auction a [WINDOW UNTIL NOW EVERY 10 MINUTES], bid b [WINDOW 20 MINUTES], person p WHERE a.auctionID = b.auctionID AND p.personID = a.sellerID GROUP BY p.state

SELECT a.sellerID, COUNT(*) AS bids FROM auction a JOIN bid b USING (auctionID) GROUP BY a.sellerID WINDOW [30 MINUTES EVERY 10 MINUTES]

-- Objects that are scored across streams.
SELECT flow, r1.size, r2.amount FROM r1 FULL JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 10 ON t] WITH BOUNDS (0, 1)

SELECT * FROM r1 FULL JOIN r2 USING (flow) ORDER BY COALESCE(r1.size, 0) + 2 * COALESCE(r2.amount, 0) DESC LIMIT 3 WINDOW [50 ON t] WITH BOUNDS (0, 1)

SELECT flow FROM r1 [WINDOW 50 EVERY 10 ON t] FULL JOIN r2 [WINDOW 50 EVERY 10 ON t] USING (flow) WHERE r1.size > 0.1 ORDER BY GREATEST(r1.size, r2.amount) DESC LIMIT 2 WITH BOUNDS (0, 1)
