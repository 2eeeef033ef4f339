"""Restart test: a run of hours that is stopped goes on with its next seeds, and counts what it had found."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture import campaign
from torture.campaign import Line, Result, resumed


def test_a_run_of_hours_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PROGRESS", tmp_path / "progress")
    seen: list[int] = []
    stops = [33]

    def run(first: int, count: int) -> Result:
        result = Result()
        for seed in range(first, first + count):
            if seed in stops:
                raise KeyboardInterrupt
            seen.append(seed)
            result.note(seed, "right", "wrong" if seed == 7 else None)
        return result

    line = Line("4", "streams", "no difference", 10, 100, run)
    with pytest.raises(KeyboardInterrupt):
        resumed(line, "abc")
    stops.clear()
    result, _ = resumed(line, "abc")
    assert result.failures == [(7, "wrong")]
    assert result.tried == {"right": 100}
    assert sorted(seen) == sorted([*range(100), 32]), "a part that was stopped is done again"
    assert resumed(line, "abc")[0].tried == {"right": 100}, "it begins anew when it has come to its end"
    stops.append(33)
    with pytest.raises(KeyboardInterrupt):
        resumed(line, "abc")
    stops.clear()
    seen.clear()
    resumed(line, "def")
    assert sorted(seen) == [*range(100)], "and after a commit"
