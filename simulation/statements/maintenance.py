"""Statements that change no row: compaction, clean-up, properties, readers; and RESTORE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from puredelta.commands.restore import differing_files, paths_of, restored_config
from puredelta.errors import TableNotFoundError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.commit.row_places import row_order_tag
from puredelta.log.maintenance.garbage import find_garbage, referenced_files, visible_to_vacuum
from puredelta.log.maintenance.running_vacuums import require_kept
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.operations import (
    Operation,
    restore,
    set_properties,
    vacuum_end,
    vacuum_start,
)
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import FALSE
from simulation.bank import ACCOUNTS, RETENTION, Rows, opening_row
from simulation.client import Client, Written
from simulation.statements.statement import Outcome
from simulation.violation import Violation

_OPTIMIZE = Operation(name="OPTIMIZE", parameters={"predicate": "[]"})
_FILES_MAX = 6


def _same(rows: Rows) -> Rows:
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """OPTIMIZE: write the rows of several files into one."""

    checkpoint: CheckpointWish

    def run(self, client: Client) -> Outcome:
        """Compact the oldest files of one partition."""
        snapshot = client.snapshot()
        groups: dict[str, list[int]] = {}
        values = snapshot.files.rows["partition_values"].to_pylist()
        for index, partition in enumerate(values):
            groups.setdefault(str(partition), []).append(index)
        largest = max(groups.values(), key=len, default=[])[:_FILES_MAX]
        if len(largest) < 2:
            return Outcome.NOTHING_TO_DO
        files = snapshot.files.take(largest)
        old = list(files.adds())
        command = client.start(snapshot, _same)
        written = Written()
        with client.writing(written):
            client.add_rows(written, client.compacted(old), data_change=False)
            client.remove(written, old, data_change=False)
        client.declare(command, FALSE, files)
        num_adds = sum(isinstance(action, Add) for action in written.actions)
        request = CommitRequest(
            actions=(),
            operation=_OPTIMIZE,
            is_blind_append=False,
            tags=row_order_tag([len(old)]) if num_adds == 1 else None,
        )
        client.commit(command, written, request, checkpoint=self.checkpoint)
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty:
    """ALTER TABLE SET TBLPROPERTIES: metadata that others conflict with, or may adopt."""

    key: str
    value: str

    def run(self, client: Client) -> Outcome:
        """Set the property."""
        snapshot = client.snapshot()
        before = snapshot.metadata.configuration
        if before.get(self.key) == self.value:
            return Outcome.NOTHING_TO_DO
        properties = {self.key: self.value}
        metadata = replace(snapshot.metadata, configuration={**before, **properties})
        command = client.start(snapshot, _same, capability=Capability.ADMINISTER)
        request = CommitRequest(actions=(metadata,), operation=set_properties(properties))
        client.commit(command, Written(), request)
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuum:
    """VACUUM with the table's retention time."""

    def run(self, client: Client) -> Outcome:
        """Delete what no version within the retention time needs, between two commits."""
        snapshot = client.snapshot()
        before_ms = client.clock() - RETENTION // timedelta(milliseconds=1)
        is_wanted = visible_to_vacuum(snapshot.config.physical_partition_columns)
        garbage = find_garbage(
            client.store.inventory("", is_wanted=is_wanted),
            referenced=referenced_files(snapshot, removed_since_ms=before_ms),
            modified_before_ms=before_ms,
        )
        if not garbage.files:
            return Outcome.NOTHING_TO_DO
        self._journal(
            client, vacuum_start(retention_check=True, default_retention=RETENTION, retention=None)
        )
        try:
            newest = client.snapshot()
            garbage = garbage.without(referenced_files(newest, removed_since_ms=before_ms))
            for file in garbage.files:
                client.store.delete(file.path)
        except OSError:
            self._journal(client, vacuum_end(completed=False))
            raise
        self._journal(client, vacuum_end(completed=True))
        return Outcome.COMMITTED

    def _journal(self, client: Client, operation: Operation) -> None:
        command = client.start(client.snapshot(), _same, capability=Capability.ADMINISTER)
        client.commit(command, Written(), CommitRequest(actions=(), operation=operation))


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """RESTORE of a version before the newest, as long as its files are there."""

    back: int

    def run(self, client: Client) -> Outcome:
        """Make the newest version what the old one was."""
        latest = client.snapshot()
        number = latest.version - self.back
        if number < 0 or opening_row(ACCOUNTS[0]) not in client.ledger.versions[number].rows:
            return Outcome.NOTHING_TO_DO
        try:
            target = client.version(number)
        except TableNotFoundError:  # the log is cleaned up
            return Outcome.REFUSED
        restored, removed = differing_files(target.files, latest.files)
        require_kept(client.store, latest, restored, now_ms=client.clock())
        adds = list(restored.adds())
        if not all(client.store.exists(path) for add in adds for path in paths_of(add)):
            return Outcome.REFUSED
        config = restored_config(target, latest)
        rows = client.ledger.versions[number].rows
        command = client.start(latest, lambda _: rows, capability=Capability.ADMINISTER)
        client.declare(command, None, latest.files)
        written = Written()
        written.actions += [replace(add, data_change=True) for add in adds]
        client.remove(written, removed.adds())
        request = CommitRequest(
            actions=(config.metadata, config.protocol),
            operation=restore(version=number, timestamp=None),
            is_blind_append=False,
        )
        client.commit(command, written, request)
        return Outcome.COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """SELECT from the newest version, or one within the retention time, by a new process."""

    back: int | None

    def run(self, client: Client) -> Outcome:
        """Read all rows, and compare them with what was committed."""
        client.forget()
        guaranteed_from = client.ledger.guaranteed_from()
        newest = client.ledger.newest
        if self.back is None:
            snapshot = client.snapshot()
        else:
            number = max(guaranteed_from, newest - self.back)
            snapshot = client.version(number)
        try:
            rows = {p.row.entry: p.row for file in snapshot.files.adds() for p in client.rows(file)}
        except FileNotFoundError:
            if snapshot.version >= client.ledger.guaranteed_from():
                raise
            return Outcome.FAILED  # A VACUUM was right to remove files of this old version.
        if rows != client.ledger.versions[snapshot.version].rows:
            raise Violation("readers see what was committed", f"other rows in {snapshot.version}")
        return Outcome.READ
