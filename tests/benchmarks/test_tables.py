"""The benchmark's data: the same rows every time, and totals that notice any other row."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import benchmarks
from benchmarks import tables
from benchmarks.replay import active_files, deleted_rows, table_totals
from benchmarks.rows import (
    ITEM,
    ORDER,
    RowSet,
    Totals,
    checked_columns,
    item_numbers,
    make_rows,
    mixed,
    order_numbers,
    total,
)
from benchmarks.tables import Layout, Shape, lay_table
from benchmarks.workloads import MAIN, WORKLOADS, Kind, make_source

NARROW = checked_columns(wide=False, partitioned=False)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = dict.fromkeys(Layout, (1200, 4)) | {Layout.PARTITIONED: (3_000, 50)}
    monkeypatch.setitem(tables._SIZES, "S", shapes)


def test_scrambling_never_changes() -> None:
    assert mixed(np.arange(2), 0).tolist() == [16294208416658607535, 10451216379200822465]


def test_rows_are_a_function_of_their_numbers() -> None:
    every = make_rows(RowSet(numbers=np.arange(100)))
    some = make_rows(RowSet(numbers=np.arange(100)[40:60]))
    assert every.slice(40, 20).equals(some)
    assert every.num_columns == 24
    assert len(make_rows(RowSet(numbers=np.arange(3)), wide=True).column_names) == 200


@pytest.mark.parametrize("layout", [Layout.SCATTERED, Layout.CLUSTERED])
def test_every_row_lies_in_one_file(layout: Layout) -> None:
    shape = Shape("S", layout)
    numbers = np.concatenate([shape.file_rows(file).numbers for file in range(shape.files)])
    assert np.array_equal(np.sort(numbers), np.arange(shape.rows))


def test_keys_are_distinct_also_those_between_the_others() -> None:
    own = RowSet(numbers=np.arange(10_000))
    between = RowSet(numbers=np.arange(10_000), interleaved=True)
    keys = {
        (order, item)
        for rows in (own, between)
        for order, item in zip(order_numbers(rows), item_numbers(rows), strict=True)
    }
    assert len(keys) == 20_000


def test_totals_tell_rows_apart_but_not_their_order() -> None:
    rows = make_rows(RowSet(numbers=np.arange(1_000)))
    shuffled = rows.take(pa.array(np.random.default_rng(1).permutation(1_000)))
    assert total(shuffled, NARROW) == total(rows, NARROW)
    changed = np.zeros(1_000, np.bool_)
    changed[7] = True
    other = total(make_rows(RowSet(numbers=np.arange(1_000), changed=changed)), NARROW)
    assert other.rows == 1_000
    assert other != total(rows, NARROW)
    halves = total(rows.slice(0, 400), NARROW) + total(rows.slice(400), NARROW)
    assert halves == total(rows, NARROW)
    assert halves - total(rows.slice(400), NARROW) == total(rows.slice(0, 400), NARROW)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("layout", Layout)
def test_a_table_is_what_its_log_says(tmp_path: Path, layout: Layout) -> None:
    shape = Shape("S", layout)
    base = lay_table(shape, tmp_path / "base")
    base.copy_to(tmp_path / "copy", deletion_vectors=True)
    assert len(active_files(tmp_path / "copy")) == shape.files
    assert table_totals(tmp_path / "copy", shape.checked) == base.totals
    assert lay_table(shape, tmp_path / "base") == base, "it is laid once"


@pytest.mark.usefixtures("small")
def test_removed_files_and_deleted_rows_do_not_count(tmp_path: Path) -> None:
    shape = Shape("S", Layout.SCATTERED)
    base = lay_table(shape, tmp_path / "base")
    table = tmp_path / "copy"
    base.copy_to(table, deletion_vectors=True)
    # Positions 3, 4, 7, 11, 18 and 29, as in the example of the Delta protocol.
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
    }
    assert deleted_rows(table, vector) == [3, 4, 7, 11, 18, 29]
    first, second = base.adds[:2]
    actions = [
        {"remove": {"path": first["path"]}},
        {"remove": {"path": second["path"]}},
        {"add": {**second, "deletionVector": vector}},
    ]
    commit = table / "_delta_log" / f"{1:020d}.json"
    commit.write_text("\n".join(map(json.dumps, actions)))
    gone = total(make_rows(shape.file_rows(0)), shape.checked)
    deleted = make_rows(shape.file_rows(1)).take(pa.array([3, 4, 7, 11, 18, 29]))
    assert table_totals(table, shape.checked) == base.totals - gone - total(deleted, shape.checked)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.title)
def test_the_outcome_of_a_workload_is_that_of_its_clauses(tmp_path: Path, workload) -> None:
    shape = Shape("S", workload.layout)
    base = lay_table(shape, tmp_path / "base")
    source = make_source(workload, base)
    rows = pa.concat_tables(
        [make_rows(shape.file_rows(file), wide=shape.is_wide) for file in range(shape.files)]
    )
    merged = naively_merged(rows, source.rows, workload)
    assert total(merged, shape.checked) == source.expected
    assert source.rows.num_rows == source.counts["matched"] + source.counts["new"]


def naively_merged(target: pa.Table, source: pa.Table, workload) -> pa.Table:
    """Merge by row numbers in dictionaries; the amounts tell whether a row changed."""
    if not source.num_rows:
        return target
    at = {key: n for n, key in enumerate(keys(source))}
    kept, updated, seen = [], [], set()
    by_source = workload.has(Kind.DELETE_BY_SOURCE)
    parts = target["wr_part"].to_pylist() if by_source else []
    new = source.to_pydict().get("wr_return_amt", [])
    old = target.to_pydict().get("wr_return_amt", [])
    for number, key in enumerate(keys(target)):
        found = at.get(key)
        seen.add(found)
        if found is None:
            if not (by_source and parts[number] == 7):
                kept.append(number)
        elif workload.has(Kind.UPDATE) and (
            workload.clauses[0].condition is None or new[found] != old[number]
        ):
            updated.append(found)
        elif not workload.has(Kind.DELETE):
            kept.append(number)
    inserts = workload.has(Kind.INSERT)
    added = [n for n in range(source.num_rows) if n not in seen] if inserts else []
    come = source.take(pa.array(updated + added, pa.int64()))
    kept_rows = target.take(pa.array(kept, pa.int64()))
    return pa.concat_tables([kept_rows, come]) if come.num_rows else kept_rows


def keys(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table[ORDER].to_pylist(), table[ITEM].to_pylist(), strict=True))


def test_the_workloads_that_nobody_chose_exist() -> None:
    titles = [workload.title for workload in WORKLOADS]
    assert set(MAIN) <= set(titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.usefixtures("small")
def test_statistics_are_true(tmp_path: Path) -> None:
    shape = Shape("S", Layout.CLUSTERED)
    add = lay_table(shape, tmp_path / "base").adds[2]
    stats = json.loads(add["stats"])
    rows = make_rows(shape.file_rows(2))
    assert stats["numRecords"] == rows.num_rows == 300
    assert stats["minValues"][ORDER] == pc.min(rows[ORDER]).as_py()
    assert stats["maxValues"][ITEM] == pc.max(rows[ITEM]).as_py()
    assert Totals() == Totals(0, 0)


@pytest.mark.parametrize("module", sorted(Path(benchmarks.__file__).parent.glob("[a-z]*.py")))
def test_each_benchmark_can_be_started(module: Path) -> None:
    """What it imports may have moved since somebody ran it."""
    importlib.import_module(f"benchmarks.{module.stem}")
