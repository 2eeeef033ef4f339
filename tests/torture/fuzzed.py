"""Line 7: statements, expressions and records that nobody would write, each answered or refused by a typed error."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
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
PATIENCE_S = 5.0  # of the processor; a second on a machine that does nothing else

# What people write; one to three words of it are changed.
STATEMENTS = (
    "SELECT * FROM rows [WINDOW 20 EVERY 10 ON t] ORDER BY v DESC LIMIT 3",
    "SELECT t , v AS y FROM rows [WINDOW 20 ROWS EVERY 10] WHERE v > 1 AND g = 'a' ORDER BY v * x + 1 LIMIT 2 BY g",
    "SELECT g , COUNT(*) AS c , SUM( v ) AS total FROM rows [WINDOW 20 EVERY 10 ON t] GROUP BY g HAVING c > 1",
    "SELECT g , MAX( x ) AS m FROM rows [WINDOW 10 EVERY 10 ON t] GROUP BY g ORDER BY m DESC LIMIT 2",
    "SELECT a.g , COUNT(*) AS c FROM rows AS a [WINDOW 9 ON t] JOIN rows AS b [WINDOW 9 ON t] USING ( g ) GROUP BY a.g",
    "WITH w AS ( SELECT t , v * 2 AS y FROM rows ) SELECT * FROM w [WINDOW 10 EVERY 5 ON t] ORDER BY y DESC LIMIT 1",
    "SELECT * FROM rows [WINDOW 9 ROWS] ORDER BY CASE WHEN v IS NULL THEN 0 ELSE v END DESC , g LIMIT 2",
)
EXPRESSIONS = (
    "v * 2 + x",
    "CASE WHEN g = 'a' THEN v ELSE - x END",
    "coalesce( v , 0 ) / ( x + 1 )",
    "abs( v - 3 ) ** 2",
    "n - 1152921504606846976",
)


def _mutated(text: str, rng: np.random.Generator) -> str:
    """The same with some words left out, doubled, replaced or in another place."""
    words = text.split(" ")
    for _ in range(int(rng.integers(0, 4))):
        at, way = int(rng.integers(len(words))), int(rng.integers(4))
        word = str(rng.choice(WORDS))
        words[at : at + 1] = ([], [words[at]] * 2, [word], [words[at], word])[way]
        if not words:
            return ""
    return " ".join(words)


def _text(rng: np.random.Generator, most: int) -> str:
    return " ".join(rng.choice(WORDS, int(rng.integers(1, most))).tolist())


def statement(rng: np.random.Generator) -> Any:
    text = _text(rng, 25)
    if rng.random() < 0.6:
        text = _mutated(str(rng.choice(STATEMENTS)), rng)
    elif rng.random() < 0.6:
        start = "SELECT * FROM rows [WINDOW '10' ON t]" if rng.random() < 0.5 else "SELECT g, COUNT(*) FROM rows"
        text = f"{start} {text}"
    return lambda: sb.sql(text, rows=ROWS)


def expression(rng: np.random.Generator) -> Any:
    text = _text(rng, 9) if rng.random() < 0.4 else _mutated(str(rng.choice(EXPRESSIONS)), rng)
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
        ask = kind(np.random.default_rng(seed))
        outcome, wrong, seconds = _asked(ask)
        if seconds > PATIENCE_S:  # a loop may have been compiled for it, which happens once
            outcome, wrong, seconds = _asked(ask)
        if seconds > PATIENCE_S:
            outcome, wrong = "too long", f"{seconds:.0f} s"
        result.note(seed, f"{kind.__name__}: {outcome}", wrong and f"{kind.__name__}: {wrong}")
    return result


def _asked(ask: Callable[[], object]) -> tuple[str, str | None, float]:
    """What came of it, what was wrong with that, and how long the processor was busy with it."""
    began, outcome, wrong = time.process_time(), "answered", None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            ask()
    except sb.SkybandError:
        outcome = "typed error"
    except Exception as error:
        outcome, wrong = "raw error", f"{type(error).__name__}: {str(error)[:200]}"
    return outcome, wrong, time.process_time() - began
