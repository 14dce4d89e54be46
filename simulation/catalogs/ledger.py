"""Rules of a catalog-managed table, judged when something happens, without the library's reading.

A commit counts when the catalog ratifies it. Plain files are copies, in order, of what was
ratified, and nothing is reported that is not there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from puredelta.catalogs.catalog import RatifiedCommit
from puredelta.protocol.actions.log_paths import CommitFile, commit_name, log_path, parse_log_name
from simulation.catalogs.catalog import Ledger
from simulation.disk import Disk
from simulation.violation import Violation


@dataclass(frozen=True, slots=True)
class Ratified:
    """One version."""

    txn_id: str
    content: bytes
    files: frozenset[str]
    """All files of the version."""


@dataclass(slots=True)
class CatalogLedger(Ledger):
    """All versions, what writers were told, and what lies on the disk."""

    disk: Disk
    versions: list[Ratified] = field(default_factory=list)
    lost: dict[int, bytes] = field(default_factory=dict)
    """Content of versions that the catalog has lost."""
    started: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    acknowledged: dict[str, int] = field(default_factory=dict)
    num_versions: int = 0
    num_copies: int = 0

    @property
    def newest(self) -> int:
        """The number of the newest version."""
        return len(self.versions) - 1

    def created(self, content: bytes) -> None:
        """Take version 0."""
        self.versions.append(_after(frozenset(), content))

    def ratified(self, commit: RatifiedCommit) -> None:
        """Judge a commit at the moment when it counts."""
        content = self.disk.read(commit.path)
        after = _after(self.versions[-1].files, content)
        if after.txn_id not in self.started:
            raise Violation("commits are somebody's", after.txn_id)
        if any(after.txn_id == before.txn_id for before in self.versions):
            raise Violation("a commit is there once", f"{after.txn_id} as {commit.version}")
        if after.txn_id in self.denied:
            raise Violation("what was reported as failed is not in the table", after.txn_id)
        lost = self.lost.get(commit.version)
        if lost is not None and self._is_published(commit.version):
            raise Violation("a lost commit is not replaced", f"version {commit.version}")
        if _time(content) <= _time(self.versions[-1].content):
            raise Violation("time goes forward", f"version {commit.version}")
        self.versions.append(after)
        self.num_versions += 1

    def _is_published(self, version: int) -> bool:
        return self.disk.exists(log_path(commit_name(version)))

    def put(self, path: str, content: bytes) -> None:
        """Judge a file that was created."""
        name = parse_log_name(path.rpartition("/")[2])
        if not isinstance(name, CommitFile) or path.count("/") != 1:
            return
        self.num_copies += 1
        version = name.version
        known = self.versions[version].content if version <= self.newest else None
        if known != content and self.lost.get(version) != content:
            raise Violation("plain files are ratified commits", f"version {version}")
        for before in range(version):
            if not self._is_published(before):
                raise Violation("commits are published in order", f"{version} before {before}")

    def reported(self, version: int) -> None:
        """Judge a report of publication."""
        for before in range(version + 1):
            if not self._is_published(before):
                raise Violation("nothing is reported before its copy", f"version {before}")

    def restored(self) -> None:
        """Take note that the catalog has lost its newest commit."""
        lost = self.versions.pop()
        self.lost[len(self.versions)] = lost.content
        self.acknowledged.pop(lost.txn_id, None)

    def told(self, txn_id: str, version: int) -> None:
        """Judge an acknowledgement."""
        self.acknowledged[txn_id] = version
        self._require_there(txn_id, version)

    def told_failure(self, txn_id: str) -> None:
        """Judge what a writer was told: nothing was committed."""
        self.denied.add(txn_id)
        if any(txn_id == version.txn_id for version in self.versions):
            raise Violation("what was reported as failed is not in the table", txn_id)

    def seen(self, version: int, files: frozenset[str], *, at_least: int) -> None:
        """Judge what a reader has seen."""
        if not at_least <= version <= self.newest:
            raise Violation("readers see the newest version", f"{version}, at least {at_least}")
        if files != self.versions[version].files:
            raise Violation("readers see what was committed", f"version {version}")

    def require_all_there(self) -> None:
        """Judge the end."""
        for txn_id, version in self.acknowledged.items():
            self._require_there(txn_id, version)

    def _require_there(self, txn_id: str, version: int) -> None:
        if version in self.lost or (
            version <= self.newest and self.versions[version].txn_id == txn_id
        ):
            return
        raise Violation("acknowledged commits survive", f"{txn_id} is not version {version}")


def _after(files: frozenset[str], content: bytes) -> Ratified:
    actions = [json.loads(line) for line in content.splitlines()]
    added = {action["add"]["path"] for action in actions if "add" in action}
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    if removed - files:
        raise Violation("a commit removes what is there", str(sorted(removed - files)))
    return Ratified(actions[0]["commitInfo"]["txnId"], content, (files - removed) | added)


def _time(content: bytes) -> int:
    return int(json.loads(content.splitlines()[0])["commitInfo"]["inCommitTimestamp"])
