"""Example tests: each clause of SELECT, and each argument that sqlglot reads of one, is used or refused."""

from __future__ import annotations

import pytest
from sql.test_statements import INPUTS
from sqlglot import exp

import skyband as sb
from skyband.dialect.clauses import READ, check_read
from skyband.dialect.nodes import Continuous, Span, Stream, StreamWindow

RANKED = "SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2"
GROUPED = "SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 20 EVERY 5 ON t] GROUP BY symbol"
PAIRS = "SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq ORDER BY |a.price - b.price| LIMIT 2 {}"
PAIR_WINDOW = "WINDOW [10 EVERY 10 ON t]"
SUBQUERIES = PAIRS.replace("trades a", "(SELECT * FROM trades) AS a").replace("trades b", "(SELECT * FROM trades) AS b")
BIDS = "SELECT COUNT(*) AS n FROM auction a {} bid b {} WINDOW [1 HOUR EVERY 20 MINUTES]"
QUALIFIED = "SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] QUALIFY ROW_NUMBER() OVER ({}) <= 2"
FLOWS = "SELECT * FROM r1 {} JOIN r2 USING (flow) ORDER BY r1.size + r2.amount DESC LIMIT 2 WINDOW [50 EVERY 25 ON t]"

# What is used: a statement, and another that differs in this argument alone and has another answer.
USED: dict[tuple[type[exp.Expr], str], tuple[str, str]] = {
    (exp.Select, "with_"): (f"WITH trades AS (SELECT seq, t, 0 - price AS price FROM trades) {RANKED}", RANKED),
    (exp.Select, "expressions"): (RANKED.replace("seq", "seq, symbol"), RANKED),
    (exp.Select, "from_"): (RANKED.replace("trades", "other"), RANKED),
    (exp.Select, "joins"): (
        BIDS.format(", ", "WHERE a.auctionID = b.auctionID"),
        BIDS.format("JOIN", "USING (auctionID) WHERE b.price > 9"),
    ),
    (exp.Select, "where"): (RANKED.replace("ORDER", "WHERE volume > 5 ORDER"), RANKED),
    (exp.Select, "group"): (GROUPED, GROUPED.replace("GROUP BY symbol", "GROUP BY symbol, venue")),
    (exp.Select, "having"): (f"{GROUPED} HAVING n > 7", GROUPED),
    (exp.Select, "qualify"): (
        QUALIFIED.format("ORDER BY price DESC"),
        QUALIFIED.replace("<= 2", "= 1").format("ORDER BY price DESC"),
    ),
    (exp.Select, "order"): (RANKED, RANKED.replace("price", "volume")),
    (exp.Select, "limit"): (RANKED, RANKED.replace("LIMIT 2", "LIMIT 3")),
    (exp.With, "expressions"): (f"WITH trades AS (SELECT seq, t, 0 - price AS price FROM trades) {RANKED}", RANKED),
    (exp.CTE, "this"): (f"WITH trades AS (SELECT * FROM trades WHERE volume > 5) {RANKED}", RANKED),
    (exp.CTE, "alias"): (
        f"WITH trades AS (SELECT * FROM trades WHERE volume > 5) {RANKED}",
        f"WITH others AS (SELECT * FROM trades) {RANKED}",
    ),
    (exp.Subquery, "this"): (RANKED.replace("trades", "(SELECT * FROM trades WHERE volume > 5) AS s"), RANKED),
    (exp.Subquery, "alias"): (SUBQUERIES.format(PAIR_WINDOW), PAIRS.format("WINDOW [10 EVERY 5 ON t]")),
    (exp.From, "this"): (RANKED.replace("trades", "other"), RANKED),
    (exp.Join, "this"): (
        BIDS.format("JOIN", "USING (auctionID)"),
        BIDS.replace("bid b", "other_bids b").format("JOIN", "USING (auctionID)"),
    ),
    (exp.Join, "on"): (
        BIDS.format("JOIN", "ON a.auctionID = b.auctionID"),
        BIDS.format("JOIN", "ON a.auctionID = b.auctionID AND b.price > 9"),
    ),
    (exp.Join, "using"): (BIDS.format("JOIN", "USING (auctionID)"), BIDS.format("JOIN", "ON a.sellerID = b.auctionID")),
    (exp.Join, "side"): (FLOWS.format("FULL"), FLOWS.format("FULL").replace("50 EVERY", "75 EVERY")),
    (exp.Join, "kind"): (
        BIDS.format("INNER JOIN", "USING (auctionID)"),
        BIDS.format("CROSS JOIN", "WHERE a.sellerID = b.auctionID"),
    ),
    (exp.Table, "this"): (RANKED.replace("trades", "other"), RANKED),
    (exp.Table, "alias"): (RANKED.replace("trades", "trades AS a").replace("seq", "a.symbol"), RANKED),
    (exp.TableAlias, "this"): (RANKED.replace("trades", "trades AS x").replace("seq", "x.symbol"), RANKED),
    (exp.TableAlias, "columns"): (f"WITH trades(seq, t, price) AS (SELECT seq, t, seq FROM trades) {RANKED}", RANKED),
    (exp.Alias, "this"): (RANKED.replace("seq", "seq + 1 AS x"), RANKED.replace("seq", "seq + 2 AS x")),
    (exp.Alias, "alias"): (RANKED.replace("seq", "seq AS x"), RANKED.replace("seq", "seq AS y")),
    (exp.Star, "except_"): (RANKED.replace("seq", "* EXCEPT (symbol)"), RANKED.replace("seq", "*")),
    (exp.Star, "replace"): (RANKED.replace("seq", "* REPLACE (venue AS symbol)"), RANKED.replace("seq", "*")),
    (exp.Where, "this"): (RANKED.replace("ORDER", "WHERE volume > 5 ORDER"), RANKED),
    (exp.Having, "this"): (f"{GROUPED} HAVING n > 7", f"{GROUPED} HAVING n > 6"),
    (exp.Qualify, "this"): (
        QUALIFIED.format("ORDER BY price DESC"),
        QUALIFIED.replace("<= 2", "< 2").format("ORDER BY price DESC"),
    ),
    (exp.Group, "expressions"): (GROUPED, GROUPED.replace("GROUP BY symbol", "GROUP BY symbol, venue")),
    (exp.Order, "expressions"): (RANKED, RANKED.replace("price", "volume")),
    (exp.Ordered, "this"): (RANKED, RANKED.replace("price", "volume")),
    (exp.Ordered, "desc"): (RANKED, RANKED.replace("DESC", "ASC")),
    (exp.Ordered, "nulls"): (
        RANKED.replace("price DESC", "volume NULLS FIRST"),
        RANKED.replace("price DESC", "volume NULLS LAST"),
    ),
    (exp.Limit, "expression"): (RANKED, RANKED.replace("LIMIT 2", "LIMIT 3")),
    (exp.Limit, "expressions"): (f"{RANKED} BY symbol", RANKED),
    (exp.Select, "offset"): (f"{RANKED} OFFSET 1", RANKED),
    (exp.Offset, "expression"): (f"{RANKED} OFFSET 1", f"{RANKED} OFFSET 2"),
    (exp.Fetch, "count"): (
        RANKED.replace("LIMIT 2", "FETCH FIRST 2 ROWS ONLY"),
        RANKED.replace("LIMIT 2", "FETCH NEXT ROW ONLY"),
    ),
    (exp.LimitOptions, "with_ties"): (
        RANKED.replace("price DESC", "volume").replace("LIMIT 2", "FETCH FIRST 2 ROWS WITH TIES"),
        RANKED.replace("price DESC", "volume"),
    ),
    (exp.Window, "this"): (
        QUALIFIED.format("ORDER BY price DESC"),
        QUALIFIED.replace("<= 2", "< 2").format("ORDER BY price DESC"),
    ),
    (exp.Window, "partition_by"): (
        QUALIFIED.format("PARTITION BY symbol ORDER BY price DESC"),
        QUALIFIED.format("ORDER BY price DESC"),
    ),
    (exp.Window, "order"): (QUALIFIED.format("ORDER BY price DESC"), QUALIFIED.format("ORDER BY price")),
}

