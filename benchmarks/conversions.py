"""Directories of Parquet files to be converted, and whether a conversion is right."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.replay import active_files
from benchmarks.tables import write_parquet

_ROWS_PER_FILE = 10
_FILES_PER_PARTITION = 5
_SCALE = {"S": 1_000, "M": 10_000, "L": 100_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A CONVERT."""

    name: str
    partitioned: bool

    @property
    def title(self) -> str:
        return self.name

    @property
    def partition_schema(self) -> str | None:
        return "day int" if self.partitioned else None

    def paths(self, size: str) -> list[str]:
        """Return the files, relative to the table."""
        if not self.partitioned:
            return [f"part-{n:06d}.snappy.parquet" for n in range(_SCALE[size])]
        return [
            f"day={day}/part-{n}.snappy.parquet"
            for day in range(_SCALE[size] // 10)
            for n in range(_FILES_PER_PARTITION)
        ]

    def lay(self, size: str, directory: Path) -> None:
        """Write the files, unless an earlier run left them there."""
        done = directory.with_suffix(".done")
        if done.exists():
            return
        for number, path in enumerate(self.paths(size)):
            ids = np.arange(_ROWS_PER_FILE) + number * _ROWS_PER_FILE
            rows = {"id": ids, "amount": ids * 0.5, "name": [f"name {n % 100}" for n in ids]}
            write_parquet(pa.table(rows), directory / path)
        done.touch()

    def copy(self, size: str, directory: Path, target: Path) -> None:
        """Make a directory of the same files."""
        for path in self.paths(size):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(directory / path, target / path)

    def problem(self, size: str, table: Path) -> str | None:
        """Say what is wrong with the table that a conversion made."""
        wanted = {path: _partition(path) for path in self.paths(size)}
        files = active_files(table)
        found = {
            str(file.path.relative_to(table)): file.add["partitionValues"].get("day")
            for file in files
        }
        if found != wanted:
            return f"{len(found)} files where {len(wanted)} were due, or other partitions"
        rows = [json.loads(f.add["stats"])["numRecords"] for f in files if f.add.get("stats")]
        if sum(rows) != _ROWS_PER_FILE * len(rows):
            return f"statistics tell of {sum(rows)} rows in {len(rows)} files"
        return None


def _partition(path: str) -> str | None:
    directory = path.partition("/")[0]
    return directory.removeprefix("day=") if directory.startswith("day=") else None


CONVERSIONS = (
    Conversion(name="convert_files", partitioned=False),
    Conversion(name="convert_partitioned", partitioned=True),
)
