"""OPTIMIZE from statement to commit: its partitions, ZORDER columns, plan and report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.compaction import (
    Optimization,
    OptimizeOutcome,
    OptimizeSettings,
    compactable_files,
)
from puredelta.commands.dml.prune import matching_files
from puredelta.commands.dml.resolve.partition_condition import resolve_partition_condition
from puredelta.commands.statement.parts import (
    Choice,
    FileAction,
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    SelectedFiles,
    StageTime,
    first_file_decisions,
    setting_values,
)
from puredelta.commands.statement.prepared import PreparedFiles, running_statement
from puredelta.commands.statement.report import Report, with_report
from puredelta.commands.statement.stages import StageTimer
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.commit.commit_request import Phase, ignore_phase
from puredelta.log.files.file_table import FileTable
from puredelta.log.maintenance.compaction_plan import plan_clustering, plan_compaction, plan_z_order
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.operations import optimize, optimize_clustered
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.features.properties import parse_columns
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.schema.types import DataType, StructField, StructType, is_spatial
from puredelta.protocol.table.clustering import (
    CLUSTERING,
    ColumnPath,
    clustering_columns,
    column_name,
)
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.stats import indexed_columns
from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import Z_ORDER_STATS_CHECK
from puredelta.spark.session.ui_metrics import shown_in_ui
from puredelta.spark.write.zorder_curves import (
    SAMPLE_ROWS_MAX,
    CurveOrder,
    HilbertCurve,
    ZOrderCurve,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSpec:
    """``OPTIMIZE table [FULL] [WHERE ...] [ZORDER BY (...)]``."""

    predicates: tuple[str, ...] = ()
    """SQL conditions on partition columns; all of them must hold."""
    z_order_by: tuple[str, ...] = ()
    """Columns, and nested fields with dots; without any, rows keep their order."""
    full: bool = False
    """``OPTIMIZE table FULL``: cluster all files again."""


def files_where(spark: SparkSession, snapshot: Snapshot, predicates: Sequence[str]) -> FileTable:
    """Return the files in partitions for which all conditions are true.

    Runs no job on a classic session.
    """
    kept = snapshot
    for predicate in predicates:
        statement = resolve_partition_condition(spark, predicate, snapshot.config)
        kept = kept.with_files(matching_files(spark, kept, statement))
    return kept.files


def resolve_z_columns(
    names: Sequence[str],
    config: TableConfig,
    *,
    case_sensitive: bool,
    checks_statistics: bool,
) -> tuple[tuple[ColumnPath, DataType], ...]:
    """Return the paths of columns, or fields of structs, by their names, with their types.

    Raises:
        InvalidRequestError: one partitions the table (ZORDERING_ON_PARTITION_COLUMN), does not
            exist (ZORDERING_COLUMN_DOES_NOT_EXIST), or has no statistics, so that ordering by
            it would be useless (ZORDERING_ON_COLUMN_WITHOUT_STATS).
    """
    partitioned = {name.lower() for name in config.partition_columns}
    indexed = indexed_columns(config.data_schema, config.properties)
    found: list[tuple[ColumnPath, DataType]] = []
    without: list[str] = []
    for name in names:
        if name.lower() in partitioned:
            raise InvalidRequestError(Message.ZORDERING_ON_PARTITION_COLUMN, column=name)
        path, kind = _find(name, config.data_schema, case_sensitive=case_sensitive)
        if is_spatial(kind) or not any(leaf[: len(path)] == path for leaf in indexed):
            without.append(name)
        found.append((path, kind))
    if without and checks_statistics:
        raise InvalidRequestError(
            Message.ZORDERING_ON_COLUMN_WITHOUT_STATS,
            without=", ".join(without),
            z_order_stats_check_key=Z_ORDER_STATS_CHECK.key,
            columns=tuple(without),
        )
    return tuple(found)


def _find(name: str, schema: StructType, *, case_sensitive: bool) -> tuple[ColumnPath, DataType]:
    path: ColumnPath = ()
    level: DataType = schema
    for part in _parts(name):
        field: StructField | None = None
        if isinstance(level, StructType):
            field = level.find(part) if case_sensitive else level.find_ignoring_case(part)
        if field is None:
            raise _missing(name)
        path, level = (*path, field.name), field.type
    return path, level


def _parts(name: str) -> ColumnPath:
    try:
        (path,) = parse_columns(name)
    except ValueError as error:
        raise _missing(name) from error
    return path


def _missing(name: str) -> InvalidRequestError:
    return InvalidRequestError(Message.ZORDERING_COLUMN_DOES_NOT_EXIST, column=name)


_CONFS = (
    delta_conf.OPTIMIZE_MIN_FILE_SIZE,
    delta_conf.OPTIMIZE_MAX_FILE_SIZE,
    delta_conf.OPTIMIZE_MAX_DELETED_RATIO,
)
_CLUSTER_CONFS = (
    delta_conf.CLUSTERING_MIN_CUBE_SIZE,
    delta_conf.CLUSTERING_TARGET_CUBE_SIZE,
)


def planned_optimize(optimization: Optimization, state: ReportState) -> Report:
    """Return the report of the files that an OPTIMIZE combines; runs nothing."""
    return _report(optimization, state)


def optimized_report(
    optimization: Optimization,
    outcome: OptimizeOutcome,
    *,
    seconds: Mapping[str, float],
    jobs_run: int | None,
) -> Report:
    """Return the report of an executed OPTIMIZE."""
    return _report(
        optimization, ReportState.EXECUTED, outcome=outcome, seconds=seconds, jobs_run=jobs_run
    )


def _report(
    optimization: Optimization,
    state: ReportState,
    *,
    outcome: OptimizeOutcome | None = None,
    seconds: Mapping[str, float] | None = None,
    jobs_run: int | None = None,
) -> Report:
    command = optimization.command
    old = FileTable.of(add for each in optimization.bins for add in each.files)
    decisions = first_file_decisions(old, FileAction.REWRITE, _reason(optimization))
    confs = _CONFS if optimization.clustering is None else _CLUSTER_CONFS
    files = command.snapshot.files
    return Report(
        statement="OPTIMIZE",
        table=command.log.root_uri,
        state=state,
        read_version=command.snapshot.version,
        committed_version=None if outcome is None else outcome.version,
        selected=SelectedFiles(
            files_total=len(files),
            bytes_total=files.total_size_bytes,
            files_left=len(old),
            bytes_left=old.total_size_bytes,
        ),
        choices=(_order(optimization),),
        rows=RowTotals(copied=old.num_records()),
        files=FileTotals(
            rewritten=len(old),
            rewritten_bytes=old.total_size_bytes,
            added=None if outcome is None else len(outcome.added),
            added_bytes=None if outcome is None else sum(add.size_bytes for add in outcome.added),
        ),
        decisions=decisions,
        decisions_left_out=len(old) - len(decisions),
        jobs_expected=_jobs(optimization),
        jobs_run=jobs_run,
        stages=tuple(
            StageTime(name=name, seconds=time, outcome="") for name, time in (seconds or {}).items()
        ),
        settings=setting_values(confs, command.session.settings),
        details=(
            ("files considered", f"{optimization.num_considered:,}"),
            ("groups that become a file or more", f"{len(optimization.bins):,}"),
            *_written_by_workers(outcome),
        ),
        notes=() if outcome is not None or not optimization.bins else (_UNKNOWN,),
    )


def _written_by_workers(outcome: OptimizeOutcome | None) -> Iterator[tuple[str, str]]:
    if outcome is not None and outcome.num_combined:
        yield "groups combined by workers, without a shuffle", f"{outcome.num_combined:,}"
        yield "row groups copied as bytes", f"{outcome.copied_groups:,}"


_UNKNOWN = "The size of the new files: they have to be written."


def _reason(optimization: Optimization) -> str:
    if optimization.order is not None:
        return "its rows are put in order"
    return "it is small, or has many deleted rows"


def _order(optimization: Optimization) -> Choice:
    order = optimization.order
    if order is None:
        return Choice(
            subject="order of rows",
            chosen="as they are",
            reason="no ZORDER BY, no clustering columns",
        )
    columns = ", ".join(".".join(path) for path, _ in order.columns)
    kind = "Z-order" if optimization.clustering is None else "Hilbert"
    return Choice(subject="order of rows", chosen=f"along a {kind} curve", reason=columns)


def _jobs(optimization: Optimization) -> tuple[JobCount, ...]:
    if not optimization.bins:
        return (JobCount(stage="rewrite", jobs=0, reason="there is nothing to do"),)
    cubes = 1 if optimization.clustering is None else len(optimization.bins)
    rewrite = JobCount(stage="rewrite", jobs=cubes)
    if optimization.order is None:
        return (rewrite,)
    return (JobCount(stage="sample", jobs=cubes, reason="where to cut the curve"), rewrite)


_ROW_SIZE_LEAST = 10
"""Bytes; gives an upper bound of the number of rows where statistics lack it."""


def run_optimize(spark: SparkSession, log: TableLog, spec: OptimizeSpec) -> DataFrame:
    """Execute an OPTIMIZE and return delta-spark's one row ``path, metrics``."""
    with (
        shown_in_ui(spark, f"OPTIMIZE delta.`{log.root_uri}`") as shown,
        running_statement(spark, "OPTIMIZE", log.root_uri) as running,
    ):
        stage = StageTimer(statement=log.root_uri, around=running.around)
        optimization = stage("1 plan", _started, spark, log, spec)
        outcome = stage("2 rewrite", optimization.run)
        shown.report({"numAddedFiles": len(outcome.added), "numRemovedFiles": len(outcome.removed)})
        report = running.finish(
            lambda: optimized_report(
                optimization, outcome, seconds=stage.seconds, jobs_run=running.jobs_run()
            )
        )
    return with_report(outcome.row(spark), report)


