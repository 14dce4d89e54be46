"""One command of the sweep, and the small table that most of them find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import puredelta

_LONG_AGO = timedelta(days=40).total_seconds()


def nothing(_: SparkSession, __: Path) -> None:
    """Find nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One command."""

    prepare: Callable[[SparkSession, Path], None]
    """Make what it finds, once."""
    run: Callable[[SparkSession, str], object]
    """Run it in a directory, named as users name one."""
    table: str | None = None
    """Its name in the catalog, if it makes an entry there."""
    is_managed: bool = False
    """Whether the directory is the catalog's, so that the entry comes first."""
    enter: Callable[[SparkSession, Path], None] = nothing
    """Tell the catalog of a copy of it."""
    drops: str | None = None
    """The feature that the table no longer supports afterwards."""


def small_rows(spark: SparkSession, first: int, end: int, value: str = "old") -> DataFrame:
    """Return rows of a few ids, each with one of three values."""
    return spark.range(first, end, 1, 2).selectExpr("id", f"concat('{value}', id % 3) AS v")


def small_table(**properties: str) -> Callable[[SparkSession, Path], None]:
    """Return what makes a table of two versions with a few files."""

    def make(spark: SparkSession, root: Path) -> None:
        settings = {name.replace("__", "."): value for name, value in properties.items()}
        path = str(root / "table")
        puredelta.write(small_rows(spark, 0, 20), path, properties=settings)
        puredelta.write(small_rows(spark, 20, 30), path, mode="append")

    return make


def statement(text: str) -> Callable[[SparkSession, str], object]:
    """Return what runs SQL in which ``{root}`` is the directory."""

    def run(spark: SparkSession, root: str) -> object:
        return puredelta.sql(spark, text.replace("{root}", root))

    return run


def age(directory: Path) -> None:
    """Let files look as if they were written long ago."""
    then = time.time() - _LONG_AGO
    for file in directory.iterdir():
        os.utime(file, (then, then))
