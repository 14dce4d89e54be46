"""What the calls promise beside the streams: refusals, transactions, types, comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta import DeltaTable, Expectation
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError

SCHEMA = "id INT, v STRING, at INT"


def frame(spark: SparkSession, *rows: tuple[Any, ...], schema: str = SCHEMA) -> DataFrame:
    return spark.createDataFrame(list(rows), schema)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("calls") / "t")
    puredelta.write(frame(spark, (1, "a", 5), (2, "b", 5)), path)
    return path


def version(spark: SparkSession, table: str) -> int:
    [row] = DeltaTable.forPath(spark, table).history(1).collect()
    return int(row.version)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("call", "rows", "refusal"),
    [
        (
            lambda t, s: puredelta.upsert(t, s, "id"),
            [(7, "x", 1), (7, "y", 2)],
            (ErrorCode.SOURCE_KEY_NOT_UNIQUE, '2 rows of the key {"id":7}'),
        ),
        (
            lambda t, s: puredelta.upsert(t, s, "id", order_by="at"),
            [(1, "x", 9), (1, "y", 9)],
            (ErrorCode.SOURCE_SEQUENCE_AMBIGUOUS, '{"id":1}'),
        ),
        (
            lambda t, s: puredelta.sync(t, s, "id", scope="id < 5"),
            [(1, "x", 1), (9, "y", 2)],
            (ErrorCode.SOURCE_OUTSIDE_SCOPE, '{"id":9}'),
        ),
        (
            lambda t, s: puredelta.sync(t, s, "id", scope="id < 5"),
            [],
            (ErrorCode.SOURCE_IS_EMPTY, "allow_empty=True"),
        ),
        (
            lambda t, s: puredelta.apply_changes(t, s, "id", "at"),
            [(1, "x", None)],
            (ErrorCode.SOURCE_SEQUENCE_IS_NULL, '{"id":1}'),
        ),
        (
            lambda t, s: puredelta.upsert(
                t, s, "id", expectations={"short": Expectation("length(v) < 3", "fail")}
            ),
            [(1, "long", 1), (2, None, 1), (3, "ok", 1)],
            (ErrorCode.EXPECTATION_VIOLATED, "'short' by 2 rows"),
        ),
        (
            lambda t, s: puredelta.upsert(t, s, "key"),
            [(1, "x", 1)],
            (ErrorCode.INVALID_ARGUMENT, "'key', which is no column. There are: id, v, at"),
        ),
    ],
)
def test_what_is_refused_changes_nothing(
    spark: SparkSession, table: str, call: Any, rows: Any, refusal: tuple[ErrorCode, str]
) -> None:
    code, says = refusal
    before = sorted(entry.name for entry in Path(table).iterdir())
    with pytest.raises(InvalidRequestError) as caught:
        call(table, frame(spark, *rows))
    assert caught.value.code is code
    assert says in caught.value.message
    assert version(spark, table) == 0
    assert sorted(entry.name for entry in Path(table).iterdir()) == before


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("partial", [False, True])
def test_a_table_that_had_no_sequences(spark: SparkSession, tmp_path: Path, partial: bool) -> None:
    """Its rows are older than any event, and keep what no event sets."""
    table = str(tmp_path / "t")
    puredelta.write(frame(spark, (1, "a", 5), (2, "b", 5)), table)
    options: Any = {"ignore_null_updates": partial, "apply_as_truncates": "v = 'T'"}
    puredelta.apply_changes(table, frame(spark, (1, None, 3)), "id", "at", **options)
    puredelta.apply_changes(table, frame(spark, (1, None, 4)), "id", "at", **options)
    found = puredelta.read(spark, table).where("__DELETED IS NOT TRUE").orderBy("id").collect()
    assert [(row.id, row.v) for row in found] == [
        (1, "a" if partial else None),
        (2, "b"),
    ]
    assert "__recipe_is_delete" not in found[0].asDict()


def test_a_table_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="create=True"):
        puredelta.upsert(tmp_path / "none", frame(spark, (1, "a", 1)), "id")
    assert not (tmp_path / "none").exists()


def test_a_batch_is_executed_once(spark: SparkSession, tmp_path: Path) -> None:
    """By name, over all spellings of a key, with a policy for duplicates."""
    table = str(tmp_path / "t")
    quarantine = str(tmp_path / "q")
    results = [
        puredelta.upsert(
            table,
            frame(spark, (1, value, 1), (None, value, 1), (-1, value, 1)),
            "ID",
            create=True,
            txn_app_id="stream",
            txn_version=3,
            expectations={"positive": Expectation("id > 0 OR id IS NULL", "drop")},
            quarantine=quarantine,
        )
        for value in ("first", "again")
    ]
    assert [result.num_inserted_rows for result in results] == [2, 0]
    assert results[1].version is None
    rows = puredelta.read(spark, table).collect()
    assert {(row.id, row.v) for row in rows} == {(1, "first"), (None, "first")}
    away = puredelta.read(spark, quarantine).collect()
    assert [(row.id, row._violations) for row in away] == [(-1, ["positive"])]


def test_a_write_counts_what_it_leaves_out(spark: SparkSession, tmp_path: Path) -> None:
    outcome = puredelta.write(
        frame(spark, (1, "a", 1), (2, None, 1)),
        tmp_path / "t",
        expectations={"named": Expectation("v IS NOT NULL", "drop"), "late": "at > 1"},
    )
    assert outcome.violations == {"named": 1, "late": 2}
    assert outcome.num_rows == 1


@pytest.mark.thorough
def test_types_that_spark_does_not_order_or_compare(spark: SparkSession, tmp_path: Path) -> None:
    """Maps as values, a struct as the sequence, timestamps as times, names with dots."""
    table = str(tmp_path / "t")
    schema = "`a.b` STRING, m MAP<STRING, INT>, day TIMESTAMP, n INT"

    def store(m: dict[str, int], second: int, n: int) -> puredelta.ChangeResult:
        row = ("k", m, f"2026-01-01 00:00:0{second}.000001", n)
        raw = spark.createDataFrame([row], schema.replace("TIMESTAMP", "STRING"))
        source = raw.withColumn("day", raw.day.cast("timestamp"))
        return puredelta.scd2(table, source, "a.b", ["day", "n"], create=True)

    store({"x": 1}, 1, 1)
    store({"x": 2}, 1, 2)
    assert store({"x": 2}, 1, 2).version is None
    store({"x": 3}, 1, 0)
    found = puredelta.read(spark, table).orderBy("valid_from").collect()
    assert [(row.m["x"], row.valid_from.n, row.is_current) for row in found] == [
        (3, 0, False),
        (1, 1, False),
        (2, 2, True),
    ]
    assert found[0].valid_to == found[1].valid_from


@pytest.mark.thorough
def test_repeats_that_nobody_wants_to_remember(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")

    def store(at: int, v: str) -> int:
        rows = frame(spark, (1, v, at))
        options: Any = {"remember_repeats": False, "create": True}
        return puredelta.scd2(table, rows, "id", "at", **options).num_affected_rows

    assert [store(1, "a"), store(2, "a"), store(3, "b")] == [1, 0, 2]
    assert puredelta.read(spark, table).count() == 2


def test_evolution_adds_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    puredelta.write(frame(spark, (1, "a", 1)), table)
    more = frame(spark, (1, "a", 1, 2.5), schema=f"{SCHEMA}, extra DOUBLE")
    assert puredelta.upsert(table, more, "id").version is None
    result = puredelta.upsert(DeltaTable.forPath(spark, table), more, "id", evolve_schema=True)
    assert result.num_updated_rows == 1
    assert puredelta.read(spark, table).first().extra == 2.5


def test_diff_and_blame_of_a_table_with_every_feature(spark: SparkSession, tmp_path: Path) -> None:
    """Column mapping and a renamed column, a widened type, deletion vectors, OPTIMIZE."""
    table = str(tmp_path / "t")
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
        "delta.enableDeletionVectors": "true",
    }
    rows = frame(spark, *((n, "a", n) for n in range(20)), (1, "a", 1))
    puredelta.write(rows, table, properties=properties)
    puredelta.sql(spark, f"ALTER TABLE delta.`{table}` RENAME COLUMN v TO w")
    puredelta.sql(spark, f"ALTER TABLE delta.`{table}` ALTER COLUMN at TYPE BIGINT")
    delta = DeltaTable.forPath(spark, table)
    delta.delete("id = 7")
    delta.update("id = 9", {"w": "'z'"})
    delta.optimize().executeCompaction()

    found = puredelta.diff(spark, table, 0, version(spark, table)).collect()
    assert sorted((r._change, r.id, r.w, r.at) for r in found) == [
        ("added", 9, "z", 9),
        ("removed", 7, "a", 7),
        ("removed", 9, "a", 9),
    ]
    [deleted, changed] = (
        puredelta.diff(spark, table, 2, version(spark, table), keys="id").orderBy("id").collect()
    )
    assert (deleted._change, deleted.id, deleted.after) == ("removed", 7, None)
    assert (changed._change, changed.before.w, changed.after.w) == ("changed", "a", "z")

    lines = puredelta.blame(spark, table, "id IN (1, 9)").orderBy("id").collect()
    assert [(r.id, r._version, r._operation) for r in lines] == [
        (1, 0, "WRITE"),
        (1, 0, "WRITE"),
        (9, 4, "UPDATE"),
    ]


@pytest.mark.thorough
def test_blame_by_row_tracking(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    rows = frame(spark, (1, "a", 1), (2, "b", 2))
    puredelta.write(rows, table, properties={"delta.enableRowTracking": "true"})
    puredelta.upsert(table, frame(spark, (2, "c", 2)), "id")
    found = puredelta.blame(spark, table).orderBy("id").collect()
    assert [(r.id, r._version, r._operation) for r in found] == [(1, 0, "WRITE"), (2, 1, "MERGE")]
    [row] = puredelta.blame(spark, table, {"ID": 2}).collect()
    assert row._version == 1
