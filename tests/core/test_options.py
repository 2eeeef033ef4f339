"""Example: every option of every query, on every path that can give it, is used or refused, never dropped.

Each table names all options that there are; a new one fails here until it says what it changes.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Required, get_origin, get_type_hints

import options_page
import pyarrow as pa
import pytest

import skyband as sb
from skyband import api
from skyband.api import JoinOptions, TopKOptions
from skyband.core.query import options_of, type_text
from skyband.errors import InvalidPipeline
from skyband.pipelines.checking import check, spec_of
from skyband.pipelines.columns import columns_of
from skyband.pipelines.file import load
from skyband.sql.run import ask

N = 40
# Times with a jump, late rows and a stretch without any; scores that fall, with a null.
T = [0, 1, 2, 2, 3, 5, 4, 5, 6, 5, 7, 8, 6, 9, 8, 10, 12, 10, 13, 12, 14, 15, *range(30, 44), 500, 45, 47, 52]
ROWS = pa.table(
    {
        "t": pa.array(T, pa.int64()),
        "seq": range(N),
        "g": [i % 3 for i in range(N)],
        "x": [None if i == 4 else 50.0 - i + (i * 7) % 5 for i in range(N)],
    }
)
QUERIES = pa.table({"id": [1, 2], "name": ["p", "q"], "x": [10.0, 40.0], "k": [1, 3], "n": [3, 6], "often": [3, 6]})
LATER = pa.table({"id": [3], "name": ["r"], "x": [20.0], "k": [2], "n": [6], "often": [3]})
STREAMS = {
    name: pa.table(
        {"t": t, "id": range(N), "few": [i % 3 for i in range(N)], "v": [i * step % 13 / 13 for i in range(N)]}
    )
    for name, t, step in (("r", ROWS["t"], 7), ("s", range(0, 2 * N, 2), 5))
}
SLIDING = sb.sliding(6, every=3, on="t")
INPUTS = {"a": sb.sliding(6, on="t"), "b": sb.sliding(9, on="t")}
JOINED = {"a": ROWS, "b": ROWS.slice(5, 20)}

# By option: a value that must change what is seen of a query. Seen are the answer, the counts, what is held and runs.
Options = dict[str, Any]
TOP_K: Options = {
    "k": 1,
    "by": "seq",
    "window": sb.sliding(9, every=3, on="t"),
    "per": "g",
    "ascending": True,
    "emit": "changes",
    "lateness": 2,
    "algorithm": "recompute",
    "ad_hoc": True,
    "error": 0.2,
    "expect": "falling",
    "max_jump": 50,
    "ties": "rank",
    "forget_after": 2,
}
FOR_EACH: Options = {
    "queries": QUERIES.slice(1),
    "k": "q.k",
    "by": "abs(seq - q.x)",
    "window": sb.sliding(9, every=3, on="t"),
    "key": ["id", "name"],
    "size": "q.n",
    "every": "q.often",
    "where": "g < q.k",
    "ascending": True,
    "emit": "entries",
    "lateness": 2,
    "backfill": True,
    "algorithm": "recompute",
    "max_jump": 50,
}
PAIRS: Options = {
    "k": 1,
    "by": "abs(a.x - b.x)",
    "window": sb.sliding(9, every=3, on="t"),
    "ascending": True,
    "same": "g",
    "different": "g",
    "per": "g",
    "where": "a.seq + 1 < b.seq",
    "emit": "entries",
    "lateness": 2,
    "algorithm": "recompute",
}
ACROSS: Options = {
    "k": 1,
    "id": "few",
    "value": "t",
    "window": sb.sliding(9, every=3, on="t"),
    "streams": ["s", "r"],
    "stream": "which",
    "combine": "max",
    "bounds": (0.0, 0.5),
    "repeat": "sum",
    "max_repeats": 1,
    "clip": True,
    "emit": "changes",
    "lateness": 2,
    "idle_after": 10,
    "max_jump": 50,
    "recall": 0.9,
    "algorithm": "recompute",
}
JOIN: Options = {
    "inputs": {"a": sb.sliding(9, on="t"), "b": sb.sliding(9, on="t")},
    "aggregates": {"n": "SUM(b.seq)"},
    "on": ["a.g = b.g", "a.seq = b.seq"],
    "group_by": "b.g",
    "having": "n > 20",
    "order_by": "n",
    "k": 1,
    "every": 2,
    "emit": "changes",
    "lateness": 2,
    "how": {"b": "left"},
    "plan": "recompute",
}
BASE: dict[type, Options] = {
    sb.TopK: {"k": 2, "by": "x", "window": SLIDING},
    sb.TopKForEach: {"queries": QUERIES, "k": 2, "by": "abs(x - q.x)", "window": SLIDING},
    sb.TopKPairs: {"k": 2, "by": "a.x - b.x", "window": SLIDING},
    sb.TopKAcross: {"k": 2, "id": "id", "value": "v", "window": SLIDING, "streams": ["r", "s"]},
    sb.JoinAggregate: {"inputs": INPUTS, "aggregates": {"n": "COUNT(*)"}, "on": "a.g = b.g", "every": 3},
}
CHANGED: dict[type, Options] = {
    sb.TopK: TOP_K,
    sb.TopKForEach: FOR_EACH,
    sb.TopKPairs: PAIRS,
    sb.TopKAcross: ACROSS,
    sb.JoinAggregate: JOIN,
}
# What an option cannot do without.
WITH: dict[tuple[type, str], Options] = {
    (sb.TopK, "lateness"): {"by": "seq"},
    (sb.TopK, "error"): {"window": sb.sliding(100_000), "k": 10},
    (sb.TopK, "forget_after"): {"window": sb.sliding(6, every=1, order="seq"), "per": "g"},
    (sb.TopK, "expect"): {"window": sb.sliding(100_000), "k": 500},
    (sb.TopKForEach, "ascending"): {"by": "x - q.x"},
    (sb.TopKAcross, "combine"): {"repeat": "last", "id": "few"},
    (sb.TopKAcross, "max_repeats"): {"repeat": "last", "id": "few"},
    (sb.TopKAcross, "clip"): {"bounds": (0.0, 0.5)},
    (sb.JoinAggregate, "k"): {"order_by": "n", "group_by": "a.g"},
    (sb.JoinAggregate, "order_by"): {"group_by": "a.g"},
}
EVERY_OPTION = [(query, option) for query, options in CHANGED.items() for option in options]


def test_the_tables_name_every_option() -> None:
    for query, options in CHANGED.items():
        declared = options_of(query)
        assert set(options) == {each.name for each in declared}
        assert [each.name for each in declared] == [field.name for field in fields(query)]
        assert set(options) == set(inspect.signature(query).parameters)


@pytest.mark.parametrize("query", CHANGED, ids=lambda each: each.__name__)
def test_a_query_is_known_by_each_option_that_its_answer_depends_on(query: type) -> None:
    """A snapshot is read by a query with the same options, whatever algorithm runs; its pickle is the same query."""
    schema: Any = {name: rows.schema for name, rows in JOINED.items()} if query is sb.JoinAggregate else ROWS.schema
    for each in options_of(query):
        base, changed = (query(**options) for options in both(query, each.name))
        assert pickle.loads(pickle.dumps(changed)) == changed
        known_by = [one.fingerprint(schema) for one in (base, changed)]
        if each.name == "queries":  # they come and go
            assert known_by[0] == known_by[1]
        else:
            assert base != changed
            assert (known_by[0] != known_by[1]) is each.fingerprint
            assert each.fingerprint is (each.name not in ("algorithm", "expect", "plan"))


@pytest.mark.parametrize("query", CHANGED, ids=lambda each: each.__name__)
def test_help_says_what_each_option_is(query: type) -> None:
    function = next(each for each, queries in FUNCTIONS.items() if query in queries)
    for each in options_of(query):
        assert f"\n{each.name}\n    " in str(query.__doc__)
        if (query, each.name) not in ONLY_BY_HAND:
            name = "for_each" if each.name == "queries" else each.name
            assert f"\n{name}\n    " in str(function.__doc__)
            parameter = inspect.signature(function).parameters[name]
            assert parameter.annotation is not parameter.empty


@pytest.mark.parametrize(("function", "options"), [(sb.top_k, TopKOptions), (sb.join_aggregate, JoinOptions)])
def test_type_checkers_see_what_help_shows(function: Any, options: Any) -> None:
    """The two lists of options that are written by hand say what the queries declare."""
    parameters = {name: each for name, each in inspect.signature(function).parameters.items() if name != "data"}
    spark = {"Column": str}  # is imported for type checkers only
    said = get_type_hints(options, None, spark, include_extras=True)
    required = {name for name, hint in said.items() if get_origin(hint) is Required}
    assert required == {name for name, each in parameters.items() if each.default is each.empty}
    hints = get_type_hints(options, None, spark)
    assert {name: type_text(hint) for name, hint in hints.items()} == {
        name: str(each.annotation) for name, each in parameters.items()
    }


def both(query: type, option: str) -> tuple[Options, Options]:
    """What is asked without the option, and with it."""
    base = {**BASE[query], **WITH.get((query, option), {})}
    return base, {**base, option: CHANGED[query][option]}


def used_or_refused(option: str, is_used: Callable[[], bool]) -> bool:
    """Does it change something? Or does an error name it?"""
    try:
        return is_used()
    except sb.SkybandError as refused:
        return option.lower() in str(refused).lower()


# -- the query, pushed by hand -----------------------------------------------------------------------------------------


def seen(query: Any) -> tuple[Any, ...]:
    """All that a user can see of a query over these rows: what `push` takes; what is answered, counted, held, run."""
    if isinstance(query, sb.TopKAcross):
        schemas = (
            pa.schema([*STREAMS["r"].schema, pa.field("which", pa.string())]) if query.stream else STREAMS["r"].schema
        )
        session = query.open(schemas)
        batches: list[tuple[Any, ...]] = []
        for i in range(0, N, 10):
            for name, rows in STREAMS.items():
                part = rows.slice(i, 10)
                named = part.append_column("which", pa.array([name] * part.num_rows))
                batches.append((named,) if query.stream else (part, name))
    elif isinstance(query, sb.JoinAggregate):
        session = query.open({name: rows.schema for name, rows in JOINED.items()})
        batches = [(rows.slice(i, 10), name) for i in range(0, N, 10) for name, rows in JOINED.items()]
    else:
        session = query.open(ROWS.schema)
        batches = [(ROWS.slice(i, 10),) for i in range(0, N, 10)]
    answers = []
    for i, batch in enumerate(batches):
        answers.append(session.push(*batch))
        if i == 1 and isinstance(query, sb.TopKForEach):
            answers.append(session.add(LATER))
    held = asdict(session.stats())
    answers.append(session.finish())
    lines = pa.concat_tables(answers)
    return len(batches[0]), lines.column_names, lines.to_pylist(), held, session.algorithm


@pytest.mark.parametrize(("query", "option"), EVERY_OPTION, ids=lambda each: getattr(each, "__name__", each))
def test_a_session_uses_or_refuses_each_option(query: type, option: str) -> None:
    base, changed = both(query, option)
    assert used_or_refused(option, lambda: seen(query(**changed)) != seen(query(**base)))


# -- the functions -----------------------------------------------------------------------------------------------------

FUNCTIONS: dict[Callable[..., Any], tuple[type, ...]] = {
    sb.top_k: (sb.TopK, sb.TopKForEach),
    sb.top_k_pairs: (sb.TopKPairs,),
    sb.top_k_across: (sb.TopKAcross,),
    sb.join_aggregate: (sb.JoinAggregate,),
}
ONLY_BY_HAND = {(sb.TopK, "ad_hoc")}  # only a session can be asked at any time


def test_the_functions_take_every_option() -> None:
    for function, queries in FUNCTIONS.items():
        taken = set(inspect.signature(function).parameters) - {"data"}
        known = {option for query in queries for option in CHANGED[query]} - {option for _, option in ONLY_BY_HAND}
        known = known - {"queries"} | {"for_each"} if sb.TopKForEach in queries else known
        assert taken == (known | {"window", "where"} if function is sb.join_aggregate else known)


@pytest.mark.parametrize(("query", "option"), EVERY_OPTION, ids=lambda each: getattr(each, "__name__", each))
def test_a_function_passes_each_option_on(query: type, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a function is given, it asks the query that says the same, or refuses the option by its name."""
    function = next(each for each, queries in FUNCTIONS.items() if query in queries)
    if (query, option) in ONLY_BY_HAND:
        with pytest.raises(TypeError, match=option):
            function(ROWS, **{option: True})
        return
    monkeypatch.setattr(api, "_answer", lambda data, query, given=None: query)
    _, changed = both(query, option)
    given = {"for_each" if name == "queries" else name: value for name, value in changed.items()}
    data: Any = {sb.TopKAcross: STREAMS, sb.JoinAggregate: JOINED}.get(query, ROWS)
    if option == "stream":
        data = ROWS
    asked = function(data, **given)
    assert asked == query(**changed)
    assert getattr(asked, option) is not None
    if option == "queries":
        assert asked.queries.equals(changed["queries"])


