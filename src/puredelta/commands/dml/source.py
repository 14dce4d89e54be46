"""Stage 3: the rows of the source, the same in every later stage.

A plain scan of Parquet files is read in place, and its files must be unchanged at the end. Any
other source is evaluated exactly once and kept as hidden Parquet files, so that it need not be
deterministic and survives the loss of an executor. In both cases the footers give the number of
rows and the bounds of the keys without another job.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.command import Command
from puredelta.commands.dml.lookup_plan import plan_lookup
from puredelta.commands.dml.resolve.conditions import range_pair, with_staged_values
from puredelta.commands.dml.resolve.resolved_statement import (
    EquiPair,
    ResolvedStatement,
    StagedValue,
)
from puredelta.commands.dml.settings import ExecutionSettings, KeyLimits
from puredelta.commands.dml.source_texts import SourceTexts
from puredelta.commands.dml.spec import Asked, StatisticsPrefetch
from puredelta.commands.dml.staged_source import (
    ColumnNames,
    SourceProfile,
    StagedSource,
    plain_type,
    source_files,
    storable,
)
from puredelta.commands.finish import remove_quietly
from puredelta.errors import DeltaError
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.schema.predicates import references
from puredelta.protocol.schema.types import INTEGRAL, TIMESTAMP, DecimalType, PrimitiveType
from puredelta.protocol.table.row_tracking import RowTrackingColumns, tracked_columns
from puredelta.protocol.table.stats import LeafPath, LeafStatistics
from puredelta.spark.scan.data_file import DataFile
from puredelta.spark.scan.plain_scan import plain_scan
from puredelta.spark.scan.row_tracking_scan import tracked_scan
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.names import FAILED, PREFIX
from puredelta.spark.session.session import NotApplicable
from puredelta.spark.write.staging import StagedRows, stage_rows
from puredelta.store.base import Store
from puredelta.store.registry import open_file
from puredelta.worker.lookup.key_index import run_starts
from puredelta.worker.read_rows import OpenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """One statement on one snapshot, unchanged while the statement runs."""

    command: Command
    settings: ExecutionSettings
    statement: ResolvedStatement
    source: StagedSource
    statistics: StatisticsPrefetch
    """Statistics of the snapshot's files, while they are parsed."""

    def describe(self) -> str:
        """Return one line for the log."""
        return self.source.describe()

    @property
    def spark(self) -> SparkSession:
        """The session that runs the statement."""
        return self.command.spark

    @property
    def snapshot(self) -> Snapshot:
        """The version that the statement reads."""
        return self.command.snapshot

    @property
    def store(self) -> Store:
        """The store of the table's files."""
        return self.command.log.store

    @property
    def tracked(self) -> RowTrackingColumns | None:
        """The location of row ids, if the table tracks rows (M-110)."""
        return tracked_columns(self.snapshot.config)

    def target_rows(
        self, files: FileTable, columns: Collection[str], *, with_row_ids: bool = False
    ) -> DataFrame:
        """Scan ``columns`` of ``files`` with positions (`FILE_ORDINAL`, `ROW_INDEX`).

        ``with_row_ids`` adds `ROW_ID`, for a table that tracks rows. The result is not yet a frame
        of the statement: helper columns may be added before `target_frame`.
        """
        wanted = [name for name in self.snapshot.config.schema.names if name in columns]
        if with_row_ids and self.tracked is not None:
            return tracked_scan(self.spark, self.snapshot, files, self.tracked, columns=wanted)
        return scan(self.spark, self.snapshot, files, columns=wanted, with_position=True)

    def target_frame(self, files: FileTable, columns: Collection[str]) -> DataFrame:
        """Return the same rows under the user's names and aliases."""
        return self.statement.frames.target(self.target_rows(files, columns))

    def source_frame(self, columns: Collection[str]) -> DataFrame:
        """Return source rows with positions (`SOURCE_FILE`, `SOURCE_ROW`), under the user's
        names.
        """
        return self.statement.frames.source(self.source.rows(self.spark, columns))


