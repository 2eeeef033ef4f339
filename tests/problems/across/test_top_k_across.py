"""Example tests: top-k across streams as a user calls it, its kinds of input, and its mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import shows, table

import skyband as sb

R1 = table("flow size t\n p .5 1\n q .25 2\n p .75 6")
R2 = table("flow size t\n q .5 1\n p .25 3")
BOTH = table("t router flow size\n 1 r1 p .5\n 1 r2 q .5\n 2 r1 q .25\n 3 r2 p .25\n 6 r1 p .75")
ASKED: dict[str, Any] = {"k": 2, "id": "flow", "value": "size"}
WINDOW = sb.sliding(4, every=2, on="t")
EXPECTED = """
window_start window_end rank score flow r1   r2
-2           2          1    0.5   q    -    0.5
-2           2          2    0.5   p    0.5  -
0            4          1    0.75  p    0.5  0.25
0            4          2    0.75  q    0.25 0.5
2            6          1    0.25  p    -    0.25
2            6          2    0.25  q    0.25 -
4            8          1    0.75  p    0.75 -
6            10         1    0.75  p    0.75 -
"""


def test_a_mapping_of_streams() -> None:
    assert shows(sb.top_k_across({"r1": R1, "r2": R2}, window=WINDOW, **ASKED), EXPECTED)


def test_one_stream_with_a_column_that_names_the_source() -> None:
    answer = sb.top_k_across(BOTH, window=WINDOW, stream="router", streams=["r1", "r2"], **ASKED)
    assert shows(answer, EXPECTED)


def test_a_reader_gives_a_reader() -> None:
    answer = sb.top_k_across(
        BOTH.to_reader(max_chunksize=1), window=WINDOW, stream="router", streams=["r1", "r2"], **ASKED
    )
    assert isinstance(answer, pa.RecordBatchReader)
    assert shows(answer.read_all(), EXPECTED)


def test_push_says_which_stream() -> None:
    session = sb.TopKAcross(streams=["r1", "r2"], window=sb.sliding(10), **ASKED).open(R1.schema)
    session.push(R1.slice(0, 1), stream="r1")
    assert shows(session.push(R2.slice(0, 1), stream="r2"), "at change rank score flow r1 r2\n 2 enter 1 0.5 q - 0.5")
    with pytest.raises(sb.InvalidInput, match="Whose rows are these"):
        session.push(R1)
    assert shows(session.top(1), "window_start window_end rank score flow r1 r2\n 0 2 1 0.5 q - 0.5")


def test_the_order_of_arrivals_of_a_mapping_is_a_column() -> None:
    answer = sb.top_k_across({"r1": R1, "r2": R2}, window=sb.tumbling(5, order="t"), **ASKED)
    assert shows(
        answer,
        """
        window_start window_end rank score flow r1   r2
        0            5          1    1     p    0.75 0.25
        0            5          2    0.75  q    0.25 0.5
        """,
    )
    with pytest.raises(sb.InvalidQuery, match="the order of arrival is unknown"):
        sb.top_k_across({"r1": R1, "r2": R2}, window=sb.tumbling(5), **ASKED)


PACKETS = table("t src dst bytes\n 1 a b 5\n 2 b a 7\n 3 a b 4\n 4 a c 8\n 4 - c 1")


def test_several_columns_identify_an_object() -> None:
    asked: dict[str, Any] = {"k": 2, "value": "bytes", "repeat": "sum", "bounds": (0, math.inf)}
    answer = sb.top_k_across(PACKETS, id=("src", "dst"), window=sb.tumbling(5, on="t"), **asked)
    assert shows(
        answer,
        """
        window_start window_end rank score src dst bytes
        0            5          1    9     a   b   9
        0            5          2    8     a   c   8
        """,
    )
    query = sb.TopKAcross(id=["src", "dst"], window=sb.tumbling(5, on="t"), **asked)
    session = query.open(PACKETS.schema)
    session.push(PACKETS.slice(0, 2))
    session = query.open(PACKETS.schema, session.snapshot())
    session.push(PACKETS.slice(2))
    assert session.finish().equals(answer)
    assert sb.TopKAcross(id=["src"], window=sb.tumbling(5, on="t"), **asked).id == "src"


def test_the_recall_of_objects_of_several_columns() -> None:
    """With `recall`, objects go by a hash: (a, b) and (b, a) are two of them."""
    answer = sb.top_k_across(
        PACKETS.slice(0, 2),
        k=2,
        id=("src", "dst"),
        value="bytes",
        window=sb.tumbling(5, on="t"),
        bounds=(0, 9),
        recall=0.5,
    )
    assert answer.select(["score", "src", "dst"]).to_pylist() == [
        {"score": 7.0, "src": "b", "dst": "a"},
        {"score": 5.0, "src": "a", "dst": "b"},
    ]


def test_several_columns_identify_an_object_in_sql() -> None:
    back = table("t DST src size\n 2 b a 3\n 4 a b 2")
    asked = """SELECT src, dst, p.bytes FROM p FULL JOIN q USING (src, dst) ORDER BY p.bytes + q.size DESC LIMIT 1
               WINDOW [5 EVERY 5 ON t] WITH BOUNDS (0, 10)"""
    answer = sb.sql(asked, p=PACKETS.slice(0, 2), q=back)
    assert shows(answer, "window_start window_end rank score src dst p_bytes\n 0 5 1 9 b a 7")
    with pytest.raises(
        sb.InvalidSql,
        match=r"The same columns must identify the object in all streams, but here \(src, "
        r"dst\)",
    ):
        sb.sql(
            "SELECT src FROM p FULL JOIN q USING (src, dst) FULL JOIN q AS r USING (src) "
            "ORDER BY p.bytes + q.size + r.size DESC LIMIT 1 WINDOW [5 EVERY 5 ON t]",
            p=PACKETS,
            q=back,
        )


def test_each_stream_has_a_column_of_its_own() -> None:
    amounts = R2.rename_columns(["flow", "amount", "t"])
    asked = {**ASKED, "window": WINDOW, "value": {"r1": "size", "r2": "amount"}}
    assert shows(sb.top_k_across({"r1": R1, "r2": amounts}, **asked), EXPECTED)
    assert shows(sb.top_k_across({"r1": R1.to_reader(), "r2": amounts.to_reader()}, **asked).read_all(), EXPECTED)
    with pytest.raises(sb.UnknownColumn, match="'amount'"):
        sb.top_k_across({"r1": R1, "r2": R2}, **asked)


def test_rows_of_one_table_have_their_values_in_the_column_of_their_stream() -> None:
    # What stands in the other column says nothing, were it out of bounds.
    sizes = [0.5, 9.0, 0.25, 9.0, 0.75]
    amounts = [9.0, 0.5, 9.0, 0.25, 9.0]
    one = BOTH.set_column(3, "size", pa.array(sizes)).append_column("amount", pa.array(amounts))
    asked = {**ASKED, "window": WINDOW, "value": {"r1": "size", "r2": "amount"}}
    assert shows(sb.top_k_across(one, stream="router", **asked), EXPECTED)


@pytest.mark.parametrize(
    ("repeat", "first", "second"), [("sum", ("p", 1.25), ("q", 0.25)), ("max", ("p", 0.75), ("q", 0.25))]
)
def test_heaviest_flows(repeat: Any, first: tuple[str, float], second: tuple[str, float]) -> None:
    answer = sb.top_k_across(
        R1, window=sb.tumbling(10, on="t"), repeat=repeat, bounds=(0, math.inf), **ASKED
    ).to_pylist()
    assert [(row["flow"], row["score"]) for row in answer] == [first, second]
    assert [row["size"] for row in answer] == [first[1], second[1]]


def test_sums_are_exact_however_rows_come_and_go() -> None:
    random = np.random.default_rng(1)
    values = random.choice([0.1, 1e9, 3.3, 1e-3, 7.0], 2_000)
    rows = pa.table({"id": random.integers(0, 5, 2_000), "v": values})
    session = sb.TopKAcross(k=5, id="id", value="v", repeat="sum", bounds=(0, math.inf), window=sb.sliding(100)).open(
        rows.schema
    )
    session.push(rows)
    last = rows.slice(1_900)
    for row in session.top().to_pylist():
        live = [v for name, v in zip(last["id"].to_pylist(), last["v"].to_pylist(), strict=True) if name == row["id"]]
        assert row["score"] == math.fsum(live)


def test_weights_and_expressions() -> None:
    rows = {"r1": R1.slice(0, 2), "r2": R2}
    weighed = sb.top_k_across(rows, window=sb.tumbling(8, on="t"), combine={"r1": 1, "r2": 10}, **ASKED)
    assert weighed["score"].to_pylist() == [5.25, 3.0]
    written = sb.top_k_across(rows, window=sb.tumbling(8, on="t"), combine="sqrt(r1) + 2 * r2", **ASKED)
    assert written["score"].to_pylist() == [1.5, math.sqrt(0.5) + 0.5]


def test_values_out_of_bounds() -> None:
    query = sb.TopKAcross(bounds=(0, 0.5), window=sb.sliding(10), **ASKED)
    session = query.open(R1.schema)
    with pytest.raises(sb.InvalidInput, match=r"Row 2 of this batch: the value 0\.75 of 'p'"):
        session.push(R1)
    assert session.stats().rows_in == 0
    clipping = sb.TopKAcross(bounds=(0, 0.5), window=sb.sliding(10), clip=True, **ASKED).open(R1.schema)
    clipping.push(R1)
    assert clipping.stats().values_clipped == 1
    assert max(clipping.top()["score"].to_pylist()) == 0.5


def test_what_breaks_the_promise_is_counted() -> None:
    session = sb.TopKAcross(window=sb.sliding(10), **ASKED).open(R1.schema)
    session.push(R1)
    assert session.stats().rows_repeated == 1
    assert session.top(1)["score"].to_pylist() == [0.75], "the last one counts"
    for most, counted in ((1, 1), (2, 0), (None, 0)):
        asked = ASKED | {"repeat": "sum", "max_repeats": most}
        session = sb.TopKAcross(window=sb.sliding(10), **asked).open(R1.schema)
        session.push(R1)
        assert session.stats().rows_repeated == counted
        assert session.top(1)["score"].to_pylist() == [1.25], "answers are exact all the same"


def test_rows_without_time_value_or_in_unknown_streams() -> None:
    rows = table("t router flow size\n - r1 p .5\n 1 r2 q -\n 2 r1 q .25", t=pa.int64())
    query = sb.TopKAcross(stream="router", streams=["r1", "r2"], window=sb.sliding(4, on="t"), **ASKED)
    session = query.open(rows.schema)
    session.push(rows)
    stats = session.stats()
    assert (stats.rows_in, stats.rows_used, stats.rows_null_time, stats.rows_unranked) == (3, 2, 1, 1)
    with pytest.raises(sb.InvalidInput, match="Row 1 of this batch is of stream 'r9', which is none of r1, r2"):
        session.push(table("t router flow size\n 3 r1 p .5\n 3 r9 p .5"))
    assert session.stats().rows_in == 3


def test_snapshot_and_restore() -> None:
    query = sb.TopKAcross(stream="router", streams=["r1", "r2"], window=WINDOW, **ASKED)
    session = query.open(BOTH.schema)
    lines = session.push(BOTH.slice(0, 3)).to_pylist()
    again = query.open(BOTH.schema, session.snapshot())
    lines += again.push(BOTH.slice(3)).to_pylist() + again.finish().to_pylist()
    assert lines == sb.top_k_across(BOTH, window=WINDOW, stream="router", streams=["r1", "r2"], **ASKED).to_pylist()
    other = sb.TopKAcross(stream="router", streams=["r1", "r2"], window=WINDOW, **(ASKED | {"k": 3}))
    with pytest.raises(sb.SnapshotMismatch):
        other.open(BOTH.schema, session.snapshot())


def test_objects_that_are_gone_are_forgotten() -> None:
    n = 20_000
    rows = pa.table({"flow": np.arange(n) // 2, "size": np.random.default_rng(1).random(n)})
    streams = {"bounds": {"r1": (0, 1), "r2": (0, 1)}, "window": sb.sliding(500)}
    session = sb.TopKAcross(**streams, **ASKED).open(rows.schema)
    for i in range(0, n, 100):
        session.push(rows.slice(i, 100), stream="r1" if i % 200 else "r2")
    assert session.stats().groups < 2_000


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"combine": "r1 - r2"}, "falls when r2 rises"),
        ({"combine": "r1 / r2"}, "divides by what can be 0"),
        ({"combine": "ln(r1 - 1) + r2"}, "logarithm of what can be -1"),
        ({"combine": "(r1 - 0.5) ** 2 + r2"}, "falls when r1 rises"),
        ({"combine": "r1 * r9"}, "No stream 'r9'"),
        ({"combine": {"r1": 1}}, "no weight for the stream 'r2'"),
        ({"combine": {"r1": 1, "r2": -1}}, "A weight must be"),
        ({"combine": "product", "bounds": (-1, 1)}, "bounds must start at 0"),
        ({"bounds": (1, 0)}, "the smallest and the largest"),
        ({"bounds": {"r1": (0, 1)}}, "nothing for the stream 'r2'"),
        ({"repeat": "sum", "bounds": (1, 2)}, "bounds that start at 0"),
        ({"repeat": "first"}, "repeat must be"),
        ({"repeat": "sum", "max_repeats": 0}, "max_repeats must be a whole number"),
        ({"max_repeats": 2}, "with repeat=None none does"),
        ({"emit": "entries"}, "an object comes and goes"),
        ({"k": 0}, "k must be"),
        ({"id": "flwo"}, "Did you mean 'flow'"),
        ({"id": ("flow", "flwo")}, "Did you mean 'flow'"),
        ({"id": ("flow", "flow")}, "several different ones"),
        ({"id": ()}, "several different ones"),
        ({"value": {"r1": "size"}}, "value names a column for r1, but the streams are r1, r2"),
        ({"value": {"r1": "size", "r2": 3}}, "value of 'r2' must be the name of a column"),
        ({"algorithm": "totlas"}, "No algorithm 'totlas'"),
        ({"algorithm": "staircase", "repeat": "last"}, "may come again"),
        ({"stream": "router"}, "A mapping already names the streams"),
    ],
)
def test_mistakes(mistake: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.SkybandError, match=message):
        sb.top_k_across({"r1": R1, "r2": R2}, **(ASKED | {"window": WINDOW} | mistake))


def test_a_tagged_stream_needs_the_names() -> None:
    with pytest.raises(sb.InvalidQuery, match="name the streams, too"):
        sb.top_k_across(BOTH, window=WINDOW, stream="router", **ASKED)


@pytest.mark.parametrize(
    "combine",
    ["r1 * r2", "r1 + r2 ** 3", "exp(r1) - exp(-r2)", "greatest(r1, r2) + least(r1, r2)", "log2(r1 + 1) * (r2 + 2)",
     "2 ** r1 + r2", "r1 - (1 - r2) ** 2", "floor(10 * r1) + abs(r2 + 1)", "r1 / (2 - r2)"],
)  # fmt: skip
def test_expressions_that_never_fall(combine: str) -> None:
    sb.TopKAcross(streams=["r1", "r2"], combine=combine, window=WINDOW, **ASKED)