@pytest.mark.parametrize("option", sorted((set(TOP_K) ^ set(FOR_EACH)) - {"queries", "ad_hoc"}))
def test_top_k_refuses_what_is_of_the_other_kind(option: str) -> None:
    """What is about one ranking cannot be said of queries, nor what is about queries without them."""
    if option in FOR_EACH:
        given = {**BASE[sb.TopK], option: FOR_EACH[option]}
    else:
        given = {**BASE[sb.TopKForEach], option: TOP_K[option]}
        given["for_each"] = given.pop("queries")
    with pytest.raises(sb.InvalidQuery, match=f"{option}="):
        sb.top_k(ROWS, **given)


# -- windows -----------------------------------------------------------------------------------------------------------

ORDERED = sb.sliding(6, every=3, on="t", order="seq")


def test_a_window_has_four_options() -> None:
    """Size, slide and column are part of every answer above; `order` says what Spark puts rows in order by."""
    assert [field.name for field in fields(sb.Window)] == ["size", "every", "on", "order"]
    asked = {"k": 2, "by": "x"}
    with pytest.raises(sb.UnknownColumn, match="order="):
        sb.TopK(**asked, window=sb.sliding(6, order="sequence")).open(ROWS.schema)
    with pytest.raises(sb.InvalidQuery, match="order='seq'"):
        sb.JoinAggregate(inputs=ORDERED, aggregates={"n": "COUNT(*)"})


