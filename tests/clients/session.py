"""The session that a client finds: activated, with Delta as the format of tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import puredelta


def start_session(root: Path, *, hive: bool) -> SparkSession:
    """Start it; what it keeps lies below the directory."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1500m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={root}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.sources.default", "delta")
        .config("spark.sql.warehouse.dir", str(root / "warehouse"))
        .config("spark.ui.enabled", "false")
    )
    if hive:
        metastore = f"jdbc:derby:;databaseName={root}/metastore;create=true"
        builder = builder.config("spark.hadoop.javax.jdo.option.ConnectionURL", metastore)
        builder = builder.enableHiveSupport()
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    assert puredelta.activate(spark)
    return spark
