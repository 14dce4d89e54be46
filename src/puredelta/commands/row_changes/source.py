"""The source of a MERGE, evaluated exactly once and kept as hidden Parquet files (1.10).

It need not be deterministic then, and survives the loss of an executor. The footers give
its rows and the bounds of its keys without another job; a staged row is identified by its
file and row index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.row_changes.plan import SourceProfile
from puredelta.commands.row_changes.statement import EquiPair, ResolvedStatement
from puredelta.log.file_stats import LeafPath
from puredelta.protocol.types import DecimalType, PrimitiveType
from puredelta.spark.names import FILE_ORDINAL, PREFIX, ROW_INDEX, SOURCE_FILE, SOURCE_ROW
from puredelta.spark.scan import scan_parquet
from puredelta.spark.staging import StagedRows, stage_rows
from puredelta.store.base import Store

_NO_COLUMN = f"{PREFIX}present"
_DISTINCT_ROWS_MAX = 200_000
"""Staged rows up to which the driver looks at the keys themselves."""
_DISTINCT_VALUES_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSource:
    """The rows of the source, in files of ours until `remove`."""

    staged: StagedRows | None
    """``None`` for a statement without a source."""
    schema: T.StructType
    """Of the frame that was staged: columns by staged name."""
    profile: SourceProfile

    @classmethod
    def none(cls) -> StagedSource:
        """Return the source of a statement that has none: no row, no file, no job."""
        return cls(
            staged=None, schema=T.StructType(), profile=SourceProfile(num_rows=0, size_bytes=0)
        )

    @property
    def num_rows(self) -> int:
        """How many rows the source has."""
        return self.profile.num_rows

    @property
    def row_counts(self) -> tuple[int, ...]:
        """How many rows each staged file has, by `SOURCE_FILE`."""
        return () if self.staged is None else self.staged.row_counts

    def rows(self, spark: SparkSession, columns: Collection[str]) -> DataFrame:
        """Return staged columns with the position of each row (`SOURCE_FILE`, `SOURCE_ROW`)."""
        wanted = [field for field in self.schema.fields if field.name in columns]
        stored = T.StructType([f for f in wanted if not isinstance(f.dataType, T.NullType)])
        files = () if self.staged is None else self.staged.files
        rows = scan_parquet(
            spark, files, schema=_storable(stored), with_position=True
        ).withColumnsRenamed({FILE_ORDINAL: SOURCE_FILE, ROW_INDEX: SOURCE_ROW})
        voids = {f.name: F.lit(None) for f in wanted if isinstance(f.dataType, T.NullType)}
        return rows.withColumns(voids) if voids else rows

    def remove(self, store: Store) -> None:
        """Delete the files; gone already is no error."""
        if self.staged is not None:
            self.staged.remove(store)


def stage_source(
    source_rows: DataFrame, statement: ResolvedStatement, *, store: Store
) -> StagedSource:
    """Evaluate the source's referenced columns once and write them. Runs one Spark job, and
    what the user's own plan adds to it.

    If it fails nothing is left behind.
    """
    rows = statement.frames.staging(source_rows)
    staged = stage_rows(statement.instant.fix(_storable_rows(rows)), store=store)
    try:
        distinct = _distinct_keys(staged, statement.on.parts.pairs, store)
    except BaseException:
        staged.remove(store)
        raise
    return StagedSource(
        staged=staged,
        schema=rows.schema,
        profile=SourceProfile(
            num_rows=staged.num_rows,
            size_bytes=staged.size_bytes,
            bounds=staged.columns,
            distinct=distinct,
        ),
    )


def _storable_rows(rows: DataFrame) -> DataFrame:
    """Give Parquet what it can hold: a column of type VOID is put back when read."""
    fields = [f for f in rows.schema.fields if not isinstance(f.dataType, T.NullType)]
    if not fields:
        return rows.select(F.lit(1).alias(_NO_COLUMN))
    stored = {f.name: _storable(f.dataType) for f in fields}
    kept = rows if len(fields) == len(rows.columns) else rows.select(*stored)
    changed = {
        f.name: F.col(f.name).cast(stored[f.name]) for f in fields if stored[f.name] != f.dataType
    }
    return kept.withColumns(changed) if changed else kept


def _storable(kind: Any) -> Any:
    """Replace VOID inside nested types by STRING: its only value is NULL either way."""
    match kind:
        case T.NullType():
            return T.StringType()
        case T.StructType():
            return T.StructType(
                [
                    T.StructField(f.name, _storable(f.dataType), f.nullable, f.metadata)
                    for f in kind.fields
                ]
            )
        case T.ArrayType():
            return T.ArrayType(_storable(kind.elementType), kind.containsNull)
        case T.MapType():
            return T.MapType(
                _storable(kind.keyType), _storable(kind.valueType), kind.valueContainsNull
            )
        case _:
            return kind


def _distinct_keys(
    staged: StagedRows, pairs: Iterable[EquiPair], store: Store
) -> dict[LeafPath, tuple[Any, ...]]:
    """Read the keys themselves where they are few: a range says little of scattered values."""
    if staged.num_rows > _DISTINCT_ROWS_MAX:
        return {}
    found: dict[LeafPath, tuple[Any, ...]] = {}
    for pair in pairs:
        simple = isinstance(pair.source.type, PrimitiveType | DecimalType)
        if len(pair.source.path) == 1 and simple and pair.target.type == pair.source.type:
            values = _distinct(staged, pair.source.path[0], store)
            if len(values) <= _DISTINCT_VALUES_MAX:
                found[pair.source.path] = tuple(values.to_pylist())
    return found


def _distinct(staged: StagedRows, column: str, store: Store) -> pa.Array:
    """Return the values of a staged column, NULL left out."""
    found = []
    for file in staged.files:
        with store.open(f"{staged.directory}/{file.name}") as opened:
            found.append(pc.unique(pq.read_table(opened, columns=[column])[column]))
    return pc.drop_null(pc.unique(pa.chunked_array(found))) if found else pa.nulls(0)
