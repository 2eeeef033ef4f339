"""Oracle tests: the recall that `learned` promises is the recall that is measured, and it holds much less.

Some settings and seeds here; `--hypothesis-profile=deep` takes fifty seeds of all of them.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import settings

import skyband as sb
from skyband.operators.across.protocol import AcrossBatch, AcrossSpec
from skyband.operators.protocol import CHANGES
from skyband.operators.registry import ACROSS
from skyband.queries.combining import ADD, Combine
from skyband.streams.incomplete import incomplete
from skyband.windows import Ticks

DEEP = settings.get_current_profile_name() == "deep"
STATIONS = ("Aotizhongxin", "Changping", "Dingling", "Dongsi")
DATA = Path(os.environ.get("SKYBAND_DATA", Path(__file__).parents[4] / "shared" / "data"))


class Outcome(NamedTuple):
    """Means over answers, from the third window on."""

    recall: float  # measured
    said: float
    held: float


def run(name: str, table: pa.Table, streams: int, *, window: int, k: int = 10, recall: float = 0.95) -> Outcome:
    """Rows (stream, id, value) in order of arrival, and what is held and found every so many of them."""
    stream, ids = table["stream"].to_numpy().astype(np.int32), table["id"].to_numpy().astype(np.int64)
    value = table["value"].to_numpy().copy()
    _, code = np.unique(ids, return_inverse=True)
    high = float(value.max())
    spec = AcrossSpec(
        k,
        Ticks(window, 0, 0, by_count=True),
        CHANGES,
        Combine(ADD, (1.0,) * streams),
        (0.0,) * streams,
        (high,) * streams,
        recall=recall,
    )
    operator, exact = ACROSS[name].open(spec), ACROSS["totals"].open(spec)
    found, said, held = [], [], []
    step = max(window // 40, 1)
    for first in range(0, len(value), step):
        some = slice(first, first + step)
        batch = AcrossBatch(
            stream[some], code[some].astype(np.int32), value[some], np.empty(0, np.int64), first, int(code.max()) + 1,
            ids[some],
        )  # fmt: skip
        for each in (operator, exact):
            each.push(batch)
        if first >= 2 * window:
            true, shown = exact.top(k), operator.top(k)
            found.append(len(np.intersect1d(true.code, shown.code)) / len(true.code))
            said.append(float(shown.recall[0]))
            held.append(operator.rows_held())
    operator.check()
    return Outcome(float(np.mean(found)), float(np.mean(said)), float(np.mean(held)))


def generated(streams: int, xi: float, seed: int, window: int = 1_000, windows: int = 6) -> pa.Table:
    made = incomplete(windows * window, streams=streams, xi=xi, recent=window // 20, seed=seed)
    number = pa.array([int(name[1:]) - 1 for name in made["stream"].to_pylist()], pa.int32())
    return pa.table({"stream": number, "id": made["id"], "value": made["value"]})


EVERY_SETTING = [(streams, xi) for streams in (2, 3, 4, 6, 8) for xi in (0.1, 0.3, 0.5, 0.7, 0.9)]


@pytest.mark.parametrize(("streams", "xi"), EVERY_SETTING if DEEP else [(3, 0.5), (2, 0.9)])
def test_recall_promised_is_recall_measured(streams: int, xi: float) -> None:
    outcomes = [
        run("learned", generated(streams, xi, seed), streams, window=1_000) for seed in range(50 if DEEP else 3)
    ]
    recall, said, _ = np.mean(outcomes, axis=0)
    assert recall >= 0.95 - 0.02
    assert abs(said - recall) <= 0.02


def test_holds_much_less_than_an_exact_answer_needs() -> None:
    """And both finds more and holds less than the paper's approximate algorithm."""
    table = generated(3, 0.5, seed=1)
    ours, theirs, exact = (run(name, table, 3, window=1_000) for name in ("learned", "estimated", "staircase"))
    assert ours.held < 0.25 * exact.held
    assert ours.held < 0.6 * theirs.held


def test_goes_on_elsewhere() -> None:
    """Stopping and going on, anywhere, changes nothing, and neither does asking, or cutting the rows in other ways."""
    made = incomplete(900, recent=20)
    query = sb.TopKAcross(
        k=4, id="id", value="value", stream="stream", streams=["r1", "r2", "r3"], window=sb.sliding(150), recall=0.9
    )
    session, restarted, asked = (query.open(made.schema) for _ in range(3))
    expected = session.push(made)
    parts, others = [], []
    for first in range(0, 900, 70):
        parts.append(restarted.push(made.slice(first, 70)))
        restarted = query.open(made.schema, restarted.snapshot())
        others.append(asked.push(made.slice(first, 70)))
        asked.top()
        asked.stats()
        asked.check()
    assert pa.concat_tables(parts).equals(expected)
    assert pa.concat_tables(others).equals(expected)
    assert min(expected["recall"].to_pylist()) < 1, "it does let go of objects"


def test_the_column_recall() -> None:
    made = incomplete(40)
    asked = {"k": 2, "id": "id", "value": "value", "stream": "stream", "streams": ["r1", "r2", "r3"]}
    answer = sb.top_k_across(made, window=sb.sliding(10, every=5, on="time"), recall=0.9, **asked)
    assert answer.column_names[-1] == "recall"
    assert sb.top_k_across(made, window=sb.sliding(10), **asked).column_names[-1] == "r3"
    again = sb.top_k_across(made, window=sb.sliding(10), repeat="last", recall=0.9, **asked)
    assert set(again["recall"].to_pylist()) == {1.0}, "what cannot be approximated is exact"


def test_refusals() -> None:
    asked = {"k": 2, "id": "id", "value": "value", "window": sb.sliding(10)}
    with pytest.raises(sb.InvalidQuery, match=r"a share below 1 .* got 1\.5"):
        sb.TopKAcross(**asked, recall=1.5)
    with pytest.raises(sb.InvalidQuery, match="it needs recall="):
        sb.TopKAcross(**asked, algorithm="learned").open(pa.schema({"id": pa.int64(), "value": pa.float64()}))


# Over all four years 0.949 was found of TEMP, as promised, but 0.986 said: in autumn the best are old, which is learnt
# late. The page on approximate answers says so.
WARMTH = pytest.param("TEMP", marks=pytest.mark.xfail(reason="says more than it finds", strict=False))


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
@pytest.mark.parametrize("column", ["PM2.5", "O3", WARMTH] if DEEP else ["TEMP"])
def test_recall_on_four_stations(column: str) -> None:
    """Hours, scored by what four stations in Beijing measured, with their gaps: top 10 of the last 2,000 rows."""
    tables = []
    for number, station in enumerate(STATIONS):
        with gzip.open(DATA / f"beijing_air_{station}.csv.gz") as file:
            read = pyarrow.csv.read_csv(file, convert_options=pyarrow.csv.ConvertOptions(null_values=["NA", ""]))
        values = read[column].cast(pa.float64())
        tables.append(
            pa.table(
                {"stream": pa.array([number] * len(read), pa.int32()), "id": np.arange(len(read)), "value": values}
            )
        )
    rows = pa.concat_tables(tables).sort_by([("id", "ascending"), ("stream", "ascending")])
    rows = rows.filter(pa.compute.is_valid(rows["value"])).slice(0, None if DEEP else 16_000)
    shifted = pa.compute.subtract(rows["value"], pa.compute.min(rows["value"]))
    outcome = run("learned", rows.set_column(2, "value", shifted), 4, window=2_000)
    assert outcome.recall >= 0.95 - 0.02
    assert outcome.said - outcome.recall <= 0.02
