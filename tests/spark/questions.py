"""One list of questions for both engines: each must get the same answer from both."""

from __future__ import annotations

from typing import Any, NamedTuple

import skyband as sb

MINUTE = sb.sliding("1 minute", every="10 seconds", on="ts")

UNEVEN = sb.sliding("25 seconds", every="10 seconds", on="ts")


class Asked(NamedTuple):
    options: dict[str, Any]
    closes: bool = True  # with the watermark; other answers come with each row

    @property
    def mode(self) -> str:
        return "append" if self.options.get("emit", "windows") == "windows" and self.closes else "update"


QUESTIONS: dict[str, Asked] = {
    "time": Asked({"k": 3, "by": "price", "window": MINUTE}),
    "time, per group, ascending": Asked(
        {"k": 2, "by": "price * 2 - seq / 1000", "window": MINUTE, "per": "symbol", "ascending": True}
    ),
    "uneven panes, per two columns": Asked({"k": 2, "by": "price", "window": UNEVEN, "per": ["symbol", "buys"]}),
    "integer column": Asked({"k": 4, "by": "price", "window": sb.sliding(100, every=30, on="seq"), "lateness": 20}),
    "landmark": Asked({"k": 3, "by": "price", "window": sb.landmark(every="20 seconds", on="ts"), "per": "buys"}),
    "a function": Asked(
        {"k": 3, "by": lambda seq, price: price * 100 + seq % 7, "window": sb.tumbling("20 seconds", on="ts")}
    ),
    "changes": Asked({"k": 3, "by": "price", "window": MINUTE, "emit": "changes"}),
    "entries, per group": Asked({"k": 2, "by": "price", "window": MINUTE, "emit": "entries", "per": "symbol"}),
    "count": Asked({"k": 3, "by": "price", "window": sb.sliding(100, every=25, order="seq")}),
    "count, per group": Asked({"k": 3, "by": "price", "window": sb.sliding(20, every=5, order="seq"), "per": "symbol"}),
    "each arrival, by count": Asked({"k": 3, "by": "price", "window": sb.sliding(50, order="seq")}, closes=False),
    "each arrival, by value, per group": Asked(
        {"k": 2, "by": "price", "window": sb.sliding("15 seconds", on="ts"), "per": "symbol"}, closes=False
    ),
}
