"""Examples: pipeline files with a mistake, and what is said of it; and what a right one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyband.dialect import text as texts
from skyband.errors import InvalidPipeline
from skyband.pipelines.checking import check_file, key_of
from skyband.pipelines.columns import parse_schema
from skyband.pipelines.file import load
from skyband.pipelines.model import Places
from skyband.pipelines.secrets import hide, is_exposed, resolve
from skyband.sql.run import ask

RIGHT = '''\
name = "market"
trigger = "1 second"

[sources.trades]
format = "kafka"
servers = "localhost:9092"
topic = "trades"
schema = "ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT"
time = "ts"
lateness = "5 seconds"
dead_letters = "bad"
options = { maxOffsetsPerTrigger = 1000, "kafka.sasl.jaas.config" = "${JAAS}" }

[queries.top]
sql = """
SELECT symbol, price
FROM trades [WINDOW 10 MINUTES EVERY 1 MINUTE]
ORDER BY price * volume DESC LIMIT 3 BY symbol
"""
to = ["files", "board"]

[sinks.files]
format = "parquet"
path = "answers/{query}"

[sinks.bad]
format = "json"
path = "bad"

[sinks.board]
format = "kafka"
servers = "localhost:9092"
topic = "board"

[spark]
spark.sql.shuffle.partitions = 4
"spark.executor.memory" = "2g"
'''


def written(folder: Path, text: str) -> Path:
    file = folder / "market.toml"
    file.write_text(text)
    return file


def problem(folder: Path, text: str) -> str:
    with pytest.raises(InvalidPipeline) as refused:
        check_file(written(folder, text))
    return str(refused.value)


def test_a_file_is_read(tmp_path: Path) -> None:
    pipeline = load(written(tmp_path, RIGHT))
    assert pipeline.name == "market"
    assert pipeline.checkpoint == ".skyband/market"
    assert pipeline.located("answers") == str(tmp_path / "answers")
    assert pipeline.located("hdfs://name/answers") == "hdfs://name/answers"
    trades = pipeline.sources["trades"]
    assert (trades.format, trades.topic, trades.time, trades.stream) == ("kafka", "trades", "ts", True)
    assert trades.options == {"maxOffsetsPerTrigger": "1000", "kafka.sasl.jaas.config": "${JAAS}"}
    assert pipeline.queries["top"].to == ("files", "board")
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "4", "spark.executor.memory": "2g"}
    assert pipeline.secret_names() == {"JAAS"}


def test_check_says_what_is_there_and_what_will_be_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAAS", raising=False)
    report = check_file(written(tmp_path, RIGHT))[1]
    assert report.queries == ("top: from trades to files, board",)
    assert report.notes == ("The environment must have JAAS when the pipeline runs.",)
    monkeypatch.setenv("JAAS", "x")
    assert check_file(written(tmp_path, RIGHT))[1].notes == ()


def test_check_reads_a_statement_once_and_hands_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts_read: list[str] = []
    read = texts.read
    monkeypatch.setattr(texts, "read", lambda text: (texts_read.append(text), read(text))[1])
    pipeline, report = check_file(written(tmp_path, RIGHT))
    statements = report.statements
    assert texts_read == [query.sql for query in pipeline.queries.values()]
    assert [*statements] == [*pipeline.queries]


# What is replaced in RIGHT, by what, the line that is named, and words that are said.
MISTAKES = {
    "not TOML": ('topic = "trades"', "topic = trades", 7, "This is not TOML: Invalid value"),
    "unknown key": ("trigger =", "triger =", 2, "Unknown key 'triger' in a pipeline. Did you mean 'trigger'?"),
    "unknown key of a source": ("topic =", "topics =", 7, "Did you mean 'topic'?"),
    "unknown key of a query": (
        'to = ["files',
        'two = ["files',
        20,
        "Did you mean 'to'?",
    ),
    "unknown key of a sink": ('path = "bad"', 'paht = "bad"', 28, "Did you mean 'path'?"),
    "unknown format": ('format = "parquet"', 'format = "parkett"', 23, "Did you mean 'parquet'?"),
    "no format": ('format = "parquet"\n', "", 22, "sinks.files has no format. Possible: parquet, csv,"),
    "no path": ('path = "bad"\n', "", 26, "A sink of format json needs path."),
    "no such sink": (
        '"files", "board"',
        '"file"',
        20,
        "Did you mean 'files'? Sinks: files,",
    ),
    "no such dead letters": ('dead_letters = "bad"', 'dead_letters = "sad"', 11, "There is no sink 'sad'."),
    "records of several lines": ("maxOffsetsPerTrigger = 1000", "multiLine = true", 12, "each line is a record"),
    "a number for a text": ('topic = "trades"', "topic = 7", 7, "topic must be a text in quotes, got 7."),
    "not a duration": ('trigger = "1 second"', 'trigger = "often"', 2, "trigger = 'often' is not a duration."),
    "no such duration": ('lateness = "5 seconds"', 'lateness = "five"', 10, "lateness = 'five' is not a duration."),
    "a secret in the file": ('"${JAAS}"', '"hunter2"', 12, 'Write kafka.sasl.jaas.config = "${NAME}"'),
    "a bad name": ("[queries.top]", '[queries."top 10"]', 14, "'top 10' is not a name"),
    "no queries": ("[queries.top]", "[sinks.top]", 14, "sinks.top has no format"),
    "a type": ("price DOUBLE", "price MONEY", 8, "Cannot read the schema"),
    "no such time": (
        'time = "ts"',
        'time = "t"',
        9,
        "Source 'trades' has no column 't'. Columns: ts,",
    ),
    "no such column": ("ORDER BY price", "ORDER BY prise", 15, "There is no column 'prise'"),
    "no such source": ("FROM trades", "FROM trade", 15, "reads 'trade', but there is no such source. Sources: trades."),
    "a question that cannot be asked": ("LIMIT 3 BY symbol", "", 15, "Query 'top': "),
    "two queries in one place": (
        'path = "answers/{query}"\n',
        (
            'path = "answers"\n[queries.other]\nto = "files"\n'
            'sql = "SELECT * FROM trades [WINDOW 1 HOUR EVERY 1 HOUR] ORDER BY price LIMIT 1"\n'
        ),
        22,
        "'top' and 'other' would both write to 'answers'.",
    ),
    "a key that is no column": (
        'topic = "board"',
        'topic = "board"\nkey = ["sybol"]',
        34,
        "have no column 'sybol'. They have: window_start,",
    ),
    "an option of tables": (
        '"spark.executor.memory" = "2g"',
        "spark.jars = []",
        37,
        "must be a text, a number, true or false",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_line_and_a_word_on_what_is_possible(name: str, tmp_path: Path) -> None:
    old, new, line, said = MISTAKES[name]
    assert old in RIGHT
    message = problem(tmp_path, RIGHT.replace(old, new, 1))
    assert message.startswith(f"market.toml:{line}: "), message
    assert said in message
    assert "hunter2" not in message


def test_a_statement_is_shown_with_the_place(tmp_path: Path) -> None:
    message = problem(tmp_path, RIGHT.replace("price * volume", "price * vlume"))
    assert "  ORDER BY price * vlume DESC LIMIT 3 BY symbol\n                   ^\nDid you mean 'volume'?" in message


def test_no_file() -> None:
    with pytest.raises(InvalidPipeline, match=r"Cannot read none\.toml: No such file"):
        load(Path("none.toml"))


def test_a_password_in_an_address(tmp_path: Path) -> None:
    text = RIGHT.replace('servers = "localhost:9092"', 'servers = "sasl://me:hunter2@localhost:9092"', 1)
    assert "hunter2" not in problem(tmp_path, text)


def test_a_secret_is_in_no_other_message_either(tmp_path: Path) -> None:
    sink = "[sinks.b]\nformat = 'leaderboard'\nurl = 'http://me:hunter2@x'\nboard = 'b'\nmember = 'm'\n"
    text = RIGHT.replace("[sinks.bad]", sink + "[sinks.bad]").replace('"${JAAS}"', '"password=hunter2"')
    assert "hunter2" not in problem(tmp_path, text.replace("price *", "prise *"))


def test_a_secret_whose_name_is_in_parts(tmp_path: Path) -> None:
    said = problem(tmp_path, RIGHT.replace("spark.sql.shuffle.partitions = 4", 'spark.some.api = { key = "hunter2" }'))
    assert "some.api.key" in said or "api.key" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "jdbc:postgresql://host/db?user=me&password=hunter2"),
        ("url", "jdbc:postgresql://host/db?user=me&password=${HOME}hunter2"),
        ("url", "jdbc:postgresql:db?pwd=hunter2"),
        ("url", "redis://:hunter2${HOME}@host"),
        ("url", "redis://:${HOME}hunter2@host"),
        ("pwd", "hunter2"),
        ("passphrase", "hunter2"),
        ("api.key", "hunter2"),
        ("fs.azure.account.key.lake.dfs.core.windows.net", "hunter2"),
        ("spark.hadoop.fs.azure.sas.answers.lake.blob.core.windows.net", "hunter2"),
        ("X-Api-Key", "hunter2"),
        ("password", "hunter2${HOME}"),
        ("authorization.token", "Bearer hunter2"),
        ("kafka.sasl.jaas.config", 'a.b.Module required username="me" password="hunter2";'),
        ("kafka.sasl.jaas.config", 'a.b.Module required username="${ME}" password="hunter2";'),
        ("spark.driver.extraJavaOptions", "-Djavax.net.ssl.trustStorePassword=hunter2"),
    ],
)
def test_a_secret_that_the_file_holds(name: str, value: str) -> None:
    assert is_exposed(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "jdbc:postgresql://host/db?user=me&password=${PW}&ssl=true"),
        ("url", "redis://:${PW}@host"),
        ("password", "${PW}"),
        ("password", "${A}${B}"),
        ("authorization.token", "Bearer ${TOKEN}"),
        ("kafka.sasl.jaas.config", 'a.b.Module required username="me" password="${PW}";'),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "a.b.Provider"),
        ("spark.kubernetes.authenticate.driver.oauthTokenFile", "/run/token"),
        ("path", "/data/tokens"),
        ("fs.azure.account.key.lake.dfs.core.windows.net", "${KEY}"),
        ("fs.azure.account.keyprovider.lake.dfs.core.windows.net", "a.b.Provider"),
        ("topic", "token=1"),
    ],
)
def test_no_secret(name: str, value: str) -> None:
    assert not is_exposed(name, value)


def test_files_tell_their_columns(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "trades").mkdir()
    pq.write_table(pa.table({"t": [1], "price": [2.0]}), tmp_path / "trades" / "0.parquet")
    text = """
