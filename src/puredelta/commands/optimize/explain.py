"""The report of an OPTIMIZE."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.compaction.metrics import OptimizeOutcome
from puredelta.commands.compaction.optimization import Optimization
from puredelta.commands.report.maintenance import first_file_decisions, setting_values
from puredelta.commands.report.parts import (
    Choice,
    FileAction,
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    SelectedFiles,
    StageTime,
)
from puredelta.commands.report.report import Report
from puredelta.log.files.file_table import FileTable
from puredelta.spark.session import delta_conf

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
    """Return which files an OPTIMIZE brings together; runs nothing."""
    return _report(optimization, state)


def optimized_report(
    optimization: Optimization,
    outcome: OptimizeOutcome,
    *,
    seconds: Mapping[str, float],
    jobs_run: int | None,
) -> Report:
    """Return what an OPTIMIZE did."""
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
        ),
        notes=() if outcome is not None or not optimization.bins else (_UNKNOWN,),
    )


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