# -- statements --------------------------------------------------------------------------------------------------------

STATEMENTS: dict[type, str] = {
    sb.TopK: "SELECT * FROM rows [WINDOW 6 {window}] ORDER BY x DESC LIMIT 2 {end}",
    sb.TopKForEach: "SELECT * FROM rows [WINDOW 6 {window}], queries q ORDER BY rows.x - q.x LIMIT 2 BY q.id {end}",
    sb.TopKPairs: "SELECT * FROM rows a [WINDOW 6 {window}], rows b WHERE a.seq < b.seq ORDER BY a.x LIMIT 2 {end}",
    sb.TopKAcross: "SELECT * FROM r FULL JOIN s USING (id) ORDER BY r.v + s.v DESC LIMIT 2 WINDOW [6 {window}] {end}",
    sb.JoinAggregate: "SELECT g, COUNT(*) AS n FROM rows [WINDOW 6 {window}] GROUP BY g {end}",
}
CLAUSES: dict[str, Mapping[str, str]] = {
    "EVERY": {"window": "EVERY 2 ON t"},
    "ON": {"window": "EVERY 3 ON seq"},
    "ORDER BY": {"window": "EVERY 3 ON t ORDER BY seq"},
    "LATENESS": {"window": "EVERY 3 ON t LATENESS 2"},
    "FORGET AFTER": {"window": "EVERY 3 ON t FORGET AFTER 2"},
    "EMIT": {"end": "EMIT CHANGES"},
    "WITH ERROR": {"end": "WITH ERROR 0.01"},
    "WITH RECALL": {"end": "WITH RECALL 0.9"},
    "WITH BOUNDS": {"end": "WITH BOUNDS (0, 1)"},
}
SCHEMAS = {
    "rows": ROWS.schema,
    "queries": QUERIES.schema,
    "others": pa.schema([*QUERIES.schema, pa.field("t", pa.int64())]),
} | {name: rows.schema for name, rows in STREAMS.items()}


