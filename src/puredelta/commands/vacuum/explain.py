"""What a VACUUM will delete, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from puredelta.commands.command import Command
from puredelta.commands.report.maintenance import first_decisions, setting_values
from puredelta.commands.report.parts import (
    FileAction,
    JobCount,
    ReportState,
    SettingValue,
    StageTime,
)
from puredelta.commands.report.report import Report
from puredelta.commands.vacuum.retention import Retention
from puredelta.commands.vacuum.scope import VacuumScope
from puredelta.log.maintenance.garbage import Garbage
from puredelta.quantities import size_text
from puredelta.spark.session.delta_conf import (
    VACUUM_IGNORE_WINDOW,
    VACUUM_LOGGING,
    VACUUM_RETENTION_CHECK,
)

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """What goes, by a listing of the storage."""

    command: Command
    garbage: Garbage
    retention: Retention
    before_ms: int
    """Only what is older goes, in milliseconds since 1970."""
    scope: VacuumScope

    def describe(self) -> str:
        """Return one line for the log."""
        return f"{self.garbage.num_paths} files and directories are not needed"


def vacuum_report(
    plan: VacuumPlan,
    state: ReportState,
    *,
    seconds: Mapping[str, float],
    deleted: int | None = None,
) -> Report:
    """Return which files and empty directories go; ``deleted`` is how many went."""
    garbage, command = plan.garbage, plan.command
    files = [(file.path, file.size_bytes) for file in garbage.files]
    decisions = first_decisions(
        files, FileAction.DELETE, "no version within the retention needs it"
    )
    details = [
        ("files to delete", f"{len(garbage.files):,}, {size_text(garbage.size_bytes)}"),
        ("empty directories to delete", f"{len(garbage.directories):,}"),
        ("directories looked into", f"{garbage.num_directories_seen:,}"),
    ]
    if deleted is not None:
        details.append(("deleted", f"{deleted:,}"))
    return Report(
        statement="VACUUM",
        table=command.log.root_uri,
        state=state,
        read_version=command.snapshot.version,
        decisions=decisions,
        decisions_left_out=len(files) - len(decisions),
        jobs_expected=(JobCount(stage="list and delete", jobs=0, reason="the driver does both"),),
        stages=tuple(
            StageTime(name=name, seconds=time, outcome="") for name, time in seconds.items()
        ),
        settings=(
            _retention_setting(plan.retention),
            *setting_values(
                (VACUUM_RETENTION_CHECK, VACUUM_IGNORE_WINDOW, VACUUM_LOGGING),
                command.session.settings,
            ),
        ),
        metrics={
            "numFilesToDelete": garbage.num_paths,
            "sizeOfDataToDelete": garbage.size_bytes,
            **({} if deleted is None else {"numDeletedFiles": deleted}),
        },
        details=tuple(details),
    )


def _retention_setting(retention: Retention) -> SettingValue:
    return SettingValue(
        key="delta.deletedFileRetentionDuration",
        value=f"{retention.effective / _HOUR:g} hours",
        origin="table" if retention.specified is None else "statement",
        effect="how old a file has to be that no version needs",
    )
