"""Random histories written by hand: the same commits as three tables, and the changes they made.

``recorded`` has change files and row ids, ``tracked`` row ids alone, ``plain`` neither. All share
their data files. No writer of ours takes part.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CommitInfo,
    Protocol,
    Remove,
)
from puredelta.protocol.schema.types import LONG, STRING, StructField, StructType
from puredelta.protocol.table.row_tracking import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from tests.deletion_vectors import encode_inline
from tests.spark.tables import TableFiles

SCHEMA = StructType((StructField("k", LONG), StructField("v", STRING)))
TRACKED = {
    "delta.enableRowTracking": "true",
    ROW_ID_COLUMN: "_row_id",
    ROW_COMMIT_VERSION_COLUMN: "_row_version",
}
KINDS: Mapping[str, Mapping[str, str]] = {
    "recorded": {"delta.enableChangeDataFeed": "true", **TRACKED},
    "tracked": TRACKED,
    "plain": {},
}
FEATURES = frozenset({"deletionVectors", "rowTracking", "domainMetadata", "changeDataFeed"})
PROTOCOL = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=FEATURES,
)
INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_preimage", "update_postimage"


class Row(NamedTuple):
    """A row, with its id and the version of its last change."""

    id: int
    version: int
    k: int
    v: str | None


class Change(NamedTuple):
    """One row of the changes of a version."""

    version: int
    kind: str
    k: int
    v: str | None


@dataclass(frozen=True)
class File:
    """A data file with its rows in order, and the positions that a vector deletes."""

    add: Add
    rows: tuple[Row, ...]
    deleted: frozenset[int] = frozenset()

    @property
    def live(self) -> list[Row]:
        return [row for n, row in enumerate(self.rows) if n not in self.deleted]

    def without(self, ids: Iterable[int]) -> File:
        gone = set(ids)
        found = {n for n, row in enumerate(self.rows) if row.id in gone}
        return replace(self, deleted=self.deleted | found)

    def action(self) -> Add:
        positions = np.array(sorted(self.deleted), np.uint64)
        vector = encode_inline(positions) if self.deleted else None
        return replace(self.add, deletion_vector=vector)


@dataclass
class History:
    """A history that grows by one random commit a call."""

    root: Path
    random: random.Random
    tables: dict[str, TableFiles] = field(init=False)
    files: dict[str, File] = field(default_factory=dict)
    states: list[dict[str, File]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    events: dict[int, list[Change]] = field(default_factory=dict)
    """The changes of each row by its id."""
    restores: set[int] = field(default_factory=set)
    next_id: int = 0
    next_key: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        self.tables = {
            kind: TableFiles.create(
                self.root / kind, SCHEMA, configuration=names, protocol=PROTOCOL
            )
            for kind, names in KINDS.items()
        }
        self.states.append({})

    @property
    def version(self) -> int:
        return len(self.states)

    @property
    def live(self) -> dict[int, Row]:
        return {row.id: row for file in self.files.values() for row in file.live}

    def step(self) -> None:
        """Make one commit."""
        operations: Sequence[tuple[int, Callable[[], None]]] = (
            (3, self.append),
            (3, lambda: self.change("UPDATE")),
            (3, lambda: self.change("DELETE")),
            (5, lambda: self.change("MERGE")),
            (1, self.overwrite),
            (1, self.optimize),
            (1, self.restore),
        )
        weights, chosen = zip(*operations, strict=True)
        self.random.choices(chosen, weights)[0]() if self.live else self.append()

    def append(self) -> None:
        parts = [self.written(new=self.new_rows()) for _ in range(self.random.randint(1, 2))]
        self.commit("WRITE", added=parts, changed=[(None, r) for f in parts for r in f.live])

    def change(self, operation: str) -> None:
        """Delete, update and insert rows, by rewriting files or by deletion vectors."""
        rows = list(self.live.values())
        chosen = self.random.sample(rows, self.random.randint(1, max(1, len(rows) // 2)))
        kinds = {"UPDATE": (True,), "DELETE": (False,), "MERGE": (True, False)}[operation]
        changed: list[tuple[Row | None, Row | None]] = []
        for row in chosen:
            new = row._replace(version=self.version, v=self.value(row.v))
            changed.append((row, new if self.random.choice(kinds) else None))
        inserted = self.new_rows() if operation == "MERGE" and self.random.random() < 0.7 else []
        updated = [new for _, new in changed if new is not None]
        counts = {
            "numTargetRowsInserted": len(inserted),
            "numTargetRowsUpdated": len(updated),
            "numTargetRowsDeleted": len(changed) - len(updated),
        }
        touched = [
            f for f in self.files.values() if {r.id for r in chosen} & {r.id for r in f.live}
        ]
        gone = {row.id for row in chosen}
        added, removed = [], touched
        if self.random.random() < 0.5:
            marked = [file.without(gone) for file in touched]
            added = [file for file in marked if file.live]
            moved = updated
        else:
            moved = [r for f in touched for r in f.live if r.id not in gone] + updated
            self.random.shuffle(moved)
        if moved or inserted:
            added.append(self.written(moved, inserted))
            inserted = list(added[-1].live[len(moved) :])
        self.commit(
            operation,
            added=added,
            removed=removed,
            changed=[*changed, *((None, row) for row in inserted)],
            metrics={name: str(n) for name, n in counts.items()},
            records=True,
        )

    def overwrite(self) -> None:
        old = list(self.files.values())
        new = self.written(new=[*self.new_rows(), *list(self.live.values())[:1]])
        changed: list[tuple[Row | None, Row | None]] = [(row, None) for row in self.live.values()]
        changed += [(None, row) for row in new.live]
        self.commit("WRITE", added=[new], removed=old, changed=changed)

    def optimize(self) -> None:
        old = list(self.files.values())
        new = self.written([row for file in old for row in file.live])
        self.commit("OPTIMIZE", added=[new], removed=old, data_change=False)

    def restore(self) -> None:
        target = self.random.choice(self.states)
        now = self.files
        added = [f for path, f in target.items() if path not in now or now[path] != f]
        removed = [f for path, f in now.items() if path not in target or target[path] != f]
        if not added and not removed:
            self.append()
            return
        before = self.live
        after = {row.id: row for file in target.values() for row in file.live}
        changed = [
            (before.get(row_id), after.get(row_id))
            for row_id in {**before, **after}
            if before.get(row_id) != after.get(row_id)
        ]
        self.restores.add(self.version)
        self.commit("RESTORE", added=added, removed=removed, changed=changed)

    def value(self, old: str | None = None) -> str | None:
        return self.random.choice(["a", "b", "c", None, old])

    def new_rows(self) -> list[Row]:
        """Return rows without an id yet."""
        count = self.random.randint(1, 4)
        self.next_key += count
        keys = range(self.next_key - count, self.next_key)
        return [Row(-1, self.version, k, self.value()) for k in keys]

    def written(self, moved: Sequence[Row] = (), new: Sequence[Row] = ()) -> File:
        """Write one file: rows that keep their ids, then new ones."""
        base, self.next_id = self.next_id, self.next_id + len(moved) + len(new)
        fresh = [Row(base + len(moved) + n, self.version, r.k, r.v) for n, r in enumerate(new)]
        rows = (*moved, *fresh)
        kept = [None if row.version == self.version else row.version for row in moved]
        content = {
            "k": pa.array([r.k for r in rows], pa.int64()),
            "v": pa.array([r.v for r in rows], pa.string()),
            "_row_id": pa.array([r.id for r in moved] + [None] * len(fresh), pa.int64()),
            "_row_version": pa.array(kept + [None] * len(fresh), pa.int64()),
        }
        add = replace(
            self._stored(content), base_row_id=base, default_row_commit_version=self.version
        )
        return File(add, rows)

    def _stored(self, content: Mapping[str, pa.Array]) -> Add:
        self.number += 1
        path = self.root / f"{self.number}.parquet"
        pq.write_table(pa.table(dict(content)), path)
        return Add(
            path=path.as_uri(),
            partition_values={},
            size_bytes=path.stat().st_size,
            modified_ms=0,
            data_change=True,
        )

    def commit(
        self,
        operation: str,
        *,
        added: Sequence[File] = (),
        removed: Sequence[File] = (),
        changed: Sequence[tuple[Row | None, Row | None]] = (),
        metrics: Mapping[str, str] | None = None,
        data_change: bool = True,
        records: bool = False,
    ) -> None:
        """Commit to all tables; ``changed`` are the rows before and after."""
        info = CommitInfo(timestamp_ms=0, operation=operation, operation_metrics=metrics)
        actions: list[Action] = [info]
        actions += [_removed(file, data_change=data_change) for file in removed]
        actions += [replace(file.action(), data_change=data_change) for file in added]
        changes = [c for before, after in changed for c in self._changes(before, after)]
        recorded = [self._recorded(changes)] if records else []
        self.tables["recorded"].commit(*actions, *recorded)
        self.tables["tracked"].commit(*actions)
        self.tables["plain"].commit(*map(_unnumbered, actions))
        kept = {path: file for path, file in self.files.items() if file not in removed}
        self.files = {**kept, **{file.add.path: file for file in added}}
        self.states.append(self.files)
        self.changes += changes

    def _changes(self, before: Row | None, after: Row | None) -> list[Change]:
        both = before is not None and after is not None
        made = []
        if before is not None:
            made.append(Change(self.version, BEFORE if both else DELETE, before.k, before.v))
        if after is not None:
            made.append(Change(self.version, AFTER if both else INSERT, after.k, after.v))
        row = before or after
        assert row is not None
        self.events.setdefault(row.id, []).extend(made)
        return made

    def _recorded(self, changes: Sequence[Change]) -> AddChangeFile:
        content = {
            "k": pa.array([c.k for c in changes], pa.int64()),
            "v": pa.array([c.v for c in changes], pa.string()),
            "_change_type": pa.array([c.kind for c in changes], pa.string()),
        }
        add = self._stored(content)
        return AddChangeFile(path=add.path, partition_values={}, size_bytes=add.size_bytes)


def random_history(root: Path, seed: int, commits: int) -> History:
    """Return a history of a number of commits after the first."""
    history = History(root, random.Random(seed))
    for _ in range(commits):
        history.step()
    return history


def _removed(file: File, *, data_change: bool) -> Remove:
    add = file.action()
    return Remove(
        path=add.path,
        deleted_ms=1,
        data_change=data_change,
        extended_file_metadata=True,
        partition_values={},
        size_bytes=add.size_bytes,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
    )


def _unnumbered(action: Action) -> Action:
    if isinstance(action, Add | Remove):
        return replace(action, base_row_id=None, default_row_commit_version=None)
    return action
