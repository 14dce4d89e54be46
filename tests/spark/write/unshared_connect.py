"""What `test_unshared_directory` asks of a Connect server with a disk of its own.

Run as a program of its own: ``unshared_connect.py DIRECTORY``. The answers are one JSON object on
the last line.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import DeltaError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.tables import DeltaTable
from tests.spark.tables import TableFiles

IDS = StructType((StructField("id", LONG),))

_JAVA = """#!/bin/sh
case "$*" in
  *org.apache.spark.deploy.SparkSubmit*) exec unshare -m sh -c '
    mount --make-rprivate / && mount -t tmpfs tmpfs "$0" && exec "$@"' {disk} {java} "$@" ;;
esac
exec {java} "$@"
"""


def unshared(directory: Path, disk: Path) -> str:
    """Return a JAVA_HOME by which Spark's driver has another disk at a path than this program."""
    java = Path(shutil.which("java") or f"{os.environ['JAVA_HOME']}/bin/java").resolve()
    home = directory / "java"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(_JAVA.format(disk=disk, java=java))
    script.chmod(0o755)
    return str(home)


def outcome(action: Callable[[], object]) -> str:
    """Return the name of an error's code, or the class of one of Spark's."""
    try:
        action()
    except DeltaError as error:
        return error.code.name
    except Exception as error:  # noqa: BLE001 - the test knows which
        return type(error).__name__
    return "success"


def tree(disk: Path) -> list[str]:
    """Return the files that this program sees."""
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file())


def left_on_server(spark: SparkSession, disk: Path) -> list[str]:
    """Return the files that the server sees, of any name."""
    reader = spark.read.option("recursiveFileLookup", "true").format("binaryFile")
    return list(reader.load(str(disk)).inputFiles())


def main(directory: Path) -> None:
    disk = directory / "disk"
    disk.mkdir()
    TableFiles.create(disk / "table", IDS).write("a.parquet", {"id": range(10)})
    (disk / "files").mkdir()
    pq.write_table(pa.table({"id": range(10)}), disk / "files" / "a.parquet")
    os.environ["JAVA_HOME"] = unshared(directory, disk)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    path, files = str(disk / "table"), f"parquet.`{disk / 'files'}`"
    table = DeltaTable.forPath(spark, path)
    before = tree(disk)
    source = spark.range(5, 15).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll()
    rows = spark.range(5)
    answers: dict[str, Any] = {
        "merge": outcome(merge.execute),
        "append": outcome(lambda: puredelta.write(rows, path, mode="append")),
        "overwrite": outcome(lambda: puredelta.write(rows, path, mode="overwrite")),
        "new": outcome(lambda: puredelta.write(rows, str(disk / "new"))),
        "by partition": outcome(
            lambda: puredelta.write(
                rows.selectExpr("id", "id AS p"), str(disk / "new"), partition_by=["p"]
            )
        ),
        "delete": outcome(lambda: table.delete("id = 3")),
        "update": outcome(lambda: table.update("id = 3", {"id": "4"})),
        "read": outcome(lambda: puredelta.read(spark, path).collect()),
        "convert": outcome(lambda: puredelta.sql(spark, f"CONVERT TO DELTA {files}")),
        "dry run": puredelta.preview_convert(spark, files).problems[0].partition(" (")[0],
    }
    answers["left"] = tree(disk) == before
    answers["left on the server"] = left_on_server(spark, disk)
    answers["version"] = TableLog.open(path).snapshot().version
    nothing = spark.range(0)
    answers["no rows"] = outcome(lambda: puredelta.write(nothing, path, mode="append"))
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
