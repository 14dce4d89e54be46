"""Tables with geometries where Spark, or Arrow, is older than the types."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, write
from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import PrimitiveType, StructField, StructType
from puredelta.spark.session import types
from puredelta.tables import DeltaTable
from tests.commands.spatial.geometries import respell


def test_what_reads_or_writes_the_columns_says_what_has_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(types, "HAVE_SPATIAL_TYPES", False)
    path = str(tmp_path / "t")
    properties = {"delta.feature.geospatial": "supported"}
    write(spark.sql("SELECT 1 id, X'01' g"), path, properties=properties)
    respell(path, "binary", "geometry(OGC:CRS84)")
    assert len(list(TableLog.open(path).history())) == 1
    with pytest.raises(UnsupportedError, match=r"need PySpark 4\.2 and pyarrow 20") as error:
        read(spark, path).collect()
    assert error.value.code is ErrorCode.GEOSPATIAL_NOT_SUPPORTED
    assert "g: geometry(OGC:CRS84)" in error.value.message
    with pytest.raises(UnsupportedError, match=r"need PySpark 4\.2 and pyarrow 20"):
        DeltaTable.forPath(spark, path).delete("id = 1")


def test_other_schemas_need_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "HAVE_SPATIAL_TYPES", False)
    schema = StructType((StructField("geo", PrimitiveType("string")),))
    assert types.from_spark(types.to_spark(schema)) == schema
