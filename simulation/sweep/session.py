"""The Spark session of the sweep and of the drivers that are killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from puredelta.spark.session.session import is_connect


def sweep_session(directory: Path) -> SparkSession:
    """Start a small session, which keeps what it has below a directory."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("puredelta faults")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={directory}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def forget_driver(spark: SparkSession) -> None:
    """Take back what would have ended with a driver whose kill is modelled: tags of its jobs."""
    if not is_connect(spark):
        spark.sparkContext.clearJobTags()
