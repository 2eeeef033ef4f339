"""Examples: all mistakes of a pipeline file are said in one go, before Java starts, also what it says about others."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from pipelines.test_file import RIGHT, problem, written

from skyband.errors import InvalidInput
from skyband.pipelines.checking import check_file
from skyband.pipelines.checkpoints import asked_by
from skyband.pipelines.file import load
from skyband.pipelines.submitting import submit_line


def test_all_mistakes_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    text = """trigger = "soon"
[sources.trades]
format = "parket"
path = "trades"
[queries.top]
sql = "SELECT * FROM trades [WINDOW 10 EVERY 5 ON t] ORDER BY price DESC LIMIT 1"
to = "screan"
[sinks.screen]
format = "console"
colour = "red"
"""
    said = problem(tmp_path, text).splitlines()
    assert [line.partition(" ")[0] for line in said] == [
        *("market.toml:3:", "market.toml:10:", "market.toml:7:", "market.toml:1:")
    ]


def test_all_mistakes_of_statements_and_sinks_are_said_at_once(tmp_path: Path) -> None:
    """What `run` would refuse after a minute, `check` refuses at once."""
    query = 'sql = "SELECT * FROM trades [WINDOW 10 EVERY 5 ON t] ORDER BY {by} DESC LIMIT 1{emit}"\nto = "{to}"\n'
    text = f"""
