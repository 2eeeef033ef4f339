"""Line 7: statements, expressions and records that nobody would write, each answered or refused by a typed error."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from torture.campaign import Result
from torture.corpus import SCHEMA, stream

TOKENS = """
SELECT * FROM rows t v g n s x , ( ) ORDER BY LIMIT 3 WINDOW HOUR [WINDOW '10 seconds'] WHERE = < > + - * / ** AND OR
NOT COUNT(*) SUM( MAX( GROUP PARTITION ROW_NUMBER() OVER rank WITH AS CASE WHEN THEN ELSE END NULL '' 'a' " 1e309 -1 0
abs( sqrt( log( COALESCE( JOIN USING HAVING DESC QUALIFY <= TUMBLE( HOP( TABLE DESCRIPTOR(t) INTERVAL '1' SECOND ;
-- /* */
18446744073709551616 NaN inf \0 é 🎉 {x} ${HOME} %s
"""
WORDS = TOKENS.split()
ROWS = stream(3, 40)
PATIENCE_S = 30.0  # a second on a machine that does nothing else


def _text(rng: np.random.Generator, most: int) -> str:
    return " ".join(rng.choice(WORDS, int(rng.integers(1, most))).tolist())


def statement(rng: np.random.Generator) -> Any:
    text = _text(rng, 25)
    if rng.random() < 0.6:
        start = "SELECT * FROM rows [WINDOW '10' ON t]" if rng.random() < 0.5 else "SELECT g, COUNT(*) FROM rows"
        text = f"{start} {text}"
    return lambda: sb.sql(text, rows=ROWS)


def expression(rng: np.random.Generator) -> Any:
    text = _text(rng, 9) if rng.random() < 0.7 else f"v {_text(rng, 5)}"
    return lambda: sb.top_k(ROWS, k=2, by=text, window=sb.sliding(10, every=10))


def record(rng: np.random.Generator) -> Any:
    """Rows in other types than the schema says, null times, far times: rows in = used + late + set aside."""
    kinds = [pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.null(), pa.int8(), pa.binary()]
    table = ROWS
    if rng.random() < 0.5:
        at = int(rng.integers(len(SCHEMA)))
        values = pa.nulls(ROWS.num_rows, kinds[int(rng.integers(len(kinds)))])
        table = ROWS.set_column(at, SCHEMA.names[at], values)
    time_ = [
        None if rng.random() < 0.1 else int(t) for t in rng.choice([0, 5, 90, 2**62 - 1, -5, 2**61], ROWS.num_rows)
    ]
    if table.schema == SCHEMA:
        table = table.set_column(0, "t", pa.array(time_, pa.int64()))

    def push() -> None:
        query = sb.TopK(k=2, by="v", per="g", window=sb.sliding(20, every=10, on="t"), max_jump=1000)
        session = query.open(SCHEMA)
        session.push(table)
        counted = session.stats()
        parts = counted.rows_used + counted.rows_late + counted.rows_null_time + counted.rows_jumped
        assert parts == counted.rows_in == table.num_rows, f"{counted}"

    return push


KINDS = (statement, expression, record)


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        kind = KINDS[seed % len(KINDS)]
        ask, began = kind(np.random.default_rng(seed)), time.perf_counter()
        outcome, wrong = "answered", None
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                ask()
        except sb.SkybandError:
            outcome = "typed error"
        except Exception as error:
            outcome, wrong = "raw error", f"{kind.__name__}: {type(error).__name__}: {str(error)[:200]}"
        if time.perf_counter() - began > PATIENCE_S:
            outcome, wrong = "too long", f"{kind.__name__}: {time.perf_counter() - began:.0f} s"
        result.note(seed, f"{kind.__name__}: {outcome}", wrong)
    return result
