"""The Python that Spark asks for its data sources, where it is not this one.

Spark starts PYSPARK_PYTHON, else the ``python3`` of the PATH. Where that lacks this package (a
notebook's kernel, ``venv/bin/python job.py``), ``saveAsTable`` would not know the format.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from puredelta.activation.source.data_source import DeltaSource

_WAIT_SECONDS = 20


def let_spark_find_source(spark: SparkSession) -> None:
    """Register the data source in a local session, to be run by this Python; warn in others.

    Does nothing where PYSPARK_PYTHON is set or the ``python3`` of the PATH is this one. Workers of
    the user's own functions stay what they are.
    """
    if os.environ.get("PYSPARK_PYTHON") or not sys.executable:
        return
    python = shutil.which("python3")
    if python is not None and _is_this(python):
        return
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        known = context.pythonExec
        context.pythonExec = sys.executable
        try:
            spark.dataSource.register(DeltaSource)
        finally:
            context.pythonExec = known
    elif python is None or not _has_package(python):
        warnings.warn(
            f"Spark starts {python or 'python3, which is not on the PATH'} for Python code, and "
            "that Python cannot import puredelta: saveAsTable fails with DATA_SOURCE_NOT_FOUND. "
            "Install puredelta there, or set PYSPARK_PYTHON to a Python that has it before the "
            f"session starts (here: PYSPARK_PYTHON={sys.executable}).",
            stacklevel=3,
        )


def _is_this(python: str) -> bool:
    """Return whether a program lies where this Python does: links lead out of environments."""
    return Path(python).parent.resolve() == Path(sys.executable).parent.resolve()


def _has_package(python: str) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - the Python that Spark starts
            [python, "-c", "import puredelta"], capture_output=True, check=False,
            timeout=_WAIT_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
