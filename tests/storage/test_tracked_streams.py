"""Streams that keep their checkpoint and their log of schemas beside a table that is not local."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import puredelta
from puredelta.commands.read_table import read_stream
from puredelta.spark.jvm.hadoop import has_file_system
from puredelta.spark.session.storage import open_log
from tests.storage.conftest import Place


def _run(rows: DataFrame, checkpoint: str) -> tuple[list[str], str]:
    """Deliver what there is; return the rows, and why the query ended."""
    found: list[str] = []
    writer = rows.writeStream.foreachBatch(lambda batch, _: found.extend(map(str, batch.collect())))
    query = writer.trigger(availableNow=True).option("checkpointLocation", checkpoint).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return sorted(found), str(error)
    return sorted(found), ""


def test_a_stream_follows_a_rename(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    """Where Spark has no file system for the scheme, its checkpoint is on the disk."""
    t, is_there = place.new(), has_file_system(spark, place.uri.partition(":")[0])
    is_there = is_there and spark.conf.get("spark.puredelta.io", "spark") != "arrow"
    checkpoint = place.new("checkpoint") if is_there else str(tmp_path / "checkpoint")
    options = {"schemaTrackingLocation": checkpoint, "allowSourceColumnRename": "always"}
    mapped = {"delta.columnMapping.mode": "name"}
    puredelta.write(spark.range(2), t, properties=mapped)
    assert _run(read_stream(spark, t, options), checkpoint) == (["Row(id=0)", "Row(id=1)"], "")
    puredelta.sql(spark, f"ALTER TABLE delta.`{t}` RENAME COLUMN id TO n")
    puredelta.sql(spark, f"INSERT INTO delta.`{t}` VALUES (2)")
    found, why = _run(read_stream(spark, t, options), checkpoint)
    assert not found
    assert "DELTA_STREAMING_METADATA_EVOLUTION" in why
    assert _run(read_stream(spark, t, options), checkpoint) == (["Row(n=2)"], "")
    store = open_log(spark, checkpoint).store
    entries = [f.path for f in store.walk("") if f.path.startswith("_schema_log_")]
    assert sorted(path[-2:] for path in entries if not path.endswith(".crc")) == ["/0", "/1"]
