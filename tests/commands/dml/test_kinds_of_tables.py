"""MERGE into tables with deletion vectors, mapped columns, rules, and every type."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from tests.commands.dml.tables import (
    data_files,
    delete,
    delete_by_source,
    delta_fields,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
    utc,
)

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
VECTORS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}


def ids(first: int, count: int = 10) -> list[dict[str, Any]]:
    return [{"id": n, "v": f"v{n}"} for n in range(first, first + count)]


def test_a_split_drops_the_old_deletion_vector_with_the_new_positions(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-138: deleted rows neither match nor come back, and the vector ends with its file."""
    log = lay_table(
        tmp_path / "t",
        SCHEMA,
        [ids(0), ids(10), ids(20)],
        protocol=VECTORS,
        deleted={0: [0, 9], 1: [5], 2: list(range(9))},
    )
    source = spark.createDataFrame(
        [(0, "new"), (1, "new"), (9, "new"), (29, "new")], "id long, v string"
    )
    outcome = merge(spark, log, source, "t.id = s.id", update(), insert())
    assert (outcome.rows.updated, outcome.rows.inserted, outcome.rows.copied) == (2, 2, 7)
    assert outcome.metrics["numTargetDeletionVectorsRemoved"] == 2
    assert outcome.metrics["numTargetFilesRemoved"] == 2  # the third lost its last row
    wanted = {n: f"v{n}" for n in range(20) if n != 15} | dict.fromkeys((0, 1, 9, 29), "new")
    assert {r["id"]: r["v"] for r in table_rows(spark, log)} == wanted
    vectors = [add.deletion_vector for add in log.snapshot().files.adds()]
    assert sum(v is not None for v in vectors) == 1
    assert "tightBounds" in next(
        a.stats or "" for a in log.snapshot().files.adds() if not a.deletion_vector
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_keep_their_physical_names(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    """M-109."""
    physical = {"id": "col-aa", "v": "col-bb", "p": "col-cc"}
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
    fields = delta_fields(schema)
    for number, field in enumerate(fields, 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical[field["name"]],
        }
    root = tmp_path / "t"
    log = lay_table(
        root,
        schema,
        [[{**r, "p": p} for r in ids(first)] for first, p in ((0, "x"), (10, "y"))],
        partition_by=["p"],
        fields=fields,
        physical=physical,
        field_ids={"col-aa": 1, "col-bb": 3},
        properties={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"},
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
    )
    source = spark.createDataFrame(
        [(3, "x", "three"), (77, "z", "new")], "id long, p string, v string"
    )
    merge(spark, log, source, "t.id = s.id", update(v="s.v"), insert())
    rows = {r["id"]: (r["p"], r["v"]) for r in table_rows(spark, log)}
    assert (rows[3], rows[77], rows[4], len(rows)) == (
        ("x", "three"),
        ("z", "new"),
        ("x", "v4"),
        21,
    )
    for add in log.snapshot().files.adds():
        assert set(add.partition_values) == {"col-cc"}
        assert set(json.loads(add.stats or "")["nullCount"]) == {"col-aa", "col-bb"}
        stored = pq.read_schema(root / add.path)
        assert [f.metadata[b"PARQUET:field_id"] for f in stored if f.name == "col-bb"] == [b"3"]


EVERY_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("b", pa.int8()),
        ("sh", pa.int16()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("d9", pa.decimal128(9, 2)),
        ("d38", pa.decimal128(38, 10)),
        ("st", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.string())])))])),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("a", pa.list_(pa.int32())),
        ("gone", pa.string()),
    ]
)