[spark]
"spark.remote" = "sc://server"
[sources.trades]
format = "kafka"
servers = "localhost:9092"
topic = "trades"
schema = "t BIGINT, price DOUBLE"
[queries.one]
{query.format(by="prize", emit="", to="files")}
[queries.two]
{query.format(by="price", emit=" EMIT CHANGES", to="database")}
[queries.three]
{query.format(by="price", emit="", to="other")}
[queries.four]
{query.format(by="price", emit="", to="topic")}
[sinks.files]
format = "parquet"
path = "answers"
[sinks.database]
format = "jdbc"
url = "jdbc:postgresql://localhost/sales"
table = "best"
[sinks.other]
format = "jdbc"
url = "jdbc:mysql://localhost/sales"
table = "best"
[sinks.topic]
format = "kafka"
servers = "localhost"
topic = "best"
"""
    said = problem(tmp_path, text)
    for word in ("Did you mean 'price'?", 'key = ["…"]', "Only PostgreSQL", "a host and a port", "Spark Connect"):
        assert word in said


def test_mistakes_of_shape_hide_none_of_a_statement(tmp_path: Path) -> None:
    """`check` said them in two goes: the statements when the shape was right. Sinks that nobody uses count, too."""
    text = RIGHT.replace("trigger =", "triger =").replace("ORDER BY price", "ORDER BY prise")
    text = text.replace('"files", "board"', '"file", "board"')
    text = text.replace(
        "[sinks.files]", '[sinks.unused]\nformat = "kafka"\nservers = "localhost"\ntopic = "t"\n[sinks.files]'
    )
    text += "[queries.other]\nsql = 'SELECT * FROM broken'\nto = 'files'\n[sources.broken]\nformat = 'rat'\n"
    text += "[queries.more]\nsql = 'SELEC 1'\nto = 'files'\n"
    said = problem(tmp_path, text)
    for word in (
        "Did you mean 'trigger'?",
        "Did you mean 'files'?",
        "There is no column 'prise'",
        "servers = 'localhost': each is a host and a port",
        "Did you mean 'rate'?",
        "Query 'more': ",
    ):
        assert said.count(word) == 1, (word, said)
    assert "'broken'" not in said, "it is there, and what is wrong with it is said"


def test_a_source_without_a_port_jars_that_are_no_files_and_options_of_a_database(tmp_path: Path) -> None:
    database = '[sinks.files]\nformat = "jdbc"\nurl = "jdbc:postgresql:d"\ntable = "t"\noptions = { mode = "append" }'
    text = RIGHT.replace('[sinks.files]\nformat = "parquet"\npath = "answers/{query}"', database)
    text = text.replace('servers = "localhost:9092"', 'servers = "localhost"', 1)
    there = tmp_path / "there.jar"
    there.touch()
    text += f'"spark.jars" = "{there},hdfs://a/b.jar,${{JARS}}/c.jar,no/such.jar"\n'
    said = problem(tmp_path, text)
    assert "market.toml:6: servers = 'localhost': each is a host and a port" in said
    assert "has no option 'mode': rows are inserted or replaced by their key, whatever the mode: leave it out." in said
    assert f"spark.jars names 'no/such.jar', which is no file in {Path.cwd()}" in said
    assert len(said.splitlines()) == 3


def test_a_statement_that_is_not_the_one_of_the_checkpoint(tmp_path: Path) -> None:
    """`run` refused it after half a minute."""
    pipeline = load(written(tmp_path, RIGHT))
    folder = tmp_path / ".skyband" / "market"
    asked = asked_by(pipeline, pipeline.queries["top"], {"trades": "struct<…>"}, "16")
    (folder / "trades_1").mkdir(parents=True)
    (folder / "trades_1.json").write_text(json.dumps({"top": asdict(asked), "gone": asdict(asked)}))
    changed = RIGHT.replace("LIMIT 3", "LIMIT 4").replace('topic = "trades"', 'topic = "orders"')
    check_file(written(tmp_path, changed))  # no run has begun it
    (folder / "trades_1" / "metadata").touch()
    said = problem(tmp_path, changed)
    assert said.startswith("market.toml:15: Query 'top' has changed since it wrote its checkpoint:")
    assert "LIMIT 3 BY symbol, is SELECT" in said
    assert "sources.trades.topic: was trades, is orders" in said
    check_file(written(tmp_path, RIGHT.replace("ORDER BY", "\norder  by")))  # says the same
    (folder / "trades_1.json").write_text("{")
    check_file(written(tmp_path, changed))  # what is damaged is said by `run`


SECRET = """
[sinks.other]
format = "jdbc"
url = "jdbc:postgresql://db/sales"
table = "best"
options = { password = "${PGPASSWORD}" }
"""


def test_what_spark_connect_cannot_do_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
[sources.trades]
format = "parquet"
path = "trades"
schema = "t BIGINT, price DOUBLE"
stream = false
[queries.top]
sql = "SELECT * FROM trades [WINDOW 10 EVERY 5 ON t] ORDER BY price DESC LIMIT 1"
to = ["files", "lake"]
[sinks.files]
format = "parquet"
path = "/answers"
[sinks.lake]
format = "delta"
path = "s3://lake/best"
[spark]
"spark.remote" = "spark://host:7077"
"spark.master" = "local[2]"
"""
    relative = (
        "is relative to this file, which the server of Spark Connect does not have. Write a whole path of the server"
    )
    assert [line.split(": ", 1)[0] for line in problem(tmp_path, text).splitlines()] == [
        *("market.toml:17", "market.toml:17", "market.toml:1", "market.toml:4", "market.toml:9")
    ]
    for said in (
        "Leave out one of the two.",
        'spark.remote is the address of a server: "sc://host:15002".',
        f"checkpoint: '.skyband/market' {relative}",
        f"path: 'trades' {relative}",
        "Query 'top' reads tables only. Through Spark Connect, their answers go to files or to Kafka, but not to delta",
    ):
        assert said in problem(tmp_path, text)
    right = text.replace('"trades"\n', '"/trades"\n').replace("stream = false\n", "").replace("local[2]", "")
    right = 'checkpoint = "/checkpoint"' + right.replace('"spark.master" = ""\n', "")
    assert problem(tmp_path, right.replace("spark.remote", "spark.api.mode").replace("spark://host:7077", "connect"))
    for address, has_note in (("sc://host", True), ("sc://host:1/;use_ssl=true", False), ("sc://localhost", False)):
        pipeline, report = check_file(written(tmp_path, right.replace("spark://host:7077", address) + SECRET))
        assert pipeline.remote == address
        assert any("without encryption" in note for note in report.notes) == has_note
    # Spark's own variable names the server, too; what is on this machine says nothing of it.
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    pipeline, _ = check_file(written(tmp_path, right.partition("[spark]")[0]))
    assert pipeline.remote == "sc://host"
    assert pipeline.on_this_machine("/answers") is None
    with pytest.raises(InvalidInput, match="spark-submit starts a session of its own"):
        submit_line(pipeline, master="yarn", cluster=False, archive=None)
