"""CONVERT TO DELTA: version 0 of a Delta table made from Parquet files.

The data files stay in place, untouched (C-61). Only a log is written, and then the catalog entry
of a catalog table. Before the log's first commit there is no table; after it the table is
complete; no intermediate state is visible.

Statistics come from footers, which other programs wrote. If those programs are not trusted, Spark
reads every row once before the commit: each value must be within its bounds, and the counts must be
right. The comparison runs in Spark and parses the statistics as readers of the log do; only the
first errors come back to the driver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from puredelta.commands.command import Command, command_on
from puredelta.commands.convert.conversion_plan import ConversionPlan
from puredelta.commands.convert.entry import (
    ENTRY_TAG,
    adopt_log,
    entry_tags,
    make_entry_delta,
    require_same_entry,
)
from puredelta.commands.convert.plan import (
    inferred_target,
    plan_conversion,
    require_unchanged,
)
from puredelta.commands.convert.preview import ConversionPreview, preview_convert
from puredelta.commands.convert.target import (
    AlreadyDelta,
    ConversionTarget,
    find_target,
)
from puredelta.commands.finish import discarded_on_failure, finish
from puredelta.commands.statement.parts import (
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    StageTime,
)
from puredelta.commands.statement.prepared import PreparedFiles, running_statement
from puredelta.commands.statement.report import Report
from puredelta.errors import CorruptTableError, InvalidRequestError, Message, TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest, Environment, Phase, ignore_phase
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.commit.row_ids import assigns_row_ids
from puredelta.log.files.deletion_vectors import (
    DeletionVectorUpdate,
    WrittenVectors,
    discard_vectors,
    write_vectors,
)
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions import operations
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.schema.traversal import struct_fields
from puredelta.protocol.schema.types import (
    BINARY,
    BOOLEAN,
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
)
from puredelta.protocol.table.stats import LeafPath, indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.scan.scan import scan
from puredelta.spark.session.names import FILE_ORDINAL
from puredelta.spark.session.storage import open_log
from puredelta.spark.session.types import to_spark_type

logger = logging.getLogger(__name__)

ALREADY_DELTA = "The table you are trying to convert is already a delta table"
_ENTRY_FINISHED = "The log was there already: the table's entry in the catalog was changed alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertResult:
    """The result of a conversion."""

    location: str
    """The table root as an absolute, decoded URI."""
    version: int | None
    """The version made, 0 for a new table; None where nothing was committed."""
    num_files: int
    """Number of files that became part of the table; 0 where nothing was done."""
    message: str | None = None
    """The reason why nothing was converted."""
    schema: StructType | None = field(default=None, repr=False)
    """The columns of the new table; None where there was a Delta table before."""
    name: str | None = None
    """The whole name of a table of the catalog."""
    report: Report | None = field(default=None, repr=False, compare=False)
    """The same report as `puredelta.last_report`; None where there was a Delta table before."""

    @property
    def already_delta(self) -> bool:
        """Whether the target was a Delta table before (C-05)."""
        return self.schema is None


def convert_to_delta(
    spark: SparkSession,
    identifier: str,
    partition_schema: T.StructType | str | None = None,
    *,
    collect_stats: bool = True,
    verify: bool = False,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> ConvertResult:
    """Convert Parquet files into a Delta table, in place (C-01, C-02, C-04).

    ``identifier`` is ``parquet.`/path` ``, the name of a table in the session catalog, or
    ``iceberg.`/path` ``, an Iceberg table by its root or its metadata file (decision 0055).
    ``partition_schema`` names and types the levels of the partition directories, outermost first,
    as DDL text or a type; ``"infer"`` derives them from the names of the directories. A catalog
    table has its partition columns in the catalog. Schema and statistics come from
    the footers, which the driver reads; no Spark job runs unless a footer or a partition value
    needs Spark's judgement. Without ``collect_stats`` files get no statistics at all, not even
    their row count (C-52). ``verify`` is for files of a program that is not trusted: Spark reads
    all rows once and compares them with every statistic. An existing Delta table is left
    unchanged, whatever the other arguments say (C-05).

    The whole table is one commit: a failure before it leaves no trace, and if another
    writer creates the table first this call fails (C-59). The catalog entry is changed after the
    commit; if a call stops between the two, the next call finishes it (C-08).

    Examples:
        >>> convert_to_delta(spark, "parquet.`/data/events`", "day date")  # doctest: +SKIP
        ConvertResult(location='file:/data/events', version=0, num_files=365, message=None)
    """
    target = find_target(spark, identifier, partition_schema)
    log = open_log(spark, target.location)
    if isinstance(target, AlreadyDelta):
        _require_table(log, target)
        return _nothing_done(log, target.name)
    if log.exists():
        return _finish_existing(spark, log, target)
    environment = Environment(on_phase=on_phase)
    command = command_on(spark, log, None, target.capability, environment=environment)
    return _convert(command, target, collect_stats=collect_stats, verify=verify)


def _convert(
    command: Command, target: ConversionTarget, *, collect_stats: bool, verify: bool
) -> ConvertResult:
    """Plan and commit, as a statement with a progress line and a report."""
    spark, log = command.spark, command.log
    tags = entry_tags(spark, target)
    settings, started = command.session.settings, time.monotonic()
    with running_statement(spark, "CONVERT", log.root_uri, settings, runs_jobs=False) as running:
        target = inferred_target(command, target)
        plan = plan_conversion(command, target, collect_stats=collect_stats, note=running.note)
        if verify:
            running.note("comparing statistics with the rows")
            require_statistics(collected=plan.collects_stats)
            require_true_statistics(spark, plan.snapshot(log))
        planned = time.monotonic()
        running.note("writing the log")
        done = _commit(command, target, plan, tags)
        seconds = {"footers": planned - started, "commit": time.monotonic() - planned}
        report = running.finish(lambda: _report(plan, done, seconds))
    return replace(done, report=report)


def _report(plan: ConversionPlan, done: ConvertResult, seconds: Mapping[str, float]) -> Report:
    rows = plan.files.num_rows
    gone = sum(map(len, plan.deleted.values()))
    return Report(
        statement="CONVERT",
        table=done.location,
        state=ReportState.EXECUTED,
        committed_version=done.version,
        rows=RowTotals(inserted=None if rows is None else rows - gone),
        files=FileTotals(added=done.num_files, added_bytes=plan.files.size_bytes),
        stages=tuple(
            StageTime(name=name, seconds=spent, outcome="") for name, spent in seconds.items()
        ),
        metrics={"numConvertedFiles": done.num_files},
        details=(
            *((("table", done.name),) if done.name else ()),
            ("partitioned by", ", ".join(plan.config.partition_columns)),
            ("statistics", "collected" if plan.collects_stats else "none were asked for"),
        ),
    )


def _require_table(log: TableLog, target: AlreadyDelta) -> None:
    if not log.exists():
        raise TableNotFoundError(Message.TABLE_NOT_FOUND_CONVERTED, path=target.location)


def _nothing_done(log: TableLog, name: str | None = None) -> ConvertResult:
    """Print that nothing was done, as delta-spark does."""
    logger.info(ALREADY_DELTA)
    print(ALREADY_DELTA)  # noqa: T201
    return ConvertResult(
        location=log.root_uri, version=None, num_files=0, message=ALREADY_DELTA, name=name
    )


def _finish_existing(spark: SparkSession, log: TableLog, target: ConversionTarget) -> ConvertResult:
    if target.entry is None:
        return _nothing_done(log)
    version = adopt_log(spark, log, target, target.entry)
    return ConvertResult(
        location=log.root_uri,
        version=version,
        num_files=0,
        message=_ENTRY_FINISHED,
        name=target.full_name,
    )


def _commit(
    command: Command, target: ConversionTarget, plan: ConversionPlan, tags: Mapping[str, str]
) -> ConvertResult:
    """Write version 0 and its checkpoint (C-55, C-56, C-58), then change the catalog entry."""
    require_unchanged(command, target, plan)
    require_same_entry(command.spark, target, tags)
    written = _write_vectors(command, plan)
    num_files = plan.files.num_files
    adds: Iterable[Add] = ()
    if not _is_spooled(plan):
        kept = (add for add in plan.files.adds() if add.path not in plan.deleted)
        adds = (*kept, *written.adds)
    request = CommitRequest(
        actions=[plan.config.metadata, plan.config.protocol, *adds],
        new_files=plan.files if _is_spooled(plan) else None,
        operation=operations.convert(
            num_files=num_files,
            partitioned_by=target.stated,
            collect_stats=plan.collects_stats,
            catalog_table=target.full_name,
            source_format="parquet" if target.iceberg is None else "iceberg",
        ),
        metrics={"numConvertedFiles": num_files},
        always_records_metrics=True,
        is_blind_append=False,
        tags=tags,
    )
    with discarded_on_failure(partial(discard_vectors, written, command.log.store)):
        committed = finish(command, request, checkpoint=CheckpointWish.ALWAYS)
    if target.entry is not None:
        make_entry_delta(command.spark, target.entry, plan.config.schema, was=tags[ENTRY_TAG])
    return ConvertResult(
        location=command.log.root_uri,
        version=committed.version,
        num_files=num_files,
        schema=plan.config.schema,
        name=target.full_name,
    )


def _is_spooled(plan: ConversionPlan) -> bool:
    """Return whether the list of files can stay on disk: no rows are numbered or deleted."""
    config = plan.config
    manifests = config.properties.symlink_manifests
    return not (plan.deleted or manifests or assigns_row_ids(config))


def _write_vectors(command: Command, plan: ConversionPlan) -> WrittenVectors:
    """Write deletion vectors for the deleted rows of an Iceberg table, if there are any."""
    updates = (
        DeletionVectorUpdate(file=add, rows=plan.deleted[add.path])
        for add in (plan.files.adds() if plan.deleted else ())
        if add.path in plan.deleted
    )
    return write_vectors(updates, store=command.log.store, config=plan.config)


def prepare_convert(
    spark: SparkSession,
    identifier: str,
    partition_schema: T.StructType | str | None = None,
    *,
    collect_stats: bool = True,
    verify: bool = False,
) -> PreparedFiles[ConvertResult]:
    """Prepare a CONVERT TO DELTA; its explanation reads footers, and writes nothing."""

    def report(state: ReportState) -> Report:
        preview = preview_convert(spark, identifier, partition_schema, collect_stats=collect_stats)
        return convert_report(preview, state)

    run = partial(
        convert_to_delta,
        spark,
        identifier,
        partition_schema,
        collect_stats=collect_stats,
        verify=verify,
    )
    return PreparedFiles(report=report, run=run)


def convert_report(preview: ConversionPreview, state: ReportState) -> Report:
    """Return a preview as a report; obstacles to the conversion are among the notes."""
    shown = {"location", "files", "bytes", "rows", "problem"}
    return Report(
        statement="CONVERT",
        table=preview.location,
        state=state,
        rows=RowTotals(inserted=preview.num_rows),
        files=FileTotals(added=preview.num_files, added_bytes=preview.num_bytes),
        jobs_expected=(
            JobCount(stage="footers", jobs=0, reason="1 where only Spark can read a schema"),
        ),
        details=tuple(line for line in preview.lines() if line[0] not in shown),
        notes=tuple(f"This stops the conversion: {text}" for text in preview.problems),
    )


_WITHOUT_BOUNDS = (BINARY, BOOLEAN, PrimitiveType("void"))
_SHOWN = 3
_STATS, _COUNT, _PROBLEMS = "stats", "rows", "problems"


def require_statistics(*, collected: bool) -> None:
    """Refuse verification without statistics.

    Raises:
        InvalidRequestError: the conversion collects no statistics.
    """
    if not collected:
        raise InvalidRequestError(Message.OPERATION_NOT_ALLOWED_DETAIL_VERIFY)


def require_true_statistics(spark: SparkSession, snapshot: Snapshot) -> None:
    """Read all rows of a table that is to be committed and compare them with its statistics.

    Runs one job over all columns that have statistics.

    Raises:
        CorruptTableError: a bound, a count of NULLs or of rows is wrong; the message names the
            files, the columns and the values.
    """
    leaves = _leaves(snapshot.config)
    columns = tuple(dict.fromkeys(leaf.logical[0] for leaf in leaves))
    rows = scan(spark, snapshot, columns=columns, with_position=True)
    found = rows.groupBy(FILE_ORDINAL).agg(
        F.count(F.lit(1)).alias(_COUNT),
        *(value.alias(name) for leaf in leaves for name, value in leaf.aggregates()),
    )
    known = _statistics(spark, snapshot, leaves).join(found, FILE_ORDINAL, "left")
    deleted = F.col("deleted")
    problems = [
        _problem(
            ~(F.col(f"{_STATS}.numRecords") - deleted).eqNullSafe(
                F.coalesce(F.col(_COUNT), F.lit(0))
            ),
            "it has {} rows, and the statistics say {}",
            F.coalesce(F.col(_COUNT), F.lit(0)),
            F.col(f"{_STATS}.numRecords") - deleted,
        ),
        *(problem for leaf in leaves for problem in leaf.problems()),
    ]
    wrong = known.select(FILE_ORDINAL, F.array_compact(F.array(*problems)).alias(_PROBLEMS))
    mistakes = wrong.where(F.size(_PROBLEMS) > 0).limit(_SHOWN).collect()
    if mistakes:
        raise _wrong(snapshot, [(row[0], row[1]) for row in mistakes])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """One column with statistics: its names, and those of its aggregates."""

    number: int
    logical: LeafPath
    physical: LeafPath
    type: DataType

    @property
    def shown(self) -> str:
        return ".".join(self.logical)

    @property
    def is_bounded(self) -> bool:
        bounded = isinstance(self.type, PrimitiveType | DecimalType)
        return bounded and self.type not in _WITHOUT_BOUNDS

    def aggregates(self) -> Iterator[tuple[str, Column]]:
        """Yield the aggregates over the rows of a file, by name."""
        value = _column(self.logical)
        yield f"n{self.number}", F.count(value)
        if self.is_bounded:
            yield f"a{self.number}", F.min(value)
            yield f"z{self.number}", F.max(value)

    def problems(self) -> Iterator[Column]:
        """Yield an error text for each wrong statistic, NULL for a correct one."""
        rows, values = F.coalesce(F.col(_COUNT), F.lit(0)), F.col(f"n{self.number}")
        nulls, stated = rows - F.coalesce(values, F.lit(0)), self._stated("nullCount")
        # Deleted rows can be NULL in the column, too.
        may_be = (stated >= nulls) & (stated <= nulls + F.col("deleted"))
        yield _problem(
            ~may_be, f"{self.shown} is NULL in {{}} rows, the statistics say {{}}", nulls, stated
        )
        if self.is_bounded:
            low, high = F.col(f"a{self.number}"), F.col(f"z{self.number}")
            text = f"{self.shown} has the value {{}}, and the statistics say that its"
            minimum, maximum = self._stated("minValues"), self._stated("maxValues")
            yield _problem(minimum > low, f"{text} minimum is {{}}", low, minimum)
            yield _problem(maximum < high, f"{text} maximum is {{}}", high, maximum)

    def _stated(self, kind: str) -> Column:
        return _column((_STATS, kind, *self.physical))


def _leaves(config: TableConfig) -> Sequence[_Leaf]:
    types = {path: found.type for path, found in struct_fields(config.data_schema)}
    return [
        _Leaf(number=n, logical=path, physical=config.physical_path(path), type=types[path])
        for n, path in enumerate(indexed_columns(config.data_schema, config.properties))
    ]


def _column(path: LeafPath) -> Column:
    return F.col(".".join(f"`{name.replace('`', '``')}`" for name in path))


def _problem(is_wrong: Column, text: str, *values: Column) -> Column:
    shown = F.format_string(
        text.replace("%", "%%").replace("{}", "%s"), *(v.cast("string") for v in values)
    )
    return F.when(is_wrong, shown)


def _statistics(spark: SparkSession, snapshot: Snapshot, leaves: Sequence[_Leaf]) -> DataFrame:
    """Return the statistics of each file, as they are to be committed."""
    files = snapshot.files
    table = pa.table(
        {
            FILE_ORDINAL: pa.array(range(len(files)), pa.int32()),
            "deleted": files.deleted_counts(),
            "text": pa.array([add.stats for add in files.adds()], pa.string()),
        }
    )
    text = spark.createDataFrame(table)
    parsed = F.from_json("text", _schema(leaves)).alias(_STATS)
    return text.select(FILE_ORDINAL, F.col("deleted").cast("bigint").alias("deleted"), parsed)


def _schema(leaves: Sequence[_Leaf]) -> T.StructType:
    bounds = _nested(
        [(leaf.physical, to_spark_type(leaf.type)) for leaf in leaves if leaf.is_bounded]
    )
    return T.StructType(
        [
            T.StructField("numRecords", T.LongType()),
            T.StructField("minValues", bounds),
            T.StructField("maxValues", bounds),
            T.StructField("nullCount", _nested([(leaf.physical, T.LongType()) for leaf in leaves])),
        ]
    )


def _nested(leaves: Sequence[tuple[LeafPath, T.DataType]]) -> T.StructType:
    """Return a struct that has these leaves, in which structs may hold structs."""
    fields: dict[str, T.DataType | list[tuple[LeafPath, T.DataType]]] = {}
    for (name, *rest), data_type in leaves:
        if not rest:
            fields[name] = data_type
            continue
        inner = fields.setdefault(name, [])
        if isinstance(inner, list):
            inner.append((tuple(rest), data_type))
    return T.StructType(
        [
            T.StructField(name, _nested(found) if isinstance(found, list) else found)
            for name, found in fields.items()
        ]
    )


def _wrong(snapshot: Snapshot, mistakes: Sequence[tuple[int, Sequence[str]]]) -> CorruptTableError:
    adds = list(snapshot.files.take([number for number, _ in mistakes]).adds())
    shown = "\n".join(
        f"{add.path}: {'; '.join(problems[:_SHOWN])}"
        for add, (_, problems) in zip(adds, mistakes, strict=True)
    )
    return CorruptTableError(
        Message.WRONG_STATISTICS,
        shown=shown,
        path=snapshot.root_uri,
        files=tuple(add.path for add in adds),
    )