def of_every_type(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "b": n % 100,
        "sh": n,
        "i": -n,
        "f": n / 4,
        "d": float("inf") if n % 5 == 0 else n / 8,
        "flag": n % 2 == 0,
        "text": f"ünï {n}",
        "bytes": bytes([n % 256, 0]),
        "day": dt.date(1600 + n, 1, 1),
        "ts": utc(1900 + n, 1, 2, 3, 4, 5, 678901),
        "ntz": dt.datetime(1900 + n, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001 - it has no zone
        "d9": Decimal(n) / 4,
        "d38": Decimal(f"{n}.0123456789"),
        "st": {"x": n, "y": [{"z": f"z{n}"}, {"z": None}]},
        "m": [("k", n), ("l", None)],
        "a": None if n % 3 == 0 else [n, None],
        "gone": None,
    }


def test_values_of_every_type_survive(spark: SparkSession, tmp_path: Path) -> None:
    rows = [of_every_type(n) for n in range(40)]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["timestampNtz"],
    }
    log = lay_table(tmp_path / "t", EVERY_TYPE, [rows[:20], rows[20:]], protocol=protocol)
    before = {r["id"]: r for r in table_rows(spark, log)}
    twin = lay_table(
        tmp_path / "s", EVERY_TYPE, [[of_every_type(n) for n in (3, 25, 90)]], protocol=protocol
    )
    source = spark_rows(spark, twin)
    outcome = merge(
        spark, log, source.withColumn("i", F.lit(7)), "t.id = s.id AND t.st.x = s.st.x",
        update(), insert(), delete_by_source("t.id = 39"),
    )  # fmt: skip
    assert (outcome.rows.updated, outcome.rows.inserted, outcome.rows.deleted) == (2, 1, 1)
    (new,) = [r for r in source.collect() if r.id == 90]
    before[90] = new.asDict(recursive=True)
    for changed in (3, 25, 90):
        before[changed] = {**before[changed], "i": 7}
    del before[39]
    assert {r["id"]: r for r in table_rows(spark, log)} == before


def spark_rows(spark: SparkSession, log: TableLog) -> Any:
    from puredelta.spark.scan.scan import scan  # noqa: PLC0415

    return scan(spark, log.snapshot())


def test_rules_are_checked_on_changed_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    """M-104, W-17: an old row that breaks a younger rule does not stop other rows."""
    root = tmp_path / "t"
    log = lay_table(
        root,
        SCHEMA,
        [ids(0)],
        properties={"delta.constraints.small": "id < 9"},
        protocol={"minReaderVersion": 1, "minWriterVersion": 3},
    )
    assert len(ids(0)) == 10  # id 9 breaks the rule already
    source = spark.createDataFrame([(1, "one")], "id long, v string")
    assert merge(spark, log, source, "t.id = s.id", update()).rows.copied == 9
    before = data_files(root)
    bad = spark.createDataFrame([(1, "one"), (50, "big")], "id long, v string")
    with pytest.raises(InvalidRequestError) as refused:
        merge(spark, log, bad, "t.id = s.id", update(), insert())
    assert refused.value.code is ErrorCode.VIOLATE_CONSTRAINT_WITH_VALUES
    assert data_files(root) == before
    assert log.latest_version() == 1


def test_a_merge_of_a_table_with_itself(spark: SparkSession, tmp_path: Path) -> None:
    """M-30."""
    log = lay_table(tmp_path / "t", SCHEMA, [ids(0), ids(10)])
    again = spark_rows(spark, log).where("id % 7 = 3")
    outcome = merge(
        spark, log, again, "t.id = s.id", update("s.id = 3", v="concat(t.v, s.v)"), delete()
    )
    assert (outcome.rows.updated, outcome.rows.deleted) == (1, 2)
    rows = {r["id"]: r["v"] for r in table_rows(spark, log)}
    assert rows[3] == "v3v3"
    assert sorted(rows) == [n for n in range(20) if n not in {10, 17}]


@pytest.mark.thorough
def test_a_source_column_of_no_type(spark: SparkSession, tmp_path: Path) -> None:
    """M-63: NULL goes into a column of any type, also from inside an array."""
    log = lay_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("a", pa.list_(pa.int64()))]),
                    [[{"id": 1, "a": [1]}, {"id": 2, "a": [2]}]])  # fmt: skip
    source = spark.range(2, 4).select(
        "id", F.lit(None).alias("nothing"), F.array(F.lit(None)).alias("list")
    )
    merge(
        spark, log, source, "t.id = s.id",
        update(a="s.nothing"), insert(id="s.id", a="s.nothing"),
    )  # fmt: skip
    assert table_rows(spark, log) == [
        {"id": 1, "a": [1]},
        {"id": 2, "a": None},
        {"id": 3, "a": None},
    ]
