"""The flat arrays of a running plan, as its kernels see them.

Each table is one array of int64, with a row for each entry, group, live row, …. Fixed columns come first; behind them
are columns whose number depends on the query, and `config` has their places. With one array for each table, data that
is used together is together in memory; and kernels compile faster, because each array that is passed on costs time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints

NONE = -1
LINE = 8  # the int64 in a cache line

# -- counters ----------------------------------------------------------------------------------------------------------

EVENT = 0  # the next event
TURN = 1  # the moment of that event
STAGE = 2  # the stage of that moment: GATHER, UPDATE or JOIN
ITEM = 3  # the next item of that stage
TOUCHED = 4  # how many groups have changed since the last moment
LISTED = 5  # how many entries have changes that wait to be joined
GROUPS = 6  # how many group codes were given
LIVING = 7  # how many groups have rows
WRITTEN = 8  # how many records are written
BROKEN = 9  # 1: too many joined rows to count; 2 + a: the sum of aggregate a exceeds an int64
MATCHES = 10  # how many entries have been joined so far, which measures the cost of a join
TAU = 11  # ranked: no group outside the reserve has a larger score
RESERVE = 12  # ranked: how many groups are in the reserve
KTH = 13  # ranked: the score of the last group shown
DIRTY = 14  # ranked: has anything changed that may be shown?
FIRST_TURN = 15  # the turn of moment 0
SILENT = 16  # is nothing to be shown?
CANDIDATE = 17  # in a pair: the next entry to join, after groups ran out
PAIR = 18  # does `join_pair` apply: two inputs, one limb for each number, only sums, and no counts that overflow?
TALLIED = 19  # how many lines of the tallies are taken
COUNTERS = 20

GATHER, UPDATE, JOIN = range(3)  # JOIN: the present entry is updated, but not joined yet

MISSING = -(2**63)  # ranked: the score of a group without rows
NO_SCORE = MISSING + 1  # ranked: the score of a group whose aggregate has no value, below all others

# -- the config: the query in numbers, and the places of columns that depend on it -------------------------------------

INPUTS = 0
AGGREGATES = 1
PARTS = 2  # the number of inputs with grouping columns
STAIRS = 3  # the number of staircases of a group, for MIN and MAX
STAIRS_WIDE = 4  # the number of staircases of an entry
TAKES_BACK = 5  # 1: show changes; 0: show all groups
COALESCE = 6  # 1: join all changes of an entry in a moment at once
TOP, TOP_BY, ASCENDING = 7, 8, 9
# Where the rows of the program begin that describe …
TERM_ROWS, STAIR_ROWS, INPUT_ROWS, STEP_ROWS, CHECK_ROWS, LINK_ROWS, PART_ROWS, AGGREGATE_ROWS = range(10, 18)
# Where the columns of an entry begin …
VARIABLES, KEYS, FOLLOWING, PRECEDING, ENTRY_DISTINCT, SUMS, DELTA, ENTRY_WIDTH = range(18, 26)
# … and those of a group.
GROUP_PARTS, GROUP_VALUES, GROUP_DISTINCT, GROUP_SUMS, GROUP_WIDTH = range(26, 31)
# Where the parts of the scratch space begin.
OWN, CHOSEN, CURSOR, LIMBS, LASTS, VALUES = range(31, 37)
DISTINCTS, DISTINCT_ROWS = 37, 38  # the number of columns of COUNT(DISTINCT x), and the rows that describe them
APART = 39  # 1: each input has a clock of its own, and moments of different clocks cannot be compared
CONFIG = 40

# -- rows of the program -----------------------------------------------------------------------------------------------

# A term is an argument of aggregates. For each term, an entry has the count of its values, for floats also the counts
# of infinities and, if the term is summed, a number in limbs.
# PLAIN: the number of counts. FROM: its place behind SUMS. TO: its place behind GROUP_SUMS. SCALE: digits behind the
# point.
T_ARGUMENT, T_FLOAT, T_PLAIN, T_LIMBS, T_LOW, T_FROM, T_TO, T_SCALE = range(8)
S_ARGUMENT, S_FLOAT, S_NEGATED = range(3)  # NEGATED: MAX, as the smallest of the negated values
# An input: its terms, staircases and indexes. SIMPLE: if every number has at most one limb, the number of adjacent
# columns of its terms, else NONE. TO: where these begin in a group.
I_TERM, I_TERM_END, I_STAIR, I_STAIR_END, I_LINK, I_LINK_END, I_SIMPLE, I_TO = range(8)
# A step of a join, STEP_ROWS + start * (inputs - 1) + depth.
P_INPUT, P_PARENT, P_DOMAIN, P_LINK, P_INDEX, P_CHECK, P_CHECK_END = range(7)
C_VARIABLE, C_INPUT = range(2)
L_DOMAIN = 0
G_INPUT = 0
A_FUNCTION, A_TERM, A_STAIR, A_FLOAT = range(4)  # TERM: NONE for COUNT(*); for COUNT(DISTINCT x), its number
D_INPUT, D_COLUMN = range(2)  # COLUMN: its place behind ENTRY_DISTINCT
PROGRAM_WIDTH = 8

# -- columns -----------------------------------------------------------------------------------------------------------

# An entry is the unit of a join: a row or, with early aggregation, all live rows of a cell. Entry 0 is scratch space
# for what the present event adds.
SOURCE, PART, LAST, IS_LISTED, ENTRY_FIXED = range(5)  # LAST: the last moment at which one of its rows is live
# Each live row, or several rows that were merged into one, has a slot.
R_ENTRY, R_VALID, R_LAST, R_WEIGHT, R_ARGUMENTS = range(5)
# A group, and the values that were last shown.
IS_TOUCHED, VALID, IS_LIVE, PLACE, SCORE, IN_RESERVE, GROUP_FIXED = range(7)  # PLACE: in the list of living groups
# Lists of groups, in no order. Every group whose score exceeds TAU is in the reserve.
L_TOUCHED, L_LIVING, L_RESERVE, GROUP_LISTS = range(4)
E_SLOT, E_SIGN = range(2)  # SIGN: 1 if the row comes, -1 if it leaves
# A moment: where its events end, its time in answers and, for each input, the value with which LAST is compared.
M_END, M_AT, M_NOW = range(3)
# A tally counts the joined rows of a group that have a value. OWNER is group * DISTINCTS + column; NONE: no tally.
Y_OWNER, Y_VALUE, Y_ROWS, TALLY_WIDTH = range(4)
O_AT, O_TURN, O_GROUP, O_LIVE, O_VALID, O_VALUES = range(6)


def table(rows: int, width: int) -> Ints:
    """Allocate zeros that begin at a cache line, so that a row of eight numbers lies in one line."""
    memory = np.zeros(rows * width + LINE - 1, np.int64)
    skipped = -(memory.ctypes.data // memory.itemsize) % LINE
    return memory[skipped : skipped + rows * width].reshape(rows, width)


def longer(array: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """Extend an array with zeros to this many rows."""
    result = np.zeros((rows, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result
