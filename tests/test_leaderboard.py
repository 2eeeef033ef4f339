"""Examples: a board on the terminal, as text."""

from __future__ import annotations

from rich.console import Console

from skyband.leaderboard import Column, Leaderboard


def board(**options: object) -> Leaderboard:
    columns = [Column("name", str), Column("score", str, "points", is_number=True)]
    return Leaderboard("The best", columns, **options)  # type: ignore[arg-type]


def lines(board: Leaderboard, width: int = 60) -> list[list[str]]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(board.render(width))
    return [line.split() for line in captured.get().splitlines() if line.strip() and "──" not in line]


def test_arrows_say_who_moved_since_the_answer_before() -> None:
    one = board()
    one.show([{"name": "x", "score": 9}, {"name": "y", "score": 8}, {"name": "z", "score": 1}], "first")
    assert lines(one, 30)[2:] == [["name", "points"], ["1", "x", "9"], ["2", "y", "8"], ["3", "z", "1"]]
    one.show([{"name": "y", "score": 8}, {"name": "x", "score": 9}, {"name": "q", "score": 2}], "second")
    assert lines(one, 30)[1:] == [
        *(["second"], ["name", "points"], ["1", "▲1", "y", "8"], ["2", "▼1", "x", "9"], ["3", "new", "q", "2"])
    ]
    one.show([{"name": "y", "score": 7}], "third")
    assert lines(one, 30)[3] == ["1", "new", "y", "7"]  # another row, unless it is known by its name


def test_a_row_is_found_again_by_its_identity_and_ranked_as_it_says() -> None:
    one = board(identity=["name"])
    one.show([{"name": "x", "score": 9, "rank": 1}, {"name": "y", "score": 5, "rank": 1}], "")
    one.show([{"name": "x", "score": 4, "rank": 2}, {"name": "y", "score": 5, "rank": 1}], "")
    assert lines(one, 30)[-2:] == [["2", "▼1", "x", "4"], ["1", "=", "y", "5"]]


def test_bars_are_there_where_there_is_room_and_scores_are_positive_numbers() -> None:
    one = board()
    one.show([{"name": "x", "score": 10}, {"name": "y", "score": 5}], "")
    assert [line[-1].count("━") for line in lines(one, 70)[-2:]] == [30, 15]
    for scores in ((10, -1), (float("inf"), 1), ("a", "b"), (None, None)):
        one.show([{"name": "x", "score": score} for score in scores], "")
        assert "━" not in str(lines(one))
    one.show([{"name": "x", "score": 0}], "")
    assert "━" not in str(lines(one))