def read_distinct_keys(
    staged: StagedRows,
    pairs: Iterable[EquiPair],
    names: ColumnNames,
    *,
    limits: KeyLimits,
    open_file: Callable[[DataFile], BinaryIO],
) -> Mapping[LeafPath, Sequence[Any]]:
    """Return all values but NULL of the keys of ``pairs``, by staged path, where they are few."""
    if staged.num_rows > limits.rows_max or staged.only_spark:
        return {}
    columns = {
        pair.source.path: (names.in_file(pair.source.path[0]), pair.source.type)
        for pair in pairs
        if len(pair.source.path) == 1
        and isinstance(pair.source.type, PrimitiveType | DecimalType)
        and pair.target.type == pair.source.type
    }
    if not columns or not staged.files:
        return {}
    known: dict[str, _Keys] = {
        column: _WholeNumbers() if kind in INTEGRAL else _FewValues(limits)
        for column, kind in columns.values()
    }
    # The old form of timestamps does not say that they are instants.
    instants = {column for column, kind in columns.values() if kind == TIMESTAMP}
    for file in staged.files:
        with open_file(file) as opened:
            source = OpenFile(pa.PythonFile(opened, mode="r"))
            source.require_sound()
            for batch in source.read(_KEY_ROWS, leaves=source.leaves_of(known)):
                for column, keys in known.items():
                    keys.add(batch[column].cast(_INSTANT) if column in instants else batch[column])
    found = {path: known[column].values() for path, (column, _) in columns.items()}
    return {path: values for path, values in found.items() if values is not None}


def read_bounds(
    staged: StagedRows, names: Collection[str], *, open_file: Callable[[DataFile], BinaryIO]
) -> Mapping[LeafPath, LeafStatistics]:
    """Return the bounds of columns of timestamps whose footers tell none; of years that Python does
    not have, none.
    """
    found: dict[str, list[pa.Array]] = {name: [] for name in names}
    for file in staged.files if names else ():
        with open_file(file) as opened:
            source = OpenFile(pa.PythonFile(opened, mode="r"))
            source.require_sound()
            for batch in source.read(_KEY_ROWS, leaves=source.leaves_of(names)):
                for name, parts in found.items():
                    parts.append(batch[name].cast(_INSTANT))
    return {(name,): _bounds(pa.chunked_array(parts, _INSTANT)) for name, parts in found.items()}


def _bounds(instants: pa.ChunkedArray) -> LeafStatistics:
    try:
        low, high = (one.as_py() for one in pc.min_max(instants).values())
    except (OverflowError, ValueError):
        return LeafStatistics(null_count=instants.null_count)
    return LeafStatistics(minimum=low, maximum=high, null_count=instants.null_count)


class _Keys(Protocol):
    """The distinct values of a column, taken in parts."""

    def add(self, part: pa.Array) -> None:
        """Add the values of some rows."""

    def values(self) -> Sequence[Any] | None:
        """Return them without NULL; ``None`` where they are not known."""


