"""A join on Spark against Spark: its own join, then an aggregation; and what an expert writes instead of it by hand.

Offers and sales of items, both counted and the sales summed by item, over windows of which each has ten of both for an
item: a row finds ten matches. By hand: since all is by the key that is joined on, both streams go tagged through one
aggregation, and what a join would have counted is a product.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from skyband.api import join_aggregate
from skyband.study.results import Result
from skyband.study.sizes import SPARK_JOIN_LINES, SparkSizes
from skyband.study.spark_runs import Run, compared, instants, time_all, write_files
from skyband.windows import tumbling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNION, OWN = SPARK_JOIN_LINES

WINDOWS: Final = 10
MATCHES: Final = 10
FOLDERS: Final = ("offers", "sales")

_BY_HAND: Final = """
SELECT w.end AS window_end, item, offered * sold AS n, offered * amount AS total FROM (
  SELECT window(ts, '{seconds} seconds') AS w, item, sum(offered) AS offered, sum(sold) AS sold, sum(amount) AS amount
  FROM {{rows}} GROUP BY window(ts, '{seconds} seconds'), item
) WHERE offered > 0 AND sold > 0
"""
_OWN_WAY: Final = """
SELECT w.end AS window_end, item, count(*) AS n, sum(amount) AS total FROM (
  SELECT offers.w, offers.item, sales.n AS amount
  FROM (SELECT window(ts, '{seconds} seconds') AS w, item FROM {{offers}}) AS offers
  JOIN (SELECT window(ts, '{seconds} seconds') AS w, item, n FROM {{sales}}) AS sales
  ON offers.item = sales.item AND offers.w = sales.w
) GROUP BY w, item
"""


def measure(
    spark: SparkSession, folder: Path, wanted: Collection[str], sizes: SparkSizes, say: Callable[[str], None]
) -> Iterator[Result]:
    say("Spark: writing rows to join")
    for seed, name in enumerate(FOLDERS):
        _write_rows(folder / name, sizes.join_rows, seed)
    timings = time_all(spark, folder, _runs(sizes), wanted, say)
    workload = "Spark: two streams, 10 matches a row, SUM and COUNT by item"
    if UNION in wanted:
        yield compared(UNION, workload, "a union, aggregated, by hand", timings["join"], timings["union"], 0.9)
    if OWN in wanted:
        yield compared(OWN, "Spark: the same", "join, then aggregate", timings["join"], timings["own join"], 8)


def _runs(sizes: SparkSizes) -> dict[str, Run]:
    seconds = sizes.join_rows // WINDOWS // 1000  # there are a thousand rows a second

    def ours(offers: DataFrame, sales: DataFrame) -> DataFrame:
        window = tumbling(f"{seconds} seconds", on="ts")
        return join_aggregate(
            {"offers": offers, "sales": sales},
            inputs={"offers": window, "sales": window},
            on="offers.item = sales.item",
            group_by="offers.item",
            aggregates={"n": "COUNT(*)", "total": "SUM(sales.n)"},
        )

    def by_hand(offers: DataFrame, sales: DataFrame) -> DataFrame:
        tagged = offers.selectExpr("ts", "item", "1L AS offered", "0L AS sold", "0L AS amount")
        tagged = tagged.union(sales.selectExpr("ts", "item", "0L AS offered", "1L AS sold", "n AS amount"))
        text = _BY_HAND.format(seconds=seconds)
        return offers.sparkSession.sql(text, rows=tagged.withWatermark("ts", "0 seconds"))

    def own(offers: DataFrame, sales: DataFrame) -> DataFrame:
        offers, sales = offers.withWatermark("ts", "0 seconds"), sales.withWatermark("ts", "0 seconds")
        return offers.sparkSession.sql(_OWN_WAY.format(seconds=seconds), offers=offers, sales=sales)

    return {
        "join": Run(
            ours,
            FOLDERS,
            2,
            (UNION, OWN),
            ours=True,
            rounds=sizes.rounds,
            keys=("window_end", "item"),
            values=("n", "total"),
            checked_files=3,
        ),
        "union": Run(by_hand, FOLDERS, 2, (UNION,), rounds=sizes.rounds),
        "own join": Run(own, FOLDERS, 2, (OWN,)),
    }


def _write_rows(folder: Path, rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    items = max(1, rows // WINDOWS // MATCHES)

    def table(times: np.ndarray) -> pa.Table:
        item = random.integers(items, size=len(times))
        return pa.table({"ts": instants(times), "item": item, "n": random.integers(1000, size=len(times))})

    write_files(folder, map(table, np.array_split(np.arange(rows), WINDOWS)))
