"""MERGE that changes the table's schema, from statement to rows (M-40 to M-58)."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.spec import Assignment, Clause, MergeSpec, NotMatched
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.scan.scan import scan
from tests.commands.dml.tables import delete, execute_spec, insert, update
from tests.merge_cases.target import create_target


def lay(
    spark: SparkSession,
    path: Path,
    schema: str,
    *files: Sequence[tuple],
    properties: dict[str, str] | None = None,
    partition_by: Sequence[str] = (),
) -> TableLog:
    log = TableLog.open(str(path))
    types = T.StructType.fromDDL(schema)
    create_target(spark, log, types, files, partition_by=partition_by, properties=properties)
    return log


def evolve(
    spark: SparkSession, log: TableLog, source: DataFrame, *clauses: Clause, on: str = "t.id = s.id"
) -> Outcome:
    return execute_spec(spark, log, MergeSpec(on=on, clauses=clauses, evolve_schema=True), source)


def rows(spark: SparkSession, log: TableLog) -> list[tuple]:
    return sorted(map(tuple, scan(spark, log.snapshot()).collect()), key=lambda row: row[0])


def commit(log: TableLog, version: int) -> list[dict[str, Any]]:
    path = Path(log.root_uri.removeprefix("file:")) / "_delta_log" / f"{version:020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.smoke
def test_new_columns_and_old_rows(spark: SparkSession, tmp_path: Path) -> None:
    """M-40, M-41, M-58: rows of touched and untouched files alike read NULL."""
    log = lay(spark, tmp_path / "t", "id long, v string", [(1, "a"), (2, "b")], [(3, "c")])
    source = spark.createDataFrame([(5, 1, "A"), (6, 9, "N")], "x int, id long, V string")
    outcome = evolve(spark, log, source, update(), insert())
    assert rows(spark, log) == [(1, "A", 5), (2, "b", None), (3, "c", None), (9, "N", 6)]
    assert (outcome.rows.updated, outcome.rows.inserted, outcome.rows.copied) == (1, 1, 1)
    kinds = [next(iter(action)) for action in commit(log, 1)]
    assert kinds.count("metaData") == 1
    assert kinds.count("protocol") == 0


def test_the_new_schema_is_committed_even_if_no_row_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-57, M-48: a clause that never fires evolves the table, a DELETE does not."""
    log = lay(spark, tmp_path / "t", "id long", [(1,)])
    source = spark.createDataFrame([(1, "x")], "id long, new string")
    assert evolve(spark, log, source, replace(delete(), condition="false")).version is None
    clause = NotMatched(insert().action, condition="false")
    assert evolve(spark, log, source, clause).version == 1
    assert [next(iter(a)) for a in commit(log, 1) if "commitInfo" not in a] == ["metaData"]
    assert rows(spark, log) == [(1, None)]


