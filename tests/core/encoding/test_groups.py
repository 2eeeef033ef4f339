"""Oracle and restart tests of keys: whatever their types, answers are those over their labels, which are plain texts.

The session with keys of any type is saved and opened again after every batch, and forgets groups as soon as there are a
few; the one with labels is left alone. So groups must have the same numbers before and after, null, NaN and -0.0
included, in rows (`per`), pairs (`same`, `different`), across streams (`id`), joins (`on`, `group_by`) and queries
(`key`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keys import POOLS, Keys, batches_of, column, key_columns, label, picks

import skyband as sb
from skyband.core.codec import Codec
from skyband.core.encoding.groups import GroupCodes

FEW = 3  # groups with which forgetting begins
NAMES = ["g0", "g1", "g2"]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Codec, "few_codes", FEW)
    monkeypatch.setattr("skyband.problems.joins.codec.JoinsCodec.few_codes", FEW)


def labelled(columns: list[pa.Array], kind: pa.DataType | None = None) -> list[pa.Array]:
    return [pa.array([label(value) for value in column.to_pylist()], kind or pa.string()) for column in columns]


def lines(answer: pa.Table, keys: set[str], *, relabel: bool) -> list[tuple[Any, ...]]:
    """The lines of an answer, with labels for keys, in an order that does not depend on groups."""
    rows = [
        tuple(str(label(value) if relabel and name in keys else value) for name, value in row.items())
        for row in answer.to_pylist()
    ]
    return sorted(rows)


def agree(
    open_plain: Callable[[bytes | None], Any],
    open_labelled: Callable[[bytes | None], Any],
    steps: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]],
    keys: set[str],
) -> None:
    """Each step, with keys and with labels, gives the same."""
    plain, texts = open_plain(None), open_labelled(None)
    for with_keys, with_labels in [*steps, (lambda session: session.finish(),) * 2]:
        plain = open_plain(plain.snapshot())
        found, expected = with_keys(plain), with_labels(texts)
        assert lines(found, keys, relabel=True) == lines(expected, keys, relabel=False)
        assert plain.stats().rows_used == texts.stats().rows_used
        plain.check()


# -- codes -------------------------------------------------------------------------------------------------------------


@given(keys=key_columns(), batches=batches_of(picks()))
def test_codes_are_in_order_of_first_appearance(keys: Keys, batches: list[list[tuple[int, ...]]]) -> None:
    groups, known = GroupCodes(keys.schema), {}
    for batch in batches:
        columns = keys.columns(batch)
        rows = zip(*(each.to_pylist() for each in labelled(columns)), strict=True)
        expected = [known.setdefault(row, len(known)) for row in rows]
        assert groups.encode(pa.record_batch(columns, schema=keys.schema)).tolist() == expected
        shown = zip(*(each.to_pylist() for each in labelled(groups.keys.columns)), strict=True)
        assert list(shown) == list(known)
        again = GroupCodes(keys.schema)
        again.load(groups.keys)
        assert again.encode(pa.record_batch(columns, schema=keys.schema)).tolist() == expected
        groups.keep(pa.array(range(0, len(known), 2), pa.int64()).to_numpy())
        known = {row: code for code, row in enumerate(list(known)[::2])}


@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64(), pa.dictionary(pa.int32(), pa.float64())], ids=str)
def test_zeros_are_one_key_and_so_are_all_nan(data_type: pa.DataType) -> None:
    (values,) = [pool for kind, pool in POOLS if kind == pa.float64()]
    groups = GroupCodes(pa.schema([("g", data_type)]))
    batch = pa.record_batch([column(values, data_type)], names=["g"])
    assert groups.encode(batch).tolist() == [0, 1, 1, 2, 2, 2, 3, 4]
    assert str(groups.keys.column("g").to_pylist()) == "[None, 0.0, nan, 1.5, inf]"


def test_keys_that_are_not_all_different_are_refused() -> None:
    groups = GroupCodes(pa.schema({"g": pa.int64()}))
    with pytest.raises(ValueError, match="not all different"):
        groups.load(pa.table({"g": [1, 2, 1]}))


# -- rows --------------------------------------------------------------------------------------------------------------

ROWS = st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)), picks())  # time passed, value, key
WINDOWS = [sb.sliding(3), sb.sliding(4, every=2), sb.sliding(6, every=4, on="t"), sb.sliding(5, on="t"), sb.landmark()]


def timed(batches: list[list[Any]], keys: Keys) -> list[tuple[list[pa.Array], list[pa.Array]]]:
    """The columns t and v of each batch, and those of its keys."""
    made, now = [], 0
    for batch in batches:
        times = []
        for passed, _, _ in batch:
            now += passed
            times.append(now)
        values = pa.array([None if value is None else float(value) for _, value, _ in batch], pa.float64())
        made.append(([pa.array(times, pa.int64()), values], keys.columns([pick for _, _, pick in batch])))
    return made


def two_schemas(keys: Keys) -> tuple[pa.Schema, pa.Schema]:
    plain = [("t", pa.int64()), ("v", pa.float64())]
    return pa.schema([*plain, *keys.schema]), pa.schema([*plain, *((name, pa.string()) for name in keys.schema.names)])


def pushes(batches: list[list[Any]], keys: Keys, **options: Any) -> list[Any]:
    with_keys, with_labels = two_schemas(keys)

    def push(columns: list[pa.Array], schema: pa.Schema) -> Callable[[Any], pa.Table]:
        return lambda session: session.push(pa.record_batch(columns, schema=schema), **options)

    return [
        (push([*others, *columns], with_keys), push([*others, *labelled(columns)], with_labels))
        for others, columns in timed(batches, keys)
    ]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("algorithm", [None, "recompute"])
@settings(max_examples=30)
@given(keys=key_columns(), batches=batches_of(ROWS), emit=st.sampled_from(["windows", "changes", "entries"]))
def test_rows(window: sb.Window, algorithm: str | None, keys: Keys, batches: list[list[Any]], emit: Any) -> None:
    emit = "changes" if window.every is None and emit == "windows" else emit
    query = sb.TopK(k=2, by="v", window=window, per=tuple(keys.schema.names), emit=emit, algorithm=algorithm)
    with_keys, with_labels = two_schemas(keys)
    agree(
        lambda state: query.open(with_keys, state),
        lambda state: query.open(with_labels, state),
        pushes(batches, keys),
        set(NAMES),
    )


# -- pairs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS[:4], ids=str)
@pytest.mark.parametrize("how", ["same", "different"])
@settings(max_examples=30)
@given(keys=key_columns(), batches=batches_of(ROWS))
def test_pairs(window: sb.Window, how: str, keys: Keys, batches: list[list[Any]]) -> None:
    options: Any = {how: tuple(keys.schema.names)}
    query = sb.TopKPairs(k=3, by="a.v + b.v", window=window, **options)
    with_keys, with_labels = two_schemas(keys)
    agree(
        lambda state: query.open(with_keys, state),
        lambda state: query.open(with_labels, state),
        pushes(batches, keys),
        {f"{side}_{name}" for side in "ab" for name in NAMES},
    )


# -- across ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS[:4], ids=str)
@settings(max_examples=30)
@given(keys=key_columns(most=1), batches=batches_of(ROWS), algorithm=st.sampled_from([None, "recompute"]))
def test_across(window: sb.Window, keys: Keys, batches: list[list[Any]], algorithm: str | None) -> None:
    query = sb.TopKAcross(
        k=2, id="g0", value="v", streams=["a"], combine="sum", bounds=(0, 9), window=window, algorithm=algorithm
    )
    with_keys, with_labels = two_schemas(keys)
    agree(
        lambda state: query.open(with_keys, state),
        lambda state: query.open(with_labels, state),
        pushes(batches, keys),
        {"g0"},
    )


# -- joins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [["a.g0"], ["a.g1"], ["a.g0", "b.g1"], []], ids=str)
@settings(max_examples=30)
@given(keys=key_columns(most=1), other=key_columns(most=1), batches=batches_of(ROWS), every=st.sampled_from([None, 2]))
def test_joins(by: list[str], keys: Keys, other: Keys, batches: list[list[Any]], every: int | None) -> None:
    """Joined by g0, grouped by that, by another column, or by columns of both sides."""
    both = Keys(pa.schema([*keys.schema, other.schema.field(0).with_name("g1")]), [*keys.pools, *other.pools])
    query = sb.JoinAggregate(
        inputs={"a": sb.sliding(4, on="t"), "b": sb.sliding(6, on="t")},
        on="a.g0 = b.g0",
        group_by=by,
        aggregates={"n": "COUNT(*)", "s": "SUM(b.v)"},
        every=every,
    )
    with_keys, with_labels = two_schemas(both)
    schemas = [dict.fromkeys("ab", each) for each in (with_keys, with_labels)]
    steps = [step for i, one in enumerate(batches) for step in pushes([one], both, input="ab"[i % 2])]
    agree(
        lambda state: query.open(schemas[0], state),
        lambda state: query.open(schemas[1], state),
        steps,
        {*NAMES, *(f"{side}_{name}" for side in "ab" for name in NAMES)},
    )


# -- many queries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS[1:4], ids=str)
@settings(max_examples=30)
@given(keys=key_columns(), batches=batches_of(ROWS), removed=st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_queries(window: sb.Window, keys: Keys, batches: list[list[Any]], removed: list[int]) -> None:
    """Before each batch, a query or two go and the batch's keys come as queries; they differ in a weight."""
    rows = pa.schema({"t": pa.int64(), "v": pa.float64()})
    empty = [pa.schema([*two[2:], ("w", pa.float64())]).empty_table() for two in map(list, two_schemas(keys))]
    names = tuple(keys.schema.names)
    asked = [
        sb.TopKForEach(k=1, by="v * q.w", window=window, queries=queries, key=names, backfill=False)
        for queries in empty
    ]

    def step(others: list[pa.Array], new: list[Any], gone: list[Any], schema: pa.Schema) -> Callable[[Any], pa.Table]:
        def change(session: Any) -> pa.Table:
            if gone:
                session.remove(pa.Table.from_pylist(gone, schema.remove(len(names))))
            session.add(pa.Table.from_arrays(new, schema=schema))
            return session.push(pa.record_batch(others, schema=rows))

        return change

    steps, there = [], {}
    for (others, columns), many in zip(timed(batches, keys), removed, strict=False):
        gone = [there.pop(key) for key in list(there)[:many]]
        texts = list(zip(*(each.to_pylist() for each in labelled(columns)), strict=True))
        fresh = [i for i, key in enumerate(texts) if key not in there and key not in texts[:i]]
        weights = pa.array([1.0 + len(there) + i for i in range(len(fresh))], pa.float64())
        new = [each.take(pa.array(fresh, pa.int64())) for each in columns]
        for i, where in enumerate(fresh):
            there[texts[where]] = {name: new[c][i].as_py() for c, name in enumerate(names)}
        both = [*new, weights], [*labelled(new), weights]
        texts_gone = [{name: label(value) for name, value in key.items()} for key in gone]
        steps.append((step(others, both[0], gone, empty[0].schema), step(others, both[1], texts_gone, empty[1].schema)))
    agree(
        lambda state: asked[0].open(rows, state),
        lambda state: asked[1].open(rows, state),
        steps,
        set(names),
    )
