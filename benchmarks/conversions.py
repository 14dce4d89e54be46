"""Directories of Parquet files to be converted, and whether a conversion is right."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.replay import active_files
from benchmarks.tables import write_parquet

_ROWS_PER_FILE = 10
_DISTINCT_FILES = 1_000
"""The others are links to these: more would be laid slowly, and no engine can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A CONVERT."""

    name: str
    partitions: int | None = None
    files: int
    """Of the directory; of each partition, where there are some."""
    columns: int = 3
    """Of the files, besides those of the partition."""

    @property
    def title(self) -> str:
        if self.partitions is None:
            return f"{self.name} ({self.files})"
        return f"{self.name} ({self.partitions} x {self.files})"

    @property
    def directory(self) -> str:
        """What the directory of the files is called."""
        return f"{self.name}-{self.partitions or 1}-{self.files}"

    @property
    def partition_schema(self) -> str | None:
        return None if self.partitions is None else "day int"

    def paths(self) -> list[str]:
        """Return the files, relative to the table."""
        names = [f"part-{n:06d}.snappy.parquet" for n in range(self.files)]
        if self.partitions is None:
            return names
        return [f"day={day}/{name}" for day in range(self.partitions) for name in names]

    def lay(self, directory: Path) -> None:
        """Write the files, unless an earlier run left them there."""
        done = directory.with_suffix(".done")
        if done.exists():
            return
        shutil.rmtree(directory, ignore_errors=True)
        paths = [directory / path for path in self.paths()]
        for number, path in enumerate(paths):
            if number < _DISTINCT_FILES:
                write_parquet(_rows(number, self.columns), path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.link(paths[number % _DISTINCT_FILES], path)
        done.touch()

    def copy(self, directory: Path, target: Path) -> None:
        """Make a directory of the same files."""
        for path in self.paths():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            os.link(directory / path, target / path)

    def problem(self, table: Path) -> str | None:
        """Say what is wrong with the table that a conversion made."""
        wanted = {path: _partition(path) for path in self.paths()}
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


def _rows(number: int, columns: int) -> pa.Table:
    """Return rows of whole numbers, fractions and texts in turn, all of other values per file."""
    ids = np.arange(_ROWS_PER_FILE) + number * _ROWS_PER_FILE
    kinds = (
        ("id", ids),
        ("amount", ids * 0.5),
        ("name", [f"name {n % 100}" for n in ids]),
    )
    picked = ((n, *kinds[n % len(kinds)]) for n in range(columns))
    return pa.table({f"{name}{n // len(kinds) or ''}": values for n, name, values in picked})


def _partition(path: str) -> str | None:
    directory = path.partition("/")[0]
    return directory.removeprefix("day=") if directory.startswith("day=") else None


_FILES, _PARTITIONED = "convert_files", "convert_partitioned"
_WIDE, _WIDE_PARTITIONED = "convert_wide_files", "convert_wide_partitioned"
_WIDE_COLUMNS = 24
CONVERSIONS = (
    Conversion(name=_FILES, files=1_000),
    Conversion(name=_PARTITIONED, partitions=100, files=5),
    Conversion(name=_FILES, files=10_000),
    Conversion(name=_PARTITIONED, partitions=1_000, files=5),
    Conversion(name=_FILES, files=100_000),
    Conversion(name=_WIDE, files=10_000, columns=_WIDE_COLUMNS),
    Conversion(name=_WIDE_PARTITIONED, partitions=1_000, files=5, columns=_WIDE_COLUMNS),
)
_SMALL = CONVERSIONS[:2]
_USUAL = CONVERSIONS[2:4]


def main_conversions(size: str) -> tuple[Conversion, ...]:
    """Return those that are measured where nobody chooses."""
    return _SMALL if size == "S" else _USUAL
