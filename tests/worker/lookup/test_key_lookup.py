"""Looking keys up in files, without Spark: the answer of a join, row by row."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.spark.session.row_bitmap import RowBitmap, popcount
from puredelta.worker.expressions import ALWAYS, call
from puredelta.worker.lookup import key_lookup
from puredelta.worker.lookup.conditions import NO_CLAUSE, ResidualConditions
from puredelta.worker.lookup.key_lookup import look_up, look_up_keys
from puredelta.worker.lookup.lookup_request import (
    FOUND_ROWS,
    LOOKUP_BATCHES,
    LOOKUP_REQUESTS,
    ColumnBounds,
    FileLookup,
    KeyColumn,
    LookupRequest,
)
from puredelta.worker.lookup.range_index import KeyRange
from puredelta.worker.read_rows import OpenFile
from puredelta.worker.wire import LIMITS, Limits
from tests.worker.expressions import expression
from tests.worker.lookup.batches import batch_of

Hits = list[tuple[int, int, int]]
TEXT = pa.string()


def laid_out(
    tmp_path: Path,
    targets: list[pa.Table],
    sources: list[pa.Table],
    *,
    deleted: tuple[int, ...] = (),
    constants: tuple[tuple[str, Any], ...] = (),
) -> tuple[list[FileLookup], tuple[str, ...]]:
    """Write both sides as files; ``deleted`` rows are those of every target file."""
    for kind, tables in (("target", targets), ("source", sources)):
        for n, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{kind}{n}.parquet", row_group_size=70)
    dropped = RowBitmap.of_rows(np.array(deleted, np.int64))
    orders = [
        FileLookup(
            ordinal=n,
            path=str(tmp_path / f"target{n}.parquet"),
            constants=constants,
            words=dropped.words.tobytes(),
            bits=dropped.bits.tobytes(),
        )
        for n in range(len(targets))
    ]
    return orders, tuple(str(tmp_path / f"source{n}.parquet") for n in range(len(sources)))


def answered(request: LookupRequest, orders: list[FileLookup]) -> dict[tuple[bool, int], Hits]:
    """Return (file, row, hits of its word) by side and clause, in order."""
    refusal, found = look_up_keys(request, batch_of(orders))
    if refusal is not None:
        raise LookupError(refusal)
    sets: dict[tuple[bool, int], Hits] = {}
    hits_of_word: dict[tuple[bool, int, int, int], int] = {}
    for some in found:
        of_source, clause, file = some.of_source, some.clause, some.file
        bitmap = RowBitmap(np.frombuffer(some.words, "<i8"), np.frombuffer(some.bits, "<u8"))
        counted = np.frombuffer(some.hits, "<i8")
        assert (counted >= popcount(bitmap.bits)).all()
        for word, count in zip(bitmap.words.tolist(), counted.tolist(), strict=True):
            place = of_source, clause, file, word
            hits_of_word[place] = hits_of_word.get(place, 0) + count
        known = sets.setdefault((of_source, clause), [])
        rows = [(file, row, 0) for row in bitmap.rows().tolist()]
        # A row of the target may be matched in several parts of the source.
        known += rows if request.parts == 1 else [row for row in rows if row not in known]
    return {
        (side, clause): sorted((f, r, hits_of_word[side, clause, f, r >> 6]) for f, r, _ in rows)
        for (side, clause), rows in sets.items()
    }


def looked_up(
    tmp_path: Path,
    targets: list[pa.Table],
    sources: list[pa.Table],
    columns: list[tuple[str, str, bool]],
    *,
    deleted: tuple[int, ...] = (),
    constants: tuple[tuple[str, Any], ...] = (),
    parts: int = 1,
    limits: Limits = LIMITS,
) -> tuple[Hits, Hits]:
    """Return (file, row, hits of its word) of both sides."""
    orders, files = laid_out(tmp_path, targets, sources, deleted=deleted, constants=constants)
    keys = tuple(KeyColumn(target=t, source=s, null_safe=n) for t, s, n in columns)
    request = LookupRequest(keys=keys, source_files=files, parts=parts, limits=limits)
    found = answered(request, orders)
    return found.get((False, 0), []), found.get((True, 0), [])


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_a_join(tmp_path: Path, seed: int, parts: int) -> None:
    limits = Limits(lookup_rows=(7, 50, 100, 10_000)[seed % 4])
    dice = random.Random(seed)
    kinds: list[list[Any]] = [
        [None, *range(8)],
        [None, "", "a", "ä", "b"],
        [None, Decimal("1.50"), Decimal("2.00")],
        [None, dt.date(2020, 1, 1), dt.date(2021, 1, 1)],
    ]
    schema = pa.schema(
        [("k0", pa.int32()), ("k1", pa.string()), ("k2", pa.decimal128(7, 2)), ("k3", pa.date32())]
    )

    def table(rows: int) -> pa.Table:
        return pa.table(
            {
                name: [dice.choice(kinds[n]) for _ in range(rows)]
                for n, name in enumerate(schema.names)
            },
            schema=schema,
        )

    targets, sources = [table(150), table(90)], [table(40), table(30)]
    keys = dice.sample(range(4), dice.randint(1, 4))
    columns = [(f"k{n}", f"k{n}", dice.random() < 0.5) for n in keys]
    deleted = (3, 64, 65)

    def matches(one: dict[str, Any], other: dict[str, Any]) -> bool:
        return all(
            one[t] == other[s] and (null_safe or one[t] is not None) for t, s, null_safe in columns
        )

    pairs = [
        ((f, r), (g, q))
        for f, target in enumerate(targets)
        for r, row in enumerate(target.to_pylist())
        if r not in deleted
        for g, source in enumerate(sources)
        for q, other in enumerate(source.to_pylist())
        if matches(row, other)
    ]
    both = looked_up(
        tmp_path, targets, sources, columns, deleted=deleted, parts=parts, limits=limits
    )
    for side, found in enumerate(both):
        wanted = [pair[side] for pair in pairs]
        words = [(file, row >> 6) for file, row in wanted]
        assert found == [(f, r, words.count((f, r >> 6))) for f, r in sorted(set(wanted))]


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("seed", range(8))
def test_conditions_decide_about_pairs_and_unmatched_rows(
    tmp_path: Path, seed: int, parts: int
) -> None:
    asks_unmatched = parts == 1  # in parts it cannot be asked
    dice = random.Random(seed)
    schema = pa.schema([("k", pa.int64()), ("v", pa.int32()), ("d", pa.decimal128(7, 2))])

    def table(rows: int) -> pa.Table:
        return pa.table(
            {
                "k": [dice.choice([None, *range(60)]) for _ in range(rows)],
                "v": [dice.choice([None, 1, 2, 3]) for _ in range(rows)],
                "d": [dice.choice([None, Decimal("1.50"), Decimal("2.00")]) for _ in range(rows)],
            },
            schema=schema,
        )

    targets, sources, deleted = [table(150), table(90)], [table(40), table(30)], (3, 64, 65)
    orders, files = laid_out(tmp_path, targets, sources, deleted=deleted)
    found = answered(
        LookupRequest(
            keys=(KeyColumn(target="k", source="k", null_safe=seed % 2 == 0),),
            source_files=files,
            conditions=ResidualConditions(
                on=expression(("less_equal", ("source", 0), ("value", 2, pa.int64()))),
                matched=(
                    expression(("invert", ("equal", ("target", 1), ("source", 1)))),
                    expression(
                        ("and_kleene", ("greater", ("target", 0), ("source", 0)), ("target", 2))
                    ),
                ),
                by_source=(expression(("equal", ("target", 0), ("value", 3, pa.int64()))),)
                * asks_unmatched,
                target_columns=(("v", pa.int64()), ("d", pa.decimal128(7, 2)), ("f", pa.bool_())),
                source_columns=(("v", pa.int64()), ("d", pa.decimal128(7, 2))),
            ),
            parts=parts,
            limits=Limits(lookup_rows=(50, 64, 10_000)[seed % 3]),
        ),
        [replace(order, constants=(("f", True),)) for order in orders],
    )
    wanted: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for f, target in enumerate(targets):
        for r, row in enumerate(target.to_pylist()):
            unmatched = r not in deleted
            for g, source in enumerate(sources):
                for q, other in enumerate(source.to_pylist()):
                    same = row["k"] == other["k"] and (seed % 2 == 0 or row["k"] is not None)
                    if r in deleted or not same or not (other["v"] or 9) <= 2:
                        continue
                    unmatched, clause = False, NO_CLAUSE
                    if None not in (row["d"], other["d"]) and row["d"] != other["d"]:
                        clause = 0
                    elif row["v"] is not None and row["v"] > other["v"]:
                        clause = 1
                    wanted.setdefault((False, clause), []).append((f, r))
                    wanted.setdefault((True, clause), []).append((g, q))
            if unmatched and row["v"] == 3 and asks_unmatched:
                wanted.setdefault((False, 2), []).append((f, r))
    of_pairs = {(side, n) for side in (True, False) for n in (-1, 0, 1)}
    assert set(wanted) == of_pairs | ({(False, 2)} if asks_unmatched else set())
    for place, rows in wanted.items():
        words = [(file, row >> 6) for file, row in rows]
        counted = [(f, r, words.count((f, r >> 6))) for f, r in sorted(set(rows))]
        assert found.pop(place) == counted
    assert found == {}


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_range_finds_pairs_as_a_join_would(tmp_path: Path, seed: int, parts: int) -> None:
    dice = random.Random(seed)
    targets = [
        pa.table({"x": pa.array([dice.choice([None, *range(60)]) for _ in range(n)], pa.int32())})
        for n in (150, 90)
    ]
    sources = [
        pa.table(
            {
                "lo": pa.array([low, None, 50], pa.int64()),
                "hi": pa.array([low + dice.randrange(-2, 9), 4, 50], pa.int64()),
                "v": [dice.choice([1, 2, None]) for _ in range(3)],
            }
        )
        for low in (3, 30)
    ]
    deleted = (3, 64, 65)
    orders, files = laid_out(tmp_path, targets, sources, deleted=deleted)
    within = KeyRange(target="x", low="lo", high="hi", high_open=seed % 2 == 1)
    limits = Limits(lookup_rows=(50, 64, 10_000)[seed % 3])
    conditions = ResidualConditions(
        on=expression(("less", ("source", 0), ("value", 2, pa.int64()))),
        matched=(ALWAYS,),
        by_source=(),
        target_columns=(),
        source_columns=(("v", pa.int64()),),
    )
    for asked in (None, conditions):
        request = LookupRequest(
            keys=(), within=within, source_files=files, conditions=asked, parts=parts, limits=limits
        )
        pairs = [
            ((f, r), (g, q))
            for f, target in enumerate(targets)
            for r, x in enumerate(target["x"].to_pylist())
            if r not in deleted and x is not None
            for g, source in enumerate(sources)
            for q, row in enumerate(source.to_pylist())
            if row["lo"] is not None and row["lo"] <= x <= row["hi"] - (seed % 2)
            if asked is None or (row["v"] or 9) < 2
        ]
        found = answered(request, orders)
        for side in (0, 1):
            wanted = [pair[side] for pair in pairs]
            words = [(file, row >> 6) for file, row in wanted]
            assert found.get((bool(side), 0), []) == [
                (f, r, words.count((f, r >> 6))) for f, r in sorted(set(wanted))
            ]


def test_files_between_ranges_are_not_opened(tmp_path: Path) -> None:
    targets = [pa.table({"x": [n, n + 5]}) for n in (0, 10, 20, 30)]
    source = pa.table({"lo": [6, 22], "hi": [9, 40]})
    orders, files = laid_out(tmp_path, targets, [source])
    bounds = ColumnBounds(
        known=np.array([True, True, True, False]),
        lows=np.array([0, 10, 20, 0]),
        highs=np.array([5, 15, 25, 0]),
    )
    batch = replace(batch_of(orders), bounds=(bounds,))
    for closed in (0, 1):
        (tmp_path / f"target{closed}.parquet").unlink()
    request = LookupRequest(
        keys=(), within=KeyRange(target="x", low="lo", high="hi"), source_files=files
    )
    refusal, found = look_up_keys(request, batch)
    assert refusal is None
    assert sorted(one.file for one in found if not one.of_source) == [2, 3]


def test_too_many_pairs_are_left_to_spark(tmp_path: Path) -> None:
    few = Limits(lookup_pairs=99)
    same = pa.table({"k": pa.array([1] * 10, pa.int64())})
    orders, files = laid_out(tmp_path, [same], [same])
    conditions = ResidualConditions(
        on=ALWAYS, matched=(ALWAYS,), by_source=(), target_columns=(), source_columns=()
    )
    columns = (KeyColumn(target="k", source="k", null_safe=False),)
    with pytest.raises(LookupError, match="more than 99 pairs"):
        answered(
            LookupRequest(keys=columns, source_files=files, conditions=conditions, limits=few),
            orders,
        )
    plain = answered(LookupRequest(keys=columns, source_files=files, limits=few), orders)
    assert plain[False, 0] == [(0, row, 100) for row in range(10)]  # counted, not made


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_values_of_another_calendar_are_not_compared(tmp_path: Path, kind: pa.DataType) -> None:
    old = pa.table({"k": [1], "at": pa.array([-60_000 * 86_400_000_000], pa.int64())})
    old = (
        old.set_column(1, "at", pa.array([-60_000], pa.int32()).cast(kind))
        if (pa.types.is_date(kind))
        else old.set_column(1, "at", old["at"].cast(kind))
    )
    new = pa.table({"k": [1], "at": pa.array([None], kind)})
    later = expression(("less", ("target", 0), ("source", 0)))
    for target, source in ((old, new), (new, old)):
        orders, files = laid_out(tmp_path, [target], [source])
        request = LookupRequest(
            keys=(KeyColumn(target="k", source="k", null_safe=False),),
            source_files=files,
            conditions=ResidualConditions(
                on=ALWAYS,
                matched=(later,),
                by_source=(),
                target_columns=(("at", kind),),
                source_columns=(("at", kind),),
            ),
        )
        with pytest.raises(LookupError, match="days from 1970"):
            answered(request, orders)


def test_int96_is_compared_as_an_instant(tmp_path: Path) -> None:
    at = pa.array([dt.datetime(2400, 1, 1), dt.datetime(2020, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001
    target = pa.table({"k": [1, 2], "at": at})
    orders, files = laid_out(tmp_path, [target], [target.select(["k"])])
    pq.write_table(target, tmp_path / "target0.parquet", use_deprecated_int96_timestamps=True)
    limit = dt.datetime(2100, 1, 1, tzinfo=dt.timezone.utc)
    kind = pa.timestamp("us", "UTC")
    conditions = ResidualConditions(
        on=expression(("less", ("target", 0), ("value", limit, kind))),
        matched=(ALWAYS,),
        by_source=(),
        target_columns=(("at", kind),),
        source_columns=(),
    )
    columns = (KeyColumn(target="k", source="k", null_safe=False),)
    request = LookupRequest(keys=columns, source_files=files, conditions=conditions)
    found = answered(request, orders)
    assert found == {(False, 0): [(0, 1, 1)], (True, 0): [(0, 1, 1)]}


def test_types_that_hold_the_same_values_are_one(tmp_path: Path) -> None:
    target = pa.table({"id": pa.array([1, 2, 300], pa.int16()), "t": pa.array(["x", "y", "z"])})
    source = pa.table(
        {"a": pa.array([300, 1], pa.int64()), "b": pa.array(["z", "x"], pa.large_string())}
    )
    columns = [("id", "a", False), ("t", "b", False)]
    assert [r for _, r, _ in looked_up(tmp_path, [target], [source], columns)[0]] == [0, 2]
    stored = target.set_column(1, "t", target["t"].cast(pa.binary()))
    assert [r for _, r, _ in looked_up(tmp_path, [stored], [source], columns)[0]] == [0, 2]


def test_files_of_other_types_are_looked_up_together(tmp_path: Path) -> None:
    texts = ["x", "y", "x"]
    targets = [
        pa.table({"id": pa.array([1, 2, 3], pa.int16()), "t": texts}),
        pa.table({"id": pa.array([3, 2, 1], pa.int64()), "t": texts}),
        pa.table({"t": texts}),
        pa.table({"id": pa.array([3, 3, 1], pa.int16()), "t": pa.array(texts).dictionary_encode()}),
        pa.table({"id": pa.array([3, 3, 1], pa.int16()), "t": pa.array(["y", "x", "x"])}),
    ]
    source = pa.table({"id": pa.array([3, None], pa.int64()), "t": ["x", "y"]})
    columns = [("id", "id", True), ("t", "t", False)]
    found, met = looked_up(tmp_path, targets, [source], columns)
    assert [(file, row) for file, row, _ in found] == [(0, 2), (1, 0), (2, 1), (3, 0), (4, 1)]
    assert [row for _, row, _ in met] == [0, 1]


def test_partition_values_come_from_the_log_and_absent_columns_are_null(tmp_path: Path) -> None:
    target = pa.table({"id": [1, 2, 3]})
    source = pa.table({"id": [2, 3], "p": ["a", "b"], "n": pa.array([None, 1], pa.int64())})
    columns = [("id", "id", False), ("p", "p", False)]
    found, met = looked_up(tmp_path, [target], [source], columns, constants=(("p", "a"),))
    assert [row for _, row, _ in found] == [1]
    assert [row for _, row, _ in met] == [0]
    only = [("p", "p", False)]
    found, met = looked_up(tmp_path, [target], [source], only, constants=(("p", "b"),))
    assert [row for _, row, _ in found] == [0, 1, 2]
    assert met == [(0, 1, 3)]
    stored = target.append_column("p", pa.array(["x", "y", "z"]))
    found, met = looked_up(tmp_path, [stored], [source], columns, constants=(("p", "a"),))
    assert ([row for _, row, _ in found], met) == ([1], [(0, 0, 1)])
    for null_safe, wanted in ((True, [1]), (False, [])):
        columns = [("id", "id", False), ("added", "n", null_safe)]
        assert [r for _, r, _ in looked_up(tmp_path, [target], [source], columns)[0]] == wanted


def test_what_only_spark_can_compare_is_refused(tmp_path: Path) -> None:
    old = pa.table({"d": [dt.date(1500, 1, 1)], "ID": [1]})
    with pytest.raises(LookupError, match="days from 1970"):
        looked_up(tmp_path, [old], [old], [("d", "d", False)])
    with pytest.raises(LookupError, match="otherwise"):
        looked_up(tmp_path, [old], [pa.table({"id": [1]})], [("id", "id", False)])
    twice = pa.table([[1], [2]], names=["id", "id"])
    with pytest.raises(LookupError, match="several columns id"):
        looked_up(tmp_path, [twice], [pa.table({"id": [1]})], [("id", "id", False)])
    missing = FileLookup(ordinal=0, path=str(tmp_path / "no"), constants=(), words=b"", bits=b"")
    source = LookupRequest(
        keys=(KeyColumn(target="d", source="ID", null_safe=False),),
        source_files=(str(tmp_path / "source0.parquet"),),
    )
    pq.write_table(pa.table({"ID": [1]}), tmp_path / "source0.parquet")
    refusal, found = look_up_keys(source, batch_of([missing]))
    assert refusal is not None
    assert "FileNotFoundError" in refusal
    assert found == []


def test_parts_may_be_more_than_rows(tmp_path: Path) -> None:
    target = pa.table({"id": [1, 2, 3]})
    sources = [pa.table({"id": [3, 3]}), pa.table({"id": pa.array([], pa.int64())})]
    found = looked_up(tmp_path, [target], sources, [("id", "id", False)], parts=4)
    assert found == ([(0, 2, 2)], [(0, 0, 2), (0, 1, 2)])


def test_a_source_of_nulls_matches_nothing(tmp_path: Path) -> None:
    source = pa.table({"id": pa.array([None, None], pa.int64())})
    target = pa.table({"id": pa.array([1, None], pa.int64())})
    assert looked_up(tmp_path, [target], [source], [("id", "id", False)]) == ([], [])
    assert looked_up(tmp_path, [target], [source], [("id", "id", True)]) == (
        [(0, 1, 2)],
        [(0, 0, 2), (0, 1, 2)],
    )


def test_a_request_is_the_same_in_a_worker(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2, 3], "v": [5, 6, None]})
    orders, files = laid_out(tmp_path, [rows], [rows.slice(1)])
    request = LookupRequest(
        keys=(KeyColumn(target="k", source="k", null_safe=False),),
        source_files=files,
        conditions=ResidualConditions(
            on=ALWAYS,
            matched=(expression(("greater", ("target", 0), ("value", 5, pa.int64()))),),
            by_source=(),
            target_columns=(("v", pa.int64()),),
            source_columns=(),
        ),
        limits=Limits(lookup_rows=2),
    )
    fields = LOOKUP_REQUESTS.encode(request)
    assert LOOKUP_REQUESTS.decode(fields) == request
    batch = batch_of(orders)
    refusal, found = look_up((fields, LOOKUP_BATCHES.encode(batch)))
    assert (refusal, list(map(FOUND_ROWS.decode, found))) == look_up_keys(request, batch)
    assert {(rows.of_source, rows.clause) for rows in map(FOUND_ROWS.decode, found)} == {
        (False, 0),
        (False, NO_CLAUSE),
        (True, 0),
        (True, NO_CLAUSE),
    }


def test_conditions_alone_decide_without_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An UPDATE and a DELETE; row groups whose bounds exclude each row are not decoded."""
    groups: list[Sequence[int] | None] = []
    read = OpenFile.read

    def counted(self: OpenFile, rows: int, **options: Any) -> Any:
        groups.append(options["groups"])
        return read(self, rows, **options)

    monkeypatch.setattr(OpenFile, "read", counted)
    numbers = pa.table({"n": range(210), "t": [f"t{n % 3}" for n in range(210)]})
    bare = pa.table({"t": ["t0"] * 80})
    orders, _ = laid_out(tmp_path, [numbers, bare], [], deleted=(75, 201))
    above = expression(("greater_equal", ("target", 0), ("value", 140, pa.int64())))
    conditions = ResidualConditions(
        on=ALWAYS,
        matched=(),
        by_source=(
            call("and_kleene", above, expression(("equal", ("target", 1), ("value", "t0", TEXT)))),
            expression(("equal", ("target", 0), ("value", 200, pa.int64()))),
        ),
        target_columns=(("n", pa.int64()), ("t", TEXT)),
        source_columns=(),
    )
    request = LookupRequest(keys=(), source_files=(), conditions=conditions, finds_source=False)
    found = answered(request, orders)
    rows = {key: [row for _, row, _ in hits] for key, hits in found.items()}
    due = [n for n in range(140, 210) if n % 3 == 0 and n not in (75, 201)]
    assert rows == {(False, 0): due, (False, 1): [200]}
    assert groups == [[2], [0, 1], [0, 1]]


def test_long_texts_are_keys_with_offsets_of_64_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_lookup, "_TEXT_BYTES_MAX", 10)
    target = pa.table({"k": ["a" * 9, None, "b" * 9, "c"]})
    source = pa.table({"k": ["c", "b" * 9, "d" * 9, None]})
    found = looked_up(tmp_path, [target], [source], [("k", "k", False)])
    assert found == ([(0, 2, 2), (0, 3, 2)], [(0, 0, 2), (0, 1, 2)])
