"""What to write instead of a function that Skyband has not: the nearest that means the same on every engine."""

from __future__ import annotations

from typing import Final

_NO_HASH: Final = "Engines hash differently, so Skyband has no hashes. Compare the values themselves: GROUP BY symbol."
_ONLY_ROWS: Final = "An answer follows from its rows alone, so that a restart gives it again. window_end is its time."
_IN_UTC: Final = "Skyband computes with times in UTC. Move them yourself: ts + INTERVAL 9 HOURS."

INSTEAD: Final[dict[str, str]] = {
    **dict.fromkeys(("MD5", "SHA", "SHA1", "SHA2", "HASH", "XXHASH64", "CRC32"), _NO_HASH),
    **dict.fromkeys(
        (
            *("NOW", "CURDATE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "RAND", "RANDN"),
            *("RANDOM", "UUID", "MONOTONICALLY_INCREASING_ID"),
        ),
        _ONLY_ROWS,
    ),
    **dict.fromkeys(("FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP", "CONVERT_TIMEZONE"), _IN_UTC),
    **dict.fromkeys(("BIGINT", "SMALLINT", "TINYINT"), "Write CAST(x AS BIGINT)."),
    "INITCAP": "Engines capitalize differently. Write UPPER(LEFT(s, 1)) || LOWER(SUBSTRING(s, 2)).",
    "TRUNCATE": "CAST(x AS BIGINT) cuts off what is behind the point; ROUND(x, 2) rounds.",
    "BROUND": "ROUND(x, 2) rounds halves away from zero.",
    "RINT": "ROUND(x) rounds halves away from zero.",
    "SPLIT": "SPLIT_PART(s, ',', 1) gives one part.",
    **dict.fromkeys(("REGEXP_SUBSTR", "REGEXP_EXTRACT_ALL"), "REGEXP_EXTRACT(s, '([a-z]+)', 1) gives the first match."),
    "REGEXP_COUNT": "LENGTH(s) - LENGTH(REPLACE(s, 'a', '')) counts a character.",
    "MID": "Write SUBSTRING(s, 1, 2).",
    "BTRIM": "Write TRIM(s).",
    "SPACE": "Write REPEAT(' ', 3).",
    "OVERLAY": "Write LEFT(s, 1) || 'x' || SUBSTRING(s, 3).",
    **dict.fromkeys(("FORMAT_STRING", "FORMAT_NUMBER", "PRINTF"), "Write CAST(i AS STRING) || s."),
    **dict.fromkeys(("ELT", "FIELD", "FIND_IN_SET"), "Write CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END."),
    "TO_NUMBER": "Write CAST(s AS DOUBLE).",
    "MAKE_TIMESTAMP": "Write DATEADD(HOUR, h, MAKE_DATE(y, m, d)).",
    "MAKE_INTERVAL": "DATEADD(MONTH, n, ts) moves a time by the number in a column.",
    "TIMEDIFF": "Write TIMESTAMPDIFF(SECOND, a, b).",
    "WEEK": "Write WEEKOFYEAR(d).",
    "TRY_DIVIDE": "Write x / y, which fails for no number.",
    **dict.fromkeys(
        ("TRY_ADD", "TRY_SUBTRACT", "TRY_MULTIPLY"), "Write x + y; CAST(x AS DOUBLE) + y is never too large."
    ),
    "NEGATIVE": "Write -x.",
    "HYPOT": "Write SQRT(x * x + y * y).",
    "ATAN": "Write ATAN2(x, 1).",
    "LOG1P": "Write LN(x + 1).",
    "EXPM1": "Write EXP(x) - 1.",
    "MEAN": "Write AVG(x).",
    **dict.fromkeys(("EVERY", "BOOL_AND"), "MIN(x) is true if all booleans of a group are."),
    **dict.fromkeys(("ANY", "SOME", "BOOL_OR"), "MAX(x) is true if one boolean of a group is."),
}
