"""A driver that is killed in the middle of a conversion by name, and what is left of the table.

``killed ROOT POINT`` makes a table in Hive's metastore, converts it, and ends itself and its JVM
with SIGKILL at that point. ``killed ROOT look`` says for each table what its name shows, converts
it again, and says what it shows then; the last line of output is JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.log.commit.commit_request import Phase
from tests.commands.convert.hive_checks import session
from tests.commands.convert.named_tables import rows

_CONVERT = "puredelta.commands.convert.convert_to_delta"
_CATALOG = "puredelta.spark.jvm.catalog"
_CHECKPOINT = "puredelta.log.maintenance.checkpoint_write"

BEFORE = {
    "planned": (_CONVERT, "plan_conversion"),
    "looked_again": (_CONVERT, "require_same_entry"),
    "checkpoint": ("puredelta.log.commit.post_commit", "write_checkpoint"),
    "hint": (_CHECKPOINT, "_hint"),
    "entry": (_CATALOG, "make_delta"),
}
AFTER = {"changed": (_CATALOG, "make_delta")}
PHASES = {"staged": Phase.STAGED, "written": Phase.WRITTEN, "finished": Phase.FINISHED}
POINTS = (*BEFORE, *AFTER, *PHASES)


def die(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    os.kill(context._gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def convert_until(spark: SparkSession, point: str) -> None:
    spark.sql(f"CREATE TABLE t_{point} (id INT, p INT) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO t_{point} VALUES (1, 1), (2, 2)")
    if point in PHASES:
        wanted = PHASES[point]
        convert_to_delta(
            spark, f"t_{point}", on_phase=lambda phase: die(spark) if phase is wanted else None
        )
    module, name = (BEFORE | AFTER)[point]
    holder = sys.modules[module]
    original: Callable[..., Any] = getattr(holder, name)

    def killed(*given: Any, **named: Any) -> None:
        if point in AFTER:
            original(*given, **named)
        die(spark)

    setattr(holder, name, killed)
    convert_to_delta(spark, f"t_{point}")


def look(spark: SparkSession) -> dict[str, Any]:
    found = {}
    for row in spark.sql("SHOW TABLES").collect():
        name = row.tableName
        before = rows(spark, f"SELECT * FROM {name}")
        spark.sql(f"CONVERT TO DELTA {name}")
        spark.sql(f"INSERT INTO {name} VALUES (3, 3)")
        after = rows(spark, f"SELECT * FROM {name}")
        history = puredelta.DeltaTable.forName(spark, name).history().collect()
        found[name] = [before, after, [entry.operation for entry in history]]
    return found


def main(root: Path, point: str) -> None:
    spark = session(root)
    assert puredelta.activate(spark)
    if point != "look":
        convert_until(spark, point)
        raise AssertionError(f"{point} was never reached")
    print(json.dumps(look(spark)))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
