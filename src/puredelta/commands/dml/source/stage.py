"""Stage 3: the rows of the source, so that every later stage reads the same rows.

A source that is nothing but Parquet files is read where it lies, and must be the same at the
end. Any other source is evaluated exactly once and kept as hidden Parquet files: it need not
be deterministic then, and survives the loss of an executor. Either way the footers give the
number of rows and the bounds of the keys without another job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.cleanup import remove_quietly
from puredelta.commands.dml.resolve.statement import ResolvedStatement
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.dml.source.distinct_keys import read_distinct_keys
from puredelta.commands.dml.source.staged_source import (
    ColumnNames,
    SourceProfile,
    StagedSource,
    storable,
)
from puredelta.commands.dml.spec.settings import KeyLimits
from puredelta.commands.dml.spec.statement import Asked
from puredelta.errors import DeltaError
from puredelta.protocol.values.predicates import references
from puredelta.spark.session.fallback import NotApplicable
from puredelta.spark.session.helper_columns import PREFIX
from puredelta.spark.source.in_place import source_files
from puredelta.spark.source.plain_scan import plain_scan
from puredelta.spark.source.staging import stage_rows
from puredelta.store.base import Store
from puredelta.store.local_files import open_file

_NO_COLUMN = f"{PREFIX}present"


def stage_source(asked: Asked, statement: ResolvedStatement) -> StatementContext:
    """Read the source where it lies, if it is a plain scan of Parquet files; else evaluate its
    referenced columns once and write them: one Spark job, and what the user's own plan adds.

    Meanwhile statistics of the columns that ON reads are parsed. If this fails, nothing is left
    behind.
    """
    return _context(asked, statement, evaluates=True)


def plan_source(asked: Asked, statement: ResolvedStatement) -> StatementContext:
    """Choose as `stage_source` does, and evaluate nothing; runs no Spark job.

    A source that would be staged has an unknown number of rows, and its keys are not known.
    """
    return _context(asked, statement, evaluates=False)


def _context(asked: Asked, statement: ResolvedStatement, *, evaluates: bool) -> StatementContext:
    parts = statement.on.parts
    refs = frozenset(pair.target for pair in parts.pairs).union(*map(references, parts.target_only))
    statistics = asked.statistics.including(refs)
    return StatementContext(
        command=asked.command,
        settings=asked.settings,
        statement=statement,
        source=_source(asked, statement, evaluates=evaluates),
        statistics=statistics,
    )


@contextmanager
def source_in_use(context: StatementContext) -> Iterator[None]:
    """Remove the staged rows at the end, whatever happens.

    Raises:
        DeltaError: something else than a rule of Delta failed inside, and a file of a source
            that is read in place changed: that is what Spark stumbled over.
    """
    try:
        yield
    except Exception as failure:
        if not isinstance(failure, DeltaError):
            context.source.require_unchanged()
        raise
    finally:
        remove_quietly(partial(context.source.remove, context.command.log.store))


def _source(asked: Asked, statement: ResolvedStatement, *, evaluates: bool) -> StagedSource:
    rows, must_stage = asked.rows.source, asked.settings.must_stage
    limits, store = asked.settings.key_limits, asked.command.log.store
    if rows is None:
        return StagedSource.none()
    reason = must_stage
    if reason is None:
        found = _in_place(rows, statement, limits)
        if isinstance(found, StagedSource):
            return found
        reason = found.reason
    if not evaluates:
        return StagedSource.unread(reason)
    return _staged(rows, statement, store, limits, reason=reason)


def _staged(
    source_rows: DataFrame,
    statement: ResolvedStatement,
    store: Store,
    limits: KeyLimits,
    *,
    reason: str,
) -> StagedSource:
    rows = statement.frames.staging(source_rows)
    staged = stage_rows(statement.timestamp.bind(_storable_rows(rows)), store=store)
    names = ColumnNames()
    try:
        distinct = read_distinct_keys(
            staged,
            statement.on.parts.pairs,
            names,
            limits=limits,
            open_file=lambda file: store.open(f"{staged.directory}/{file.name}"),
        )
    except BaseException:
        staged.remove(store)
        raise
    return StagedSource(
        staged=staged,
        schema=rows.schema,
        names=names,
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
    """Return the source in its own files, if they can stand for staged ones."""
    scan = plain_scan(source_rows.sparkSession, source_rows)
    if isinstance(scan, NotApplicable):
        return scan
    wanted = {c.staged: scan.fields[c.ordinal] for c in statement.source_columns}
    if any(wanted[c.staged].dataType != c.type for c in statement.source_columns):
        return NotApplicable(reason="its columns have other types than its files")
    names = ColumnNames(in_files={staged: field.name for staged, field in wanted.items()})
    pairs = statement.on.parts.pairs
    files = source_files(
        scan,
        wanted={field.name: field for field in wanted.values()}.values(),
        keys=frozenset(names.in_file(pair.source.path[0]) for pair in pairs),
    )
    if isinstance(files, NotApplicable):
        return files
    rows = files.rows
    try:
        distinct = read_distinct_keys(
            rows, pairs, names, limits=limits, open_file=lambda file: open_file(file.uri)
        )
    except (OSError, pa.ArrowException) as failure:
        return NotApplicable(reason=f"{type(failure).__name__}: {failure}")
    return StagedSource(
        staged=rows,
        schema=T.StructType([T.StructField(c.staged, c.type) for c in statement.source_columns]),
        names=names,
        profile=SourceProfile(
            num_rows=rows.num_rows,
            size_bytes=files.column_bytes,
            bounds=names.by_staged_name(rows.columns),
            distinct=distinct,
        ),
        in_place=files,
        mode=f"{rows.num_rows} source rows are read from its own {len(rows.files)} files",
    )


def _storable_rows(rows: DataFrame) -> DataFrame:
    """Give Parquet what it can hold: a column of type VOID is put back when it is read."""
    fields = [f for f in rows.schema.fields if not isinstance(f.dataType, T.NullType)]
    if not fields:
        return rows.select(F.lit(1).alias(_NO_COLUMN))
    stored = {f.name: storable(f.dataType) for f in fields}
    kept = rows if len(fields) == len(rows.columns) else rows.select(*stored)
    changed = {
        f.name: F.col(f.name).cast(stored[f.name]) for f in fields if stored[f.name] != f.dataType
    }
    return kept.withColumns(changed) if changed else kept
