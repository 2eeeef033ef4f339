"""Top-k across streams, as users ask for it: each question gets the same answer from every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from conformance.asked import ONE, Asked
from engines.spark.streams import INSTANTS, START_US

import skyband as sb
from skyband.streams.incomplete import incomplete

ROWS = 600
SECOND = 1_000_000


def routers() -> pa.Table:
    made = incomplete(ROWS, recent=20)
    return pa.table(
        {
            "ts": pa.array(START_US + made["time"].to_numpy() * SECOND // 4, INSTANTS),
            "seq": made["time"],
            "router": made["stream"],
            "id": made["id"],
            "client": pa.array(np.random.default_rng(2).zipf(1.5, ROWS) % 50),
            "port": pa.array(np.arange(ROWS) % 3),
            "value": pc.divide(pc.floor(pc.multiply(made["value"], 4096.0)), 4096.0),
            "share": pa.array(np.arange(ROWS) % 64 / 64),
        }
    )


ROUTERS = {ONE: routers()}
COMMON: dict[str, Any] = {"k": 4, "id": "id", "value": "value", "stream": "router", "streams": ["r1", "r2", "r3"]}


def asked(*, closes: bool = True, **options: Any) -> Asked:
    reference = {} if "recall" in options else {"algorithm": "recompute"}
    return Asked(sb.top_k_across, ROUTERS, COMMON | options, closes=closes, least=12, reference=reference)


QUESTIONS = {
    "panes": asked(window=sb.sliding("30 seconds", every="10 seconds", on="ts")),
    "panes of heavy hitters": asked(
        window=sb.sliding("30 seconds", every="10 seconds", on="ts"),
        repeat="sum",
        id="client",
        combine={"r1": 1, "r2": 2, "r3": 0.5},
    ),
    "panes of objects of two columns, with values of two": asked(
        window=sb.sliding("30 seconds", every="10 seconds", on="ts"),
        repeat="max",
        id=("client", "port"),
        value={"r1": "value", "r2": "share", "r3": "value"},
    ),
    # In its first window and a half every object is held: later, each bucket learns for itself, and answers may differ.
    "panes, most of it": asked(window=sb.sliding("150 seconds", every="50 seconds", on="ts"), recall=0.9),
    "arrivals": asked(window=sb.sliding(100, every=50, order="seq")),
    "each row": asked(window=sb.sliding("20 seconds", on="ts", order="seq"), closes=False),
}
