"""The request of a commit: its actions, environment, reads and result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock
from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.spooled_files import SpooledFiles
from puredelta.protocol.actions.actions import Action, CommitInfo, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.actions.paths import CanonicalPath, canonical_path
from puredelta.protocol.schema.predicates import Predicate
from puredelta.protocol.table.table_config import TableConfig


class IfCreated(Enum):
    """What a commit that creates a table does when another writer has created it meanwhile."""

    FAIL = "fail"
    APPEND = "append"
    """Add the rows to the other writer's table, if its definition is the very same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """The actions of one version, and what the history says of them."""

    actions: Sequence[Action]
    operation: Operation
    metrics: Mapping[str, int | str] | None = field(default_factory=dict)
    """None leaves them out of the history."""
    always_records_metrics: bool = False
    """Also where the session wants no metrics: RESTORE, CLONE and CONVERT, as in delta-spark."""
    is_blind_append: bool | None = None
    """Found out (no file removed, nothing read) unless it is given as False."""
    user_metadata: str | None = None
    """Filled in by ``finish``, from what the session or the options of a write say."""
    tags: Mapping[str, str] | None = None
    if_created: IfCreated = IfCreated.FAIL
    new_files: SpooledFiles | None = None
    """Files beside those of the actions, of a table that this commit creates and that numbers no
    rows: so many that there is no object for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The commit is part of the table."""

    version: int
    actions: tuple[Action, ...]
    """As written, provenance first."""
    config: TableConfig
    """The table as this commit leaves it."""
    new_files: SpooledFiles | None = None
    """Files beside those of the actions."""

    @property
    def info(self) -> CommitInfo:
        """Its provenance."""
        info = self.actions[0]
        assert isinstance(info, CommitInfo)  # noqa: S101 - `build_actions` puts it first
        return info

    @property
    def timestamp_ms(self) -> int:
        """Its in-commit timestamp, else the time its writer put into ``commitInfo``."""
        in_commit = self.info.in_commit_timestamp_ms
        return (self.info.timestamp_ms or 0) if in_commit is None else in_commit


def changed_definition(
    before: TableConfig | None, after: TableConfig
) -> tuple[Metadata | Protocol, ...]:
    """Return the metadata and protocol that a table gets, where they are not as before."""
    metadata = before is None or before.metadata != after.metadata
    protocol = before is None or before.protocol != after.protocol
    return (
        *((after.metadata,) if metadata else ()),
        *((after.protocol,) if protocol else ()),
    )


class Phase(Enum):
    """Where a commit stands, for progress reporting and for tests that interleave writers."""

    STAGED = "checked by itself, nothing written"
    LOST_RACE = "another writer has the version, its commit is not read yet"
    REBASED = "compatible with all winning commits seen, bound to the next version"
    WRITTEN = "the commit file is on disk"
    FINISHED = "the checkpoint is written, failed or not due"


def ignore_phase(_: Phase) -> None:
    """Do nothing."""


ATTEMPTS_MAX = 1_000
"""How many versions a commit tries for. Each loss means that another writer got on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Values that a test passes in to replay a commit, or to come between."""

    clock: Clock = wall_clock
    new_id: IdSource = random_id
    on_phase: Callable[[Phase], None] = ignore_phase
    attempts_max: int = ATTEMPTS_MAX
    sleep: Callable[[float], None] = time.sleep
    """Waits some seconds for a storage that does not list yet what it has."""


DEFAULT_ENVIRONMENT = Environment()


@dataclass(frozen=True, kw_only=True)
class ReadSet:
    """The rows, files and application versions that a transaction's result depends on.

    Rows are described by predicates, because other writers may add rows that are in no file
    yet: every row that matches *any* of ``predicates`` counts as read. Files are the candidates
    left after pruning, not only those that were changed: a candidate was read to find out that
    nothing in it changes (X-29).

    Adding to a read set gives a new one.
    """

    predicates: tuple[Predicate, ...] = ()
    scans: tuple[FileTable, ...] = ()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()
    judges_rows_alone: bool = True
    """Whether what happens to a row that was read depends on no other row of the table."""

    def with_files(
        self, predicate: Predicate | None, files: FileTable, *, judges_rows_alone: bool = False
    ) -> ReadSet:
        """Add the rows that match and the files that were searched; None stands for every row."""
        predicates = self.predicates if predicate is None else (*self.predicates, predicate)
        return replace(
            self,
            predicates=predicates,
            scans=(*self.scans, files),
            whole_table=self.whole_table or predicate is None,
            judges_rows_alone=self.judges_rows_alone and judges_rows_alone,
        )

    def with_app_id(self, app_id: str) -> ReadSet:
        """Add an application whose last committed version the result depends on."""
        return replace(self, app_ids=self.app_ids | {app_id})

    @property
    def depends_on_data(self) -> bool:
        """Whether any row was read; otherwise a commit that only adds files is a blind append."""
        return self.whole_table or bool(self.predicates) or any(map(len, self.scans))

    @cached_property
    def files(self) -> Mapping[CanonicalPath, Mapping[str, str | None]]:
        """Partition values by canonical path; computed only when a race is lost."""
        return {
            canonical_path(path): dict(values or ())
            for scan in self.scans
            for path, values in zip(
                scan.rows["path"].to_pylist(),
                scan.rows["partition_values"].to_pylist(),
                strict=True,
            )
        }
