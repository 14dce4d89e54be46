"""``python -m tests.class_archive``: an archive of the classes that Spark loads in tests.

A JVM that maps such an archive (class data sharing) starts in half of the time: classes are
neither searched for in hundreds of JARs, nor parsed, nor verified. It belongs to the Java and the
PySpark of an environment; another Java ignores it. `tests.conftest` names it to every JVM.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""In the environment, so that a new one has none."""
_SECONDS_MAX = 300
_STATEMENTS = """
CREATE TABLE {0} (id BIGINT, part STRING, amount DECIMAL(10, 2)) USING delta PARTITIONED BY (part);
INSERT INTO {0} SELECT id, CAST(id % 3 AS STRING), id FROM range(30);
MERGE INTO {0} t USING (SELECT id, 'x' AS part, 1.0 AS amount FROM range(20, 40)) s
  ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
UPDATE {0} SET amount = amount + 1 WHERE id < 5;
DELETE FROM {0} WHERE part = '1' AND id > 7;
SELECT part, count(*), sum(amount) FROM {0} GROUP BY part ORDER BY part;
SELECT id, row_number() OVER (ORDER BY id) FROM {0} JOIN range(20) USING (id);
OPTIMIZE {0};
DESCRIBE HISTORY {0};
DROP TABLE {0}
"""


def java_options() -> str:
    """Return the options of a JVM that maps the archive; none if there is no archive."""
    # A JVM whose archive does not fit would write a warning on its output.
    return f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else ""


def start_connect_service(spark: SparkSession) -> str:
    """Start a Connect server in the JVM of a session and return its URL."""
    context: Any = spark.sparkContext
    kind = getattr(context._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    service = getattr(kind, "MODULE$")
    service.start(context._jsc.sc())
    return f"sc://127.0.0.1:{service.localPort()}"


def run_statements(spark: SparkSession, table: str) -> None:
    """Let Spark load what most tests need."""
    import puredelta  # noqa: PLC0415 - tests.conftest imports this module, and fast tests no Spark

    puredelta.activate(spark)
    for text in _STATEMENTS.format(table).split(";"):
        spark.sql(text).collect()
    puredelta.deactivate()


def make_archive(directory: str) -> None:
    """Run statements in a classic session and beside it over Connect, and keep their classes."""
    made = Path(directory) / ARCHIVE.name
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"-XX:ArchiveClassesAtExit={made} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
    )
    from pyspark.sql import SparkSession  # noqa: PLC0415

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={directory}")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    context: Any = spark.sparkContext
    run_statements(spark, "classic")
    url = start_connect_service(spark)
    client = [sys.executable, "-m", "tests.class_archive", url]
    subprocess.run(client, check=True, timeout=_SECONDS_MAX)
    spark.stop()
    java = context._gateway.proc
    context._gateway.shutdown()
    java.stdin.close()
    java.wait(_SECONDS_MAX)
    made.replace(ARCHIVE)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from pyspark.sql import SparkSession

        run_statements(SparkSession.builder.remote(sys.argv[1]).getOrCreate(), "remote")
    else:
        with tempfile.TemporaryDirectory(dir=sys.prefix) as directory:
            make_archive(directory)
