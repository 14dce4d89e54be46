"""UPDATE and DELETE: rows, files, history, and what is refused.

What is expected here was seen in delta-spark 4.4.0 on Spark 4.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.commands.dml.actions import NOT_COUNTED, Outcome
from puredelta.commands.dml.spec import DeleteSpec, RowSpec, UpdateSpec
from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
)
from puredelta.log.commit.commit_request import Phase
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import DeltaTable
from tests.commands.dml.tables import (
    active_files,
    assigned,
    data_files,
    execute_spec,
    lay_table,
    table_rows,
)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("n", pa.int32()),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("arr", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("p", pa.string()),
    ]
)


def row(number: int, part: str | None) -> dict[str, Any]:
    return {
        "id": number,
        "v": f"v{number}",
        "n": None if number == 3 else number * 10,
        "s": {"a": number, "b": f"b{number}"},
        "arr": [number],
        "m": [("k", number)],
        "p": part,
    }


FILES = [[row(i, "x") for i in (1, 2, 3)], [row(i, None) for i in (4, 5, 6)]]
EVERY_METRIC = {
    "numAddedFiles",
    "numAddedBytes",
    "numRemovedFiles",
    "numRemovedBytes",
    "numCopiedRows",
    "numAddedChangeFiles",
    "numDeletionVectorsAdded",
    "numDeletionVectorsRemoved",
    "numDeletionVectorsUpdated",
    "executionTimeMs",
    "scanTimeMs",
    "rewriteTimeMs",
}


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "table", SCHEMA, FILES)


@pytest.fixture
def parted(tmp_path: Path) -> TableLog:
    return lay_table(tmp_path / "parted", SCHEMA, FILES, partition_by=["p"])


def execute(spark: SparkSession, log: TableLog, spec: RowSpec, **options: Any) -> Outcome:
    """Execute with the alias t."""
    return execute_spec(spark, log, spec, **options)


def update(condition: str | Column | None = None, **values: str) -> UpdateSpec:
    named = {column.replace("__", "."): value for column, value in values.items()}
    return UpdateSpec(assignments=assigned(named), condition=condition)  # type: ignore[arg-type]


def delete(condition: str | Column | None = None) -> DeleteSpec:
    return DeleteSpec(condition=condition)


def ids(spark: SparkSession, log: TableLog) -> list[int]:
    return [r["id"] for r in table_rows(spark, log)]


def commit(log: TableLog, version: int) -> dict[str, Any]:
    text = (
        Path(log.root_uri.removeprefix("file:")) / "_delta_log" / f"{version:020d}.json"
    ).read_text()
    [info] = [a["commitInfo"] for a in map(json.loads, text.splitlines()) if "commitInfo" in a]
    return info


def jobs_of(spark: SparkSession, act: Callable[[], Any]) -> int:
    context = spark.sparkContext
    context.setJobGroup("counted", "counted")
    before = len(context.statusTracker().getJobIdsForGroup("counted"))
    try:
        act()
    finally:
        context.setJobGroup("other", "not counted")
    return len(context.statusTracker().getJobIdsForGroup("counted")) - before


# rows and files


@pytest.mark.smoke
def test_an_update(spark: SparkSession, log: TableLog) -> None:
    spec = update("t.id = 2 OR t.n IS NULL", v="concat(t.s.b, '!')", s__a="id + 100", t__n="id")
    outcome = execute(spark, log, spec)
    assert (outcome.version, outcome.affected) == (1, 2)
    rows = table_rows(spark, log)
    assert rows[0] == {**row(1, "x"), "m": {"k": 1}}
    assert [(r["v"], r["n"], r["s"]) for r in rows[1:3]] == [
        ("b2!", 2, {"a": 102, "b": "b2"}),
        ("b3!", 3, {"a": 103, "b": "b3"}),
    ]
    assert outcome.metrics.keys() == {*EVERY_METRIC, "numUpdatedRows"}
    assert {name: outcome.metrics[name] for name in ("numUpdatedRows", "numCopiedRows")} == {
        "numUpdatedRows": 2,
        "numCopiedRows": 1,
    }
    assert outcome.metrics["numRemovedFiles"] == 1
    info = commit(log, 1)
    assert info["operation"] == "UPDATE"
    assert info["operationParameters"] == {"predicate": '["t.id = 2 OR t.n IS NULL"]'}
    assert (info["readVersion"], info["isBlindAppend"]) == (0, False)


@pytest.mark.smoke
def test_a_delete(spark: SparkSession, log: TableLog) -> None:
    untouched = active_files(log)[1]
    outcome = execute(spark, log, delete("n < 25"))  # NULL is not less
    assert (outcome.version, outcome.affected) == (1, 2)
    assert ids(spark, log) == [3, 4, 5, 6]
    assert untouched in active_files(log)
    assert outcome.metrics.keys() == {*EVERY_METRIC, "numDeletedRows"}
    assert (outcome.metrics["numDeletedRows"], outcome.metrics["numCopiedRows"]) == (2, 1)
    assert commit(log, 1)["operationParameters"] == {"predicate": '["n < 25"]'}


def test_every_row_of_a_file_goes(spark: SparkSession, log: TableLog) -> None:
    outcome = execute(spark, log, delete("v <= 'v3'"))
    assert (outcome.metrics["numAddedFiles"], outcome.metrics["numCopiedRows"]) == (0, 0)
    assert len(active_files(log)) == 1


def test_an_update_of_every_row(spark: SparkSession, parted: TableLog) -> None:
    outcome = execute(spark, parted, update(p="v", v="p"))
    assert outcome.affected == 6
    assert [(r["v"], r["p"]) for r in table_rows(spark, parted)][:2] == [("x", "v1"), ("x", "v2")]
    assert commit(parted, 1)["operationParameters"] == {"predicate": "[]"}


def test_an_update_of_nothing_rewrites_rows_as_they_are(spark: SparkSession, log: TableLog) -> None:
    before = table_rows(spark, log)
    assert execute(spark, log, UpdateSpec(assignments=(), condition="id > 4")).affected == 2
    assert table_rows(spark, log) == before


@pytest.mark.parametrize("condition", ["id = 100", "v = 'v11'", "false", "n > 10 AND n < 20"])
@pytest.mark.parametrize("spec", [update(v="'new'"), delete()], ids=["update", "delete"])
def test_no_row_matches(
    spark: SparkSession, log: TableLog, spec: RowSpec, condition: str, tmp_path: Path
) -> None:
    before = data_files(tmp_path)
    found = type(spec)(**{**_fields(spec), "condition": condition})
    outcome = execute(spark, log, found)
    assert (outcome.version, outcome.affected) == (None, 0)
    assert log.latest_version() == 0
    assert data_files(tmp_path) == before


def _fields(spec: RowSpec) -> dict[str, Any]:
    return {"assignments": spec.assignments} if isinstance(spec, UpdateSpec) else {}


def test_files_that_cannot_match_are_not_read(
    spark: SparkSession, log: TableLog, tmp_path: Path
) -> None:
    (tmp_path / "table" / active_files(log)[1]).unlink()
    assert execute(spark, log, update("id < 3", v="'new'")).affected == 2
    assert jobs_of(spark, lambda: execute(spark, log, delete("id > 1000"))) == 0


def test_how_many_spark_jobs(spark: SparkSession, log: TableLog) -> None:
    assert jobs_of(spark, lambda: execute(spark, log, delete("id = 2"))) <= 2
    assert jobs_of(spark, lambda: execute(spark, log, update("id = 1", v="'new'"))) <= 3


# whole files


def test_a_delete_of_everything(spark: SparkSession, log: TableLog, tmp_path: Path) -> None:
    for path in active_files(log):
        (tmp_path / "table" / path).unlink()  # it must not be read
    outcomes: list[Outcome] = []
    assert jobs_of(spark, lambda: outcomes.append(execute(spark, log, delete()))) == 0
    assert outcomes[0].affected == 6
    assert outcomes[0].metrics["numRemovedFiles"] == 2
    assert outcomes[0].metrics["numDeletedRows"] == 6
    assert len(log.snapshot().files) == 0
    assert commit(log, 1)["operationParameters"] == {"predicate": '["true"]'}
    assert execute(spark, log, delete()).version is None


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("p = 'x'", [4, 5, 6]),
        ("p IS NULL", [1, 2, 3]),
        ("coalesce(upper(t.p), 'Y') IN ('Y', 'Z')", [1, 2, 3]),
        ("p <=> NULL OR p LIKE 'x%'", []),
        ("1 = 1", []),
    ],
)
def test_a_delete_of_partitions(
    spark: SparkSession, parted: TableLog, condition: str, left: list[int], tmp_path: Path
) -> None:
    gone = [add.path for add in parted.snapshot().files.adds()]
    kept = [path for path, part in zip(gone, ([1], [4]), strict=True) if part[0] in left]
    for path in {*gone} - {*kept}:
        (tmp_path / "parted" / path).unlink()
    assert jobs_of(spark, lambda: execute(spark, parted, delete(condition))) == 0
    assert ids(spark, parted) == left


def test_a_delete_of_rows_in_a_partition(spark: SparkSession, parted: TableLog) -> None:
    assert execute(spark, parted, delete("p = 'x' AND id = 2")).affected == 1
    assert ids(spark, parted) == [1, 3, 4, 5, 6]


def test_whole_files_without_a_row_count(spark: SparkSession, tmp_path: Path) -> None:
    log = lay_table(tmp_path / "table", SCHEMA, FILES, with_stats=False)
    outcome = execute(spark, log, delete())
    assert outcome.affected == NOT_COUNTED
    assert outcome.metrics.keys() == EVERY_METRIC - {"numAddedFiles", "numCopiedRows"}


# what is refused


@pytest.mark.parametrize(
    ("condition", "error_class", "sqlstate"),
    [
        ("rand() > 2", "INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E"),
        ("sum(id) > 3", "UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E"),
        ("row_number() OVER (ORDER BY id) = 1", "UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E"),
        ("explode(arr) = 1", "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT", "42K0E"),
        ("id IN (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY", "0AKDC"),
        ("EXISTS (SELECT 1) OR id = (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY", "0AKDC"),
        ("nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("s.nope = 1", "FIELD_NOT_FOUND", "42704"),
        ("id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09"),
        ("NULL", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09"),
        ("id ==== 3", "PARSE_SYNTAX_ERROR", "42601"),
    ],
)
@pytest.mark.parametrize("spec", [update(v="'new'"), delete()], ids=["update", "delete"])
def test_conditions(
    spark: SparkSession,
    log: TableLog,
    *,
    spec: RowSpec,
    condition: str,
    error_class: str,
    sqlstate: str,
) -> None:
    with pytest.raises((DeltaError, PySparkException)) as caught:
        execute(spark, log, type(spec)(**{**_fields(spec), "condition": condition}))
    assert caught.value.getCondition() == error_class
    assert caught.value.getSqlState() == sqlstate
    assert log.latest_version() == 0


@pytest.mark.parametrize(
    ("values", "error_class", "sqlstate"),
    [
        ({"nope": "1"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ({"u.v": "1"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ({"a b": "1"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ({"s.nope": "1"}, "FIELD_NOT_FOUND", "42704"),
        ({"v.x": "1"}, "INVALID_EXTRACT_BASE_FIELD_TYPE", "42000"),
        ({"arr.x": "1"}, "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "42K09"),
        ({"m.k": "1"}, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "0A000"),
        ({"v": "'a'", "V": "'b'"}, "DELTA_CONFLICT_SET_COLUMN", "42701"),
        ({"s": "s", "s.a": "1"}, "DELTA_CONFLICT_SET_COLUMN", "42701"),
        ({"v": "nope"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ({"n": "cast(rand() AS int)"}, "INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E"),
        ({"n": "sum(n)"}, "UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E"),
        ({"n": "explode(arr)"}, "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT", "42K0E"),
        ({"v": "concat(DEFAULT, 'a')"}, "DEFAULT_PLACEMENT_INVALID", "42608"),
        ({"s.a": "DEFAULT"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ({"arr": "5"}, "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "42K09"),
        ({"s": "struct(1 AS a)"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846"),
        ({"n": "'abc'"}, "CAST_INVALID_INPUT", "22018"),
        ({"n": "99999999999L"}, "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "22003"),
    ],
)
def test_assignments(
    spark: SparkSession,
    log: TableLog,
    *,
    values: dict[str, str],
    error_class: str,
    sqlstate: str,
    tmp_path: Path,
) -> None:
    before = data_files(tmp_path)
    with pytest.raises((DeltaError, PySparkException)) as caught:
        execute(spark, log, UpdateSpec(assignments=assigned(values)))
    assert caught.value.getCondition() == error_class
    assert caught.value.getSqlState() == sqlstate
    assert log.latest_version() == 0
    assert data_files(tmp_path) == before


def test_store_assignment_and_case(spark: SparkSession, log: TableLog, conf: Any) -> None:
    conf("spark.sql.storeAssignmentPolicy", "LEGACY")
    assert execute(spark, log, update("ID = 1", N="'abc'", S="named_struct('b', 'x', 'a', '7')"))
    conf("spark.sql.storeAssignmentPolicy", "STRICT")
    with pytest.raises(InvalidRequestError) as caught:
        execute(spark, log, update("id = 2", n="5L"))
    assert caught.value.code is ErrorCode.CANNOT_UP_CAST_DATATYPE
    first = table_rows(spark, log)[0]
    assert (first["n"], first["s"]) == (None, {"a": 7, "b": "x"})
    conf("spark.sql.caseSensitive", "true")
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        execute(spark, log, update("id = 2", V="'x'"))


@pytest.mark.parametrize("spec", [update("id = 200", v="'x'"), delete("id = 200"), delete()])
def test_m_111_append_only(spark: SparkSession, tmp_path: Path, spec: RowSpec) -> None:
    properties = {"delta.appendOnly": "true"}
    log = lay_table(tmp_path / "table", SCHEMA, FILES, properties=properties)
    with pytest.raises(InvalidRequestError) as caught:
        execute(spark, log, spec)
    assert caught.value.code is ErrorCode.CANNOT_MODIFY_APPEND_ONLY


def test_constraints(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.constraints.pos": "n > 0 OR n IS NULL"}
    schema = SCHEMA.set(0, pa.field("id", pa.int64(), nullable=False))
    log = lay_table(
        tmp_path / "table",
        schema,
        FILES,
        properties=properties,
        protocol={"minReaderVersion": 1, "minWriterVersion": 3},
    )
    before = data_files(tmp_path)
    with pytest.raises(InvalidRequestError) as caught:
        execute(spark, log, update("id = 2", n="-1"))
    assert caught.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
    with pytest.raises(InvalidRequestError) as caught:
        execute(spark, log, update("id = 2", id="NULL"))
    assert caught.value.code is ErrorCode.NOT_NULL_CONSTRAINT_VIOLATED
    assert data_files(tmp_path) == before


# features of tables, settings, rivals


def test_column_mapping(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows = spark.sql("SELECT id, 'old' AS `v.w`, id % 2 AS p FROM range(4)")
    puredelta.write(rows, path, partition_by=["p"], properties={"delta.columnMapping.mode": "name"})
    table = DeltaTable.forPath(spark, path)
    table.update("`v.w` = 'old' AND id > 1", {"`v.w`": "concat(`v.w`, id)"})
    table.delete("p = 1")
    assert [tuple(r) for r in table.toDF().orderBy("id").collect()] == [
        (0, "old", 0),
        (2, "old2", 0),
    ]


def test_deleted_rows_stay_deleted(spark: SparkSession, tmp_path: Path) -> None:
    log = lay_table(
        tmp_path / "table",
        SCHEMA,
        FILES,
        deleted={0: [0]},
        protocol={
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"],
        },
    )
    assert execute(spark, log, update(v="'new'")).affected == 5
    assert ids(spark, log) == [2, 3, 4, 5, 6]
    assert execute(spark, log, delete()).affected == 5


def test_m_92_a_statement_is_executed_once(spark: SparkSession, log: TableLog, conf: Any) -> None:
    conf("spark.databricks.delta.write.txnAppId", "nightly")
    conf("spark.databricks.delta.write.txnVersion", "7")
    conf("spark.databricks.delta.commitInfo.userMetadata", "because")
    assert execute(spark, log, delete("id = 1")).version == 1
    again = execute(spark, log, delete("id = 2"))
    assert (again.version, again.affected) == (None, None)
    assert ids(spark, log) == [2, 3, 4, 5, 6]
    assert commit(log, 1)["userMetadata"] == "because"
    result = puredelta.sql(spark, f"DELETE FROM delta.`{log.root_uri.removeprefix('file:')}`")
    assert (result.columns, result.collect()) == (["num_affected_rows"], [])
    conf("spark.databricks.delta.write.txnVersion", "8")
    assert execute(spark, log, delete("id = 200")).version is None
    assert execute(spark, log, update("id = 200", v="'x'")).version == 2  # counts as executed
    assert execute(spark, log, update("id = 2", v="'x'")).affected is None


def rival(spark: SparkSession, log: TableLog, rows: DataFrame) -> Callable[[Phase], None]:
    """Append while the statement is about to commit."""

    def write(phase: Phase) -> None:
        if phase is Phase.STAGED:
            puredelta.write(rows, log.root_uri, mode="append")

    return write


def test_conflicts(spark: SparkSession, parted: TableLog) -> None:
    new = puredelta.read(spark, parted.root_uri).where("id = 1").withColumn("p", F.lit("y"))
    assert (
        execute(spark, parted, delete("p = 'x'"), on_phase=rival(spark, parted, new)).version == 2
    )
    new = new.withColumn("id", F.lit(5).cast("long"))
    with pytest.raises(ConcurrentAppendException):
        execute(spark, parted, update("id = 5", v="'x'"), on_phase=rival(spark, parted, new))

    def empty(phase: Phase) -> None:
        if phase is Phase.STAGED:
            DeltaTable.forPath(spark, parted.root_uri).delete()

    with pytest.raises(ConcurrentDeleteReadException):
        execute(spark, parted, update("id = 6", v="'x'"), on_phase=empty)
    assert ids(spark, parted) == []


# the facade


def test_the_facade(spark: SparkSession, log: TableLog) -> None:
    table = DeltaTable.forPath(spark, log.root_uri)
    done = [
        table.update(F.col("id") == 1, {"v": F.lit("q"), "n": F.col("n") + 1}),
        table.alias("t").update("t.id = 2", {"t.v": "t.s.b"}),
        table.delete(table.toDF()["id"] == 3),
        table.alias("t").delete("t.id = 4"),
    ]
    assert done == [None] * 4  # as in delta.tables
    assert [(r["id"], r["v"], r["n"]) for r in table_rows(spark, log)] == [
        (1, "q", 11),
        (2, "b2", 20),
        (5, "v5", 50),
        (6, "v6", 60),
    ]
    history = table.history().collect()
    assert [h.operation for h in history[:4]] == ["DELETE", "DELETE", "UPDATE", "UPDATE"]
    assert history[0].operationParameters == {"predicate": '["t.id = 4"]'}
    with pytest.raises(PySparkException, match="MISSING_ATTRIBUTES"):
        table.delete(spark.range(3)["id"] == 2)
    table.delete()
    assert table.toDF().count() == 0
