"""Oracle and example tests: a board shows each member once, with its best rank; against a real Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines.test_file import RIGHT, problem, written
from servers.redis import server

from skyband.pipelines.answers import Answers
from skyband.pipelines.checking import check
from skyband.pipelines.file import load
from skyband.pipelines.leaderboards import LeaderboardTarget

BOARD = 'format = "leaderboard"\nurl = "redis://localhost:6379/0"\nboard = "top"\nmember = "symbol"\n'
KAFKA = 'format = "kafka"\nservers = "localhost:9092"\ntopic = "board"\n'


def target(folder: Path, address: str, member: str = "symbol", board: str = "top") -> LeaderboardTarget:
    sink = BOARD.replace("redis://localhost:6379/0", address).replace('"symbol"', f'"{member}"')
    text = RIGHT.replace(KAFKA, sink.replace('board = "top"', f'board = "{board}"'))
    pipeline = load(written(folder, text))
    return LeaderboardTarget(pipeline, "top", pipeline.sinks["board"])


def answers(rows: list[dict[str, Any]]) -> Answers:
    return Answers(None, pa.Table.from_pylist(rows))  # type: ignore[arg-type]


class Boards:
    """What a Redis server does with a board, as far as it is asked to here: a score that is given later counts."""

    def __init__(self) -> None:
        self.boards: dict[str, dict[str, float]] = {}

    def ping(self) -> bool:
        return True

    def register_script(self, text: str) -> Any:
        assert "ZADD" in text

        def show(keys: list[str], args: list[Any]) -> None:
            assert len(set(keys)) == 2
            assert keys[1] not in self.boards, "the end of a board is kept where no board is"
            self.boards[keys[0]] = dict(zip(args[2::2], map(float, args[1::2]), strict=True))

        return show

    def zrevrange(self, board: str, first: int, last: int) -> list[str]:
        assert (first, last) == (0, -1)
        return sorted(self.boards[board], key=self.boards[board].__getitem__, reverse=True)


@pytest.fixture(params=["a Redis server", "as Redis does it"])
def client(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The address of boards, and what shows them."""
    if request.param == "a Redis server":
        with server(tmp_path) as address, redis.Redis.from_url(address, decode_responses=True) as real:
            real.address = address  # type: ignore[attr-defined]
            yield real
        return
    boards = Boards()
    monkeypatch.setattr(redis.Redis, "from_url", lambda _: boards)
    boards.address = "redis://localhost:6379/0"  # type: ignore[attr-defined]
    yield boards


def test_of_a_member_that_is_ranked_twice_the_best_rank_counts(client: Any, tmp_path: Path) -> None:
    """OAK is first and fourth: with the score of the fourth it would come last."""
    ranked = [("OAK", 9.0), ("FIR", 7.0), ("ELM", 5.0), ("OAK", 1.0)]
    rows = [
        {"window_end": 60, "rank": rank, "score": score, "symbol": symbol}
        for rank, (symbol, score) in enumerate(ranked, 1)
    ]
    target(tmp_path, client.address).write(answers(rows), 0)
    assert client.zrevrange("top", 0, -1) == ["OAK", "FIR", "ELM"]
    rising = [{**row, "score": -row["score"]} for row in rows]  # as ORDER BY … ASC ranks them: the smallest is best
    target(tmp_path, client.address).write(answers(rising), 1)
    assert client.zrevrange("top", 0, -1) == ["ELM", "FIR", "OAK"]


def test_boards_show_members_as_the_answer_ranks_them(client: Any, tmp_path: Path) -> None:
    board = target(tmp_path, client.address)
    lines = st.lists(st.tuples(st.integers(1, 3), st.sampled_from("abcd"), st.integers(0, 99)), min_size=1, max_size=12)
    ends = iter(range(0, 10**9, 10))  # a board never goes back to an earlier window

    @settings(max_examples=60)
    @given(lines, st.booleans(), st.randoms())
    def shown(drawn: list[tuple[int, str, int]], scored: bool, random: Any) -> None:
        start, last, rows = next(ends), max(end for end, *_ in drawn), []
        for end in sorted({end for end, *_ in drawn}):
            of_window = sorted(((score, m) for e, m, score in drawn if e == end), reverse=True)
            for rank, (score, member) in enumerate(of_window, 1):
                row = {"window_end": start + end, "rank": rank, "symbol": member}
                # No two scores are equal: Redis would put these in the order of their names.
                rows.append(row | ({"score": score + 1 / rank} if scored else {}))
        expected = list(dict.fromkeys(row["symbol"] for row in rows if row["window_end"] == start + last))
        random.shuffle(rows)
        board.write(answers(rows), 0)
        assert client.zrevrange("top", 0, -1) == expected

    shown()


