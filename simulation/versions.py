"""Versions of the table, read from commits by a few lines that share nothing with the library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import vector_path
from simulation.bank import Row, Rows, decode_rows, hidden_positions
from simulation.disk import Disk
from simulation.violation import Violation

FileKey: TypeAlias = tuple[str, str | None]
"""A data file: its path, and the id of its deletion vector."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a version."""

    rows: tuple[Row, ...]
    """That a reader sees."""
    vector: str | None
    """The path of its deletion vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The table after one commit."""

    number: int
    txn_id: str
    committed_ms: int
    files: Mapping[FileKey, LiveFile]
    rows: Rows
    applications: Mapping[str, int]
    """Versions of applications, by their id."""
    row_ids: Mapping[str, int]
    """The first row id of every file there ever was, by path; empty where rows have none."""
    highest_row_id: int
    in_commit_ms: int | None
    changes_data: bool
    """Whether any of its actions says so."""

    @property
    def paths(self) -> frozenset[str]:
        """The files that a reader of this version needs: data files and deletion vectors."""
        vectors = {file.vector for file in self.files.values() if file.vector is not None}
        return frozenset({path for path, _ in self.files} | vectors)


NOTHING = Version(
    number=-1,
    txn_id="",
    committed_ms=0,
    files={},
    rows={},
    applications={},
    row_ids={},
    highest_row_id=-1,
    in_commit_ms=None,
    changes_data=False,
)


class CommitReader:
    """Turns the content of a commit into the version that it makes."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def after(self, before: Version, content: bytes, *, now_ms: int) -> Version:
        """Return the version after ``before``.

        Raises:
            Violation: the commit removes what is not there, adds what is there already, or names
                files that do not exist.
        """
        actions: dict[str, list[dict[str, Any]]] = {}
        for line in content.splitlines():
            for kind, body in json.loads(line).items():
                actions.setdefault(kind, []).append(body)
        removes, adds = actions.get("remove", []), actions.get("add", [])
        info = actions["commitInfo"][0]
        files, rows = self._replayed(before, removes, adds)
        row_ids, highest_row_id = self._row_ids(before, adds, actions.get("domainMetadata", []))
        return Version(
            number=before.number + 1,
            txn_id=info["txnId"],
            committed_ms=now_ms,
            files=files,
            rows=rows,
            applications=_applications(before, actions.get("txn", [])),
            row_ids=row_ids,
            highest_row_id=highest_row_id,
            in_commit_ms=info.get("inCommitTimestamp"),
            changes_data=any(action["dataChange"] for action in (*removes, *adds)),
        )

    def _replayed(
        self, before: Version, removes: Sequence[dict[str, Any]], adds: Sequence[dict[str, Any]]
    ) -> tuple[dict[FileKey, LiveFile], dict[str, Row]]:
        files, rows = dict(before.files), dict(before.rows)
        for remove in removes:
            gone = files.pop(_key(remove), None)
            if gone is None:
                raise Violation("a commit removes what is there", f"{remove['path']} is not")
            for row in gone.rows:
                del rows[row.entry]
        paths = {path for path, _ in files}
        for add in adds:
            if add["path"] in paths:
                raise Violation("a file is in the table once", f"{add['path']} is added again")
            paths.add(add["path"])
            file = files[_key(add)] = self._live(add)
            for row in file.rows:
                if row.entry in rows:
                    raise Violation("a row is in the table once", f"{row} comes again")
                rows[row.entry] = row
        return files, rows

    def _live(self, add: dict[str, Any]) -> LiveFile:
        rows = self._rows(add["path"])
        if (vector := _vector(add)) is None:
            return LiveFile(rows, None)
        path = str(vector_path(vector))
        hidden = hidden_positions(self._content(path), vector)
        return LiveFile(tuple(row for n, row in enumerate(rows) if n not in hidden), path)

    def _rows(self, path: str) -> tuple[Row, ...]:
        return decode_rows(self._content(path))

    def _content(self, path: str) -> bytes:
        try:
            return self._disk.read(path)
        except FileNotFoundError:
            raise Violation("a commit names files that are there", f"{path} is not") from None

    def _row_ids(
        self, before: Version, adds: Sequence[dict[str, Any]], domains: Sequence[dict[str, Any]]
    ) -> tuple[Mapping[str, int], int]:
        highest = before.highest_row_id
        for domain in domains:
            if domain["domain"] == "delta.rowTracking":
                highest = json.loads(domain["configuration"])["rowIdHighWaterMark"]
        known = dict(before.row_ids)
        free = before.highest_row_id + 1
        for add in sorted(adds, key=lambda add: int(add.get("baseRowId", -1))):
            first, path = add.get("baseRowId"), add["path"]
            if first is None or known.get(path) == first:
                continue
            last = first + len(self._rows(path)) - 1
            if path in known or first < free or last > highest:
                raise Violation("row ids are unique", f"{path} has {first} to {last}")
            known[path], free = first, last + 1
        return known, highest


def _applications(before: Version, txns: Sequence[dict[str, Any]]) -> Mapping[str, int]:
    applications = dict(before.applications)
    for txn in txns:
        if txn["version"] <= applications.get(txn["appId"], -1):
            raise Violation("a batch is in the table once", f"{txn} comes again")
        applications[txn["appId"]] = txn["version"]
    return applications


def _key(action: Mapping[str, Any]) -> FileKey:
    vector = _vector(action)
    return action["path"], None if vector is None else vector.unique_id


def _vector(action: Mapping[str, Any]) -> DeletionVectorDescriptor | None:
    told = action.get("deletionVector")
    if told is None:
        return None
    return DeletionVectorDescriptor(
        storage_type=told["storageType"],
        path_or_inline=told["pathOrInlineDv"],
        offset=told.get("offset"),
        size_bytes=told["sizeInBytes"],
        cardinality=told["cardinality"],
    )
