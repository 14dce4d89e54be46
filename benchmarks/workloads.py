"""What is measured: statements, the source rows they meet, and what they must leave behind.

A source takes rows from a fraction of the target's files: a fraction of their rows that match,
and new rows as a fraction of them (`Draw`). Matched rows have the table's keys and changed
values, unless a workload says otherwise; new rows have new integer keys, beyond the table's
or between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.requests import Kind
from benchmarks.rows import (
    ITEM,
    ORDER,
    PART,
    Numbers,
    RowSet,
    Totals,
    make_keys,
    make_rows,
    mixed,
    total,
)
from benchmarks.tables import BaseTable, Layout, Shape

SYNCED_PARTITION = 7
ON = f"t.{ORDER} = s.{ORDER} AND t.{ITEM} = s.{ITEM}"
_CHANGED = "s.wr_return_amt <> t.wr_return_amt"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause; updates and inserts are ``*``."""

    kind: Kind
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """Which rows a source has: fractions of files, of their rows that match, of new rows."""

    files: float
    matched: float
    new: float

    def __str__(self) -> str:
        parts = (f"{part:g}".replace("0.", ".") for part in (self.files, self.matched, self.new))
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A MERGE."""

    name: str
    clauses: tuple[Clause, ...]
    draw: Draw
    layout: Layout = Layout.SCATTERED
    on: str = ON
    files: tuple[int, ...] | None = None
    """Files the rows are drawn from, instead of ``draw.files`` of all."""
    one_run: bool = False
    """Whether matched rows are neighbours in the order of keys."""
    changed: float = 1.0
    """The fraction of matched rows whose values differ from the table's."""
    interleaved: bool = False
    keys_only: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} ({self.draw})"

    def has(self, kind: Kind) -> bool:
        return any(clause.kind is kind for clause in self.clauses)


UPSERT = (Clause(Kind.UPDATE), Clause(Kind.INSERT))
_INSERT = (Clause(Kind.INSERT),)
_TWO_INSERTS = (Clause(Kind.INSERT, f"s.{ITEM} % 2 = 0"), Clause(Kind.INSERT))
_SYNC = (
    Clause(Kind.UPDATE, _CHANGED),
    Clause(Kind.INSERT),
    Clause(Kind.DELETE_BY_SOURCE, f"t.{PART} = {SYNCED_PARTITION}"),
)

WORKLOADS: tuple[Workload, ...] = (
    *(
        Workload(name="single_insert_only", clauses=_INSERT, draw=Draw(0.05, 0, new))
        for new in (0.05, 0.5, 1)
    ),
    *(
        Workload(name="multiple_insert_only", clauses=_TWO_INSERTS, draw=Draw(0.05, 0, new))
        for new in (0.05, 0.5, 1)
    ),
    Workload(name="delete_only", clauses=(Clause(Kind.DELETE),), draw=Draw(0.05, 0.05, 0)),
    *(
        Workload(name="upsert", clauses=UPSERT, draw=Draw(*draw))
        for draw in (
            (0.05, 0, 0.1),
            (0.05, 0.01, 0.1),
            (0.05, 0.1, 0.1),
            (0.05, 0.5, 0.001),
            (0.05, 0.99, 0.001),
            (0.05, 1, 0.001),
            (0.05, 0.1, 0),
            (0.5, 0.01, 0.001),
            (1, 0.01, 0.001),
        )
    ),
    Workload(
        name="noop_heavy_upsert",
        clauses=(Clause(Kind.UPDATE, _CHANGED), Clause(Kind.INSERT)),
        draw=Draw(1, 1, 0.05),
        changed=0,
    ),
    Workload(
        name="upsert_clustered_1pct",
        clauses=UPSERT,
        draw=Draw(1, 0.01, 0.001),
        layout=Layout.CLUSTERED,
        one_run=True,
    ),
    Workload(
        name="upsert_partition_pruned",
        clauses=UPSERT,
        draw=Draw(1, 0.01, 0.001),
        layout=Layout.PARTITIONED,
        on=f"{ON} AND t.{PART} = s.{PART}",
        files=(11, 37),
    ),
    Workload(
        name="nmbs_scoped_sync",
        clauses=_SYNC,
        draw=Draw(1, 0.95, 0.01),
        layout=Layout.PARTITIONED,
        files=(SYNCED_PARTITION,),
        changed=0.05,
    ),
    Workload(
        name="wide_delete",
        clauses=(Clause(Kind.DELETE),),
        draw=Draw(1, 0.01, 0),
        layout=Layout.WIDE,
        keys_only=True,
    ),
    Workload(
        name="single_insert_only_interleaved",
        clauses=_INSERT,
        draw=Draw(0.05, 0, 0.5),
        interleaved=True,
    ),
    Workload(
        name="upsert_interleaved", clauses=UPSERT, draw=Draw(0.05, 0.1, 0.1), interleaved=True
    ),
)
MAIN = (
    "single_insert_only (.05, 0, .5)",
    "delete_only (.05, .05, 0)",
    "upsert (.05, .1, .1)",
    "upsert (.05, 1, .001)",
    "upsert (.5, .01, .001)",
    "upsert (1, .01, .001)",
    "noop_heavy_upsert (1, 1, .05)",
    "upsert_clustered_1pct (1, .01, .001)",
    "upsert_partition_pruned (1, .01, .001)",
    "nmbs_scoped_sync (1, .95, .01)",
    "wide_delete (1, .01, 0)",
)
"""The workloads that are measured where nobody chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source rows of a workload, and what follows from them."""

    rows: pa.Table
    inserted: pa.Table
    """The new ones alone, with every column of the table."""
    expected: Totals
    """What the table must add up to afterwards."""
    touched: tuple[int, ...]
    """Files with a row that must change: what no engine can leave as it is."""
    counts: Mapping[str, int] = field(default_factory=dict)


