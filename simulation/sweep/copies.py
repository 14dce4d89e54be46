"""Copies of what statements find: every run has one to itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from simulation.sweep.subject import Subject


class Copies:
    """The directories of one simulation: templates by command, and numbered copies of them."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark, self._directory = spark, directory
        self._number = 0

    def template_of(self, name: str) -> Path:
        """Return where that is made which a command finds."""
        return self._directory / "templates" / name.replace(", ", "-")

    def make(self, template: Path) -> Path:
        """Return another copy; the catalog knows nothing of it."""
        self._number += 1
        root = self._directory / "runs" / str(self._number)
        shutil.copytree(template, root)
        return root

    def enter(self, subject: Subject, template: Path) -> Path:
        """Return another copy, of which the catalog knows."""
        root = self.make(template)
        subject.enter(self._spark, root)
        return root

    def forget(self, subject: Subject, root: Path) -> None:
        """Take a copy away, and its entry in the catalog."""
        if subject.table is not None:
            self._spark.sql(f"DROP TABLE IF EXISTS {subject.table}")
        shutil.rmtree(root)