HOSTILE = [
    "OAK",
    "OAK:window_end",
    "skyband:window_end:OAK",
    "{who}",
    "{symbol}",
    "%null",
    "%7Bwho%7D",
    "None",
    "",
    None,
]


def test_no_value_reaches_the_board_of_another(client: Any, tmp_path: Path) -> None:
    """`OAK:window_end` overwrote what was kept beside the board OAK, and {who} was put in once more."""
    board = target(tmp_path, client.address, "who", "{symbol}")
    names = ["OAK", "OAK%3Awindow_end", "skyband%3Awindow_end%3AOAK", "%7Bwho%7D", "%7Bsymbol%7D", "%25null"]
    names += ["%257Bwho%257D", "None", "", "%null"]
    for end in (60, 120, 120):
        rows = [
            {"window_end": end, "rank": 1, "score": float(end), "symbol": symbol, "who": f"{number} at {end}"}
            for number, symbol in enumerate(HOSTILE)
        ]
        board.write(answers(rows), 0)
        assert [client.zrevrange(name, 0, -1) for name in names] == [
            [f"{number} at {end}"] for number in range(len(HOSTILE))
        ]


def test_a_row_without_a_member_ranks_nobody_and_a_score_that_is_no_number_is_last(client: Any, tmp_path: Path) -> None:
    ranked = [("None", 9.0), (None, 8.0), ("ELM", float("nan")), ("FIR", float("-inf")), ("OAK", 1.0)]
    rows = [
        {"window_end": 60, "rank": rank, "score": score, "symbol": symbol}
        for rank, (symbol, score) in enumerate(ranked, 1)
    ]
    target(tmp_path, client.address).write(answers(rows), 0)
    assert client.zrevrange("top", 0, -1)[:2] == ["None", "OAK"]
    assert set(client.zrevrange("top", 0, -1)) == {"None", "OAK", "FIR", "ELM"}


def test_a_board_with_a_name_of_ours_is_refused(tmp_path: Path) -> None:
    said = problem(tmp_path, pipeline("skyband:top", "symbol", "BY symbol", "symbol, price"))
    assert "Names that begin with skyband: are reserved" in said


@pytest.mark.parametrize(
    ("board", "member", "by", "shown"),
    [
        ("top", "symbol", "BY symbol", "symbol, price"),
        ("top:{symbol}", "price", "BY symbol", "symbol, price"),
        ("top:{symbol}", "volume", "BY symbol", "volume"),
        ("top", "price", "", "symbol, price"),
    ],
)
def test_boards_of_several_rankings(tmp_path: Path, board: str, member: str, by: str, shown: str) -> None:
    text = pipeline(board, member, by, shown)
    assert check(load(written(tmp_path, text))).queries == ("top: from trades to files, board",)


def test_a_member_of_several_rankings_on_one_board_is_refused(tmp_path: Path) -> None:
    said = problem(tmp_path, pipeline("top", "price", "BY symbol", "symbol, price"))
    assert (
        "There is a ranking for each symbol, all of them go to the board 'top', and a price may be in several." in said
    )
    assert "{symbol} in its name" in said


def pipeline(board: str, member: str, by: str, shown: str) -> str:
    sink = BOARD.replace('"top"', f'"{board}"').replace('member = "symbol"', f'member = "{member}"')
    text = RIGHT.replace(KAFKA, sink).replace("LIMIT 3 BY symbol", f"LIMIT 3 {by}")
    return text.replace("SELECT symbol, price", f"SELECT {shown}")
