"""Settings of the session that forbid a write, and those that nobody can follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.api import read, sql
from puredelta.api import write as write_rows
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog

PREFIX = "spark.databricks.delta."
DATA_COLUMNS = PREFIX + "replaceWhere.dataColumns.enabled"
DYNAMIC = PREFIX + "dynamicPartitionOverwrite.enabled"
MODE = "spark.sql.sources.partitionOverwriteMode"


@contextmanager
def made(spark: SparkSession, **settings: str) -> Iterator[None]:
    names = {"data_columns": DATA_COLUMNS, "dynamic": DYNAMIC, "mode": MODE}
    for name, value in settings.items():
        spark.conf.set(names.get(name, PREFIX + name.replace("__", ".")), value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(names.get(name, PREFIX + name.replace("__", ".")))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("refused")
    rows = spark.sql("SELECT id, id % 2 AS p FROM range(4)").coalesce(1)
    write_rows(rows, str(root / "by_p"), partition_by=["p"])
    write_rows(rows, str(root / "plain"))
    return root


def new_row(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 9L AS id, 1L AS p")


def refused(write: Callable[[], object]) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        write()
    return caught.value


@pytest.mark.parametrize("text", ["false", " FALSE "])
def test_replace_where_names_partition_columns_alone_where_the_session_says_so(
    spark: SparkSession, tables: Path, text: str
) -> None:
    """In every way that a condition may be given; the code and text are delta-spark's."""
    path, rows = str(tables / "by_p"), new_row(spark)
    writes: list[tuple[str, Callable[[], object]]] = [
        (
            "[p]",
            lambda: write_rows(rows, path, mode="overwrite", options={"replaceWhere": "id = 1"}),
        ),
        (
            "[p]",
            lambda: write_rows(
                rows, path, mode="overwrite", options={"replaceWhere": "p = 1 AND id = 1"}
            ),
        ),
        (
            "[]",
            lambda: write_rows(
                rows, str(tables / "plain"), mode="overwrite", options={"replaceWhere": "id = 1"}
            ),
        ),
        (
            "[]",
            lambda: write_rows(
                rows, str(tables / "new"), mode="overwrite", options={"replaceWhere": "id = 1"}
            ),
        ),
        (
            "[p]",
            lambda: sql(spark, f"INSERT INTO delta.`{path}` REPLACE WHERE id = 1 SELECT 9L, 1L"),
        ),
    ]
    before = TableLog.open(path).snapshot().version
    with made(spark, data_columns=text):
        for columns, write in writes:
            error = refused(write)
            assert error.code is ErrorCode.NON_PARTITION_COLUMN_REFERENCE
            assert f"may be referenced: {columns}" in error.message
        unknown = refused(
            lambda: write_rows(rows, path, mode="overwrite", options={"replaceWhere": "nosuch = 1"})
        )
        assert "non-partition column 'nosuch'" in unknown.message
        assert TableLog.open(path).snapshot().version == before
        assert not (tables / "new").exists()
    with made(spark, data_columns="true"):
        write_rows(rows, path, mode="overwrite", options={"replaceWhere": "id = 9"})


def test_rows_outside_of_the_partitions_are_refused_even_if_the_check_is_off(
    spark: SparkSession, tables: Path
) -> None:
    path = str(tables / "by_p")
    with made(spark, data_columns="false", replaceWhere__constraintCheck__enabled="false"):
        error = refused(
            lambda: write_rows(
                new_row(spark), path, mode="overwrite", options={"replaceWhere": "p = 0"}
            )
        )
        assert error.code is ErrorCode.REPLACE_WHERE_MISMATCH
        write_rows(new_row(spark), path, mode="overwrite", options={"replaceWhere": "P = 1"})
    rows = read(spark, path).where(F.col("p") == 1).collect()
    assert [row.id for row in rows] == [9]


@pytest.mark.parametrize("by_session", [False, True])
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_dynamic_overwrite_that_is_forbidden_replaces_nothing(
    spark: SparkSession, tables: Path, mode: str, *, by_session: bool
) -> None:
    """It used to replace the whole table."""
    options = {} if by_session else {"partitionOverwriteMode": "dynamic"}
    settings = {"mode": "DYNAMIC"} if by_session else {}
    path, plain = str(tables / "by_p"), str(tables / "plain")
    with made(spark, dynamic="False", **settings):
        error = refused(lambda: write_rows(new_row(spark), path, mode=mode, options=options))
        assert error.code is ErrorCode.DYNAMIC_PARTITION_OVERWRITE_DISABLED
        write_rows(new_row(spark), plain, mode=mode, options=options)  # has no partitions


def test_partitions_with_null_stay_where_the_option_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, option = str(tmp_path / "t"), "useNullIntolerantEqualityWithDPO"
    old = spark.sql("SELECT * FROM VALUES (1, 'a'), (2, NULL) AS t(id, p)").coalesce(1)
    new = spark.sql("SELECT * FROM VALUES (3, 'a'), (4, NULL) AS t(id, p)").coalesce(1)
    write_rows(old, path, partition_by=["p"])
    dynamic = {"partitionOverwriteMode": "dynamic"}
    write_rows(new, path, mode="overwrite", options={**dynamic, option: "true"})
    assert {r.id for r in read(spark, path).collect()} == {2, 3, 4}
    write_rows(new, path, mode="overwrite", options={**dynamic, option: "false"})
    assert {r.id for r in read(spark, path).collect()} == {3, 4}
    for options in ({**dynamic, option: "x"}, {option: "true"}):
        error = refused(lambda: write_rows(new, path, mode="overwrite", options=options))  # noqa: B023
        assert error.code is ErrorCode.INVALID_WRITE_OPTION


@pytest.mark.parametrize(
    ("setting", "statement"),
    [
        ("write__dataFilesToSubdir", "INSERT INTO delta.`{path}` VALUES (5, 5)"),
        ("insert__preserveNullSourceStructs", "DELETE FROM delta.`{path}` WHERE id = 0"),
        ("createEmptySchemaTable__enabled", "CREATE TABLE delta.`{path}_new` (a INT) USING delta"),
        ("alterTable__dropColumn__enabled", "ALTER TABLE delta.`{path}` DROP COLUMN p"),
        ("restore__protocolDowngradeAllowed", "RESTORE delta.`{path}` TO VERSION AS OF 0"),
        ("tableFeatures__fastDropFeature__enabled", "ALTER TABLE delta.`{path}` DROP FEATURE x"),
        ("timeTravel__resolveOnIdentifier__enabled", "SELECT * FROM delta.`{path}@v0`"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_refused_where_it_counts(
    spark: SparkSession, tables: Path, setting: str, statement: str
) -> None:
    path = str(tables / "plain")
    opposite = "true" if setting in {"write__dataFilesToSubdir", _DOWNGRADE} else "false"
    with made(spark, **{setting: opposite}):
        error = refused(lambda: sql(spark, statement.format(path=path)))
        assert error.code is ErrorCode.UNSUPPORTED_SETTING
        assert re.search(re.escape(PREFIX + setting.replace("__", ".")), error.message)
        assert read(spark, path).count() > 0  # reads go on


_DOWNGRADE = "restore__protocolDowngradeAllowed"
