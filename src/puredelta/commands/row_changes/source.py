"""The source of a MERGE: rows that every pass sees alike, each known by its file and row index.

A source that is nothing but Parquet files is read where it lies, and must be the same at the
end. Any other is evaluated exactly once and kept as hidden Parquet files (M-153): it need not
be deterministic then, and survives the loss of an executor. Either way the footers give the
number of rows and the bounds of the keys without another job.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.row_changes.plan import SourceProfile
from puredelta.commands.row_changes.statement import EquiPair, ResolvedStatement
from puredelta.log.footers.file_stats import LeafPath, LeafStatistics
from puredelta.protocol.schema.types import INTEGRAL, DecimalType, PrimitiveType
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.scan import scan_parquet
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.helper_columns import (
    FILE_ORDINAL,
    PREFIX,
    ROW_INDEX,
    SOURCE_FILE,
    SOURCE_ROW,
)
from puredelta.spark.session.types import quoted
from puredelta.spark.source.in_place import SourceFiles, plain_type, source_files
from puredelta.spark.source.plain_scan import plain_scan
from puredelta.spark.source.staging import StagedRows, stage_rows
from puredelta.store.base import Store
from puredelta.store.loose_files import open_file
from puredelta.worker.key_index import run_starts

_NO_COLUMN = f"{PREFIX}present"
_DISTINCT_ROWS_MAX = 200_000
"""Staged rows up to which the driver looks at the keys themselves."""
_DISTINCT_VALUES_MAX = 2_000
"""Values that are kept as objects; whole numbers are kept as such, however many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSource:
    """The rows of the source, in files of ours until `remove`, or in its own."""

    staged: StagedRows | None
    """``None`` for a statement without a source."""
    schema: T.StructType
    """Of the frame that was staged: columns by staged name."""
    profile: SourceProfile
    file_columns: Mapping[str, str] = field(default_factory=dict)
    """By staged name the name of a column inside the files, where that is another."""
    in_place: SourceFiles | None = None
    """The source's own files, if it is read where it lies."""
    handling: str = "without a source"
    """What became of the source and why, for the log."""

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

    @property
    def materialized(self) -> bool:
        """Whether its rows were written to files of ours."""
        return self.staged is not None and self.in_place is None

    def file_column(self, staged: str) -> str:
        """Return the name that a staged column has inside the files."""
        return self.file_columns.get(staged, staged)

    def rows(self, spark: SparkSession, columns: Collection[str]) -> DataFrame:
        """Return staged columns with the position of each row (`SOURCE_FILE`, `SOURCE_ROW`)."""
        wanted = [field for field in self.schema.fields if field.name in columns]
        stored = {
            self.file_column(f.name): _storable(f.dataType)
            for f in wanted
            if not isinstance(f.dataType, T.NullType)
        }
        schema = T.StructType([T.StructField(name, kind) for name, kind in stored.items()])
        files = () if self.staged is None else self.staged.files
        rows = scan_parquet(spark, files, schema=schema, with_position=True)
        if self.file_columns:
            named = {f.name: self.file_column(f.name) for f in wanted}
            named |= {SOURCE_FILE: FILE_ORDINAL, SOURCE_ROW: ROW_INDEX}
            return rows.selectExpr(*(f"{quoted(old)} AS {new}" for new, old in named.items()))
        rows = rows.withColumnsRenamed({FILE_ORDINAL: SOURCE_FILE, ROW_INDEX: SOURCE_ROW})
        voids = {f.name: F.lit(None) for f in wanted if isinstance(f.dataType, T.NullType)}
        return rows.withColumns(voids) if voids else rows

    def require_unchanged(self) -> None:
        """Call it after the last read, before anything is committed.

        Raises:
            DeltaError: a file of a source that is read in place changed.
        """
        if self.in_place is not None:
            self.in_place.require_unchanged()

    def remove(self, store: Store) -> None:
        """Delete the files that are ours; gone already is no error."""
        if self.staged is not None:
            self.staged.remove(store)


def stage_source(
    source_rows: DataFrame,
    statement: ResolvedStatement,
    *,
    spark: SparkSession,
    store: Store,
    must_stage: str | None = None,
) -> StagedSource:
    """Read the source where it lies, if it is a plain scan of Parquet files; else evaluate its
    referenced columns once and write them: one Spark job, and what the user's own plan adds.

    ``must_stage`` is why it must be written, if the session says so. If this fails nothing is
    left behind.
    """
    found = (
        NotApplicable(reason=must_stage) if must_stage else _in_place(source_rows, statement, spark)
    )
    if isinstance(found, StagedSource):
        return found
    return _staged(source_rows, statement, store=store, reason=found.reason)


