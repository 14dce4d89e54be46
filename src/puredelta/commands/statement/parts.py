"""Parts of a report: choices, counts, times and settings. Pure.

``None``, never zero, marks a value that only an execution knows. Sizes are bytes, times
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from puredelta.log.files.file_table import FileTable
from puredelta.spark.session.delta_conf import DeltaConf

DECISIONS_MAX = 200
"""Number of files that are named one by one; counts include all files."""


class ReportState(Enum):
    """Stages of a statement that a report can cover."""

    PLANNED = "plan"
    """No data was read, nothing was written."""
    SOURCE_READ = "plan with its source"
    """The source was evaluated, nothing else."""
    DRY_RUN = "dry run"
    """All data of the statement was read, and nothing was changed."""
    EXECUTED = "executed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseReport:
    """One clause of the statement; UPDATE and DELETE have one."""

    number: int
    """From 1, in the order of the statement: ``_clause`` of a preview."""
    text: str
    """As SQL: ``WHEN MATCHED AND s.cancelled THEN DELETE``."""
    action: str
    """``update``, ``delete`` or ``insert``."""
    rows: int | None = None
    """The number of rows for which it fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningStep:
    """The files that one rule removed from those left by earlier rules."""

    rule: str
    by: str
    """``partition values`` or ``statistics``."""
    files_skipped: int
    bytes_skipped: int
    files_left: int
    bytes_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFiles:
    """The files of the table that are read to find rows."""

    files_total: int
    bytes_total: int
    steps: tuple[PruningStep, ...] = ()
    files_left: int
    bytes_left: int
    files_added_back: int = 0
    """Kept only because a NOT MATCHED BY SOURCE clause may reach them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several ways to do something, with the reason for it."""

    subject: str
    chosen: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTotals:
    """Rows of the whole statement."""

    source: int | None = None
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    copied: int | None = None
    """Rewritten unchanged, because another row of their file changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTotals:
    """Files of the table that are added, changed and removed."""

    rewritten: int | None = None
    """Replaced by a copy without the changed rows."""
    rewritten_bytes: int | None = None
    marked: int | None = None
    """Kept, with another deletion vector."""
    marked_bytes: int | None = None
    removed: int | None = None
    """Removed with all their rows, without being read."""
    removed_bytes: int | None = None
    added: int | None = None
    added_bytes: int | None = None
    change_files: int | None = None
    """Of the change data feed."""


class FileAction(Enum):
    """Ways to treat a file."""

    REWRITE = "rewrite"
    MARK = "deletion vector"
    REMOVE = "remove"
    ADD = "add"
    DELETE = "delete from storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDecision:
    """The treatment of one file, with its reason."""

    path: str
    action: FileAction
    reason: str
    size_bytes: int
    rows_changed: int | None = None
    rows_copied: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCount:
    """Spark jobs of a stage. A query of the user's source may start more jobs."""

    stage: str
    jobs: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """A stage that ran."""

    name: str
    seconds: float
    outcome: str
    """Its result, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting, or a property of the table, that influenced a decision."""

    key: str
    value: str
    origin: str
    """``default``, ``session`` or ``table``."""
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommit:
    """A commit of another writer, with its possible conflict."""

    version: int
    operation: str
    conflict: str | None
    """The conflict with this statement; ``None`` if there was none."""
    error: str | None = None
    """The name of the exception."""


def first_decisions(
    files: Iterable[tuple[str, int]], action: FileAction, reason: str
) -> tuple[FileDecision, ...]:
    """Return a decision for each of the first files, which are given by path and size in bytes."""
    return tuple(
        FileDecision(path=path, action=action, reason=reason, size_bytes=size_bytes)
        for path, size_bytes in islice(files, DECISIONS_MAX)
    )


def first_file_decisions(
    files: FileTable, action: FileAction, reason: str
) -> tuple[FileDecision, ...]:
    """Return a decision for each of the first files of a table; other files are not read."""
    rows = files.rows.slice(0, DECISIONS_MAX)
    named = zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True)
    return first_decisions(named, action, reason)


def setting_values(confs: Iterable[DeltaConf], made: Mapping[str, str]) -> tuple[SettingValue, ...]:
    """Return settings with their values; ``made`` are those set in the session."""
    return tuple(
        SettingValue(
            key=conf.key,
            value="unset" if (value := conf.text(made)) is None else value,
            origin="session" if conf.key in made else "default",
            effect=conf.effect,
        )
        for conf in confs
    )
