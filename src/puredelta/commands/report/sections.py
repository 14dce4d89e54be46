"""The lines of a report's sections. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from puredelta.commands.report.outline import Line
from puredelta.commands.report.parts import (
    ClauseReport,
    FileDecision,
    FileTotals,
    ForeignCommit,
    JobCount,
    RowTotals,
    SelectedFiles,
    SettingValue,
    StageTime,
)
from puredelta.quantities import counted, size_text


def clause_line(clause: ClauseReport) -> Line:
    """Return the line of a clause."""
    rows = "" if clause.rows is None else counted(clause.rows, "row")
    return Line(str(clause.number), clause.text, rows)


def selection_lines(selected: SelectedFiles | None) -> tuple[Line, ...]:
    """Return what each rule left of the files."""
    if selected is None:
        return ()
    back = selected.files_added_back
    return (
        Line("table", _sized(selected.files_total, selected.bytes_total)),
        *(
            Line(
                f"after {step.rule}",
                _sized(step.files_left, step.bytes_left),
                f"{step.files_skipped:,} skipped by {step.by}",
            )
            for step in selected.steps
        ),
        Line(
            "searched",
            _sized(selected.files_left, selected.bytes_left),
            f"{back:,} only for NOT MATCHED BY SOURCE" if back else "",
        ),
    )


def row_lines(rows: RowTotals | None) -> tuple[Line, ...]:
    """Return the counts that are known."""
    if rows is None:
        return ()
    named = {
        "source": rows.source,
        "inserted": rows.inserted,
        "updated": rows.updated,
        "deleted": rows.deleted,
        "copied unchanged": rows.copied,
    }
    return tuple(Line(name, f"{count:,}") for name, count in named.items() if count is not None)


def file_lines(files: FileTotals | None) -> tuple[Line, ...]:
    """Return the counts and sizes that are known."""
    if files is None:
        return ()
    named = {
        "rewritten": (files.rewritten, files.rewritten_bytes),
        "marked by a deletion vector": (files.marked, files.marked_bytes),
        "removed as a whole": (files.removed, files.removed_bytes),
        "added": (files.added, files.added_bytes),
        "change files": (files.change_files, None),
    }
    return tuple(
        Line(n, _sized(count, size)) for n, (count, size) in named.items() if count is not None
    )


def decision_lines(decisions: Sequence[FileDecision], *, left_out: int) -> tuple[Line, ...]:
    """Return a line for each file, and how many are not named."""
    lines = [
        Line(d.path, f"{d.action.value}, {size_text(d.size_bytes)}", d.reason) for d in decisions
    ]
    if left_out:
        lines.append(Line("", f"and {left_out:,} more"))
    return tuple(lines)


def job_lines(expected: Sequence[JobCount], run: int | None) -> tuple[Line, ...]:
    """Return the jobs of each stage, and how many ran."""
    lines = tuple(Line(j.stage, str(j.jobs), j.reason) for j in expected)
    return lines if run is None else (*lines, Line("run", str(run)))


def stage_line(stage: StageTime) -> Line:
    """Return the line of a stage."""
    return Line(stage.name, f"{stage.seconds:.3f} s", stage.outcome)


def foreign_lines(
    commits: Sequence[ForeignCommit], *, since: int | None, runs: int | None, retries: int | None
) -> tuple[Line, ...]:
    """Return what other writers did meanwhile, and how often the statement ran."""
    lines = []
    if runs is not None and runs > 1:
        lines.append(Line("runs", str(runs)))
    if retries is not None:
        lines.append(Line("retries allowed", str(retries)))
    for commit in commits:
        outcome = "no conflict" if commit.conflict is None else f"would have been {commit.error}"
        label = f"version {commit.version}, {commit.operation}"
        lines.append(Line(label, outcome, commit.conflict or ""))
    if not commits and since is not None:
        lines.append(Line("commits of others", f"none since version {since}"))
    return tuple(lines)


def setting_lines(settings: Sequence[SettingValue], *, full: bool) -> tuple[Line, ...]:
    """Return the settings that were made; ``full``: all, with what they do."""
    shown = [s for s in settings if full or s.origin != "default"]
    return tuple(Line(s.key, f"{s.value} ({s.origin})", s.effect if full else "") for s in shown)


def _sized(count: int | None, size_bytes: int | None) -> str:
    number = "unknown" if count is None else counted(count, "file")
    return number if size_bytes is None else f"{number}, {size_text(size_bytes)}"
