"""The staged source of a statement: rows identified by file and row index.

A source column has three names: the user's, the *staged name* in the resolved statement,
and the name of a column inside the source's files. Only `ColumnNames` turns a staged name
into the name inside the files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.dml.source_texts import SourceTexts
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.scan import scan_parquet
from puredelta.spark.session.names import (
    FILE_ORDINAL,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.types import quoted
from puredelta.spark.source.in_place import SourceFiles
from puredelta.spark.source.staging import StagedRows
from puredelta.store.base import Store
from puredelta.store.registry import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The names of source columns inside the files."""

    in_files: Mapping[str, str] = field(default_factory=dict)
    """By staged name; empty where files of this library have the staged names."""

    def in_file(self, staged: str) -> str:
        """Return the name of a staged column inside the files."""
        return self.in_files.get(staged, staged)

    def by_staged_name(
        self, leaves: Mapping[LeafPath, LeafStatistics]
    ) -> Mapping[LeafPath, LeafStatistics]:
        """Return the footers' facts about columns by staged name, for each name of a column."""
        if not self.in_files:
            return leaves
        return {
            (staged, *path[1:]): leaf
            for staged, name in self.in_files.items()
            for path, leaf in leaves.items()
            if path[0] == name
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProfile:
    """Facts about the source's rows that need no second read."""

    num_rows: int
    size_bytes: int
    bounds: Mapping[LeafPath, LeafStatistics] = field(default_factory=dict)
    """By staged path."""
    distinct: Mapping[LeafPath, Sequence[Any]] = field(default_factory=dict)
    """All values but NULL, where they are few; whole numbers in an ``array("q")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSource:
    """The rows of the source, in files of this library until `remove`, or in its own files."""

    staged: StagedRows | None
    """``None`` for a statement without a source."""
    schema: T.StructType
    """The schema of the staged frame: columns by staged name."""
    profile: SourceProfile
    names: ColumnNames = field(default_factory=ColumnNames)
    texts: SourceTexts | None = field(default=None, repr=False)
    """Sizes of its texts; ``None`` if they are unknown."""
    in_place: SourceFiles | None = None
    """The source's own files, if they are read in place."""
    mode: str = "without a source"
    """The way the source is read, with the reason, for the log."""
    is_known: bool = True
    """Whether rows and keys were read; else the profile is a placeholder."""

    @classmethod
    def none(cls) -> StagedSource:
        """Return the source of a statement that has none: no row, no file, no job."""
        return cls(
            staged=None, schema=T.StructType(), profile=SourceProfile(num_rows=0, size_bytes=0)
        )

    @classmethod
    def unread(cls, reason: str) -> StagedSource:
        """Return an unread source that would be staged: some rows, of which nothing is known."""
        return cls(
            staged=None,
            schema=T.StructType(),
            profile=SourceProfile(num_rows=1, size_bytes=0),
            mode=f"the source will be staged ({reason})",
            is_known=False,
        )

    @property
    def num_rows(self) -> int:
        """The number of rows of the source."""
        return self.profile.num_rows

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files with the rows."""
        return () if self.staged is None else self.staged.files

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The number of rows of each file, by `SOURCE_FILE`."""
        return () if self.staged is None else self.staged.row_counts

    @property
    def is_materialized(self) -> bool:
        """Whether the rows were written to files of this library."""
        return self.staged is not None and self.in_place is None

    def describe(self) -> str:
        """Return one line for the log."""
        return self.mode

    def rows(self, spark: SparkSession, columns: Collection[str]) -> DataFrame:
        """Return staged columns with the position of each row (`SOURCE_FILE`, `SOURCE_ROW`)."""
        wanted = [field for field in self.schema.fields if field.name in columns]
        stored = {
            self.names.in_file(f.name): storable(f.dataType)
            for f in wanted
            if not isinstance(f.dataType, T.NullType)
        }
        schema = T.StructType([T.StructField(name, kind) for name, kind in stored.items()])
        open_at = open_store if self.staged is None else self.staged.open_at
        rows = scan_parquet(spark, self.files, schema=schema, with_position=True, open_at=open_at)
        if self.names.in_files:
            named = {f.name: self.names.in_file(f.name) for f in wanted}
            named |= {SOURCE_FILE: FILE_ORDINAL, SOURCE_ROW: ROW_INDEX}
            return rows.selectExpr(*(f"{quoted(old)} AS {new}" for new, old in named.items()))
        rows = rows.withColumnsRenamed({FILE_ORDINAL: SOURCE_FILE, ROW_INDEX: SOURCE_ROW})
        voids = {f.name: F.lit(None) for f in wanted if isinstance(f.dataType, T.NullType)}
        return rows.withColumns(voids) if voids else rows

    def require_unchanged(self) -> None:
        """Check the files after the last read, before anything is committed."""
        if self.in_place is not None:
            self.in_place.require_unchanged()

    def remove(self, store: Store) -> None:
        """Delete the files of this library; a missing file is no error."""
        if self.staged is not None:
            self.staged.remove(store)


def storable(kind: Any) -> Any:
    """Replace VOID inside nested types by STRING: its only value is NULL either way."""
    match kind:
        case T.NullType():
            return T.StringType()
        case T.StructType():
            return T.StructType(
                [
                    T.StructField(f.name, storable(f.dataType), f.nullable, f.metadata)
                    for f in kind.fields
                ]
            )
        case T.ArrayType():
            return T.ArrayType(storable(kind.elementType), kind.containsNull)
        case T.MapType():
            return T.MapType(
                storable(kind.keyType), storable(kind.valueType), kind.valueContainsNull
            )
        case _:
            return kind
