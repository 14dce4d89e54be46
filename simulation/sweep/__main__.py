"""``python -m simulation.sweep``: every call of every command fails once; the table is judged."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from simulation.report import print_lines
from simulation.sweep.commands import COMMANDS
from simulation.sweep.sweep import Sweep


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken."""
    parser = argparse.ArgumentParser(prog="simulation.sweep", description=__doc__)
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try each N-th point")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then stop, and say so")
    options = parser.parse_args(arguments)
    logging.getLogger("puredelta").setLevel(logging.CRITICAL + 1)
    with tempfile.TemporaryDirectory(prefix="puredelta-sweep-") as directory:
        spark = _session(Path(directory))
        try:
            sweep = Sweep(spark, Path(directory), until=time.monotonic() + options.seconds)
            for name in options.commands:
                sweep.run(name, every=options.every)
                print_lines(*sweep.lines_of(name))
            print_lines(*sweep.summary())
        finally:
            spark.stop()
    return 1 if sweep.violations else 0


def _session(directory: Path) -> SparkSession:
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


if __name__ == "__main__":
    sys.exit(main())
