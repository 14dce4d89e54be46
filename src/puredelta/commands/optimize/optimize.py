"""OPTIMIZE from statement to commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.command import Command, start_command
from puredelta.commands.compaction.metrics import OptimizeOutcome
from puredelta.commands.compaction.optimization import Optimization, compactable_files
from puredelta.commands.compaction.settings import OptimizeSettings
from puredelta.commands.optimize.explain import optimized_report
from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.optimize.where import files_where
from puredelta.commands.optimize.z_columns import resolve_z_columns
from puredelta.commands.report.latest import with_report
from puredelta.commands.running.stages import StageTimer
from puredelta.commands.running.statement import running_statement
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.commit.environment import Phase, ignore_phase
from puredelta.log.files.file_table import FileTable
from puredelta.log.maintenance.clustering_plan import plan_clustering
from puredelta.log.maintenance.file_bins import plan_compaction, plan_z_order
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.table_operations import optimize, optimize_clustered
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.traversal import find_fields
from puredelta.protocol.table.clustering import CLUSTERING, ColumnPath, clustering_columns
from puredelta.protocol.table.partitioning import Partitioning
from puredelta.protocol.table.z_cubes import column_name
from puredelta.spark.session.ui_metrics import shown_in_ui
from puredelta.spark.write.curve_order import SAMPLE_ROWS_MAX, CurveOrder
from puredelta.spark.write.curves import ZOrderCurve
from puredelta.spark.write.hilbert_curve import HilbertCurve

_ROW_SIZE_LEAST = 10
"""Bytes; where no statistics tell the number of rows, there are not more than this means."""


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
    """Bring files of the latest version together, or order their rows along a curve.

    One Spark job writes all files (two stages), along a curve another one samples the rows.
    Nothing is committed where there is nothing to do; a Z-order always has something.
    Files of a clustered table are clustered, those that another provider has clustered are left
    alone.

    Raises:
        InvalidRequestError: the condition is none on partition columns, or a column cannot be
            ordered by; on a clustered table neither is allowed.
        ConflictError: another writer deleted one of the files.
        UnsupportedError: the table needs a feature that is not implemented.
    """
    command = start_command(spark, log, Capability.MERGE, on_phase=on_phase)
    return plan_optimize(command, spec).run()


def plan_optimize(command: Command, spec: OptimizeSpec) -> Optimization:
    """Choose the files that an OPTIMIZE rewrites. Runs no job on a classic session.

    Raises:
        InvalidRequestError: as `execute_optimize`.
    """
    snapshot = command.snapshot
    settings = OptimizeSettings.parse(command.session.settings)
    if snapshot.config.supports(CLUSTERING):
        _require_plain(spec)
    columns = clustering_columns(snapshot.config, snapshot.domain_metadata)
    if columns:
        return _clustering(command, columns, settings, full=spec.full)
    if spec.full:
        raise InvalidRequestError(
            "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering "
            "columns.",
            code=ErrorCode.OPTIMIZE_FULL_NOT_SUPPORTED,
        )
    return _plain(command, spec, settings)


def _plain(command: Command, spec: OptimizeSpec, settings: OptimizeSettings) -> Optimization:
    """Plan to bring files together, along a Z-order curve if the user names columns."""
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
            "OPTIMIZE command for Delta table with clustering doesn't support partition "
            f"predicates. Please remove the predicates: {', '.join(spec.predicates)}.",
            code=ErrorCode.CLUSTERING_WITH_PARTITION_PREDICATE,
            predicates=spec.predicates,
        )
    if spec.z_order_by:
        raise InvalidRequestError(
            "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please "
            f"remove ZORDER BY ({', '.join(spec.z_order_by)}).",
            code=ErrorCode.CLUSTERING_WITH_ZORDER_BY,
            columns=spec.z_order_by,
        )


def _sampled_share(files: FileTable) -> float:
    rows = files.num_records()
    if rows is None:
        rows = files.total_size_bytes // _ROW_SIZE_LEAST
    return min(1.0, SAMPLE_ROWS_MAX / max(rows, 1))
