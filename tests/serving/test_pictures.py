"""Pictures agree with what sessions hold and show, and say why: for each of the five problems.

The oracle of a picture is the session: what it shows by `top`, and what `recompute` says of a larger k.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from serving.asking import ask
from serving.five import STATEMENTS, feeds

import skyband as sb
from skyband.serving.catalog import Catalog
from skyband.serving.watching import Watched
from skyband.serving.workshop import Workshop

READINGS = pa.schema({"id": pa.string(), "t": pa.int64(), "x": pa.float64()})


def readings(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    names = [f"r{number}" for number in range(rows)]
    return pa.table({"id": names, "t": np.arange(rows), "x": np.round(random.normal(0, 9, rows), 3)}, schema=READINGS)


def why(server: Any, row: dict[str, Any]) -> Any:
    return ask(server, f"/queries/query/why?row={quote(json.dumps(row))}")


WINDOWS = (sb.sliding(40), sb.sliding(40, every=8), sb.sliding(40, on="t"), sb.sliding(40, every=10, on="t"))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_pairs_that_are_lit_are_those_that_may_still_be_shown(window: sb.Window) -> None:
    query = sb.TopKPairs(k=3, by="abs(a.x - b.x)", ascending=True, window=window)
    session = query.open(READINGS)
    with session.serve() as server:
        session.push(readings(93))
        drawn = ask(server, "/queries/query/picture").json
        dots = drawn["dots"]
        shown = [id for id, is_shown in zip(dots["id"], dots["shown"], strict=True) if is_shown]
        now = session.top()
        assert sorted(y for y, one in zip(dots["y"], dots["shown"], strict=True) if one) == pytest.approx(
            sorted(now["score"].to_pylist())
        )
        assert drawn["pairs_held"] >= len(shown) == 3
        told = [ask(server, f"/queries/query/rows/{id}").json for id in shown]
        assert sorted(each["rank"] for each in told) == [1, 2, 3]
        assert [each["kind"] for each in told] == ["shown"] * 3
        assert not any(one["id"] == each["id"] for each in told for one in each["better"]), "none is better than itself"
        out = [id for id, held in zip(dots["id"], dots["held"], strict=True) if not held]
        assert out, "some that are ruled out are drawn, too"
        for id in out[:5]:
            reason = ask(server, f"/queries/query/rows/{id}").json
            assert (reason["kind"], reason["rank"]) == ("", None)
            assert reason["verdict"].startswith("Ruled out")
            better = [row["score"] for row in reason["better"]]
            assert len(better) >= 3
            assert max(better) <= reason["score"], "the pairs that keep it out have smaller distances"
        best = now.slice(0, 1).to_pylist()[0]
        assert why(server, best).json["rank"] == 1
        found = ask(server, f"/queries/query/rows?where=id%20=%20'{best['a_id']}'").json["rows"]
        assert min(row["score"] for row in found) == pytest.approx(best["score"])


def test_pairs_that_conditions_keep_apart_and_pairs_that_have_gone_say_so() -> None:
    schema = pa.schema({"side": pa.string(), "x": pa.float64()})
    session = sb.TopKPairs(k=1, by="a.x + b.x", different="side", window=sb.sliding(3)).open(schema)
    with session.serve() as server:
        session.push(pa.table({"side": list("lllr"), "x": [9.0, 1.0, 2.0, 3.0]}, schema=schema))
        said = {id: ask(server, f"/queries/query/rows/{id}").json["verdict"] for id in ("1-2", "0-3", "2-3")}
        assert said["1-2"].startswith("No pair")
        assert said["0-3"].startswith("Gone")
        assert said["2-3"] == "Rank 1 of 1: no pair is better."
        for id in ("2-2", "x", "1-", "-", "9-8", "1-2-3"):
            assert ask(server, f"/queries/query/rows/{id}").status == 404


@pytest.mark.parametrize("algorithm", ["staircase", "totals"])
def test_objects_have_the_rank_that_recomputing_all_of_them_gives(algorithm: str) -> None:
    schema = pa.schema({"flow": pa.string(), "size": pa.float64(), "t": pa.int64(), "of": pa.string()})
    query = sb.TopKAcross(
        k=3, id="flow", value="size", combine="sum", streams=("n", "s"), stream="of", bounds=(0, 1),
        window=sb.sliding(60, every=5, on="t"), algorithm=algorithm,
    )  # fmt: skip
    random = np.random.default_rng(3)
    rows = pa.table(
        {
            "flow": [f"f{number}" for number in np.concatenate([np.arange(90), random.permutation(90)])],
            "size": np.round(random.random(180), 4),
            "t": np.repeat(np.arange(90), 2),
            "of": ["n"] * 90 + ["s"] * 90,
        },
        schema=schema,
    )
    order = np.argsort(np.tile(np.arange(90), 2), kind="stable")
    rows = rows.take(pa.array(order)).set_column(2, "t", pa.array(np.repeat(np.arange(90), 2)))
    session, every = query.open(schema), replace(query, k=200, algorithm="recompute").open(schema)
    with session.serve() as server:
        for each in (session, every):
            each.push(rows)
        ranked = every.top().select(["flow", "score"]).to_pylist()
        drawn = ask(server, "/queries/query/picture").json
        assert [group["name"] for group in drawn["groups"]] == [each["flow"] for each in ranked[:3]]
        assert [lane["name"] for lane in drawn["lanes"]] == ["n", "s"]
        for rank in (1, 3, 4, 20):
            reason = why(server, ranked[rank - 1]).json
            assert reason["score"] == pytest.approx(ranked[rank - 1]["score"])
            assert (reason["kind"] == "shown") == (rank <= 3)
            assert reason["verdict"].startswith(f"Rank {rank} of 3") == (rank <= 3)
        found = ask(server, f"/queries/query/rows?where=flow%20=%20'{ranked[5]['flow']}'").json["rows"]
        assert [row["row"]["flow"] for row in found] == [ranked[5]["flow"]]
        assert why(server, {"flow": "nobody"}).status == 404


def test_each_subscription_has_a_lane_and_its_own_reasons() -> None:
    people = pa.table({"name": ["ann", "bob"], "x": [0.0, 20.0], "k": [2, 1]})
    query = sb.TopKForEach(
        queries=people, k="q.k", by="abs(x - q.x)", ascending=True, window=sb.sliding(30, every=1), key="name"
    )
    session = query.open(READINGS)
    rows = readings(40)
    with session.serve() as server:
        session.push(rows)
        drawn = ask(server, "/queries/query/picture").json
        assert [lane["name"] for lane in drawn["lanes"]] == ["ann", "bob", "all rows"]
        lanes = drawn["dots"]["lane"]
        assert [lanes.count(lane) for lane in (0, 1)] == [2, 1]
        # Of the window that closes next, which lacks its last row still.
        x = dict(zip(rows["id"].to_pylist(), rows["x"].to_pylist(), strict=True))
        live = sorted(rows["id"].to_pylist()[11:], key=lambda name: abs(x[name]))
        first, fourth = (why(server, {"name": "ann", "id": live[rank - 1]}).json for rank in (1, 4))
        assert (first["rank"], first["kind"], first["score"]) == (1, "shown", pytest.approx(abs(x[live[0]])))
        assert (fourth["rank"], len(fourth["better"])) == (4, 2)
        other = why(server, {"name": "bob", "id": live[0]}).json
        assert other["rank"] > 1, "what is near to ann is far from bob"
        gone = why(server, {"name": "ann", "id": "r0"})
        assert gone.json["verdict"].startswith("Gone")
        assert why(server, {"name": "nobody", "id": "r39"}).status == 404


def test_groups_of_a_join_say_which_rows_they_are_made_of() -> None:
    offers = pa.schema({"auction": pa.string(), "t": pa.int64()})
    bids = pa.schema({"of": pa.string(), "price": pa.int64(), "t": pa.int64()})
    query = sb.JoinAggregate(
        inputs={"offers": sb.sliding(50, on="t"), "bids": sb.sliding(10, on="t")},
        every=5, on="offers.auction = bids.of", group_by="offers.auction",
        aggregates={"n": "COUNT(bids.*)"}, order_by="n DESC", k=2,
    )  # fmt: skip
    session = query.open({"offers": offers, "bids": bids})
    with session.serve() as server:
        session.push(pa.table({"auction": ["oak", "elm", "fir"], "t": [1, 2, 3]}, schema=offers), "offers")
        session.push(
            pa.table({"of": ["oak", "elm", "oak", "oak"], "price": [1, 2, 3, 4], "t": [4, 5, 6, 14]}, schema=bids),
            "bids",
        )
        session.push(pa.table({"auction": ["ash"], "t": [15]}, schema=offers), "offers")
        drawn = ask(server, "/queries/query/picture").json
        assert [lane["name"] for lane in drawn["lanes"]] == ["offers", "bids"]
        assert [lane["size"] for lane in drawn["lanes"]] == [50, 10]
        listed = ask(server, "/queries/query/top").json["rows"]
        assert [group["title"] for group in drawn["groups"]] == [row["auction"] for row in listed]
        reason = why(server, listed[0]).json
        facts = {fact[0]: fact[1] for fact in reason["facts"]}
        assert reason["kind"] == "shown"
        assert facts["rows of offers"].startswith("1 of 4")
        absent = ask(server, f"/queries/query/rows/{quote(json.dumps(['fir']), safe='')}").json
        assert "none of bids" in absent["verdict"] or "no row of bids" in absent["verdict"]
        found = ask(server, "/queries/query/rows?where=price%20>%203").json["rows"]
        assert [row["row"] for row in found] == [{"auction": "oak"}]
        assert ask(server, "/queries/query/rows?where=nothing%20=%201").status == 400


def test_every_problem_has_a_picture_of_a_statement_that_runs() -> None:
    catalog = Catalog("five")
    workshop = Workshop(catalog, feeds(4_000.0))
    try:
        forms = {name: workshop.start(text).describe()["picture"]["form"] for name, text in STATEMENTS.items()}
    finally:
        workshop.close()
    assert forms == {"rows": "dots", "pairs": "pairs", "across": "lanes", "subscriptions": "lanes", "joins": "lanes"}


def test_pairs_of_groups_have_no_picture_and_hold_pairs_of_one_group_each() -> None:
    schema = pa.schema({"side": pa.string(), "x": pa.float64()})
    session = sb.TopKPairs(k=1, by="a.x + b.x", per="side", window=sb.sliding(3)).open(schema)
    rows = pa.table({"side": list("lrlrlr"), "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}, schema=schema)
    with session.serve() as server:
        session.push(rows)
        assert ask(server, "/queries/query").json["picture"] is None
        assert ask(server, "/queries/query/picture").status == 404
    held = session._operator.pairs_held()
    assert len(held)
    assert (held["a_position"] % 2 == held["b_position"] % 2).all(), "both rows are of one side"
    assert set(held["b_position"].tolist()) <= set(session.held().tolist())


def test_why_a_row_of_a_group_is_shown_is_told_also_if_rows_come_meanwhile() -> None:
    session = sb.TopK(k=2, by="x", per="id", window=sb.sliding(1_000, every=100, on="t")).open(READINGS)
    watched = Watched(session, "best")
    session.push(readings(50))
    pieces, calls = watched.picture.seen.pieces, []

    def and_then_more_rows_come() -> Any:
        found = pieces()
        calls.append(len(calls))
        session.push(pa.table({"id": ["r1"], "t": [50 + len(calls)], "x": [0.0]}, schema=READINGS))
        return found

    watched.picture.seen.pieces = and_then_more_rows_come
    told = watched.picture.why("3")
    assert calls, "rows came while the question was answered"
    assert (told["row"]["id"], told["rank"], told["verdict"]) == ("r3", 1, "Rank 1 of 2: no row is better.")
    watched.close()


def test_of_too_many_held_rows_some_of_the_whole_window_are_drawn() -> None:
    session = sb.TopK(k=8_000, by="x", window=sb.sliding(8_000, every=1_000)).open(READINGS)
    watched = Watched(session, "best")
    session.push(readings(8_000))
    dots = watched.picture.draw()["dots"]
    held = [id for id, is_held in zip(dots["id"], dots["held"], strict=True) if is_held]
    assert 2_000 < len(held) < 4_000
    for first in range(0, 8_000, 1_000):
        assert sum(first <= id < first + 1_000 for id in held) > 200, "each part of the window has its share"
    watched.close()


@pytest.mark.parametrize("ascending", [False, True])
def test_with_groups_the_rows_that_are_lit_are_the_best_of_each(ascending: bool) -> None:
    random = np.random.default_rng(3)
    names = [None if number % 9 == 0 else f"r{number % 5}" for number in range(300)]
    rows = pa.table({"id": names, "t": np.arange(300), "x": random.integers(0, 40, 300).astype(float)}, schema=READINGS)
    query = sb.TopK(k=3, by="x", per="id", ascending=ascending, window=sb.sliding(120, on="t"))
    session = query.open(READINGS)
    watched = Watched(session, "best")
    session.push(rows)
    dots = watched.picture.draw()["dots"]
    lit = [place for place, is_shown in enumerate(dots["shown"]) if is_shown]
    shown = [(names[dots["id"][place]], dots["y"][place]) for place in lit]
    now = session.top().to_pylist()
    assert sorted(shown, key=str) == sorted(((row["id"], row["score"]) for row in now), key=str)
    assert all(dots["held"][place] for place in lit)
    assert watched.describe()["picture"]["legend"] == ["shown", "held", "ruled out"]
    watched.close()
