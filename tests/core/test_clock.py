"""Oracle tests: the clock against the definition of a window, told one row at a time in plain numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyband.core.clock import LATEST, WindowClock
from skyband.windows import FOREVER, Ticks

WINDOWS = st.builds(
    lambda slides, every, lateness: Ticks(FOREVER if slides is None else slides * every, every, lateness, False),
    st.none() | st.integers(1, 4),
    st.integers(1, 7),
    st.sampled_from([0, 3, FOREVER]),
)
TIMES = st.lists(st.integers(-20, 60), max_size=30)


def holds(window: Ticks, end: int, time: int) -> bool:
    return time < end and (window.size == FOREVER or time >= end - window.size)


def closed_by(window: Ticks, seen: list[int]) -> int | None:
    """The end of the last window that the rows seen have closed."""
    if not seen or window.lateness == FOREVER:
        return None
    return (max(seen) - window.lateness) // window.every * window.every


@given(WINDOWS, TIMES)
def test_rows_are_late_when_every_window_that_holds_them_has_closed(window: Ticks, times: list[int]) -> None:
    clock, late = WindowClock(window), 0
    for i, time in enumerate(times):
        closed = closed_by(window, times[: i + 1])
        first_end = -140 // window.every * window.every
        ends = [end for end in range(first_end, 140, window.every) if holds(window, end, time)]
        late += closed is not None and window.size != FOREVER and max(ends) <= closed
        first = min(end for end in [*ends, FOREVER] if closed is None or end > closed)
        now = clock.now_after(np.array([time]))
        after = clock.closed_after(now)
        assert closed is None or after[0] == closed
        if clock.in_time(np.array([time]), after) is None and first < FOREVER:
            assert clock.first_moments(np.array([time]), after)[0] == first, "it begins with its first open window"
        clock.closed = int(after[0])
        clock.move_to(int(now[0]))
    assert clock.late == late


@given(WINDOWS, TIMES, st.integers(0, 30))
def test_a_batch_is_cut_where_windows_close(window: Ticks, times: list[int], cut: int) -> None:
    whole, parts = WindowClock(window), WindowClock(window)
    found = []
    for clock, batches in ((whole, [times]), (parts, [times[:cut], times[cut:]])):
        for batch in batches:
            time = np.array(batch, np.int64)
            if len(time):
                now = clock.now_after(time)
                closed = clock.closed_after(now)
                runs = clock.runs(closed)
                assert [run.first for run in runs[1:]] == [run.end for run in runs[:-1]], "runs follow each other"
                assert all((closed[run.first : run.end] == run.closed).all() for run in runs)
                clock.in_time(time, closed)
                clock.closed = int(closed[-1])
                clock.begin(time)
                clock.move_to(int(now[-1]))
        found.append((clock.late, clock.now, clock.closed, clock.finish_end))
    assert found[0] == found[1], "however the rows are cut into batches"


@given(WINDOWS, TIMES)
def test_a_restored_clock_goes_on(window: Ticks, times: list[int]) -> None:
    clock, other = WindowClock(window), WindowClock(window)
    for time in times:
        now = clock.now_after(np.array([time]))
        clock.closed = int(clock.closed_after(now)[0])
        clock.begin(np.array([time]))
        clock.move_to(int(now[0]), arrivals=1)
    other.restore(clock.state())
    assert (other.state() == clock.state()).all()
    assert other.finish_end == clock.finish_end


def test_windows_without_rows_are_passed_over() -> None:
    clock, shown = WindowClock(Ticks(10, 5, 0, by_count=False)), list[int]()
    live = [12, 40]
    clock.begin(np.array(live))
    clock.move_to(40)

    def earliest() -> int:
        return min((time for time in live if time >= clock.next_start), default=LATEST)

    clock.close_until(clock.finish_end, lambda: clock.worth_closing(earliest, takes_back=False), shown.append)
    assert shown == [15, 20, 45, 50]
    assert clock.closed == 50
