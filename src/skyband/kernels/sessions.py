"""Puts rows into sessions, one after the other: a row joins those that are open and near it, which become one."""

from __future__ import annotations

from skyband.kernels.compiling import kernel

UNKNOWN, LATE = -1, -2  # in place of the session of a row


@kernel
def into_sessions(times, codes, gap, now, forever, heads, following, first, last, merged, session, count):
    """Put rows into the sessions of their groups, in the order in which they came. Returns the latest time, and how
    many sessions there are.

    `heads` has the first session of each group that may be open, and `following` the next one, -1 behind the last;
    `merged` the session that one has become part of, -1 if it is one itself. `session` gets that of each row.
    """
    for i in range(len(times)):
        time, code = times[i], codes[i]
        if time >= forever:
            session[i] = UNKNOWN
            continue
        mine, before, one = -1, -1, heads[code]
        start, end = time, time
        # Invariant: all sessions of the group that are open are behind `before`, or were looked at.
        while one >= 0:
            after = following[one]
            if last[one] + gap < now:  # it has ended: nothing continues it any more
                leaves = True
            elif last[one] + gap >= time and time + gap >= first[one]:
                start, end = min(start, first[one]), max(end, last[one])
                leaves = mine >= 0
                if leaves:
                    merged[one] = mine
                else:
                    mine = one
            else:
                leaves = False
            if not leaves:
                before = one
            elif before < 0:
                heads[code] = after
            else:
                following[before] = after
            one = after
        if mine < 0:
            if time + gap < now:
                session[i] = LATE
                continue
            mine = count
            following[mine], merged[mine] = heads[code], -1
            heads[code] = mine
            count += 1
        first[mine], last[mine] = start, end
        session[i] = mine
        now = max(now, time)
    return now, count