REFUSED_AS = {  # in other words than those of the clause
    (sb.JoinAggregate, "ORDER BY"): "order=",
    (sb.TopKPairs, "WITH ERROR"): "there is no error to allow",
}


def asked_by(statement: str) -> Any:
    return ask(statement, SCHEMAS).query


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("query", STATEMENTS, ids=lambda each: each.__name__)
def test_a_statement_uses_or_refuses_each_clause(query: type, clause: str) -> None:
    plain = {"window": "EVERY 3 ON t", "end": ""}
    base, changed = (STATEMENTS[query].format(**plain | more) for more in ({}, dict(CLAUSES[clause])))
    assert type(asked_by(base)) is query
    assert used_or_refused(REFUSED_AS.get((query, clause), clause), lambda: asked_by(changed) != asked_by(base))


# -- each option in a statement, and in a pipeline file ----------------------------------------------------------------

# By query: a statement, and by option what is replaced in it, by what, to say another value.
ON_ROWS = "[WINDOW 6 EVERY 3 ON t]"
LATE = (" ON t]", " ON t LATENESS 2]")
STATED: dict[type, tuple[str, dict[str, tuple[str, str]]]] = {
    sb.TopK: (
        f"SELECT * FROM rows {ON_ROWS} ORDER BY x DESC LIMIT 2 EMIT WINDOWS",
        {
            "k": ("LIMIT 2", "LIMIT 1"),
            "by": ("BY x", "BY seq"),
            "window": ("WINDOW 6", "WINDOW 9"),
            "per": ("LIMIT 2", "LIMIT 2 BY g"),
            "ascending": (" DESC", ""),
            "emit": ("EMIT WINDOWS", "EMIT CHANGES"),
            "lateness": LATE,
            "error": ("EMIT WINDOWS", "WITH ERROR 0.2"),
            "ties": ("LIMIT 2", "LIMIT 2 WITH TIES"),
            "forget_after": (
                "6 EVERY 3 ON t] ORDER BY x DESC LIMIT 2",
                "6 ROWS EVERY 3 ROWS ORDER BY seq FORGET AFTER 2] ORDER BY x DESC LIMIT 2 BY g",
            ),
        },
    ),
    sb.TopKForEach: (
        f"SELECT * FROM rows {ON_ROWS}, queries q ORDER BY rows.x - q.x DESC LIMIT 2 BY q.id EMIT WINDOWS",
        {
            "queries": ("queries q", "others q"),
            "k": ("LIMIT 2", "LIMIT q.k"),
            "by": ("rows.x", "rows.seq"),
            "window": ("WINDOW 6", "WINDOW 9"),
            "key": ("BY q.id", "BY q.id, q.name"),
            "size": ("WINDOW 6", "WINDOW q.n UP TO 6"),
            "every": ("EVERY 3", "EVERY q.often DOWN TO 3"),
            "where": ("q ORDER", "q WHERE rows.g < q.k ORDER"),
            "ascending": (" DESC", ""),
            "emit": ("EMIT WINDOWS", "EMIT CHANGES"),
            "lateness": LATE,
        },
    ),
    sb.TopKPairs: (
        f"SELECT * FROM rows a {ON_ROWS}, rows b WHERE a.seq < b.seq ORDER BY a.x - b.x DESC LIMIT 2 EMIT WINDOWS",
        {
            "k": ("LIMIT 2", "LIMIT 1"),
            "by": ("a.x - b.x", "a.x + b.x"),
            "window": ("WINDOW 6", "WINDOW 9"),
            "ascending": (" DESC", ""),
            "same": (" ORDER", " AND a.g = b.g ORDER"),
            "different": (" ORDER", " AND a.g <> b.g ORDER"),
            "per": (" ORDER BY a.x - b.x DESC LIMIT 2", " AND a.g = b.g ORDER BY a.x - b.x DESC LIMIT 2 BY a.g"),
            "where": (" ORDER", " AND a.x < b.x + 1 ORDER"),
            "emit": ("EMIT WINDOWS", "EMIT CHANGES"),
            "lateness": LATE,
        },
    ),
    sb.TopKAcross: (
        "SELECT * FROM r FULL JOIN s USING (id) ORDER BY r.v + s.v DESC LIMIT 2 WINDOW [6 EVERY 3 ON t] EMIT WINDOWS",
        {
            "k": ("LIMIT 2", "LIMIT 1"),
            "id": ("USING (id)", "USING (few)"),
            "value": ("r.v + s.v", "r.t + s.t"),
            "window": ("[6", "[9"),
            "streams": ("FROM r FULL JOIN s USING (id) ORDER BY r.v", "FROM r z FULL JOIN s USING (id) ORDER BY z.v"),
            "combine": ("s.v", "2 * s.v"),
            "bounds": ("EMIT WINDOWS", "WITH BOUNDS (0, 1)"),
            "emit": ("EMIT WINDOWS", "EMIT CHANGES"),
            "lateness": LATE,
            "recall": ("EMIT WINDOWS", "WITH BOUNDS (0, 1) WITH RECALL 0.9"),
        },
    ),
    sb.JoinAggregate: (
        f"SELECT COUNT(*) AS n FROM rows a {ON_ROWS}, others b {ON_ROWS} WHERE a.g = b.id GROUP BY a.g EMIT WINDOWS",
        {
            "inputs": ("WINDOW 6", "WINDOW 9"),
            "aggregates": ("COUNT(*)", "SUM(a.seq)"),
            "on": (" GROUP", " AND a.seq = b.k GROUP"),
            "group_by": ("GROUP BY a.g", "GROUP BY a.g, a.seq"),
            "having": ("EMIT WINDOWS", "HAVING n > 20"),
            "order_by": ("EMIT WINDOWS", "ORDER BY n DESC"),
            "k": ("EMIT WINDOWS", "ORDER BY n DESC LIMIT 1"),
            "every": ("EVERY 3", "EVERY 2"),
            "emit": ("EMIT WINDOWS", "EMIT CHANGES"),
            "lateness": LATE,
            "how": (f", others b {ON_ROWS} WHERE", f" LEFT JOIN others b {ON_ROWS} ON"),
        },
    ),
}
STATED_OPTIONS = [(query, option) for query, (_, options) in STATED.items() for option in options]
# These columns are read under another name: the query is the same, what it is asked of is not.
ELSEWHERE = {(sb.TopKForEach, "queries"), (sb.TopKAcross, "value")}


