"""The report of a write that was executed: what came, what went, and how long it took. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from puredelta.commands.report.maintenance import first_file_decisions
from puredelta.commands.report.parts import (
    FileAction,
    FileTotals,
    ReportState,
    RowTotals,
    StageTime,
)
from puredelta.commands.report.report import Report
from puredelta.log.files.file_table import FileTable

REPLACED = "its rows are replaced"
NO_FILES = FileTable.of(())


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFacts:
    """What a write knows of itself when it has ended."""

    operation: str
    """As the history has it: ``WRITE``, ``CREATE TABLE AS SELECT``, ..."""
    table: str
    read_version: int | None
    version: int | None = None
    num_rows: int = 0
    num_files: int = 0
    size_bytes: int = 0
    replaced: FileTable = NO_FILES
    write_seconds: float = 0.0
    commit_seconds: float = 0.0


def written_report(facts: WrittenFacts, *, jobs_run: int | None) -> Report:
    """Return what a write of rows did; without a version it did nothing."""
    goes = facts.replaced
    decisions = first_file_decisions(goes, FileAction.REMOVE, REPLACED)
    files, rows = facts.num_files, facts.num_rows
    return Report(
        statement=facts.operation,
        table=facts.table,
        state=ReportState.EXECUTED,
        read_version=facts.read_version,
        committed_version=facts.version,
        rows=RowTotals(inserted=rows, deleted=goes.num_records()),
        files=FileTotals(
            added=files,
            added_bytes=facts.size_bytes,
            removed=len(goes),
            removed_bytes=goes.total_size_bytes,
        ),
        decisions=decisions,
        decisions_left_out=len(goes) - len(decisions),
        jobs_run=jobs_run,
        stages=(
            StageTime(
                name="write", seconds=facts.write_seconds, outcome=f"{rows} rows in {files} files"
            ),
            StageTime(
                name="commit",
                seconds=facts.commit_seconds,
                outcome="nothing to commit"
                if facts.version is None
                else f"version {facts.version}",
            ),
        ),
    )
