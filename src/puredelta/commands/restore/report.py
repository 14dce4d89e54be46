"""The report of a RESTORE."""

from __future__ import annotations

from collections.abc import Mapping

from puredelta.commands.report.maintenance import first_file_decisions
from puredelta.commands.report.parts import (
    FileAction,
    FileTotals,
    JobCount,
    ReportState,
    RowTotals,
    StageTime,
)
from puredelta.commands.report.report import Report
from puredelta.commands.restore.plan import RestorePlan


def restore_report(
    plan: RestorePlan,
    state: ReportState,
    *,
    seconds: Mapping[str, float],
    version: int | None = None,
) -> Report:
    """Return which files come back and which go, with the rows in them; ``version`` is the new one.

    A file that has another deletion vector in the two versions is among both.
    """
    restored, removed = plan.restored, plan.removed
    return Report(
        statement="RESTORE",
        table=plan.command.log.root_uri,
        state=state,
        read_version=plan.command.snapshot.version,
        committed_version=version,
        rows=RowTotals(inserted=restored.num_records(), deleted=removed.num_records()),
        files=FileTotals(
            added=len(restored),
            added_bytes=restored.total_size_bytes,
            removed=len(removed),
            removed_bytes=removed.total_size_bytes,
        ),
        decisions=(
            *first_file_decisions(restored, FileAction.ADD, "only the old version has it"),
            *first_file_decisions(removed, FileAction.REMOVE, "only the newest version has it"),
        ),
        jobs_expected=(JobCount(stage="commit", jobs=0, reason="only the log is written"),),
        stages=tuple(
            StageTime(name=name, seconds=time, outcome="") for name, time in seconds.items()
        ),
        metrics=plan.outcome.metrics(),
        details=(
            ("restored version", str(plan.target.version)),
            ("rows", "those of files that come back are inserted, those of files that go deleted"),
        ),
    )


def nothing_to_restore(table: str, state: ReportState) -> Report:
    """Return the report of a RESTORE of the newest version."""
    return Report(
        statement="RESTORE",
        table=table,
        state=state,
        rows=RowTotals(inserted=0, deleted=0),
        files=FileTotals(added=0, added_bytes=0, removed=0, removed_bytes=0),
        notes=("The table is in that state already.",),
    )