# Words that change nothing, or say what is so without them.
SILENT = {
    (exp.Ordered, "nulls_first"),  # what the dialect implies; what was written is in `nulls`
    (exp.Limit, "limit_options"),
    (exp.LimitOptions, "rows"),
    (exp.Fetch, "direction"),
    (exp.Fetch, "limit_options"),
    (exp.Window, "over"),
    (exp.Table, "db"),
    (exp.Table, "catalog"),
}


def test_every_argument_that_is_read_is_shown_to_be_used() -> None:
    kinds = {kind for kind, _ in USED} | {exp.LimitOptions}
    assert {(kind, name) for kind in kinds for name in READ[kind]} == USED.keys() | SILENT


@pytest.mark.parametrize(("kind", "name"), USED, ids=lambda part: getattr(part, "__name__", part))
def test_what_is_used_changes_the_answer(kind: type[exp.Expr], name: str) -> None:
    given = INPUTS | {"other": INPUTS["trades"].slice(0, 50), "other_bids": INPUTS["bid"].slice(0, 20)}
    one, other = (sb.sql(statement, **given) for statement in USED[kind, name])
    assert one.num_rows
    assert not one.equals(other)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in READ for name in kind.arg_types if name not in READ[kind]],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_what_nobody_reads_is_refused(kind: type[exp.Expr], name: str) -> None:
    with pytest.raises(sb.InvalidSql, match="SELECT X"):
        check_read("SELECT X", kind(**{name: exp.var("X")}))


