"""The flat arrays of a running plan, as its kernels see them.

Each table is one array of int64, a row for each entry, group, live row, … with fixed columns first. Those whose number
depends on the query come behind them, and `config` says where. One array each keeps what is used together in one place
of memory, and the kernels quick to compile: that takes time with every array that is passed on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints

NONE = -1
LINE = 8  # numbers in a cache line

# -- counters ----------------------------------------------------------------------------------------------------------

EVENT = 0  # the next event
TURN = 1  # the moment it belongs to
STAGE = 2  # of that moment: GATHER, UPDATE or JOIN
ITEM = 3  # the next thing to do in that stage
TOUCHED = 4  # groups touched since the last moment
LISTED = 5  # entries whose change waits to be joined
GROUPS = 6  # group codes given
LIVING = 7  # groups that have rows
WRITTEN = 8  # records
BROKEN = 9  # 1: more joined rows than can be counted; 2 + a: aggregate a is a sum that no int64 can hold
MATCHES = 10  # joined entries so far: what a join costs
TAU = 11  # ranked: a group outside the reserve has no larger score
RESERVE = 12  # ranked: groups in the reserve
KTH = 13  # ranked: the score of the last group shown
DIRTY = 14  # ranked: something changed that may be shown
FIRST_TURN = 15  # the turn of moment 0
SILENT = 16  # nothing is to be shown
CANDIDATE = 17  # of a pair: the entry to be joined next, where groups ran out
PAIR = 18  # two inputs with one limb for each number, nothing but sums, and no joined rows too many to count
TALLIED = 19  # lines of the tallies that are taken
COUNTERS = 20

GATHER, UPDATE, JOIN = range(3)  # JOIN: the entry at hand is up to date, but not yet joined

MISSING = -(2**63)  # ranked: the score of a group that is gone
NO_SCORE = MISSING + 1  # and of one whose aggregate has no value: behind all others

# -- the config: the query in numbers, and where the columns are that depend on it -------------------------------------

INPUTS = 0
AGGREGATES = 1
PARTS = 2  # inputs with columns of the grouping
STAIRS = 3  # staircases of a group: MIN and MAX
STAIRS_WIDE = 4  # of an entry
TAKES_BACK = 5  # 1: show what is new, and take back what is gone; else all groups
COALESCE = 6  # 1: join what a moment changed of an entry, all at once
TOP, TOP_BY, ASCENDING = 7, 8, 9
# Where the rows of the program start that describe …
TERM_ROWS, STAIR_ROWS, INPUT_ROWS, STEP_ROWS, CHECK_ROWS, LINK_ROWS, PART_ROWS, AGGREGATE_ROWS = range(10, 18)
# Where the columns of an entry start …
VARIABLES, KEYS, FOLLOWING, PRECEDING, ENTRY_DISTINCT, SUMS, DELTA, ENTRY_WIDTH = range(18, 26)
# … and of a group.
GROUP_PARTS, GROUP_VALUES, GROUP_DISTINCT, GROUP_SUMS, GROUP_WIDTH = range(26, 31)
# Where parts of the scratch start.
OWN, CHOSEN, CURSOR, LIMBS, LASTS, VALUES = range(31, 37)
DISTINCTS, DISTINCT_ROWS = 37, 38  # columns whose different values are counted, and the rows that describe them
APART = 39  # 1: each input has a clock of its own, and what is later on one cannot be compared with another
CONFIG = 40

# -- rows of the program -----------------------------------------------------------------------------------------------

# A term is an argument of aggregates. An entry has for each a count of its values, of a float also of its infinities,
# and, if it is summed, a number in limbs.
# PLAIN: how many counts; FROM: where it starts behind SUMS; TO: behind GROUP_SUMS; SCALE: digits behind the point.
T_ARGUMENT, T_FLOAT, T_PLAIN, T_LIMBS, T_LOW, T_FROM, T_TO, T_SCALE = range(8)
S_ARGUMENT, S_FLOAT, S_NEGATED = range(3)  # NEGATED: MAX, the smallest of the values turned around
# Of an input: its terms, staircases and indexes; the columns of its terms, which lie side by side, if no number has
# more than one limb, else NONE; and where they start in a group.
I_TERM, I_TERM_END, I_STAIR, I_STAIR_END, I_LINK, I_LINK_END, I_SIMPLE, I_TO = range(8)
# A step of a join, STEP_ROWS + start * (inputs - 1) + depth.
P_INPUT, P_PARENT, P_DOMAIN, P_LINK, P_INDEX, P_CHECK, P_CHECK_END = range(7)
C_VARIABLE, C_INPUT = range(2)
L_DOMAIN = 0
G_INPUT = 0
A_FUNCTION, A_TERM, A_STAIR, A_FLOAT = range(4)  # TERM NONE: COUNT(*); of COUNT(DISTINCT x): which of those
D_INPUT, D_COLUMN = range(2)  # COLUMN: behind ENTRY_DISTINCT
PROGRAM_WIDTH = 8

# -- columns -----------------------------------------------------------------------------------------------------------

# An entry is what is joined: a row or, where rows are aggregated early, all live rows of a cell. Entry 0 is none: it
# holds what the event at hand adds.
SOURCE, PART, LAST, IS_LISTED, ENTRY_FIXED = range(5)  # LAST: the last moment at which one of its rows is live
# A live row, or several that came as one, has a slot.
R_ENTRY, R_VALID, R_LAST, R_WEIGHT, R_ARGUMENTS = range(5)
# A group, and what was shown of it last.
IS_TOUCHED, VALID, IS_LIVE, PLACE, SCORE, IN_RESERVE, GROUP_FIXED = range(7)  # PLACE: among the living
# Lists of groups, in no order; all whose score exceeds TAU are in the reserve.
L_TOUCHED, L_LIVING, L_RESERVE, GROUP_LISTS = range(4)
E_SLOT, E_SIGN = range(2)  # sign 1: comes, -1: goes
# Of a moment: where its events end, what is shown as its time and, by input, what LAST is compared with.
M_END, M_AT, M_NOW = range(3)
# A tally: how many joined rows of a group have a value. The owner is group * DISTINCTS + the column; NONE: no tally.
Y_OWNER, Y_VALUE, Y_ROWS, TALLY_WIDTH = range(4)
O_AT, O_TURN, O_GROUP, O_LIVE, O_VALID, O_VALUES = range(6)


def table(rows: int, width: int) -> Ints:
    """Zeros, from the start of a cache line on: so a row of up to eight numbers is in one, if there are eight."""
    memory = np.zeros(rows * width + LINE - 1, np.int64)
    skipped = -(memory.ctypes.data // memory.itemsize) % LINE
    return memory[skipped : skipped + rows * width].reshape(rows, width)


def longer(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """The same with zeros behind, so many rows in all."""
    result = np.zeros((rows, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result
