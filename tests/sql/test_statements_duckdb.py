"""Oracle tests: generated statements over windows side by side, and the same asked of DuckDB, window by window."""

from __future__ import annotations

import os
import random
import re
from datetime import date
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from sql.test_values import same

import skyband as sb

SIZE = 10
WINDOWED = f"(SELECT *, (t // {SIZE} + 1) * {SIZE} AS w FROM {{}}) AS r"
SLIDE = SIZE // 2
GROWING = (
    f"(SELECT *, t // {SIZE} * {SIZE} AS ws, ws + s AS w FROM {{}}, (VALUES ({SLIDE}), ({SIZE})) AS shifts(s) "
    f"WHERE t // {SIZE} * {SIZE} + s > t) AS r"
)
GAP = 3  # between the rows of a session, at most; {{per}} says whose sessions they are
SESSIONS = (
    f"(SELECT *, MIN(t) OVER one AS ws, MAX(t) OVER one + {GAP} AS w FROM (SELECT *, SUM(first) OVER ({{per}} ORDER BY "
    f"t) AS session FROM (SELECT *, CAST(t - LAG(t) OVER ({{per}} ORDER BY t) <= {GAP} IS NOT TRUE AS INT) AS first "
    "FROM {{}})) WINDOW one AS ({with_session} session)) AS r"
)
SLIDING = f"(SELECT *, (t // {SLIDE} + 1) * {SLIDE} + s AS w FROM {{}}, (VALUES (0), ({SLIDE})) AS shifts(s)) AS r"


# What has to be written with care: quotes, escapes, signs of patterns, other alphabets.
WORDS = [
    "a",
    "b",
    "C",
    "O'Brien",
    'say "a"',
    "a\\b",
    "50%",
    "a_b",
    "\\'",
    "two\nlines",
    "é",
    "日本",
    "--",
    "; a",
    "`",
    "",
]


DAYS = [
    date(2024, 1, 31),
    date(2024, 2, 29),
    date(2023, 2, 28),
    date(1969, 12, 31),
    date(1900, 3, 31),
    date(2023, 12, 30),
]


def trades(chance: random.Random, rows: int = 70) -> pa.Table:
    """Few values, so that scores tie; times that all differ, since what ties in both comes in an order of its own. Of
    some columns nothing is null, of some nearly everything."""

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        share = chance.choice([0.15, 0.15, 0.0, 0.7])
        return pa.array([None if chance.random() < share else chance.choice(values) for _ in range(rows)], kind)

    return pa.table(
        {
            "id": pa.array(range(rows)),
            "t": pa.array(sorted(chance.sample(range(90), rows))),
            "g": column(["a", "b", "C", *chance.sample(WORDS, 4)], pa.string()),
            "the `Word` of": column(["a", *chance.sample(WORDS, 4)], pa.string()),
            "Half": column([True, False], pa.bool_()),
            "i": column([-3, 0, 1, 2, 7], pa.int64()),
            "x": column([-1.5, 0.0, 0.25, 3.0, 8.5], pa.float64()),
            "d": column(DAYS, pa.date32()),
        }
    )


class Pair(NamedTuple):
    """A statement, and what it says of all windows at once in DuckDB's words; both give window, …"""

    ours: str
    duckdb: str


_TEXT, _NAME = re.compile("\x01(.*?)\x02", re.DOTALL), re.compile("\x03(.*?)\x04")


def text(value: str) -> str:
    """A text in a statement, to be written as each engine writes it."""
    return f"\x01{value}\x02"


NAME = "\x03the `Word` of\x04"