[sources.trades]
format = "parquet"
path = "trades"
[queries.top]
sql = "SELECT * FROM trades [WINDOW 10 EVERY 5 ON t] ORDER BY prize DESC LIMIT 1"
to = "screen"
[sinks.screen]
format = "console"
"""
    assert "Did you mean 'price'?" in problem(tmp_path, text)
    report = check_file(written(tmp_path, text.replace("prize", "price")))[1]
    assert report.notes == ()
    report = check_file(written(tmp_path, text.replace('path = "trades"', 'path = "elsewhere"')))[1]
    assert "unknown until Spark starts" in report.notes[0]


def test_lines_are_counted_past_texts_of_several_lines() -> None:
    places = Places('a = """\n[b]\nc = 1\n"""\n[b] # here\n"c.d" = 2\ne.f = 3\n')
    assert [places.line(path) for path in (["a"], ["b"], ["b", "c.d"], ["b", "e", "f"], ["b", "none"])] == [
        1,
        5,
        6,
        7,
        5,
    ]


def test_secrets_come_from_the_environment_and_go_nowhere() -> None:
    environment = {"USER": "me", "PASSWORD": "hunter2"}
    assert resolve("x ${USER} ${PASSWORD}", environment) == "x me hunter2"
    assert hide("login hunter2 failed", ["PASSWORD"], environment) == "login ${PASSWORD} failed"
    assert hide("/home/rooted/log", ["PGUSER"], {"PGUSER": "rooted"}) == "/home/rooted/log", "it is no secret"
    assert hide("rooted", ["PGUSER_TOKEN"], {"PGUSER_TOKEN": "rooted"}) == "${PGUSER_TOKEN}"
    with pytest.raises(InvalidPipeline, match="export NONE="):
        resolve("${NONE}", environment)


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("SELECT * FROM t [WINDOW 4 EVERY 2 ON a] ORDER BY x DESC LIMIT 2", ("window_end", "rank")),
        ("SELECT x FROM t [WINDOW 4 EVERY 2 ON a] ORDER BY x DESC LIMIT 2 BY s", ("window_end", "s", "rank")),
        ("SELECT s, COUNT(*) AS n FROM t [WINDOW 4 EVERY 2 ON a] GROUP BY s", ("window_end", "s")),
        (
            "SELECT s, COUNT(*) AS n FROM t [WINDOW 4 EVERY 2 ON a] GROUP BY s ORDER BY n DESC LIMIT 2",
            ("window_end", "s", "rank"),
        ),
        ("SELECT * FROM t [WINDOW 4 EVERY 2 ON a] ORDER BY x DESC LIMIT 2 EMIT CHANGES", None),
    ],
)
def test_the_columns_that_tell_rows_of_an_answer_apart(statement: str, key: tuple[str, ...] | None) -> None:
    assert key_of(ask(statement, {"t": parse_schema("a BIGINT, s STRING, x DOUBLE")})) == key


def test_a_schema_as_spark_writes_it() -> None:
    text = "a INT, b ARRAY<STRING>, c STRUCT<d: DECIMAL(12, 2), e: TIMESTAMP_NTZ>, f MAP<STRING, DOUBLE>, `g h` DATE"
    assert [f"{field.name}: {field.type}" for field in parse_schema(text)] == [
        "a: int32",
        "b: list<item: string>",
        "c: struct<d: decimal128(12, 2), e: timestamp[us]>",
        "f: map<string, double>",
        "g h: date32[day]",
    ]
