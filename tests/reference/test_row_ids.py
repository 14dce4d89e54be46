"""Both answer the same for ``_metadata`` of a table that tracks rows, whoever changes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import puredelta

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

FIELDS = (
    "id",
    "_metadata.row_id",
    "_metadata.row_commit_version",
    "_metadata.base_row_id",
    "_metadata.default_row_commit_version",
    "_metadata.row_index",
    "_metadata.file_name",
    "_metadata.file_path",
    "_metadata.file_size",
    "_metadata.file_modification_time",
)
STATEMENTS = (
    "UPDATE {table} SET p = 9 WHERE id IN (2, 7)",
    "INSERT INTO {table} VALUES (100, 1)",
    (
        "MERGE INTO {table} t USING (SELECT 3 AS id UNION ALL SELECT 200) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET p = 5 WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 7)"
    ),
    "DELETE FROM {table} WHERE id IN (0, 200)",
    "OPTIMIZE {table}",
    "UPDATE {table} SET p = 8 WHERE id = 3",
)


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_ids_and_commit_versions(
    spark: SparkSession, tmp_path: Path, writer: str, vectors: bool
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, p BIGINT) USING delta TBLPROPERTIES "
        "('delta.enableRowTracking' = 'true', "
        f"'delta.enableDeletionVectors' = '{str(vectors).lower()}')"
    )
    spark.range(0, 10, 1, 2).selectExpr("id", "id % 2 p").write.format("delta").mode("append").save(
        path
    )
    for statement in STATEMENTS:
        text = statement.format(table=table)
        puredelta.sql(spark, text) if writer == "ours" else spark.sql(text)
        theirs = spark.read.format("delta").load(path)
        ours = puredelta.read(spark, path)
        assert in_order(ours.select(*FIELDS)) == in_order(theirs.select(*FIELDS)), text
        query = f"SELECT t.id, t._metadata.row_id FROM {table} t WHERE _metadata.row_id > 1"
        assert in_order(puredelta.sql(spark, query)) == in_order(spark.sql(query)), text
        names = [
            rows.select("_metadata").schema["_metadata"].dataType.simpleString()
            for rows in (ours, theirs)
        ]
        assert names[0] == names[1]


def in_order(rows: Any) -> list[Row]:
    return sorted(rows.collect())