def _started(spark: SparkSession, log: TableLog, spec: OptimizeSpec) -> Optimization:
    return plan_optimize(start_command(spark, log, Capability.MERGE), spec)


def execute_optimize(
    spark: SparkSession,
    log: TableLog,
    spec: OptimizeSpec,
    *,
    on_phase: Callable[[Phase], None] = ignore_phase,
) -> OptimizeOutcome:
    """Combine files of the latest version, or order their rows along a curve.

    One Spark job combines the files, without a shuffle. Files that workers refuse, and rows in
    another order, are shuffled in one job; along a curve another one samples the rows first.
    Nothing is committed where there is nothing to do; a Z-order always has work. Files of a
    clustered table are clustered, except those of another clustering provider.
    """
    command = start_command(spark, log, Capability.MERGE, on_phase=on_phase)
    return plan_optimize(command, spec).run()


def plan_optimize(command: Command, spec: OptimizeSpec) -> Optimization:
    """Choose the files that an OPTIMIZE rewrites. Runs no job on a classic session."""
    command.log.require_unmanaged("OPTIMIZE")
    snapshot = command.snapshot
    settings = OptimizeSettings.parse(command.session.settings)
    if snapshot.config.supports(CLUSTERING):
        _require_plain(spec)
    columns = clustering_columns(snapshot.config, snapshot.domain_metadata)
    if columns:
        return _clustering(command, columns, settings, full=spec.full)
    if spec.full:
        raise InvalidRequestError(Message.OPTIMIZE_FULL_NOT_SUPPORTED)
    return _plain(command, spec, settings)


