"""The report of one statement, and the last report of a thread.

`explain`, `dry_run` and the result of an execution return the same tree, filled as far as its
values are known.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pyspark.sql import DataFrame

from puredelta.commands.statement import rendering as sections_of
from puredelta.commands.statement.parts import (
    Choice,
    ClauseReport,
    FileDecision,
    FileTotals,
    ForeignCommit,
    JobCount,
    ReportState,
    RowTotals,
    SelectedFiles,
    SettingValue,
    StageTime,
)
from puredelta.commands.statement.rendering import (
    Line,
    Outline,
    Section,
    html_of,
    markdown_of,
    text_of,
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """The plan, the dry run or the result of a statement.

    ``print(report)`` shows it, notebooks show it as HTML, `to_markdown` and `to_dict` export it.

    Examples:
        >>> print(Report(statement="DELETE", table="file:/events", state=ReportState.PLANNED))
        DELETE of file:/events: plan
    """

    statement: str
    """``MERGE``, ``UPDATE``, ``DELETE``, ``OPTIMIZE``, ``VACUUM``, ``RESTORE``, ..."""
    table: str
    """The root of the table as a URI."""
    state: ReportState
    read_version: int | None = None
    """The version that the statement reads."""
    committed_version: int | None = None
    """The version that it made; ``None`` if it made none."""
    clauses: tuple[ClauseReport, ...] = ()
    selected: SelectedFiles | None = None
    choices: tuple[Choice, ...] = ()
    rows: RowTotals | None = None
    files: FileTotals | None = None
    decisions: tuple[FileDecision, ...] = ()
    """Of at most `DECISIONS_MAX` files."""
    decisions_left_out: int = 0
    jobs_expected: tuple[JobCount, ...] = ()
    jobs_run: int | None = None
    """The number of Spark jobs that ran; ``None`` where it is not known (Spark Connect)."""
    stages: tuple[StageTime, ...] = ()
    attempts: int | None = None
    """The number of runs until the commit."""
    retries_allowed: int | None = None
    since_version: int | None = None
    """The version after which commits of other writers were checked."""
    foreign_commits: tuple[ForeignCommit, ...] = ()
    settings: tuple[SettingValue, ...] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)
    """As in the history of the table."""
    details: tuple[tuple[str, str], ...] = ()
    """Further remarks: subject and text."""
    notes: tuple[str, ...] = ()
    """Unknown facts, each with the way to learn it."""

    @property
    def conflicts(self) -> tuple[ForeignCommit, ...]:
        """The commits of other writers with which this statement conflicted."""
        return tuple(c for c in self.foreign_commits if c.conflict is not None)

    def __str__(self) -> str:
        """Return the report as lines of text."""
        return text_of(self.outline())

    def __repr__(self) -> str:
        """Return the same text, for a prompt."""
        return str(self)

    def to_text(self, *, full: bool = False) -> str:
        """Return lines of text; ``full`` adds every setting and all known files."""
        return text_of(self.outline(full=full))

    def to_markdown(self, *, full: bool = True) -> str:
        """Return Markdown: a heading and a table for each part."""
        return markdown_of(self.outline(full=full))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks, without a reference to anything outside."""
        return html_of(self.outline(full=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as an argument of ``json.dumps``."""
        return _plain(self)  # type: ignore[no-any-return]

    def outline(self, *, full: bool = False) -> Outline:
        """Return the report as titles and lines, the source of all its formats."""
        title = f"{self.statement} of {self.table}: {self.state.value}"
        sections = (
            Section("Versions", self._versions()),
            Section("Clauses", tuple(map(sections_of.clause_line, self.clauses))),
            Section("Files to search", sections_of.selection_lines(self.selected)),
            Section("How", tuple(Line(c.subject, c.chosen, c.reason) for c in self.choices)),
            Section("Rows", sections_of.row_lines(self.rows)),
            Section("Files", sections_of.file_lines(self.files)),
            Section("File by file", self._decided() if full else ()),
            Section("Spark jobs", sections_of.job_lines(self.jobs_expected, self.jobs_run)),
            Section("Stages", tuple(map(sections_of.stage_line, self.stages))),
            Section("Other writers", self._foreign()),
            Section("Settings that decided", sections_of.setting_lines(self.settings, full=full)),
            Section("Details", tuple(Line(name, text) for name, text in self.details)),
            Section("Not known yet", tuple(Line("", note) for note in self.notes)),
        )
        return Outline(title, tuple(s for s in sections if s.lines))

    def _versions(self) -> tuple[Line, ...]:
        lines = []
        if self.read_version is not None:
            lines.append(Line("reads version", str(self.read_version)))
        if self.state is ReportState.EXECUTED:
            made = self.committed_version
            lines.append(
                Line("made version", "none: nothing changed" if made is None else str(made))
            )
        return tuple(lines)

    def _decided(self) -> tuple[Line, ...]:
        return sections_of.decision_lines(self.decisions, left_out=self.decisions_left_out)

    def _foreign(self) -> tuple[Line, ...]:
        return sections_of.foreign_lines(
            self.foreign_commits,
            since=self.since_version,
            runs=self.attempts,
            retries=self.retries_allowed,
        )


def _plain(value: Any) -> Any:
    """Convert a tree of data classes into dicts, lists and plain values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    match value:
        case Enum():
            return value.value
        case tuple() | list():
            return [_plain(item) for item in value]
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return value


class _Latest(threading.local):
    report: Report | None = None


_LATEST = _Latest()


def last_report() -> Report | None:
    """Return the report of the last statement that this thread executed or tried, or ``None``.

    That is a MERGE, an UPDATE, a DELETE, a write of rows, an OPTIMIZE, a VACUUM, a RESTORE or a
    CONVERT, through any interface. A failed statement leaves the previous report in place.

    Examples:
        >>> spark.sql("DELETE FROM events WHERE day < '2020-01-01'")  # doctest: +SKIP
        >>> print(last_report())  # doctest: +SKIP
    """
    return _LATEST.report


def remember(report: Report | None) -> None:
    """Keep the report of an executed statement."""
    if report is not None:
        _LATEST.report = report


def with_report(frame: DataFrame, report: Report | None) -> DataFrame:
    """Return the result of a statement with its report as the attribute ``report``."""
    frame.__dict__["report"] = report
    return frame