def _staged(
    source_rows: DataFrame, statement: ResolvedStatement, *, store: Store, reason: str
) -> StagedSource:
    rows = statement.frames.staging(source_rows)
    staged = stage_rows(statement.instant.fix(_storable_rows(rows)), store=store)
    try:
        distinct = _distinct_keys(
            staged,
            statement.on.parts.pairs,
            name=str,
            open_file=lambda file: store.open(f"{staged.directory}/{file.name}"),
        )
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
        handling=f"{staged.num_rows} source rows were staged ({reason})",
    )


def _in_place(
    source_rows: DataFrame, statement: ResolvedStatement, spark: SparkSession
) -> StagedSource | NotApplicable:
    """Return the source in its own files, if they can stand for staged ones."""
    scan = plain_scan(spark, source_rows)
    if isinstance(scan, NotApplicable):
        return scan
    wanted = {c.staged: scan.fields[c.ordinal] for c in statement.source_columns}
    if any(wanted[c.staged].dataType != c.type for c in statement.source_columns):
        return NotApplicable(reason="its columns have other types than its files")
    columns = {staged: field.name for staged, field in wanted.items()}
    paths = [pair.source.path for pair in statement.on.parts.pairs]
    files = source_files(
        scan,
        wanted={field.name: field for field in wanted.values()}.values(),
        keys=frozenset(columns[path[0]] for path in paths),
    )
    if isinstance(files, NotApplicable):
        return files
    rows = files.rows
    try:
        distinct = _distinct_keys(
            rows,
            statement.on.parts.pairs,
            name=columns.__getitem__,
            open_file=lambda file: open_file(file.uri),
        )
    except (OSError, pa.ArrowException) as failure:
        return NotApplicable(reason=f"{type(failure).__name__}: {failure}")
    return StagedSource(
        staged=rows,
        schema=T.StructType([T.StructField(c.staged, c.type) for c in statement.source_columns]),
        profile=SourceProfile(
            num_rows=rows.num_rows,
            size_bytes=files.column_bytes,
            bounds=_by_staged_name(rows.columns, columns),
            distinct=distinct,
        ),
        file_columns=columns,
        in_place=files,
        handling=f"{rows.num_rows} source rows are read from its own {len(rows.files)} files",
    )


def _by_staged_name(
    leaves: Mapping[LeafPath, LeafStatistics], columns: Mapping[str, str]
) -> dict[LeafPath, LeafStatistics]:
    """Return what is known of the files' columns for each staged name they have."""
    return {
        (staged, *path[1:]): leaf
        for staged, name in columns.items()
        for path, leaf in leaves.items()
        if path[0] == name
    }


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
    staged: StagedRows,
    pairs: Iterable[EquiPair],
    *,
    name: Callable[[str], str],
    open_file: Callable[[DataFile], BinaryIO],
) -> dict[LeafPath, Sequence[Any]]:
    """Read the keys themselves where they are few: a range says little of scattered values.

    ``name`` gives a staged column the name it has in the files.
    """
    if staged.num_rows > _DISTINCT_ROWS_MAX:
        return {}
    columns = {
        pair.source.path: (name(pair.source.path[0]), pair.source.type)
        for pair in pairs
        if len(pair.source.path) == 1
        and isinstance(pair.source.type, PrimitiveType | DecimalType)
        and pair.target.type == pair.source.type
    }
    if not columns or not staged.files:
        return {}
    wanted = sorted({column for column, _ in columns.values()})
    tables = []
    for file in staged.files:
        with open_file(file) as opened:
            tables.append(pq.ParquetFile(opened).read(columns=wanted))
    found = {
        path: _distinct([table[column] for table in tables], whole=kind in INTEGRAL)
        for path, (column, kind) in columns.items()
    }
    return {path: values for path, values in found.items() if values is not None}


def _distinct(parts: Sequence[pa.ChunkedArray], *, whole: bool) -> Sequence[Any] | None:
    """Return the values of a column but NULL, whole numbers in an array; ``None``: too many."""
    plain = [part.cast(pa.int64() if whole else plain_type(part.type)) for part in parts]
    values = pa.chunked_array([chunk for part in plain for chunk in part.chunks], plain[0].type)
    if whole:
        numbers = np.sort(pc.drop_null(values).to_numpy())  # a fifth of the time of np.unique
        return array("q", numbers[run_starts(numbers)].tobytes())
    distinct = pc.drop_null(pc.unique(values))
    return tuple(distinct.to_pylist()) if len(distinct) <= _DISTINCT_VALUES_MAX else None
