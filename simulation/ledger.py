"""Who sees everything: each version as it lands, each answer as it is given.

The ledger stands beside the disk and holds every commit against what its writer meant to do: a
commit must do to the rows of the version before it exactly what its statement does when it
runs alone there. That is what Serializable means, and it leaves no room for a row that is
lost, doubled or made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeAlias

from puredelta.log.files.file_table import FileTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.log_paths import CommitFile, parse_log_name
from simulation.bank import ACCOUNTS, RETENTION, STATEMENT_MAX, TOTAL, Rows, opening_row
from simulation.disk import Disk
from simulation.versions import NOTHING, CommitReader, Version
from simulation.violation import Violation

Effect: TypeAlias = Callable[[Rows], Rows]
"""What a statement does to the rows of a table when it runs alone."""

SKEW_MAX = timedelta(seconds=2)
"""How far a writer's clock may be wrong."""
_KEPT_FOR_MS = (RETENTION - STATEMENT_MAX - 2 * SKEW_MAX) // timedelta(milliseconds=1)
"""How long files outlive the version that needed them last. A tombstone is stamped when its
statement plans, not when it commits."""


class Ledger:
    """All versions, what statements meant to do, and what their writers were told."""

    def __init__(self, disk: Disk, clock: Callable[[], int]) -> None:
        self.versions: list[Version] = []
        self.num_checked = 0
        """How many versions were judged when they landed."""
        self._clock = clock
        self._reader = CommitReader(disk)
        self._effects: dict[str, Effect] = {}
        self._acknowledged: dict[str, int] = {}
        self._denied: set[str] = set()
        self._needed_until: dict[str, int] = {}
        self._live: frozenset[str] = frozenset()

    @property
    def newest(self) -> int:
        """The number of the newest version, -1 before there is a table."""
        return len(self.versions) - 1

    # --- what writers are told --------------------------------------------------------------

    def begin(self, txn_id: str, effect: Effect) -> None:
        """Note what a transaction is going to do, should it commit."""
        self._effects[txn_id] = effect

    def acknowledged(self, txn_id: str, version: int) -> None:
        """Note that a writer was told: your commit is this version."""
        self._acknowledged[txn_id] = version
        self._require_there(txn_id, version)

    def denied(self, txn_id: str, reason: BaseException) -> None:
        """Note that a writer was told: nothing was committed."""
        self._denied.add(txn_id)
        version = self._find(txn_id)
        if version is not None:
            raise Violation(
                "what was reported as failed is not in the table",
                f"{txn_id} was ({reason!r}), and is version {version}",
            )

    def guaranteed_from(self) -> int:
        """Return the oldest version whose files must all be there still."""
        horizon = self._clock() - _KEPT_FOR_MS
        superseded = (v.number for v in self.versions if v.committed_ms <= horizon)
        return max(superseded, default=0)

    # --- what happens on the disk -----------------------------------------------------------

    def created(self, path: str, content: bytes) -> None:
        """Judge a file that was created, if it is a commit."""
        name = parse_log_name(path.rpartition("/")[2])
        if isinstance(name, CommitFile):
            self._committed(name.version, content)

    def deleting(self, path: str) -> None:
        """Judge the removal of a file."""
        if path in self._live:
            raise Violation("files of the table stay", f"{path} is in version {self.newest}")
        needed_until = self._needed_until.get(path)
        if needed_until is not None and self._clock() < needed_until + _KEPT_FOR_MS:
            age_s = (self._clock() - needed_until) // 1000
            raise Violation("files stay while they may be read", f"{path} was until {age_s} s ago")

    def power_cut(self, undone: Iterable[str]) -> None:
        """Forget the versions that the disk has lost; no writer may have been told of them."""
        for path in undone:
            name = parse_log_name(path.rpartition("/")[2])
            if not isinstance(name, CommitFile) or name.version != self.newest:
                continue
            lost = self.versions.pop()
            if lost.txn_id in self._acknowledged:
                raise Violation(
                    "acknowledged commits survive",
                    f"version {lost.number} of {lost.txn_id} is gone after a power cut",
                )
        self._live = self.versions[-1].paths if self.versions else frozenset()

    # --- what readers see -------------------------------------------------------------------

    def require_version(self, snapshot: Snapshot, *, at_least: int) -> None:
        """Judge what the code under test has read: a committed version, and not an old one."""
        number = snapshot.version
        if not at_least <= number <= self.newest:
            raise Violation(
                "readers see the newest version", f"{number} was read, at least {at_least} is there"
            )
        expected = self.versions[number]
        if _keys(snapshot.files) != expected.files.keys():
            raise Violation("readers see what was committed", f"other files in version {number}")
        applications = {a.app_id: a.version for a in snapshot.set_transactions.values()}
        if applications != expected.applications:
            raise Violation("readers see what was committed", f"other txns in version {number}")
        if snapshot.in_commit_timestamp_ms != expected.in_commit_ms:
            raise Violation("readers see what was committed", f"another time in version {number}")

    def require_all_there(self) -> None:
        """Judge the end of a run: who was told so is in the table, and nobody twice."""
        for txn_id, version in self._acknowledged.items():
            self._require_there(txn_id, version)

    # --- judgement --------------------------------------------------------------------------

    def _committed(self, number: int, content: bytes) -> None:
        if number != len(self.versions):
            raise Violation("versions have no gap", f"{number} comes after {self.newest}")
        before = self.versions[-1] if self.versions else NOTHING
        after = self._reader.after(before, content, now_ms=self._clock())
        if self._find(after.txn_id) is not None or after.txn_id in self._denied:
            raise Violation("a commit is there once", f"{after.txn_id} comes as version {number}")
        self._require_effect(before, after)
        self._require_sound(before, after)
        self.versions.append(after)
        self.num_checked += 1
        live = after.paths
        for path in self._live - live:
            self._needed_until[path] = after.committed_ms
        self._live = live

    def _require_effect(self, before: Version, after: Version) -> None:
        effect = self._effects.get(after.txn_id)
        if effect is None:
            raise Violation("commits are somebody's", f"nobody has begun {after.txn_id}")
        expected = effect(before.rows)
        if after.rows != expected:
            missing = sorted(expected.items() - after.rows.items())
            invented = sorted(after.rows.items() - expected.items())
            raise Violation(
                "each statement runs as if it were alone",
                f"version {after.number}: lost {[r for _, r in missing]}, "
                f"made up {[r for _, r in invented]}",
            )
        if not after.changes_data and after.rows != before.rows:
            raise Violation("dataChange tells the truth", f"version {after.number} changed rows")

    def _require_sound(self, before: Version, after: Version) -> None:
        total = sum(row.amount for row in after.rows.values())
        is_open = opening_row(ACCOUNTS[0]) in after.rows
        if total != (TOTAL if is_open else 0):
            raise Violation("no money is made or lost", f"{total} in version {after.number}")
        for account in ACCOUNTS:
            if sum(row.amount for row in after.rows.values() if row.account == account) < 0:
                raise Violation("no account is overdrawn", f"{account} in version {after.number}")
        earlier, later = before.in_commit_ms, after.in_commit_ms
        if earlier is not None and (later is None or later <= earlier):
            raise Violation("time goes forward", f"{later} follows {earlier}")

    def _require_there(self, txn_id: str, version: int) -> None:
        found = self._find(txn_id)
        if found != version:
            raise Violation(
                "acknowledged commits survive",
                f"{txn_id} was told to be version {version}, and is {found}",
            )

    def _find(self, txn_id: str) -> int | None:
        return next((v.number for v in reversed(self.versions) if v.txn_id == txn_id), None)


def _keys(files: FileTable) -> set[tuple[str, str | None]]:
    """Return path and vector of each file. A vector's id is spelt here as in the protocol."""
    paths = files.rows["path"].to_pylist()
    vectors = files.rows["deletion_vector"]
    if vectors.null_count == len(vectors):
        return {(path, None) for path in paths}
    ids = (
        None if v is None else f"{v['storage_type']}{v['path_or_inline']}@{v['offset']}"
        for v in vectors.to_pylist()
    )
    return set(zip(paths, ids, strict=True))