def stated(query: type, option: str) -> tuple[str, str]:
    """A statement, and the one that says another value of an option."""
    statement, options = STATED[query]
    assert options[option][0] in statement
    return statement, statement.replace(*options[option])


def is_said(query: type, option: str, base: Any, changed: Any) -> bool:
    """Does what is asked differ in the option?"""
    assert type(base.query) is type(changed.query) is query
    if (query, option) in ELSEWHERE:
        return base.rows != changed.rows or base.queries != changed.queries
    return getattr(base.query, option) != getattr(changed.query, option)


def test_a_clause_is_declared_for_each_option_that_a_statement_can_say() -> None:
    for query, (_, options) in STATED.items():
        assert {each.name for each in options_of(query) if each.sql} == set(options)


@pytest.mark.parametrize(("query", "option"), STATED_OPTIONS, ids=lambda each: getattr(each, "__name__", each))
def test_a_statement_says_each_option_that_has_a_clause(query: type, option: str) -> None:
    assert is_said(query, option, *(ask(statement, SCHEMAS) for statement in stated(query, option)))


FILE = """
checkpoint = "here"
{more}
[sources.rows]
format = "json"
path = "rows"
schema = "t BIGINT, seq BIGINT, g BIGINT, x DOUBLE"
[sources.queries]
format = "json"
path = "queries"
stream = false
schema = "id BIGINT, name STRING, x DOUBLE, k BIGINT, n BIGINT, often BIGINT"
[sources.others]
format = "json"
path = "others"
stream = true
schema = "id BIGINT, name STRING, x DOUBLE, k BIGINT, n BIGINT, often BIGINT, t BIGINT"
[sources.r]
format = "json"
path = "r"
schema = "t BIGINT, id BIGINT, few BIGINT, v DOUBLE"
[sources.s]
format = "json"
path = "s"
schema = "t BIGINT, id BIGINT, few BIGINT, v DOUBLE"
[sinks.screen]
format = "console"
[queries.best]
sql = "{sql}"
to = "screen"
{option}
"""