def _plain(command: Command, spec: OptimizeSpec, settings: OptimizeSettings) -> Optimization:
    """Plan to combine files, along a Z-order curve if the user names columns."""
    snapshot = command.snapshot
    considered = files_where(command.spark, snapshot, spec.predicates)
    partitioning = Partitioning.of(snapshot.config, command.session.time_zone)
    columns = resolve_z_columns(
        spec.z_order_by,
        snapshot.config,
        case_sensitive=command.session.case_sensitive,
        checks_statistics=settings.checks_statistics,
    )
    if columns:
        bins = plan_z_order(considered.adds(), settings.limits, partitioning)
        share = _sampled_share(considered)
        order = CurveOrder(columns=columns, curve=ZOrderCurve, sampled_share=share)
    else:
        compactable = compactable_files(snapshot, considered)
        bins = plan_compaction(compactable.adds(), settings.limits, partitioning)
        order = None
    return Optimization(
        command=command,
        bins=bins,
        operation=optimize(predicates=spec.predicates, z_order_by=spec.z_order_by),
        num_considered=len(considered),
        order=order,
        combines=True,
    )


def _clustering(
    command: Command, columns: Sequence[ColumnPath], settings: OptimizeSettings, *, full: bool
) -> Optimization:
    """Plan to order the rows of files along a Hilbert curve through the clustering columns."""
    snapshot = command.snapshot
    names = tuple(map(column_name, columns))
    plan = plan_clustering(snapshot.files.adds(), names, settings.cubes, full=full)
    typed = [(path, find_fields(snapshot.config.schema, path)) for path in columns]
    return Optimization(
        command=command,
        bins=plan.bins,
        operation=optimize_clustered(names, full=full),
        num_considered=len(snapshot.files),
        order=CurveOrder(
            columns=tuple((path, fields[-1].type) for path, fields in typed if fields),
            curve=HilbertCurve,
            sampled_share=_sampled_share(FileTable.of(plan.files)),
        ),
        clustering=plan,
    )


def _require_plain(spec: OptimizeSpec) -> None:
    if spec.predicates:
        raise InvalidRequestError(
            Message.CLUSTERING_WITH_PARTITION_PREDICATE,
            predicates_shown=", ".join(spec.predicates),
            predicates=spec.predicates,
        )
    if spec.z_order_by:
        raise InvalidRequestError(
            Message.CLUSTERING_WITH_ZORDER_BY,
            z_order_by=", ".join(spec.z_order_by),
            columns=spec.z_order_by,
        )


def _sampled_share(files: FileTable) -> float:
    rows = files.num_records()
    if rows is None:
        rows = files.total_size_bytes // _ROW_SIZE_LEAST
    return min(1.0, SAMPLE_ROWS_MAX / max(rows, 1))


def prepare_optimize(
    spark: SparkSession, log: TableLog, spec: OptimizeSpec
) -> PreparedFiles[DataFrame]:
    """Prepare an OPTIMIZE; its explanation reads the log alone."""

    def report(state: ReportState) -> Report:
        command = start_command(spark, log, Capability.MERGE)
        return planned_optimize(plan_optimize(command, spec), state)

    return PreparedFiles(report=report, run=partial(run_optimize, spark, log, spec))
