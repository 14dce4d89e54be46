"""A stand-in for a session, for commands that ask Spark for nothing but settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says of settings."""

    pairs: list[tuple[str, str | None]]


class Client:
    """``spark.client`` as far as commands ask it for defaults: there are none but `Settings`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stub = SimpleNamespace(ExecutePlan=None, Config=None)

    def config(self, operation: Any) -> Answer:
        assert operation.WhichOneof("op_type") == "get_option"
        return Answer([(key, self._settings.get(key)) for key in operation.get_option.keys])


class SameDisk:
    """``spark.read`` and its rows, of a server that sees the files of this machine."""

    def __init__(self, uris: Sequence[str] = ()) -> None:
        self._uris = uris

    def format(self, name: str) -> SameDisk:
        assert name == "binaryFile"
        return self

    def option(self, *_: str) -> SameDisk:
        return self

    def load(self, patterns: Sequence[str]) -> SameDisk:
        return SameDisk([re.sub(r"\\\\(.)", r"\1", pattern) for pattern in patterns])

    def select(self, name: str) -> SameDisk:
        assert name == "length"
        return self

    def collect(self) -> list[tuple[int]]:
        return [(Path(uri.removeprefix("file:")).stat().st_size,) for uri in self._uris]


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
        self.client = Client(self.conf)
        self.read = SameDisk()

    def addTag(self, tag: str) -> None:  # noqa: N802 - PySpark's name
        """No job is ever tagged."""

    def removeTag(self, tag: str) -> None:  # noqa: N802
        """No job is ever tagged."""