def test_kinds_of_nodes_of_our_own_are_read_as_a_whole() -> None:
    assert all(READ[kind] == set(kind.arg_types) for kind in (Continuous, Span, Stream, StreamWindow))


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        (BIDS.format("SEMI JOIN", "ON a.auctionID = b.auctionID AND a.ts < b.ts"), "a.ts < b.ts"),
        (BIDS.format("LEFT ANTI JOIN", "ON a.auctionID = b.auctionID AND b.ts - a.ts > 3"), "b.ts - a.ts"),
        (BIDS.format("ANTI JOIN", ""), "bid"),
        (BIDS.format("NATURAL JOIN", ""), "NATURAL"),
        (BIDS.format("LEFT JOIN", "ON a.auctionID < b.auctionID"), "a.auctionID <"),
        (BIDS.format("FULL JOIN", "USING (auctionID)"), "bid"),
        (BIDS.format("RIGHT OUTER JOIN", "USING (auctionID)"), "RIGHT"),
        (PAIRS.replace(", trades b WHERE", " LEFT JOIN trades b ON").format(PAIR_WINDOW), "a.seq <"),
        (PAIRS.replace("LIMIT", "NULLS LAST LIMIT").format(PAIR_WINDOW), "NULLS"),
        (f"{GROUPED} ORDER BY n NULLS FIRST", "NULLS"),
        (RANKED.replace("trades", "trades TABLESAMPLE (10 PERCENT)"), "TABLESAMPLE"),
        (RANKED.replace("LIMIT 2", "LIMIT 2 PERCENT"), "PERCENT"),
        (QUALIFIED.replace("ROW_NUMBER()", "RANK(price)").format("ORDER BY price"), "price) OVER"),
        (QUALIFIED.replace("ROW_NUMBER()", "DENSE_RANK(price)").format("ORDER BY price"), "price) OVER"),
        (RANKED.replace("SELECT seq", "SELECT seq INTO other"), "INTO"),
        (f"{GROUPED} OFFSET 3", "OFFSET"),
        ("SELECT seq FROM trades FOR SYSTEM_TIME AS OF 'x' ORDER BY price LIMIT 2 WINDOW [20 ON t]", "'x'"),
        ("SELECT seq FROM trades VERSION AS OF 3 ORDER BY price LIMIT 2 WINDOW [20 ON t]", "VERSION"),
        (RANKED.replace("ORDER", "HAVING price > 3 ORDER"), "HAVING"),
        (RANKED.replace("SELECT seq", "SELECT DISTINCT *"), "DISTINCT"),
        (RANKED.replace("ORDER BY", "SORT BY"), "SORT"),
        ("SELECT seq FROM trades UNION ALL BY NAME SELECT seq FROM trades", "UNION"),
        (RANKED.replace("ORDER", "CLUSTER BY symbol ORDER"), "CLUSTER"),
        (RANKED.replace("ORDER", "DISTRIBUTE BY symbol ORDER"), "DISTRIBUTE"),
        (RANKED.replace("ORDER", "LATERAL VIEW EXPLODE(a) x ORDER"), "LATERAL"),
        (f"{GROUPED} QUALIFY ROW_NUMBER() OVER (PARTITION BY venue ORDER BY n) <= 2", "venue ORDER"),
        (GROUPED.replace("GROUP BY symbol", "GROUP BY ALL"), "GROUP BY ALL"),
        (GROUPED.replace("GROUP BY symbol", "GROUP BY symbol WITH ROLLUP"), "ROLLUP"),
        (GROUPED.replace("GROUP BY symbol", "GROUP BY CUBE (symbol)"), "CUBE"),
        (GROUPED.replace("GROUP BY symbol", "GROUP BY GROUPING SETS ((symbol), ())"), "GROUPING"),
        (QUALIFIED.format("ORDER BY price ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"), "1 PRECEDING"),
        (RANKED.replace("ORDER", "WHERE price BETWEEN SYMMETRIC 9 AND 2 ORDER"), "SYMMETRIC"),
        (RANKED.replace("SELECT seq", "SELECT db.trades.seq"), "db"),
        (f"WITH RECURSIVE w AS (SELECT 1 AS x FROM trades) {RANKED}", "RECURSIVE"),
        (RANKED.replace("seq", "* EXCEPT (nothing)"), "nothing"),
    ],
)
def test_what_is_refused_is_shown_at_its_own_place(statement: str, word: str) -> None:
    with pytest.raises(sb.InvalidSql) as caught:
        sb.sql(statement, **INPUTS)
    said = str(caught.value).split("\n")
    place = next(line for line in said if line.strip() == "^").index("^") - 2
    assert statement[place:].startswith(word), str(caught.value)
