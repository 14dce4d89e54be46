"""What an engine is asked to do: JSON objects, made here and understood by every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

Request: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]
Command: TypeAlias = Callable[[], object]
"""What an engine makes of a request: the part that is timed."""


HADOOP = "PUREDELTA_BENCH_HADOOP"
"""Hadoop's settings of every Spark session, as JSON in the environment of an engine."""
STORAGE_OPTIONS = "PUREDELTA_BENCH_STORAGE_OPTIONS"
"""The same for delta-rs."""


class Kind(Enum):
    """The clauses of MERGE that occur."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"
    DELETE_BY_SOURCE = "delete_by_source"


ClauseTexts: TypeAlias = Sequence[tuple[str, str | None]]
"""Pairs of a `Kind`'s value and a condition."""


def merge_request(
    table: Path, source: Path, on: str, clauses: Iterable[tuple[Kind, str | None]]
) -> Request:
    """Ask for a MERGE of a Parquet file into a table."""
    texts: ClauseTexts = [(kind.value, condition) for kind, condition in clauses]
    return {"do": "merge", "table": str(table), "source": str(source), "on": on, "clauses": texts}


def convert_request(table: Path, partition_schema: str | None) -> Request:
    """Ask for a CONVERT of a directory."""
    return {"do": "convert", "table": str(table), "partition_schema": partition_schema}


def sql_request(
    text: str,
    views: Mapping[str, Path] = MappingProxyType({}),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Request:
    """Ask Spark for a statement, with views of Parquet files."""
    named = {view: str(path) for view, path in views.items()}
    return {"do": "sql", "text": text, "views": named, "settings": dict(settings)}


def copy_request(files: Iterable[Path], source: Path, target: Path) -> Request:
    """Ask for a copy of files and of a source, by Spark alone."""
    names = [str(file) for file in files]
    return {"do": "copy", "files": names, "source": str(source), "target": str(target)}


def with_clauses(builder: Any, clauses: ClauseTexts, methods: Mapping[Kind, str]) -> Any:
    """Add clauses to the builder of an engine, whose ``methods`` take a condition or None."""
    for kind, condition in clauses:
        builder = getattr(builder, methods[Kind(kind)])(condition)
    return builder