def test_star_keeps_fields_that_the_source_lacks_and_an_assignment_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-41, M-42, M-45."""
    files = [(1, (1, (2, 3))), (2, None), (3, (4, None))]
    source = spark.createDataFrame(
        [(1, ((20,), 30)), (2, ((21,), 31)), (3, None)],
        "id long, s struct<n:struct<b:int>,z:int>",
    )
    schema = "id long, s struct<a:int,n:struct<b:int,c:int>>"
    star = lay(spark, tmp_path / "star", schema, files)
    evolve(spark, star, source, update())
    assert rows(spark, star) == [
        (1, (1, (20, 3), 30)),
        (2, (None, (21, None), 31)),
        (3, (4, None, None)),
    ]
    explicit = lay(spark, tmp_path / "explicit", schema, files)
    evolve(spark, explicit, source, update(s="s.s"))
    assert rows(spark, explicit) == [
        (1, (None, (20, None), 30)),
        (2, (None, (21, None), 31)),
        (3, None),
    ]


@pytest.mark.thorough
def test_a_field_may_be_assigned_to_a_column_that_is_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-46: the name comes from the source, the value from anywhere."""
    log = lay(spark, tmp_path / "t", "id long, v long", [(1, 10)])
    source = spark.createDataFrame([(1, (1, 2))], "id long, new struct<a:int,b:long>")
    clause = update()
    action = replace(clause.action, assignments=(Assignment("new.b", "t.v + 1"),))
    evolve(spark, log, source, replace(clause, action=action))
    assert rows(spark, log) == [(1, 10, (11,))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_and_partitioned_tables(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """M-57, M-109."""
    log = lay(
        spark,
        tmp_path / "t",
        "id long, p string, s struct<a:int>",
        [(1, "x", (1,)), (2, "x", (2,))],
        [(3, "y", (3,))],
        properties={"delta.columnMapping.mode": mode},
        partition_by=["p"],
    )
    source = spark.createDataFrame(
        [(1, "z", (10, 11), 12), (4, "y", (40, 41), 42)],
        "id long, p string, s struct<b:int,a:int>, new int",
    )
    evolve(spark, log, source, update(), insert())
    wanted = [
        (1, "z", (11, 10), 12),
        (2, "x", (2, None), None),
        (3, "y", (3, None), None),
        (4, "y", (41, 40), 42),
    ]
    assert rows(spark, log) == wanted
    assert log.snapshot().config.partition_columns == ("p",)
    evolve(spark, log, source, update(), insert())  # nothing new any more
    assert rows(spark, log) == wanted
    assert not any("metaData" in action for action in commit(log, 2))


def test_widened_columns(spark: SparkSession, tmp_path: Path) -> None:
    """M-53: old files keep their types, split ones, too."""
    log = lay(
        spark,
        tmp_path / "t",
        "id int, f float, d date, n decimal(5,2), l array<short>",
        [
            (1, 0.5, dt.date(2020, 1, 1), Decimal(1), [1]),
            (2, 1.5, dt.date(2020, 1, 2), Decimal(2), [2]),
        ],
        [(3, 2.5, dt.date(2020, 1, 3), Decimal(3), [3])],
        properties={"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"},
    )
    moment = dt.datetime(2021, 5, 5, 12, 30)  # noqa: DTZ001 - timestamp_ntz
    big = (1 << 40) + 1
    source = spark.createDataFrame(
        [(1, 1e300, moment, Decimal(7), [1 << 20]), (big, 0.25, moment, Decimal(8), None)],
        "id long, f double, d timestamp_ntz, n decimal(12,4), l array<int>",
    )
    evolve(spark, log, source, update(), insert())
    found = rows(spark, log)
    assert [r[:3] for r in found] == [
        (1, 1e300, moment),
        (2, 1.5, dt.datetime(2020, 1, 2)),  # noqa: DTZ001
        (3, 2.5, dt.datetime(2020, 1, 3)),  # noqa: DTZ001
        (big, 0.25, moment),
    ]
    assert [r[4] for r in found] == [[1 << 20], [2], [3], None]
    after = scan(spark, log.snapshot())
    assert after.where("d = timestamp_ntz'2020-01-03'").count() == 1
    assert after.where("n = 2").count() == 1
    evolve(spark, log, source.where("id > 2"), update(), on="t.d = timestamp_ntz'2020-01-03'")
    assert rows(spark, log)[-1][0] == big
    fields = json.loads(log.snapshot().config.metadata.schema_string)["fields"]
    assert fields[4]["metadata"]["delta.typeChanges"] == [
        {"toType": "integer", "fromType": "short", "fieldPath": "element"}
    ]


def test_types_that_need_a_feature_are_not_added_unasked(
    spark: SparkSession, tmp_path: Path
) -> None:
    """X-55: readers that do not know timestamp_ntz would be locked out."""
    log = lay(spark, tmp_path / "t", "id long", [(1,)])
    source = spark.sql("select 1L as id, timestamp_ntz'2020-01-01' as at")
    with pytest.raises(InvalidRequestError) as caught:
        evolve(spark, log, source, update())
    assert caught.value.code is ErrorCode.FEATURES_REQUIRE_MANUAL_ENABLEMENT
    assert log.latest_version() == 0