def checked(folder: Path, sql: str, *, option: str = "", more: str = "") -> Any:
    """The pipeline of a file that asks this, as far as it can be checked without Spark."""
    file = folder / "pipeline.toml"
    file.write_text(FILE.format(sql=sql, option=option, more=more))
    pipeline = load(file)
    check(pipeline)
    return pipeline


def asked_by_file(folder: Path, sql: str) -> Any:
    pipeline = checked(folder, sql)
    schemas = {name: columns_of(source, pipeline) for name, source in pipeline.sources.items()}
    return spec_of(pipeline, pipeline.queries["best"], check(pipeline).statements["best"], schemas)


@pytest.mark.parametrize(("query", "option"), STATED_OPTIONS, ids=lambda each: getattr(each, "__name__", each))
def test_a_pipeline_file_says_each_option_that_has_a_clause(query: type, option: str, tmp_path: Path) -> None:
    assert is_said(query, option, *(asked_by_file(tmp_path, statement) for statement in stated(query, option)))


@pytest.mark.parametrize("option", sorted({option for _, option in EVERY_OPTION}))
def test_a_pipeline_file_refuses_options_beside_the_statement(option: str, tmp_path: Path) -> None:
    """What no clause says, such as max_jump, cannot be said there at all; what one does is said in the statement."""
    statement, _ = STATED[sb.TopK]
    with pytest.raises(InvalidPipeline, match=f"Unknown key '{option}' in query 'best'"):
        checked(tmp_path, statement, option=f"{option} = 1")
    if option != "queries":  # of a pipeline, these are the tables that hold its statements
        with pytest.raises(InvalidPipeline, match=f"Unknown key '{option}' in a pipeline"):
            checked(tmp_path, statement, more=f"{option} = 1")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("name", 'name = "other"'),
        ("trigger", 'trigger = "5 seconds"'),
        ("spark", 'spark = {"spark.sql.shuffle.partitions" = 3}'),
    ],
)
def test_a_pipeline_file_uses_each_option_of_the_pipeline(key: str, said: str, tmp_path: Path) -> None:
    statement, _ = STATED[sb.TopK]
    assert getattr(checked(tmp_path, statement, more=said), key) != getattr(checked(tmp_path, statement), key)


def test_the_page_of_options_is_made_from_the_declarations() -> None:
    assert options_page.PAGE.read_text() == options_page.page(), "run python tests/options_page.py"


# -- explain -----------------------------------------------------------------------------------------------------------

KNOWN = {name: sb.Statistics(rate=300, rows=5000, cells=10, keys=10) for name in INPUTS}


@pytest.mark.parametrize("query", BASE, ids=lambda each: each.__name__)
def test_explain_uses_or_refuses_what_it_is_told(query: type) -> None:
    options = {"window_rows": 123_456.0, "statistics": KNOWN}
    assert set(options) == set(inspect.signature(sb.explain).parameters) - {"query"}
    asked = query(**BASE[query])
    for option, value in options.items():
        told = {option: value}
        assert used_or_refused(option, lambda told=told: str(sb.explain(asked, **told)) != str(sb.explain(asked)))
