"""``CHANGES`` of tables with a change data feed, with row ids alone, and with neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.changes.carried_rows import SortedChanges, WantedChanges, sort_changes
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import CommitInfo
from puredelta.protocol.schema.types import DOUBLE, LONG, STRING
from puredelta.protocol.table.row_tracking import tracked_columns
from tests.commands.hand_histories import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    Change,
    History,
    random_history,
)
from tests.commands.test_changes import create, longs, removed, schema, stored
from tests.spark.tables import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFF = {"delta.enableChangeDataFeed": "false"}
UPDATES = {"computeUpdates": "true"}
_HALVES = {BEFORE: DELETE, AFTER: INSERT}


def rows_of(spark: SparkSession, table: Path, start: int = 0, **options: Any) -> DataFrame:
    from puredelta.commands.version_changes import read_row_changes  # noqa: PLC0415 - loads pyspark

    options = {"startingVersion": str(start), **options}
    return read_row_changes(spark, TableLog.open(str(table)), options, name="t")


def changes(spark: SparkSession, table: Path, start: int = 0, **options: Any) -> Counter[Change]:
    frame = rows_of(spark, table, start, **options)
    rows = frame.select("_commit_version", "_change_type", "k", "v").collect()
    return Counter(Change(*row) for row in rows)


def halves(found: Iterable[Change]) -> list[Change]:
    """Return changes with updates as deletes and inserts."""
    return [change._replace(kind=_HALVES.get(change.kind, change.kind)) for change in found]


def uncarried(found: Iterable[Change]) -> Counter[Change]:
    """Return deletes and inserts without those of equal rows in one version."""
    counts = Counter(halves(found))
    for change in [change for change in counts if change.kind == DELETE]:
        same = change._replace(kind=INSERT)
        both = min(counts[change], counts[same])
        counts[change] -= both
        counts[same] -= both
    return +counts


def net_changes(history: History, start: int) -> Counter[Change]:
    found: Counter[Change] = Counter()
    for every in history.events.values():
        events = [change for change in every if change.version >= start]
        was = bool(events) and events[0].kind in {DELETE, BEFORE}
        is_left = bool(events) and events[-1].kind in {INSERT, AFTER}
        if was:
            found[events[0]._replace(kind=BEFORE if is_left else DELETE)] += 1
        if is_left:
            found[events[-1]._replace(kind=AFTER if was else INSERT)] += 1
    return found


def check(spark: SparkSession, history: History) -> None:
    """Compare the three tables of a history with what its commits did."""
    root, made = history.root, Counter(history.changes)
    kept = [change for change in history.changes if change.version not in history.restores]

    def unrestored(found: Counter[Change]) -> Counter[Change]:
        return Counter({c: n for c, n in found.items() if c.version not in history.restores})

    recorded = changes(spark, root / "recorded", **UPDATES)
    assert unrestored(recorded) == Counter(kept)
    assert uncarried(recorded.elements()) == uncarried(made.elements())
    assert changes(spark, root / "tracked", **UPDATES) == made
    plain = changes(spark, root / "plain")
    assert uncarried(plain.elements()) == uncarried(made.elements())
    keyed = changes(spark, root / "plain", keyColumns="k", **UPDATES)
    overwritten = {c.version for c in kept} - {c.version for c in kept if c.kind != INSERT}
    updated = {c.version for c in kept if c.kind in {BEFORE, AFTER}} | overwritten
    assert _of(keyed, updated) == _of(_unlike(made), updated)
    start = history.version // 2
    net = changes(spark, root / "tracked", start, deduplicationMode="netChanges", **UPDATES)
    assert net == net_changes(history, start)


def _of(found: Counter[Change], versions: set[int]) -> Counter[Change]:
    return Counter({change: n for change, n in found.items() if change.version in versions})


def _unlike(made: Counter[Change]) -> Counter[Change]:
    """Leave out updates that changed nothing, which values alone do not show."""
    before = {c[:1] + c[2:] for c in made if c.kind == BEFORE}
    after = {c[:1] + c[2:] for c in made if c.kind == AFTER}
    same = before & after
    return Counter({c: n for c, n in made.items() if c[:1] + c[2:] not in same})


SAMPLE, MANY = 1, 300


@pytest.mark.parametrize(
    ("seeds", "commits"),
    [
        (range(SAMPLE), 12),
        pytest.param(range(SAMPLE, MANY), 8, marks=pytest.mark.thorough),
    ],
    ids=["sample", "many"],
)
def test_random_histories(
    spark: SparkSession, tmp_path: Path, seeds: Iterable[int], commits: int
) -> None:
    for seed in seeds:
        check(spark, random_history(tmp_path / str(seed), seed, commits))


def sorted_files(table: Path, version: int) -> SortedChanges:
    log = TableLog.open(str(table))
    snapshot = log.snapshot()
    commits = log.commits_after(version - 1, through=version)
    tracked = tracked_columns(snapshot.config)
    times = {version: 0}
    return sort_changes(commits, times, snapshot.metadata, tracked, WantedChanges())


def test_only_changed_files_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t", schema(k=LONG), properties=OFF)
    adds = [stored(table, f"{n}.parquet", {"k": longs(n, n + 100)}) for n in range(40)]
    table.commit(*adds)
    table.commit(removed(adds[7]), stored(table, "new.parquet", {"k": longs(7)}))
    found = sorted_files(table.root, 2)
    assert [f.file.path for f in found.by_value.whole] == ["new.parquet", "7.parquet"]
    assert found.exact.are_none
    rows = rows_of(spark, table.root, 2)
    assert [(row.k, row._change_type) for row in rows.collect()] == [(107, DELETE)]
    # A commit that only adds rows is compared with nothing.
    assert not sorted_files(table.root, 1).exact.are_none


@pytest.fixture
def rewritten(tmp_path: Path) -> TableFiles:
    """Version 1 has equal and odd values, version 2 rewrites them without saying how."""
    table = create(tmp_path / "t", schema(k=LONG, d=DOUBLE), properties=OFF)
    zero = [0.0, 0.0, float("nan"), None]
    first = stored(table, "a.parquet", {"k": longs(1, 1, 2, 3), "d": pa.array(zero)})
    table.commit(first)
    minus = [0.0, -0.0, float("nan"), None]
    second = stored(table, "b.parquet", {"k": longs(1, 1, 2, 3), "d": pa.array(minus)})
    table.commit(CommitInfo(timestamp_ms=0, operation="Compress"), removed(first), second)
    return table


@pytest.mark.thorough
def test_values_that_spark_groups_are_told_apart(
    spark: SparkSession, rewritten: TableFiles
) -> None:
    rows = rows_of(spark, rewritten.root, 2).selectExpr("_change_type", "k", "string(d) AS d")
    assert sorted(map(tuple, rows.collect())) == [(DELETE, 1, "0.0"), (INSERT, 1, "-0.0")]
    keyed = rows_of(spark, rewritten.root, 2, keyColumns="k", **UPDATES)
    assert sorted(row._change_type for row in keyed.collect()) == [AFTER, BEFORE]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"computeUpdates": "true"}, ErrorCode.CHANGELOG_REQUIRES_ROW_TRACKING),
        ({"deduplicationMode": "netChanges"}, ErrorCode.CHANGELOG_REQUIRES_ROW_TRACKING),
        ({"deduplicationMode": "all"}, ErrorCode.INVALID_CDC_DEDUPLICATION_MODE),
        (
            {"deduplicationMode": "none", "computeUpdates": "true"},
            ErrorCode.INVALID_CDC_UPDATES_WITH_CARRYOVERS,
        ),
        ({"computeUpdates": "maybe"}, ErrorCode.INVALID_WRITE_OPTION),
        ({"startingBoundInclusive": "no"}, ErrorCode.INVALID_WRITE_OPTION),
        ({"keyColumns": "k, k"}, ErrorCode.INVALID_WRITE_OPTION),
        ({"keyColumns": "id"}, ErrorCode.COLUMN_NOT_FOUND_IN_SCHEMA),
        ({"startingTimestamp": "2026-01-01"}, ErrorCode.MULTIPLE_CDC_BOUNDARY),
        ({"endingVersion": "1"}, ErrorCode.INVALID_CDC_RANGE),
        ({"endingVersion": "2", "endingBoundInclusive": "false"}, ErrorCode.INVALID_CDC_RANGE),
        ({"startingVersion": "3"}, ErrorCode.CDC_START_VERSION_AFTER_LATEST),
        ({"startingBoundInclusive": "false"}, ErrorCode.CDC_START_VERSION_AFTER_LATEST),
    ],
)
def test_refused(
    spark: SparkSession, rewritten: TableFiles, options: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(DeltaError) as raised:
        rows_of(spark, rewritten.root, 2, **options)
    assert raised.value.code is code


def test_no_start(spark: SparkSession, rewritten: TableFiles) -> None:
    from puredelta.commands.version_changes import read_row_changes  # noqa: PLC0415 - loads pyspark

    with pytest.raises(DeltaError) as raised:
        read_row_changes(spark, TableLog.open(str(rewritten.root)), {}, name="t")
    assert raised.value.code is ErrorCode.NO_START_FOR_CDC_READ


@pytest.mark.thorough
def test_modes_and_bounds(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t", schema(k=LONG, v=STRING), properties=OFF)
    first = stored(table, "a.parquet", {"k": longs(1, 2), "v": pa.array(["x", "y"])})
    table.commit(first)
    second = stored(table, "b.parquet", {"k": longs(1, 2), "v": pa.array(["x", "z"])})
    table.commit(CommitInfo(timestamp_ms=0, operation="UPDATE"), removed(first), second)
    update = [(2, BEFORE, 2, "y"), (2, AFTER, 2, "z")]
    assert changes(spark, table.root, 2, **UPDATES) == Counter(Change(*c) for c in update)
    assert changes(spark, table.root, 2) == Counter(halves(Change(*c) for c in update))
    raw = changes(spark, table.root, 2, deduplicationMode="none")
    assert sorted(c.kind for c in raw) == [DELETE] * 2 + [INSERT] * 2
    net = changes(spark, table.root, 1, deduplicationMode="NETCHANGES", keyColumns="k")
    assert net == Counter([Change(1, INSERT, 1, "x"), Change(2, INSERT, 2, "z")])
    only = {"startingBoundInclusive": "FALSE", "endingVersion": "2"}
    assert changes(spark, table.root, 1, **only, **UPDATES) == changes(
        spark, table.root, 2, **UPDATES
    )
    assert not rows_of(spark, table.root, 0, endingVersion="0", deduplicationMode="none").collect()
    empty = rows_of(spark, table.root, 0, endingVersion="0")
    assert empty.columns == ["k", "v", "_change_type", "_commit_version", "_commit_timestamp"]
