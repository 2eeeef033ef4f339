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
