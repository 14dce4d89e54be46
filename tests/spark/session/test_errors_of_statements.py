"""Every error that a Delta statement raises has a class, a code, an SQLSTATE, and names the value.

No error is a bare exception of Py4J, of Python's own kind, or of a parser of files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.tables import DeltaTable

LOG = "_delta_log"
NEWEST = f"{LOG}/{3:020}.json"
FUTURE = (
    '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
    '"readerFeatures":["timeMachine"],"writerFeatures":["timeMachine"]}}\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One table with rules, ``wrong.t``, and a directory for copies of it that are harmed."""

    spark: SparkSession
    root: Path

    def data(self, table: Path) -> Path:
        """Return the data file with two rows."""
        return next(f for f in table.rglob("*.parquet") if "day=x" in str(f))

    def harmed(self, name: str, harm: Callable[[Path], object]) -> str:
        """Return a copy of the table after harm was done to it."""
        copy = self.root / name
        shutil.copytree(self.root / "t", copy)
        harm(copy)
        return f"delta.`{copy}`"

    def parquet(self, name: str, column: pa.Array) -> str:
        """Return a directory with one foreign file."""
        (self.root / name).mkdir()
        pq.write_table(pa.table({"c": column}), self.root / name / "a.parquet", version="2.6")
        return f"parquet.`{self.root / name}`"

    def writer(self, query: str, **options: str) -> DataFrameWriter:
        """Return a writer of a query's rows."""
        return self.spark.sql(query).write.format("delta").mode("append").options(**options)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("wrong")
    puredelta.activate(spark)
    spark.sql("CREATE DATABASE wrong")
    spark.sql(
        "CREATE TABLE wrong.t (id BIGINT, amount INT NOT NULL, note CHAR(3), s STRUCT<a: INT>, "
        "day STRING, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta PARTITIONED BY (day) "
        f"LOCATION '{root}/t'"
    )
    spark.sql("ALTER TABLE wrong.t ADD CONSTRAINT positive CHECK (amount > 0)")
    rows = "SELECT id, CAST(id + 1 AS INT) AS amount, 'a' AS note, '{}' AS day FROM range(2)"
    for day in ("x", "y"):
        spark.sql(rows.format(day)).coalesce(1).write.format("delta").mode("append").save(
            f"{root}/t"
        )
    spark.sql(
        "CREATE TABLE wrong.i (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql("ALTER TABLE wrong.i ADD CONSTRAINT positive CHECK (v > 0)")
    for name in ("empty", "foreign"):
        (root / name).mkdir()
    (root / "foreign" / "a.parquet").write_text("no Parquet at all")
    (root / "file").write_text("a file")
    yield Place(spark=spark, root=root)
    spark.sql("DROP DATABASE wrong CASCADE")
    puredelta.deactivate()


def _directory(table: Path, place: Place) -> None:
    file = place.data(table)
    file.unlink()
    file.mkdir()


def _damaged_checkpoint(table: Path) -> None:
    (table / LOG / f"{3:020}.checkpoint.parquet").write_bytes(b"PAR1 garbage PAR1")
    (table / LOG / "_last_checkpoint").write_text('{"version":3,"size":5}')
    (table / LOG / f"{0:020}.json").unlink()


def _without_vector(place: Place) -> str:
    table = place.harmed("vector", lambda _: None)
    for statement in (
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        f"DELETE FROM {table} WHERE id = 1 AND day = 'x'",
    ):
        place.spark.sql(statement)
    (vector,) = (place.root / "vector").rglob("deletion_vector_*.bin")
    vector.unlink()
    return table


def _vacuumed(place: Place) -> str:
    table = place.harmed("vacuumed", lambda _: None)
    place.spark.sql(f"DELETE FROM {table} WHERE day = 'x'")
    place.data(place.root / "vacuumed").unlink()
    return table


def _append(place: Place, query: str, **options: str) -> None:
    place.writer(query, **options).save(f"{place.root}/t")


def _replace(place: Place, query: str, **options: str) -> None:
    place.writer(query, **options).mode("overwrite").save(f"{place.root}/t")


def _read(place: Place, **options: str) -> DataFrame:
    return place.spark.read.format("delta").options(**options).load(f"{place.root}/t")


def _stream(place: Place) -> None:
    table = place.harmed("stream", lambda _: None)

    def run() -> None:
        rows = place.spark.readStream.format("delta").load(f"{place.root}/stream")
        writer = rows.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{place.root}/checkpoint").start()
        query.awaitTermination()

    run()
    place.spark.sql(f"DELETE FROM {table} WHERE id = 1 AND day = 'x'")
    run()


ONE = "(SELECT * FROM VALUES (1L, 5, 'toolong') AS v(id, amount, note)) s"
TWO = "(SELECT * FROM VALUES (1L, 5), (1L, 6) AS v(id, amount)) s"
ROW = "SELECT 9L AS id, 1 AS amount, 'x' AS day"

SQL: dict[str, tuple[str, str, str]] = {
    # statement: class, SQLSTATE, the value
    "SELECT nope FROM wrong.t": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "nope"),
    "DELETE FROM wrong.t WHERE nope = 1": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "nope"),
    "UPDATE wrong.t SET nope = 1": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "nope"),
    "UPDATE wrong.t SET amount = nope": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "nope"),
    "UPDATE wrong.t SET s.nope = 1": ("FIELD_NOT_FOUND", "42704", "nope"),
    f"MERGE INTO wrong.t t USING {ONE} ON t.nope = s.id WHEN MATCHED THEN DELETE": (
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        "42601",
        "t.nope",
    ),
    f"MERGE INTO wrong.t t USING {ONE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1": (
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        "42601",
        "nope",
    ),
    "INSERT INTO wrong.t (nope) VALUES (1)": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", "nope"),
    "OPTIMIZE wrong.t ZORDER BY (nope)": ("DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "42703", "nope"),
    "ALTER TABLE wrong.t RENAME COLUMN nope TO n": (
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42703",
        "nope",
    ),
    f"MERGE INTO wrong.t USING {ONE} ON id = 1 WHEN MATCHED THEN DELETE": (
        "AMBIGUOUS_REFERENCE",
        "42704",
        "`id`",
    ),
    "UPDATE wrong.t SET amount = array(1)": (
        "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
        "42K09",
        "array(1)",
    ),
    "DELETE FROM wrong.t WHERE amount": ("DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09", "amount"),
    "UPDATE wrong.t SET amount = 'abc'": ("CAST_INVALID_INPUT", "22018", "'abc'"),
    "DELETE FROM wrong.t WHERE CAST(note AS INT) = 1": ("CAST_INVALID_INPUT", "22018", "'a  '"),
    "UPDATE wrong.t SET id = 1 div (id - id)": ("DIVIDE_BY_ZERO", "22012", "zero"),
    "UPDATE wrong.t SET amount = 3000000000L": (
        "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        "22003",
        "`amount`",
    ),
    "UPDATE wrong.t SET amount = (SELECT amount FROM wrong.t)": (
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "21000",
        "subquery",
    ),
    "INSERT INTO wrong.t (id, amount, day) SELECT 1, (SELECT id FROM range(2)), 'x'": (
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
        "21000",
        "subquery",
    ),
    "DELETE FROM wrong.t WHERE id = (SELECT id FROM wrong.t)": (
        "DELTA_UNSUPPORTED_SUBQUERY",
        "0AKDC",
        "DELETE",
    ),
    "DELETE FROM wrong.t WHERE id IN (SELECT id FROM wrong.nope)": (
        "TABLE_OR_VIEW_NOT_FOUND",
        "42P01",
        "`nope`",
    ),
    "UPDATE wrong.t SET amount = -7 WHERE id = 1": (
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        "-7",
    ),
    "INSERT INTO wrong.t (id, amount, day) VALUES (9, null, 'x')": (
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "23502",
        "amount",
    ),
    "INSERT INTO wrong.t (id, day) VALUES (9, 'x')": (
        "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        "23502",
        "amount",
    ),
    "INSERT INTO wrong.t (id, amount, note, day) VALUES (9, 1, 'toolong', 'x')": (
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "22001",
        "toolong",
    ),
    "INSERT INTO wrong.t (id, amount, day, twice) VALUES (9, 1, 'x', 5)": (
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        "twice",
    ),
    "INSERT INTO wrong.i (id, v) VALUES (1, 2)": (
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        "42808",
        "id",
    ),
    "SELECT * FROM wrong.t VERSION AS OF 99": ("DELTA_VERSION_NOT_FOUND", "22003", "99"),
    "SELECT * FROM wrong.t VERSION AS OF -1": ("DELTA_VERSION_NOT_FOUND", "22003", "-1"),
    "SELECT * FROM wrong.t VERSION AS OF 'abc'": (
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        "abc",
    ),
    "SELECT * FROM wrong.t TIMESTAMP AS OF '1999-01-01'": (
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "42816",
        "1999-01-01",
    ),
    "SELECT * FROM wrong.t TIMESTAMP AS OF 'soon'": ("DELTA_TIMESTAMP_INVALID", "42816", "soon"),
    "ALTER TABLE wrong.t SET TBLPROPERTIES ('delta.feature.timeMachine' = 'supported')": (
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "56038",
        "delta.feature.timemachine",
    ),
    f"MERGE INTO wrong.t t USING {TWO} ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 5": (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "21506",
        "multiple source rows",
    ),
    f"MERGE INTO wrong.t t USING {ONE} ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE": (
        "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        "42613",
        "MATCHED",
    ),
    f"MERGE INTO wrong.t t USING {ONE} ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET amount = 1, amount = 2": (
        "DELTA_CONFLICT_SET_COLUMN",
        "42701",
        "`amount`",
    ),
    "VACUUM wrong.t RETAIN 0 HOURS": ("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "22003", "VACUUM"),
    "RESTORE TABLE wrong.t TO VERSION AS OF 99": (
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        "22003",
        "99",
    ),
    "ALTER TABLE wrong.i DROP COLUMN v": ("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "42K09", "v"),
    "ALTER TABLE wrong.t ALTER COLUMN id TYPE INT": (
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        "0AKDC",
        "id",
    ),
    "ALTER TABLE wrong.t ADD CONSTRAINT big CHECK (id > 5)": (
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        "23512",
        "id > 5",
    ),
    "DESCRIBE HISTORY wrong.nope": ("TABLE_OR_VIEW_NOT_FOUND", "42P01", "wrong.nope"),
}

CALLS: dict[str, tuple[Callable[[Place], object], str, str, str]] = {
    "missing file": (
        lambda p: p.spark.sql(
            f"DELETE FROM {p.harmed('gone', lambda t: p.data(t).unlink())} WHERE id = 1"
        ),
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        "KD001",
        "part-",
    ),
    "directory in a file's place": (
        lambda p: p.spark.sql(f"SELECT * FROM {p.harmed('dir', lambda t: _directory(t, p))}"),
        "FAILED_READ_FILE.FILE_NOT_EXIST",
        "KD001",
        "part-",
    ),
    "truncated file": (
        lambda p: p.spark.sql(
            "UPDATE {} SET amount = 1 WHERE id = 1".format(
                p.harmed("cut", lambda t: p.data(t).write_bytes(p.data(t).read_bytes()[:99]))
            )
        ),
        "FAILED_READ_FILE.NO_HINT",
        "KD001",
        "part-",
    ),
    "missing deletion vector": (
        lambda p: p.spark.sql(f"SELECT * FROM {_without_vector(p)}"),
        "DELTA_FILE_NOT_FOUND",
        "42K03",
        "deletion_vector_",
    ),
    "missing commit": (
        lambda p: p.spark.sql(
            f"SELECT * FROM {p.harmed('gap', lambda t: (t / LOG / f'{2:020}.json').unlink())}"
        ),
        "DELTA_VERSIONS_NOT_CONTIGUOUS",
        "KD00C",
        "(1, 3)",
    ),
    "commit that is no JSON": (
        lambda p: p.spark.sql(
            f"OPTIMIZE {p.harmed('json', lambda t: (t / NEWEST).write_text('{{'))}"
        ),
        "DELTA_LOG_CORRUPTED",
        "KD00C",
        f"{3:020}.json",
    ),
    "commit that is no UTF-8": (
        lambda p: p.spark.sql(
            "DELETE FROM {}".format(
                p.harmed("bytes", lambda t: (t / NEWEST).write_bytes(b'{"add":{"path":"\xff"}}'))
            )
        ),
        "DELTA_LOG_CORRUPTED",
        "KD00C",
        f"{3:020}.json",
    ),
    "damaged checkpoint": (
        lambda p: p.spark.sql(f"SELECT * FROM {p.harmed('checkpoint', _damaged_checkpoint)}"),
        "DELTA_LOG_CORRUPTED",
        "KD00C",
        "checkpoint.parquet",
    ),
    "unknown feature": (
        lambda p: p.spark.sql(
            f"SELECT * FROM {p.harmed('future', lambda t: (t / NEWEST).write_text(FUTURE))}"
        ),
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        "56038",
        "timeMachine",
    ),
    "versionAsOf as text": (
        lambda p: _read(p, versionAsOf="abc"),
        "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        "42604",
        "abc",
    ),
    "timestampAsOf as text": (
        lambda p: _read(p, timestampAsOf="yesterday"),
        "DELTA_TIMESTAMP_INVALID",
        "42816",
        "yesterday",
    ),
    "append of one more column": (
        lambda p: _append(p, f"{ROW}, 1 AS more"),
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        "more",
    ),
    "other partitions": (
        lambda p: p.writer(ROW).partitionBy("id").save(f"{p.root}/t"),
        "DELTA_METADATA_MISMATCH",
        "42KDG",
        "id",
    ),
    "overwriteSchema of partitions": (
        lambda p: _replace(p, ROW, overwriteSchema="true", partitionOverwriteMode="dynamic"),
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "42613",
        "overwriteSchema",
    ),
    "replaceWhere of other rows": (
        lambda p: _replace(p, ROW, replaceWhere="day = 'y'"),
        "DELTA_REPLACE_WHERE_MISMATCH",
        "44000",
        "day = 'y'",
    ),
    "append against a constraint": (
        lambda p: _append(p, "SELECT 9L AS id, -7 AS amount, 'x' AS day"),
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "23001",
        "-7",
    ),
    "CONVERT of no files": (
        lambda p: p.spark.sql(f"CONVERT TO DELTA parquet.`{p.root}/empty`"),
        "DELTA_EMPTY_DIRECTORY",
        "42K03",
        "/empty",
    ),
    "CONVERT of no Parquet": (
        lambda p: p.spark.sql(f"CONVERT TO DELTA parquet.`{p.root}/foreign`"),
        "DELTA_FAILED_READ_FILE_FOOTER",
        "KD001",
        "a.parquet",
    ),
    "CONVERT of nanoseconds": (
        lambda p: p.spark.sql(
            f"CONVERT TO DELTA {p.parquet('nanos', pa.array([1], pa.timestamp('ns')))}"
        ),
        "PARQUET_TYPE_ILLEGAL",
        "42846",
        "a.parquet",
    ),
    "CONVERT of FLOAT16": (
        lambda p: p.spark.sql(
            f"CONVERT TO DELTA {p.parquet('half', pa.array([1.0], pa.float16()))}"
        ),
        "PARQUET_TYPE_ILLEGAL",
        "42846",
        "a.parquet",
    ),
    "RESTORE of files that are gone": (
        lambda p: p.spark.sql(f"RESTORE TABLE {_vacuumed(p)} TO VERSION AS OF 3"),
        "DELTA_FILE_NOT_FOUND",
        "42K03",
        "part-",
    ),
    "file as a table": (
        lambda p: p.spark.sql(f"SELECT * FROM delta.`{p.root}/file`"),
        "DELTA_TABLE_NOT_FOUND",
        "42P01",
        "/file",
    ),
    "write below a file": (
        lambda p: p.writer(ROW).save(f"{p.root}/file"),
        "DELTA_WRITE_FAILED",
        "58030",
        "/file",
    ),
    "path without a table": (
        lambda p: DeltaTable.forPath(p.spark, f"{p.root}/empty"),
        "DELTA_MISSING_DELTA_TABLE",
        "42P01",
        "/empty",
    ),
    "vacuum of a word": (
        lambda p: DeltaTable.forName(p.spark, "wrong.t").vacuum("soon"),  # type: ignore[arg-type]
        "DELTA_INVALID_ARGUMENT",
        "42616",
        "'soon'",
    ),
    "history of a word": (
        lambda p: DeltaTable.forName(p.spark, "wrong.t").history("all"),  # type: ignore[arg-type]
        "DELTA_INVALID_ARGUMENT",
        "42616",
        "'all'",
    ),
    "stream over a deleted row": (_stream, "STREAM_FAILED", "XXKST", "DELTA_SOURCE_TABLE_IGNORE"),
}


def _require(error: Exception, code: str, sqlstate: str, value: str) -> None:
    if isinstance(error, DeltaError):
        found = (error.code.error_class, error.code.sqlstate)
    else:
        assert isinstance(error, PySparkException), error
        found = (str(error.getCondition()), str(error.getSqlState()))
    assert found == (code, sqlstate), error
    assert value in str(error)


def _raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its class is what is tested
        _run(call)
    return caught.value


def _run(call: Callable[[], object]) -> None:
    made = call()
    if isinstance(made, DataFrame):
        made.collect()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("statement", SQL)
def test_an_error_of_sql_names_class_and_value(place: Place, statement: str) -> None:
    _require(_raised(lambda: place.spark.sql(statement)), *SQL[statement])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_a_call_names_class_and_value(place: Place, name: str) -> None:
    call, *expected = CALLS[name]
    _require(_raised(lambda: call(place)), *expected)


def test_an_error_of_a_job_is_of_both_classes(place: Place) -> None:
    error = _raised(
        lambda: place.spark.sql("UPDATE wrong.t SET id = (SELECT id FROM range(2)) WHERE id = 1")
    )
    assert isinstance(error, Py4JJavaError)
    assert isinstance(error, PySparkException)
    assert error.java_exception is not None


def test_numbers_may_be_text(place: Place) -> None:
    table = DeltaTable.forName(place.spark, "wrong.t")
    assert len(table.history("2").collect()) == 2  # type: ignore[arg-type]
    assert table.vacuum("168").collect() == []  # type: ignore[arg-type]
