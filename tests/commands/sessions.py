"""A stand-in for a session, for commands that ask Spark for nothing but settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Settings:
    """``spark.conf`` as far as commands use it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self._values.get(key, default)

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 - PySpark's name
        return dict(self._values)


class FakeSession:
    """A session that runs nothing and, like one of Spark Connect, has no JVM in reach."""

    __module__ = "pyspark.sql.connect.fake"
    version = "4.1.0"

    def __init__(self, **settings: str) -> None:
        """Keyword names spell dots as two underscores."""
        values = {key.replace("__", "."): value for key, value in settings.items()}
        values.setdefault("spark.sql.caseSensitive", "false")
        values.setdefault("spark.hadoop.fs.defaultFS", "file:///")
        self.conf: Any = Settings(values)

    def addTag(self, tag: str) -> None:  # noqa: N802 - PySpark's name
        """No job is ever tagged."""

    def removeTag(self, tag: str) -> None:  # noqa: N802
        """No job is ever tagged."""