class _WholeNumbers:
    """Whole numbers, eight bytes each."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []

    def add(self, part: pa.Array) -> None:
        self._parts.append(part.cast(pa.int64()))

    def values(self) -> Sequence[Any] | None:
        values = pc.drop_null(pa.chunked_array(self._parts, pa.int64()))
        numbers = np.sort(values.to_numpy())  # a fifth of the time of np.unique
        return array("q", numbers[run_starts(numbers)].tobytes())


class _FewValues:
    """Values that are kept as objects, if they are few and short."""

    def __init__(self, limits: KeyLimits) -> None:
        self._limits = limits
        self._found: pa.Array | None = None
        self._is_known = True

    def add(self, part: pa.Array) -> None:
        if not self._is_known:
            return
        found = pc.drop_null(pc.unique(part.cast(plain_type(part.type))))
        if self._found is not None:
            found = pc.unique(pa.chunked_array([self._found, found]))
        limits = self._limits
        self._is_known = len(found) <= limits.values_max and found.nbytes <= limits.bytes_max
        self._found = found if self._is_known else None

    def values(self) -> Sequence[Any] | None:
        if not self._is_known:
            return None
        try:
            return () if self._found is None else tuple(self._found.to_pylist())
        except (UnicodeDecodeError, OverflowError):
            return None  # Spark's texts may be any bytes, and its years any number


_KEY_ROWS = 65_536
_INSTANT = pa.timestamp("us", "UTC")
_DATA_EXCEPTION = "SQLSTATE: 22"
"""How messages of Spark name the class of errors of values."""
_NO_COLUMN = f"{PREFIX}present"


def stage_source(asked: Asked, statement: ResolvedStatement) -> StatementContext:
    """Read the source in place, if it is a plain scan of Parquet files; else evaluate its
    referenced columns once and write them: one Spark job, and the jobs of the user's own plan.

    Meanwhile statistics of the columns that ON reads are parsed. After a failure no file is
    left.
    """
    return _context(asked, statement, evaluates=True)


def plan_source(asked: Asked, statement: ResolvedStatement) -> StatementContext:
    """Choose as `stage_source` does, and evaluate nothing; runs no Spark job.

    A source that would be staged has an unknown number of rows and unknown keys.
    """
    return _context(asked, statement, evaluates=False)


def _context(asked: Asked, statement: ResolvedStatement, *, evaluates: bool) -> StatementContext:
    statement, source = _source(asked, statement, evaluates=evaluates)
    parts = statement.on.parts
    refs = frozenset(pair.target for pair in parts.pairs).union(*map(references, parts.target_only))
    statistics = asked.statistics.including(refs)
    return StatementContext(
        command=asked.command,
        settings=asked.settings,
        statement=statement,
        source=source,
        statistics=statistics,
    )


@contextmanager
def source_in_use(context: StatementContext) -> Iterator[None]:
    """Remove the staged rows at the end, in every case.

    Raises:
        DeltaError: something else than a rule of Delta failed inside, and a file of a source
            that is read in place changed: that is the cause of Spark's error.
    """
    try:
        yield
    except Exception as failure:
        if not isinstance(failure, DeltaError):
            context.source.require_unchanged()
        raise
    finally:
        remove_quietly(partial(context.source.remove, context.command.log.store))


def _source(
    asked: Asked, statement: ResolvedStatement, *, evaluates: bool
) -> tuple[ResolvedStatement, StagedSource]:
    """Return the source, and the statement by the values that its staged rows hold."""
    rows, reason = asked.rows.source, asked.settings.must_stage
    if rows is None:
        return statement, StagedSource.none()
    valued = _valued(asked, statement)
    if reason is None:
        found = _in_place(rows, statement, asked.settings.key_limits)
        if isinstance(found, StagedSource):
            if valued is None or not _is_looked_up(asked, valued[0], found.num_rows):
                return statement, found
            reason = "workers find rows by values that Spark computes of it"
        else:
            reason = found.reason
    if not evaluates:
        return statement if valued is None else valued[0], StagedSource.unread(reason)
    if valued is not None:
        staged = _staged_with(asked, *valued, reason=reason)
        if staged is not None:
            return valued[0] if _has_all_values(staged) else statement, staged
    return statement, _staged(asked, statement, (), reason=reason)


def _valued(
    asked: Asked, statement: ResolvedStatement
) -> tuple[ResolvedStatement, tuple[StagedValue, ...]] | None:
    """Return the statement by values of staged rows, if workers can look keys up only then."""
    if not asked.settings.workers.enabled or _is_looked_up(asked, statement, 1):
        return None
    valued, values = with_staged_values(statement)
    return (valued, values) if values and _is_looked_up(asked, valued, 1) else None


def _is_looked_up(asked: Asked, statement: ResolvedStatement, num_rows: int) -> bool:
    """Tell whether workers can look keys up, for so many rows of texts of usual length."""
    memory = asked.settings.workers.memory
    ansi = asked.command.session.ansi
    return plan_lookup(statement, num_rows, ColumnNames(), memory, ansi=ansi) is not None


def _staged_with(
    asked: Asked, statement: ResolvedStatement, values: Sequence[StagedValue], *, reason: str
) -> StagedSource | None:
    """Return the source with values; ``None`` if an error of a value ends the job.

    Values do not raise errors, but Spark may compute a part that several of them share before.
    """
    try:
        return _staged(asked, statement, values, reason=reason)
    except DeltaError:
        raise
    except Exception as failure:
        if _DATA_EXCEPTION in str(failure):
            return None
        raise


def _has_all_values(staged: StagedSource) -> bool:
    """Tell whether no value of a row is an error; whether that row matters, a join decides."""
    failed = staged.profile.bounds.get((FAILED,))
    return failed is not None and failed.null_count == staged.num_rows


def _staged(
    asked: Asked,
    statement: ResolvedStatement,
    values: Sequence[StagedValue],
    *,
    reason: str,
) -> StagedSource:
    settings, store = asked.settings, asked.command.log.store
    rows = statement.frames.staging(cast("DataFrame", asked.rows.source), values)
    stored = statement.timestamp.bind(_storable_rows(rows))
    staged = stage_rows(stored, store=store, options=settings.writer.staged)
    names = ColumnNames()

    def open_staged(file: DataFile) -> BinaryIO:
        return store.open(f"{staged.directory}/{file.name}")

    try:
        distinct = read_distinct_keys(
            staged,
            statement.on.parts.pairs,
            names,
            limits=settings.key_limits,
            open_file=open_staged,
        )
    except BaseException:
        staged.remove(store)
        raise
    return StagedSource(
        staged=staged,
        schema=rows.schema,
        names=names,
        texts=SourceTexts(files=staged.files, stored=staged.text_bytes, open_file=open_staged),
        profile=SourceProfile(
            num_rows=staged.num_rows,
            size_bytes=staged.size_bytes,
            bounds=names.by_staged_name(staged.columns),
            distinct=distinct,
        ),
        mode=f"{staged.num_rows} source rows were staged ({reason})",
    )


def _in_place(
    source_rows: DataFrame, statement: ResolvedStatement, limits: KeyLimits
) -> StagedSource | NotApplicable:
    """Return the source in its own files, if they can replace staged ones."""
    scan = plain_scan(source_rows.sparkSession, source_rows)
    if isinstance(scan, NotApplicable):
        return scan
    if any(c.ordinal >= len(scan.fields) for c in statement.source_columns):
        return NotApplicable(reason="the statement names a relation inside of it")
    wanted = {c.staged: scan.fields[c.ordinal] for c in statement.source_columns}
    if any(wanted[c.staged].dataType != c.type for c in statement.source_columns):
        return NotApplicable(reason="its columns have other types than its files")
    names = ColumnNames(in_files={staged: field.name for staged, field in wanted.items()})
    pairs = statement.on.parts.pairs
    within = range_pair(statement.on.parts)
    looked_at = [*(pair.source for pair in pairs), *(within[0].bounds if within else ())]
    files = source_files(
        scan,
        wanted={field.name: field for field in wanted.values()}.values(),
        keys=frozenset(names.in_file(ref.path[0]) for ref in looked_at),
    )
    if isinstance(files, NotApplicable):
        return files
    rows = files.rows
    if files.int96_keys and rows.num_rows > limits.rows_max:
        return NotApplicable(reason="it has many rows, and a key whose footers tell no bounds")
    try:
        columns = {**rows.columns, **read_bounds(rows, files.int96_keys, open_file=_open_own)}
        distinct = read_distinct_keys(rows, pairs, names, limits=limits, open_file=_open_own)
    except (OSError, pa.ArrowException) as failure:
        return NotApplicable(reason=f"{type(failure).__name__}: {failure}")
    return StagedSource(
        staged=rows,
        schema=T.StructType([T.StructField(c.staged, c.type) for c in statement.source_columns]),
        names=names,
        texts=SourceTexts(files=rows.files, stored=rows.text_bytes, open_file=_open_own),
        profile=SourceProfile(
            num_rows=rows.num_rows,
            size_bytes=files.column_bytes,
            bounds=names.by_staged_name(columns),
            distinct=distinct,
        ),
        in_place=files,
        mode=f"{rows.num_rows} source rows are read from its own {len(rows.files)} files",
    )


def _open_own(file: DataFile) -> BinaryIO:
    return open_file(file.uri)


def _storable_rows(rows: DataFrame) -> DataFrame:
    """Replace columns that Parquet cannot hold: a VOID column is restored when it is read."""
    fields = [f for f in rows.schema.fields if not isinstance(f.dataType, T.NullType)]
    if not fields:
        return rows.select(F.lit(1).alias(_NO_COLUMN))
    stored = {f.name: storable(f.dataType) for f in fields}
    kept = rows if len(fields) == len(rows.columns) else rows.select(*stored)
    changed = {
        f.name: F.col(f.name).cast(stored[f.name]) for f in fields if stored[f.name] != f.dataType
    }
    return kept.withColumns(changed) if changed else kept
