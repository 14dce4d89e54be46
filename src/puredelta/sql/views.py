"""Rows under a name that SQL text can use, for the length of one statement."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import Protocol

from pyspark.sql import DataFrame
from typing_extensions import Self


class RowNames(Protocol):
    """Gives rows names that SQL text can use."""

    def add(self, rows: DataFrame) -> str:
        """Return the name of these rows."""
        ...


class TemporaryViews:
    """Temporary views with names nobody else uses, dropped on leaving the context."""

    def __init__(self) -> None:
        self._views: list[tuple[str, DataFrame]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name, rows in self._views:
            rows.sparkSession.catalog.dropTempView(name)

    def add(self, rows: DataFrame) -> str:
        """Return the name of a view of these rows; the same rows have one view."""
        for name, known in self._views:
            if known is rows:
                return name
        name = f"__puredelta_view_{uuid.uuid4().hex}"
        rows.createTempView(name)
        self._views.append((name, rows))
        return name
