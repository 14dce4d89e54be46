"""Parts of a report: choices, counts, times and settings. Pure.

``None`` is what only running the statement tells, never zero. Sizes are bytes, times seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from puredelta.log.files.file_table import FileTable
from puredelta.spark.session.delta_conf import DeltaConf

DECISIONS_MAX = 200
"""So many files are named one by one; the counts are of all."""


class ReportState(Enum):
    """How far the statement went."""

    PLANNED = "plan"
    """No data was read, nothing was written."""
    SOURCE_READ = "plan with its source"
    """The source was evaluated, nothing else."""
    DRY_RUN = "dry run"
    """All was read that the statement reads, and nothing was changed."""
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
    """For how many rows it fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningStep:
    """What one rule left out, of what the rules before it had left."""

    rule: str
    by: str
    """``partition values`` or ``statistics``."""
    files_skipped: int
    bytes_skipped: int
    files_left: int
    bytes_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFiles:
    """Which files of the table are read to find rows."""

    files_total: int
    bytes_total: int
    steps: tuple[PruningStep, ...] = ()
    files_left: int
    bytes_left: int
    files_added_back: int = 0
    """Left only because a NOT MATCHED BY SOURCE clause may reach them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of several ways to do something, and why it was taken."""

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
    """Written again unchanged, because another row of their file changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTotals:
    """Files of the table that come, change and go."""

    rewritten: int | None = None
    """Replaced by a copy without the rows that change."""
    rewritten_bytes: int | None = None
    marked: int | None = None
    """Stay, with another deletion vector."""
    marked_bytes: int | None = None
    removed: int | None = None
    """Leave the table with all their rows, without being read for it."""
    removed_bytes: int | None = None
    added: int | None = None
    added_bytes: int | None = None
    change_files: int | None = None
    """Of the change data feed."""


class FileAction(Enum):
    """What becomes of a file."""

    REWRITE = "rewrite"
    MARK = "deletion vector"
    REMOVE = "remove"
    ADD = "add"
    DELETE = "delete from storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDecision:
    """What becomes of one file, and why."""

    path: str
    action: FileAction
    reason: str
    size_bytes: int
    rows_changed: int | None = None
    rows_copied: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCount:
    """Spark jobs of a stage. A query of the user's source may start more of its own."""

    stage: str
    jobs: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """A stage that ran."""

    name: str
    seconds: float
    outcome: str
    """What it found or did, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting, or a property of the table, that decided something."""

    key: str
    value: str
    origin: str
    """``default``, ``session`` or ``table``."""
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommit:
    """A commit of another writer, and whether this statement could have followed it."""

    version: int
    operation: str
    conflict: str | None
    """Why not; ``None``: it could."""
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
    """Return a decision for each of the first files of a table; the others are not looked at."""
    rows = files.rows.slice(0, DECISIONS_MAX)
    named = zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True)
    return first_decisions(named, action, reason)


def setting_values(confs: Iterable[DeltaConf], made: Mapping[str, str]) -> tuple[SettingValue, ...]:
    """Return settings with their values; ``made`` are those that the session has made."""
    return tuple(
        SettingValue(
            key=conf.key,
            value="unset" if (value := conf.text(made)) is None else value,
            origin="session" if conf.key in made else "default",
            effect=conf.effect,
        )
        for conf in confs
    )