class Statements:
    """Statements by chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def one(self) -> Pair:
        ways = [self._ranked, self._ranked, self._grouped, self._over, self._carried, self._partnered]
        ours, theirs = self._chance.choice(ways)()
        ours = _TEXT.sub(lambda found: self._written(found[1]), ours)
        ours = _NAME.sub(lambda found: f"`{self._cased(found[1]).replace('`', '``')}`", ours)
        theirs = _TEXT.sub(lambda found: "'" + found[1].replace("'", "''") + "'", theirs)
        return Pair(ours, _NAME.sub(lambda found: f'"{found[1]}"', theirs))

    def _written(self, value: str) -> str:
        """A text in either kind of quotes, which stand twice in it, or behind a backslash."""
        value, quote = value.replace("\\", "\\\\"), self._of("'", '"')
        value = self._of(value, value.replace("\n", "\\n"))
        return quote + value.replace(quote, self._of(quote * 2, f"\\{quote}")) + quote

    def _word(self) -> str:
        return text(self._chance.choice([word for word in WORDS if word]))

    def _of(self, *texts: str) -> str:
        return self._chance.choice(texts)

    def _cased(self, text: str) -> str:
        """Names in any case."""
        return text if "'" in text or "\x01" in text else self._of(text, text.upper(), text.lower())

    def _source(self) -> tuple[str, str]:
        """What stands in front of SELECT, and in FROM: an input, or what WITH or FROM makes of it."""
        made = self._of(
            "SELECT * FROM trades",
            f"SELECT id, t, g, half, {NAME}, 10 - x AS x, i, d FROM trades",
            f"SELECT id, t, g, half, UPPER({NAME}) AS {NAME}, x, i * 2 + 1 AS i, LAST_DAY(d) AS d FROM trades "
            "WHERE i > 0 OR half",
            "SELECT * EXCEPT (x), i + 0.5 AS x FROM trades",
            f"SELECT id, t, g, half, {NAME}, x, i, d FROM trades WHERE half UNION ALL "
            f"SELECT id + 100, 90 + t, {NAME}, NOT half, g, i, id % 3, d FROM trades WHERE i > 0",
            f"SELECT id, t, g, half, {NAME}, i AS x, i, d FROM trades WHERE id < 20 UNION ALL SELECT id, t, "
            f"{self._word()}, TRUE, g, x, NULL, d FROM trades WHERE id > 40 UNION ALL SELECT id, t, g, half, "
            f"{NAME}, x, i, d FROM (SELECT * FROM trades WHERE id = 30)",
            f"SELECT id, t, CASE WHEN half THEN {self._word()} ELSE g END AS g, half, i AS x, id % 4 AS i, {NAME}, d "
            "FROM trades",
        )
        return self._chance.choice(
            [("", "trades"), (f"WITH c AS ({made}) ", "c"), ("", f"({made})"), self._twice(made)],
        )

    def _twice(self, made: str) -> tuple[str, str]:
        return f"WITH c AS ({made}), trades AS (SELECT *, x AS y FROM c WHERE id > 3) ", "trades"

    def _number(self) -> str:
        return self._cased(
            self._of(
                *("x", "i", "x + i", "r.x * 2 - i", "COALESCE(x, 1)", "ABS(i)", "CASE WHEN half THEN x ELSE i END"),
                *("ROUND(x)", "LENGTH(g) + i", "GREATEST(x, i)", "CAST(half AS INT)", "FLOOR(x / 2)", "NULLIF(i, 1)"),
                *("LENGTH(CAST(i AS VARCHAR))", "LEAST(LENGTH(g || g), x)", "MONTH(d)", "YEAR(LAST_DAY(d)) - i"),
                *("DAY(CAST(d + INTERVAL 1 MONTH AS DATE))", "YEAR(CAST(d - INTERVAL 25 MONTHS AS DATE))"),
                *(
                    "INSTR(g, 'b') + i",
                    "LENGTH(LPAD(g, 3, 'é'))",
                    "DEGREES(i)",
                    "ROUND(i * 7, -1)",
                    "LENGTH(REPEAT(g, 2))",
                ),
                f"CASE WHEN g = {self._word()} THEN x ELSE i END",
                f"LENGTH(REPLACE(g, {self._word()}, {text('')}))",
                f"LENGTH(r.{NAME}) - i",
                f"CASE r.{NAME} WHEN {self._word()} THEN 1 WHEN {self._word()} THEN x END",
            )
        )

    def _where(self) -> str:
        condition = self._of(
            *("x > 0", "half", "NOT half", "half IS NOT TRUE", "g = 'a'", "g <> 'b' OR i > 1", "x IS NOT NULL"),
            *("i IN (1, 2, NULL)", "i NOT IN (1, 2)", "x BETWEEN 0 AND 3", "g LIKE 'C%'", "g IS DISTINCT FROM 'a'"),
            *(
                "g ILIKE 'c%'",
                "LEFT(g, 1) = 'b'",
                "UPPER(g) = 'C'",
                "CAST(i AS VARCHAR) LIKE '%2'",
                "REPLACE(g, 'a', 'b') < 'c'",
            ),
            *("d + INTERVAL 1 MONTH > '2024-02-28'", "d - INTERVAL 1 YEAR < DATE '2023-01-01' OR half"),
            *("LAST_DAY(d) = d", "TRANSLATE(g, 'ab', 'ba') < 'b'", f"CONCAT_WS('-', g, {NAME}) > 'a-'"),
            *("RPAD(g, 3, '*') LIKE '%*'", "LAST_DAY(CAST(d + INTERVAL 13 MONTHS AS DATE)) IS NOT NULL"),
            *("CONTAINS(g, 'a') OR half", "SUBSTRING(g, 1, 1) IN ('a', 'C')", "CAST(g = 'a' AS INT) + i > 1"),
            f"g = {self._word()} OR {NAME} = {text('')}",
            f"g NOT IN ({self._word()}, {self._word()})",
            f"{NAME} IN ({self._word()}, {self._word()}, NULL) OR x > 1",
            f"CONTAINS(g, {self._word()}) OR {NAME} < {self._word()}",
            f"REPLACE(g, {self._word()}, {self._word()}) <> {NAME}",
            f"SPLIT_PART(g || {self._word()}, {self._word()}, 1) = {text('')} OR i = 2",
            f"COALESCE({NAME}, {self._word()}) = g OR LENGTH({self._word()} || g) > 4",
        )
        return self._of("", f"WHERE {self._cased(condition)} ", f"WHERE ({condition}) AND (id <> 7 AND TRUE) ")

    def _window(self) -> tuple[str, str]:
        """A window as we write it, and rows with the windows that they are in, in DuckDB."""
        return self._chance.choice(
            [
                (f"{{}} AS r [WINDOW {SIZE} EVERY {SIZE} ON t]", WINDOWED),
                (f"{{}} AS r [WINDOW {SIZE} EVERY {SLIDE} ON T]", SLIDING),
                (f"TUMBLE({{}}, t, {SIZE}) AS r", WINDOWED),
                (f"TABLE(TUMBLE(DATA => {{}}, TIMECOL => DESCRIPTOR(T), SIZE => {SIZE})) AS r", WINDOWED),
                (f"HOP({{}}, t, {SLIDE}, {SIZE}) r", SLIDING),
            ]
        )

    def _bound(self, window: str) -> str:
        """What tells windows apart: needed behind TUMBLE and HOP."""
        bounds = ["window_end", "window_start", "window_start, WINDOW_END"]
        return self._of(*bounds) if "(" in window else self._of("", *bounds)

    def _ranked(self) -> Pair:
        (front, source), where, k = self._source(), self._where(), self._chance.randint(1, 3)
        window, windowed = self._window()
        shown, by, way = self._number(), self._number(), self._of("", " DESC", " ASC")
        per = self._of("", "", "g", "half", "id % 3")
        order = self._of(by, "4" if by == shown else by, "v" if by == shown else by)
        counted = self._of("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK")
        is_limited = "[" in window and counted != "DENSE_RANK" and self._chance.random() < 0.4
        recent = ", t DESC" if counted == "ROW_NUMBER" else ""
        numbered = f"{counted}() OVER (PARTITION BY w{', ' + per if per else ''} ORDER BY {by}{way}{recent})"
        inner = f"SELECT w, {numbered} AS n, id, {shown} AS v FROM {windowed.format(source)} "
        inner += f"WHERE ({where.removeprefix('WHERE ') or 'TRUE'}) AND ({by}) IS NOT NULL"
        input_, first, kept = window.format(source), 1, ""
        if is_limited:
            skipped = self._chance.choice([0, 0, 1, 2]) if recent else 0
            ties = "" if recent else " WITH TIES"
            limit = f"LIMIT {k}{ties}{f' BY {per}' if per else ''}{f' OFFSET {skipped}' if skipped else ''}"
            limit = limit if per or skipped else self._of(limit, f"FETCH FIRST {k} ROWS{ties or ' ONLY'}")
            ours = (
                f"SELECT window_end, window_start, id, {shown} AS {self._alias(order)} FROM {input_} {where}"
                f"ORDER BY {order}{way} {limit}"
            )
            first, k = skipped + 1, skipped + k
        else:
            bound = self._bound(window)
            parts = ", ".join(part for part in self._chance.sample([bound, per], 2) if part)
            over = f"{counted}() OVER ({f'PARTITION BY {parts} ' if parts else ''}ORDER BY {by}{way})"
            ours, first, k, kept = self._numbered(over, shown, input_, where, k)
        theirs = f"SELECT w, w - {SIZE}, {'n, ' if 'AS n' in ours else ''}id, v FROM ({inner})"
        return Pair(front + ours, f"{front}{theirs} WHERE n BETWEEN {first} AND {k}{kept}")

    def _alias(self, order: str) -> str:
        """A name for what is shown, which may be that of a column; in ORDER BY it would come before that."""
        names = [name for name in ("X", "g", "Half", "i", "t") if not re.search(rf"(?i)\b{name}\b", order)]
        return "v" if order == "v" else self._of("v", *names)

    def _numbered(self, over: str, shown: str, input_: str, where: str, k: int) -> tuple[str, int, int, str]:
        """A statement with a rank, the first and last number that it asks for, and what else it asks."""
        first = self._chance.choice([1, 1, 2]) if k > 1 else 1
        number = self._of("rn", "RN", "q.Rn")
        asked = self._of(f"{number} BETWEEN {first} AND {k}", f"{number} >= {first} AND {k} >= {number}")
        if first == 1:
            asked = self._of(f"{number} <= {k}", f"{k} >= {number}", f"{number} < {k + 1}", f"{k + 1} > {number}")
        if self._chance.random() < 0.2:
            first, asked = k, self._of(f"{number} = {k}", f"{k} = {number}")
        if self._chance.random() < 0.4:
            asked = asked.replace(number, over)
            named = f"{shown} AS {self._of('v', 'G', 'half', 'x')}"
            made = f"SELECT window_end, window_start, {over} AS n, id, {named} FROM {input_} {where}QUALIFY {asked}"
            return made, first, k, ""
        kept = self._of("", " AND v > 0", " AND (v IS NULL OR id % 2 = 0)")
        body = f"SELECT *, {shown} AS v, {over} AS rn FROM {input_} {where}"
        if "window_start" not in body or "[" in input_:
            body = f"SELECT id, window_end, window_start, {shown} AS v, {over} AS rn FROM {input_} {where}"
        listed = f"SELECT window_end, window_start, {number} AS n, id, v FROM"
        made = self._of(f"{listed} ({body}) AS q WHERE {asked}{kept}", f"{listed} ({body}) q WHERE ({asked}){kept}")
        return made, first, k, kept

    def _grouped(self) -> Pair:
        (front, source), where = self._source(), self._where()
        window, windowed = self._window()
        key = self._cased(
            self._of("g", "half", "i", "i % 2", "CASE WHEN half THEN 'yes' ELSE g END", "r.g", f"r.{NAME}")
        )
        key = self._of(key, key, f"COALESCE({NAME}, {self._word()})", f"g || {self._word()}")
        number = self._number()
        some = self._of("SUM({})", "COUNT({})", "MIN({})", "MAX({})", "AVG({})", "COUNT(DISTINCT {})").format(number)
        having = self._of("", "", " HAVING n > 1", " HAVING COUNT(*) > 1", " HAVING a > 0", f" HAVING {some} < 5")
        if self._chance.random() < 0.3:
            some = self._extreme()
            having = self._of("", "", " HAVING n > 1", " HAVING a IS NOT NULL", f" HAVING MIN(g) < {self._word()}")
        lists = f"{key} AS k, COUNT({self._of('*', '1')}) AS n, {some} AS a"
        grouped, bound = self._of(key, "k", "3"), self._bound(window)
        input_ = window.format(source)
        if window.startswith("{} AS r [") and "window" not in bound and self._chance.random() < 0.5:
            size, slide = SIZE, SIZE if windowed == WINDOWED else SLIDE
            input_, bound = f"{source} AS r", f"window(t, {size}, {slide})"
            ours = f"SELECT window.end AS window_end, window.start AS window_start, {lists} FROM {input_} {where}"
        else:
            ours = f"SELECT window_end, window_start, {lists} FROM {input_} {where}"
        ours += f"GROUP BY {', '.join(part for part in (grouped, bound) if part)}{having}"
        theirs = f"SELECT w, w - {SIZE}, {lists} FROM {windowed.format(source)} {where}GROUP BY w, {key}{having}"
        chosen = self._of("", "", "n > 1", "a IS NOT NULL", "window_end > 40 AND n < 3", "best")
        if chosen == "best":
            order = self._of("n DESC, k", "a, k", "k DESC, n")
            over = f"ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY {order})"
            ours = f"SELECT window_end, window_start, k, n, a FROM (SELECT *, {over} AS rn FROM ({ours})) WHERE rn <= 2"
            filled = ", ".join(f"{one} NULLS LAST" for one in order.split(", "))
            over = f"ROW_NUMBER() OVER (PARTITION BY w ORDER BY {filled})"
            theirs = f"SELECT * EXCLUDE (rn) FROM (SELECT *, {over} AS rn FROM ({theirs})) WHERE rn <= 2"
        elif chosen:
            ours = f"SELECT * FROM ({ours}) WHERE {chosen}"
            theirs = f"SELECT * FROM ({theirs}) WHERE {chosen.replace('window_end', 'w')}"
        return Pair(front + ours, front + theirs)

    def _extreme(self) -> str:
        """The smallest or largest of what is no number."""
        value = self._of(
            *("g", "half", f"r.{NAME}", "UPPER(g)", f"g || {NAME}", "NOT half", "i > 1", "CAST(i AS VARCHAR)"),
            *("d", "LAST_DAY(d)", "CAST(d + INTERVAL 1 MONTH AS DATE)", f"CONCAT_WS('', g, {NAME})", "LPAD(g, 2, 'a')"),
            *(f"COALESCE({NAME}, {self._word()})", "CASE WHEN half THEN g END", f"NULLIF(g, {self._word()})"),
        )
        filtered = self._of("", "", " FILTER (WHERE half)", " FILTER (WHERE i > 0)")
        return self._of("MIN({})", "MAX({})", "MIN(DISTINCT {})", "MAX({})").format(self._cased(value)) + filtered

    def _aggregate(self) -> str:
        some = self._of("SUM({})", "COUNT({})", "MIN({})", "MAX({})", "AVG({})", "COUNT(DISTINCT {})", "COUNT(*)")
        filtered = "" if "DISTINCT" in some else self._of("", "", " FILTER (WHERE half)", " FILTER (WHERE g <> 'a')")
        return some.format(self._number()) + filtered

    def _over(self) -> Pair:
        """Aggregates beside the rows, or the groups, that they are of."""
        (front, source), where = self._source(), self._where()
        window, windowed = self._window()
        bound, per, input_ = self._bound(window), self._of("", "", "g", "half", "id % 3"), window.format(source)
        parts = ", ".join(part for part in self._chance.sample([bound, per], 2) if part)
        ours, theirs = (f"({f'PARTITION BY {by}' if by else ''})" for by in (parts, f"w{', ' * bool(per)}{per}"))
        if self._chance.random() < 0.3:
            some, key = (
                self._of("SUM(COUNT(*))", "MAX(SUM(i))", "COUNT(MIN(x))", "AVG(COUNT(x))"),
                self._of("g", "half"),
            )
            listed = f"{key} AS k, COUNT(*) AS n, {some} OVER"
            bounds = ", ".join(part for part in (bound, key) if part)
            ours = f"({f'PARTITION BY {bound}' if bound else ''})"
            kept = self._of("", f" QUALIFY COUNT(*) >= {some} OVER {{}}", " HAVING COUNT(*) > 1")
            return Pair(
                f"{front}SELECT window_end, {listed} {ours} AS a FROM {input_} {where}GROUP BY {bounds}"
                + kept.format(ours),
                f"{front}SELECT w, {listed} (PARTITION BY w) AS a FROM {windowed.format(source)} {where}"
                f"GROUP BY w, {key}{kept.format('(PARTITION BY w)')}",
            )
        some, shown = self._aggregate(), self._number()
        if self._chance.random() < 0.2:
            some = self._extreme()
            kept = self._of("", f"QUALIFY {some} OVER {{}} IS NOT NULL", f"QUALIFY {self._word()} > MIN(g) OVER {{}}")
            return Pair(
                f"{front}SELECT window_end, id, {some} OVER {ours} AS a FROM {input_} {where}{kept.format(ours)}",
                f"{front}SELECT w, id, {some} OVER {theirs} AS a FROM {windowed.format(source)} {where}"
                f"{kept.format(theirs)}",
            )
        listed = f"id, {self._of('', f'{shown} - ')}{some} OVER"
        kept = self._of(
            "", "", f"QUALIFY {shown} >= {some} OVER {{}}", f"QUALIFY {some} OVER {{}} IS NOT NULL AND i > 0"
        )
        return Pair(
            f"{front}SELECT window_end, {listed} {ours} AS a FROM {input_} {where}{kept.format(ours)}",
            f"{front}SELECT w, {listed} {theirs} AS a FROM {windowed.format(source)} {where}{kept.format(theirs)}",
        )

    def _partnered(self) -> Pair:
        """Windows that are joined with others by LEFT, SEMI and ANTI JOIN."""
        (front, source), kind = self._source(), self._of("LEFT JOIN", "LEFT JOIN", "SEMI", "ANTI")
        every, windowed = self._chance.choice([(SIZE, WINDOWED), (SLIDE, SLIDING)])
        ours, theirs = f"{source} AS r [WINDOW {SIZE} EVERY {every} ON t]", windowed.format(source)
        other, others = f"trades AS q [WINDOW {SIZE} EVERY {every} ON T]", f"{windowed.format('trades')[:-1]}q"
        key = self._of(
            *("r.g = q.g", "q.i = r.i", "r.half = q.half AND r.i = q.i", f"r.{NAME} = q.g", "r.i + 1 = q.i"),
            "UPPER(r.g) = UPPER(q.g)",
        )
        on = key + self._of("", "", " AND q.x > 0", " AND NOT q.half", " AND r.half AND q.i < 7", " AND q.g IS NULL")
        where = [self._of("", "", "r.i > 0", "r.half IS NOT TRUE")]
        if kind == "LEFT JOIN":
            where.append(self._of("", "", "q.id IS NULL", "q.x > 1 OR r.half", "COALESCE(q.i, 0) < 2", "q.t >= r.t"))
        exists = f"{'NOT ' * (kind == 'ANTI')}EXISTS (SELECT 1 FROM {{}} WHERE {{}}{on})"
        if kind != "LEFT JOIN" and self._chance.random() < 0.5:
            where, sides = [*where, exists], [(ours, other, ""), (theirs, others, "q.w = r.w AND ")]
            bodies = [side[0] for side in sides]
        else:
            sides = [(ours, other, ""), (theirs, others, "q.w = r.w AND ")]
            way = "LEFT JOIN" if kind == "LEFT JOIN" else f"{kind} JOIN"
            bodies = [f"{one} {way} {two} ON {windows}{on}" for one, two, windows in sides]
        met = " AND ".join(f"({one})" if " OR " in one else one for one in where if one)
        met = f" WHERE {met}" if met else ""
        bodies = [
            body + met.replace(exists, exists.format(two, windows))
            for body, (_, two, windows) in zip(bodies, sides, strict=True)
        ]
        listed, grouped = self._of_partners(is_left=kind == "LEFT JOIN")
        return Pair(
            f"{front}SELECT window_end, {listed} FROM {bodies[0]}{f' GROUP BY {grouped}' if grouped else ''}",
            f"{front}SELECT r.w, {listed} FROM {bodies[1]}{f' GROUP BY r.w, {grouped}' if grouped else ''}",
        )

    def _of_partners(self, *, is_left: bool) -> tuple[str, str]:
        """What is shown of rows, or of their groups; and these."""
        if self._chance.random() < 0.4:
            return (self._of("r.id, q.id AS other, q.x", "r.g, r.i + q.i AS both, q.t") if is_left else "r.id, r.g"), ""
        key = self._of(*("r.g", "r.half", "r.id % 3"), *(("q.g", "COALESCE(q.g, 'none')", "q.half") if is_left else ()))
        some = self._of(
            *("SUM(r.i)", "COUNT(DISTINCT r.g)", "MAX(r.i)"),
            *(
                ("COUNT(q.id)", "SUM(q.i)", "AVG(q.x)", "MIN(q.i)", "COUNT(DISTINCT q.g)", "SUM(COALESCE(q.i, 7))")
                if is_left
                else ()
            ),
            "COUNT(*) FILTER (WHERE q.id IS NULL)" if is_left else "COUNT(r.x)",
        )
        return f"{key} AS k, COUNT(*) AS n, {some} AS a", key

    def _carried(self) -> Pair:
        """Windows that grow, and windows that end with a pause."""
        (front, source), where, per = self._source(), self._where(), self._of("", "g", "half")
        by = f"PARTITION BY {per}" if per else ""
        sessions = SESSIONS.format(per=by, with_session=f"{by}," if per else "PARTITION BY")
        window, windowed = self._chance.choice(
            [
                (f"CUMULATE({{}}, t, {SLIDE}, {SIZE}) AS r", GROWING),
                (f"SESSION({{}} {by}, t, {GAP}) AS r", sessions),
            ]
        )
        input_, rows = window.format(source), windowed.format(source)
        bounds, some = self._of("window_start, window_end", "WINDOW_END, window_start"), self._aggregate()
        some = self._of(some, some, some, self._extreme())
        way = self._of("group", "rank", "over")
        if way == "group":
            key = self._of("g", "half", "id % 2")
            lists, having = f"{key} AS k, COUNT(*) AS n, {some} AS a", self._of("", " HAVING COUNT(*) > 1")
            if window.startswith("SESSION") and (per or key) == key and key != "id % 2" and self._chance.random() < 0.5:
                grouped = f"FROM {source} AS r {where}GROUP BY session_window(t, {GAP}), {key}"
                ours = f"SELECT session_window.start, session_window.end, {lists} {grouped}{having}"
                by = f"PARTITION BY {key}"
                filtered = f"(SELECT * FROM {source} AS r {where})"
                rows, where = SESSIONS.format(per=by, with_session=f"{by},").format(filtered), ""
            else:
                ours = f"SELECT window_start, window_end, {lists} FROM {input_} {where}GROUP BY {bounds}, {key}{having}"
            return Pair(front + ours, f"{front}SELECT ws, w, {lists} FROM {rows} {where}GROUP BY ws, w, {key}{having}")
        if way == "over":
            listed, apart = f"id, {some} OVER (PARTITION BY", "ws, w"
            if self._chance.random() < 0.5:
                bounds, apart = "window_end", "w"  # at which several sessions may end
            return Pair(
                f"{front}SELECT window_start, window_end, {listed} {bounds}) AS a FROM {input_} {where}",
                f"{front}SELECT ws, w, {listed} {apart}) AS a FROM {rows} {where}",
            )
        shown, order, k = self._number(), self._number(), self._chance.randint(1, 3)
        inner = f"SELECT *, {shown} AS v, ROW_NUMBER() OVER (PARTITION BY {bounds}, id % 2 ORDER BY {order}) AS rn"
        theirs = (
            f"SELECT *, {shown} AS v, ROW_NUMBER() OVER (PARTITION BY ws, w, id % 2 ORDER BY {order}, t DESC) AS rn"
        )
        met = f"({where.removeprefix('WHERE ') or 'TRUE'}) AND ({order}) IS NOT NULL"
        return Pair(
            f"{front}SELECT window_start, window_end, id, v FROM ({inner} FROM {input_} {where}) WHERE rn <= {k}",
            f"{front}SELECT ws, w, id, v FROM ({theirs} FROM {rows} WHERE {met}) WHERE rn <= {k}",
        )


def found(answer: pa.Table) -> list[tuple[Any, ...]]:
    if "rank" not in answer.column_names:
        return [tuple(row.values()) for row in answer.to_pylist()]
    kept = [name for name in ("window_end", "rank", "id", "v", "k", "n", "a") if name in answer.column_names]
    return [tuple(row.values()) for row in answer.select(kept).to_pylist()]


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


STATEMENTS = int(os.environ.get("SKYBAND_STATEMENTS", "240"))  # how many are tried


@pytest.mark.parametrize("seed", range(8))
def test_statements_give_the_answers_that_duckdb_gives(seed: int) -> None:
    chance = random.Random(seed)
    rows, statements = trades(chance), Statements(chance)
    connection = duckdb.connect()
    connection.register("trades", rows)
    for _ in range(STATEMENTS // 8):
        asked = statements.one()
        expected = connection.execute(asked.duckdb).fetchall()
        answer = ordered(found(sb.sql(asked.ours, trades=rows)))
        expected = ordered(expected)
        assert len(answer) == len(expected), asked
        for one, other in zip(answer, expected, strict=True):
            assert all(map(same, one, other)), (asked, one, other)