def make_source(workload: Workload, table: BaseTable) -> Source:
    """Draw the source rows of ``workload`` and compute the outcome."""
    shape = table.shape
    files = _files(workload, shape)
    picked = {file: _picked(workload, shape, file) for file in files}
    matched = np.concatenate([shape.file_rows(f).numbers[m] for f, m in picked.items()])
    parts = np.concatenate([np.full(int(m.sum()), f, np.int32) for f, m in picked.items()])
    changed = _first_of(mixed(matched, 7), workload.changed)
    old = RowSet(numbers=matched, parts=parts if shape.is_partitioned else None)
    source = RowSet(numbers=matched, parts=old.parts, changed=changed)
    new = _new_rows(workload, shape, files)
    wide = shape.is_wide
    inserted = make_rows(new, wide=wide)
    rows = (
        make_keys(source)
        if workload.keys_only
        else pa.concat_tables([make_rows(source, wide=wide), inserted])
    )
    gone, come = _outcome(workload, shape, picked, old, changed)
    if workload.has(Kind.INSERT):
        come += total(inserted, shape.checked)
    return Source(
        rows=rows,
        inserted=inserted if workload.has(Kind.INSERT) else inserted.slice(0, 0),
        expected=table.totals - gone + come,
        touched=_touched(workload, picked, changed),
        counts={"matched": len(matched), "new": len(new)},
    )


def _files(workload: Workload, shape: Shape) -> list[int]:
    if workload.files is not None:
        return list(workload.files)
    count = max(1, round(workload.draw.files * shape.files))
    order = np.argsort(mixed(np.arange(shape.files), 3), kind="stable")
    return sorted(order[:count].tolist())


def _picked(workload: Workload, shape: Shape, file: int) -> npt.NDArray[np.bool_]:
    """Tell which rows of a file the source matches."""
    numbers = shape.file_rows(file).numbers
    if not workload.one_run:
        return _first_of(mixed(numbers, 5), workload.draw.matched)
    length = math.ceil(shape.rows * workload.draw.matched)
    start = shape.rows // 3
    return (numbers >= start) & (numbers < start + length)


def _first_of(order: npt.NDArray[np.uint64], fraction: float) -> npt.NDArray[np.bool_]:
    """Mark exactly a fraction of the elements, those that are lowest."""
    chosen = np.zeros(len(order), np.bool_)
    chosen[np.argsort(order, kind="stable")[: round(len(order) * fraction)]] = True
    return chosen


def _new_rows(workload: Workload, shape: Shape, files: Sequence[int]) -> RowSet:
    drawn_from = sum(len(shape.file_rows(file)) for file in files)
    count = round(drawn_from * workload.draw.new)
    numbers: Numbers = np.arange(count, dtype=np.int64)
    if workload.interleaved:
        numbers = numbers * (shape.rows // max(1, count))
    else:
        numbers += shape.rows
    parts = np.asarray(files, np.int32)[numbers % len(files)] if shape.is_partitioned else None
    return RowSet(numbers=numbers, parts=parts, interleaved=workload.interleaved)


def _outcome(
    workload: Workload,
    shape: Shape,
    picked: Mapping[int, npt.NDArray[np.bool_]],
    old: RowSet,
    changed: npt.NDArray[np.bool_],
) -> tuple[Totals, Totals]:
    """Return what leaves the table and what the changed rows bring, new rows left out."""
    gone, come = Totals(), Totals()
    if workload.has(Kind.DELETE):
        gone += _total(old, shape)
    if workload.has(Kind.UPDATE):
        parts = None if old.parts is None else old.parts[changed]
        before = RowSet(numbers=old.numbers[changed], parts=parts)
        after = RowSet(numbers=before.numbers, parts=parts, changed=np.ones(len(before), np.bool_))
        gone, come = gone + _total(before, shape), come + _total(after, shape)
    if workload.has(Kind.DELETE_BY_SOURCE):
        everything = shape.file_rows(SYNCED_PARTITION)
        unmatched = ~picked[SYNCED_PARTITION]
        parts = None if everything.parts is None else everything.parts[unmatched]
        gone += _total(RowSet(numbers=everything.numbers[unmatched], parts=parts), shape)
    return gone, come


def _total(rows: RowSet, shape: Shape) -> Totals:
    return total(make_rows(rows, wide=shape.is_wide), shape.checked)


def _touched(
    workload: Workload,
    picked: Mapping[int, npt.NDArray[np.bool_]],
    changed: npt.NDArray[np.bool_],
) -> tuple[int, ...]:
    if workload.has(Kind.DELETE_BY_SOURCE):
        return (SYNCED_PARTITION,)
    if not workload.has(Kind.DELETE) and not (workload.has(Kind.UPDATE) and changed.any()):
        return ()
    return tuple(file for file, marks in picked.items() if marks.any())
