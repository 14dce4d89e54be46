"""A driver that runs one command whose jobs take their time over every row, until it is killed.

python -m simulation.kills.victim COMMAND DIRECTORY
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import cloudpickle
from pyspark.sql.readwriter import DataFrameWriter

from puredelta.spark.session import data_access
from puredelta.worker.files import NewFile
from simulation.kills import slow_worker
from simulation.sweep.commands import EVERY
from simulation.sweep.session import sweep_session

cloudpickle.register_pickle_by_value(slow_worker)  # type: ignore[no-untyped-call]

_SLOW = "coalesce(reflect('java.lang.Thread', 'sleep', bigint(500)), 'slept') = 'slept'"
"""Half a second a row, in the JVM; the planner cannot know that it is always true."""


@contextlib.contextmanager
def slow_jobs() -> Iterator[None]:
    """Let whoever writes data files wait at each row or file."""
    parquet = _slow(DataFrameWriter.parquet)
    sink = slow_worker.slow(NewFile.sink)
    with (
        patch.object(DataFrameWriter, "parquet", parquet),
        patch.object(NewFile, "sink", sink),
    ):
        data_access.packed_code.cache_clear()
        yield
    data_access.packed_code.cache_clear()


def _slow(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def parquet(writer: Any, path: str, *_: Any, **__: Any) -> Any:
        return original(writer._df.where(_SLOW).write, path)  # noqa: SLF001 - its frame

    return parquet


def main() -> None:
    """Run the command; whoever started this is to end it before."""
    name, directory = sys.argv[1], Path(sys.argv[2])
    spark = sweep_session(directory.with_suffix(".session"))
    subject = EVERY[name]
    subject.enter(spark, directory)
    with slow_jobs():
        subject.run(spark, str(directory))


if __name__ == "__main__":
    main()
