"""Writes of frames, streams and clients of Connect that ask for encryption, and their files.

``python -m tests.commands.write.encrypted_frames DIR HOW``: ``HOW`` is one of `WAYS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

import puredelta
from puredelta.tables import DeltaTable
from tests.commands.write.encrypted_statements import (
    ASKED,
    PLAIN,
    SECRET,
    ask,
    files_of,
    keep_staged,
    require_hidden,
    session,
)

WAYS = ("session", "context", "xml", "options", "connect-session", "connect-hadoop", "connect-xml")
_READS = ("parquet.crypto.factory.class", "parquet.encryption.kms.client.class")
_CDF = {"delta.enableChangeDataFeed": "true"}


class Writes:
    """Writes of one session into tables of their own, each looked at after it."""

    def __init__(self, spark: SparkSession, directory: Path, how: str) -> None:
        """``how``: where encryption is asked for."""
        self.spark, self.directory, self.how = spark, directory / "tables", how
        self.options: Mapping[str, str] = ASKED if how == "options" else {}
        self.rows = (
            spark.range(40).selectExpr("id", f"concat('{SECRET}', id) s", "id % 2 p").coalesce(2)
        )
        self.news = spark.range(30, 50).selectExpr("id", f"concat('{SECRET}new', id) s", "id % 2 p")

    def table(self, name: str, *, by: tuple[str, ...] = (), **properties: str) -> Path:
        """Make a table of plain files."""
        path = self.directory / name
        options = {key.replace("_", "."): value for key, value in properties.items()}
        self.rows.write.format("delta").options(**options, **PLAIN).partitionBy(*by).save(str(path))
        return path

    def look(self, path: Path, run: Callable[[], object], *, rows: int | None = None) -> None:
        """Run a write and look for the text in each file that is new."""
        old = files_of(path)
        before = {file for file in path.rglob("*") if file.is_file()}
        run()
        if rows is not None:
            found = len(self.spark.read.format("delta").load(str(path)).collect())
            assert found == rows, f"{path.name}: {found} rows"
        assert files_of(path) - old, path.name
        require_hidden(path, before, path.name)
        print(f"{path.name} is hidden")  # noqa: T201 - of a program

    def writer(self, frame: DataFrame | None = None, mode: str = "append") -> DataFrameWriter:
        """Return a writer of a frame with the options of this way."""
        frame = self.news if frame is None else frame
        return frame.write.format("delta").options(**self.options).mode(mode)

    def frames(self) -> None:
        """Write frames in each way that Spark has."""
        fresh = self.directory / "fresh"
        self.look(fresh, lambda: self.writer().save(str(fresh)), rows=20)
        path = self.table("append")
        self.look(path, lambda: self.writer().save(str(path)), rows=60)
        path = self.table("overwrite")
        self.look(path, lambda: self.writer(mode="overwrite").save(str(path)), rows=20)
        path = self.table("replace-where")
        where = self.writer(self.news.where("id >= 35"), "overwrite")
        where = where.option("replaceWhere", "id >= 35")
        self.look(path, lambda: where.save(str(path)), rows=50)
        path = self.table("replace-where-changes", delta_enableChangeDataFeed="true")
        self.look(path, lambda: where.save(str(path)), rows=50)
        path = self.table("dynamic", by=("p",))
        one = self.writer(self.news.where("p = 1"), "overwrite")
        one = one.option("partitionOverwriteMode", "dynamic")
        self.look(path, lambda: one.save(str(path)), rows=30)
        path = self.table("compacted", delta_autoOptimize_autoCompact="true")
        self.spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
        self.look(path, lambda: self.writer().save(str(path)))
        self.spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
        operations = [
            commit.operation
            for commit in DeltaTable.forPath(self.spark, str(path)).history().collect()
        ]
        assert "OPTIMIZE" in operations, operations
        path = self.table("optimized-write", delta_autoOptimize_optimizeWrite="true")
        self.look(path, lambda: self.writer().save(str(path)), rows=60)
        path = self.table("second-api")
        second = self.news.writeTo(f"delta.`{path}`").options(**self.options)
        self.look(path, second.append, rows=60)
        path = self.directory / "identity"
        self.spark.sql(
            f"CREATE TABLE delta.`{path}` (n BIGINT GENERATED ALWAYS AS IDENTITY, s STRING) "
            "USING delta"
        )
        self.look(path, lambda: self.writer(self.news.select("s")).save(str(path)), rows=20)

    def streams(self) -> None:
        """Write a stream."""
        path, checkpoint = self.directory / "stream", self.directory / "stream-checkpoint"
        rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "5").load()
        writer = rows.selectExpr("value id", f"concat('{SECRET}', value) s").writeStream
        writer = writer.format("delta").options(**self.options)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)

        def run() -> None:
            query = writer.start(str(path))
            query.awaitTermination(60)
            query.stop()

        self.look(path, run)

    def statements(self) -> None:
        """Run statements, which have no options."""
        path = self.table("merge", delta_enableChangeDataFeed="true")
        news = self.news.withColumn("p", F.col("p") + 0)
        target = DeltaTable.forPath(self.spark, str(path))
        merge = target.alias("t").merge(news.alias("s"), "t.id = s.id")
        self.look(
            path, lambda: merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(), rows=50
        )
        for name, text in {
            "delete": "DELETE FROM {t} WHERE id = 4",
            "delete-changes": "DELETE FROM {t} WHERE id = 4",
            "update": "UPDATE {t} SET s = concat(s, 'x') WHERE id = 4",
            "update-in-place": "UPDATE {t} SET p = p + 1 WHERE id < 4",
            "optimize": "OPTIMIZE {t}",
            "insert": f"INSERT INTO {{t}} SELECT id, concat('{SECRET}', id), id FROM range(4)",
        }.items():
            made = self.table(
                name, **({"delta_enableChangeDataFeed": "true"} if "ch" in name else {})
            )
            query = text.format(t=f"delta.`{made}`")
            self.look(made, lambda query=query: self.spark.sql(query).collect())  # type: ignore[misc]
        made = self.directory / "select"
        rows = f"SELECT id, concat('{SECRET}', id) s, 1L p FROM range(9)"
        query = f"CREATE TABLE delta.`{made}` USING delta AS {rows}"
        self.look(made, lambda: self.spark.sql(query).collect(), rows=9)
        self.checkpoints(made)
        self.cleaned()
        self.converted()

    def checkpoints(self, path: Path) -> None:
        """Write checkpoints, with statistics as structs: they are no data, and stay plain."""
        properties = (
            "'delta.checkpointInterval' = '1', 'delta.checkpoint.writeStatsAsStruct' = 'true'"
        )
        self.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({properties})")
        self.writer(self.news).save(str(path))
        found = list((path / "_delta_log").glob("*.checkpoint*.parquet"))
        assert found
        assert all(file.read_bytes()[:4] == b"PAR1" for file in found)
        require_hidden(path, set(), "checkpoint")

    def cleaned(self) -> None:
        """Rewrite files without deleted rows, by cluster, and under other names."""
        path = self.table(
            "purged", delta_enableDeletionVectors="true", delta_dataSkippingStatsColumns="id"
        )
        self.spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 4)").collect()
        query = f"REORG TABLE delta.`{path}` APPLY (PURGE)"
        self.look(path, lambda: self.spark.sql(query).collect(), rows=38)
        path = self.directory / "clustered"
        self.spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, s STRING, p BIGINT) USING delta "
            "CLUSTER BY (id)"
        ).collect()
        for _ in range(2):
            self.rows.write.format("delta").mode("append").options(**PLAIN).save(str(path))
        full = f"OPTIMIZE delta.`{path}` FULL"
        self.look(path, lambda: self.spark.sql(full).collect(), rows=80)

    def converted(self) -> None:
        """Convert encrypted files; their statistics show nothing."""
        for name, footer in (("converted", "false"), ("converted-plain-footer", "true")):
            path = self.directory / name
            options = {**ASKED, "parquet.encryption.plaintext.footer": footer}
            self.rows.write.options(**options).parquet(str(path))
            self.spark.sql(f"CONVERT TO DELTA parquet.`{path}`").collect()
            assert len(self.spark.read.format("delta").load(str(path)).collect()) == 40
            self.spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4").collect()
            assert len(self.spark.read.format("delta").load(str(path)).collect()) == 39
            require_hidden(path, set(), name)


if __name__ == "__main__":
    scratch, asked = Path(sys.argv[1]), sys.argv[2]
    active = session(scratch, asked)
    puredelta.activate(active)
    staged_are_hidden = keep_staged(scratch)
    ask(active, asked.removeprefix("connect-"))
    if asked == "options":  # what reads them
        for key in _READS:
            active.conf.set(key, ASKED[key])
    writes = Writes(active, scratch, asked)
    writes.frames()
    if not asked.startswith("connect"):
        writes.streams()
    if asked != "options":
        writes.statements()
    staged_are_hidden()
    active.stop()
