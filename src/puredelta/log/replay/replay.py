"""Reconciliation: the state after the actions of a log, applied in order (X-31).

The state is immutable. The newest action of each logical file is collected into a small overlay,
which is then applied to the columns of the older state. That costs the size of the commits plus
one pass over the keys of all files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from puredelta.log.files.file_table import (
    FILE_SCHEMA,
    TOMBSTONE_SCHEMA,
    FileTable,
    file_keys,
    tombstone_table,
)
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    DomainMetadata,
    FileAction,
    FileActionKey,
    Metadata,
    Protocol,
    Remove,
    SetTransaction,
)

_CHUNKS_MAX = 32
"""Each incremental replay appends a chunk; more chunks than this are copied into one."""

_COPIED_ROWS_MAX = 10_000
"""So many rows are copied together at every refresh: it takes 0.1 ms, and each further chunk
costs Arrow that much whenever rows are picked."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogState:
    """The state after some commits; `EMPTY_STATE` is the state before the first."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: FileTable = field(default_factory=lambda: FileTable(FILE_SCHEMA.empty_table()))
    tombstones: pa.Table = field(default_factory=TOMBSTONE_SCHEMA.empty_table)
    set_transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domain_metadata: Mapping[str, DomainMetadata] = field(default_factory=dict)
    """By domain; removed domains are left out."""


EMPTY_STATE = LogState()


def replay(state: LogState, actions: Iterable[Action | FileTable]) -> LogState:
    """Apply the actions of one or more commits, oldest first: the latest of a kind wins.

    Adds may come as a table, in which no file may be named twice. Files are identified by
    `FileActionKey`. Within one commit the order of an add and a remove of one path does not
    matter, because the protocol requires that their deletion vectors differ.
    """
    overlay = _Overlay()
    for action in actions:
        if isinstance(action, FileTable):
            state, overlay = _with_files(overlay.applied_to(state), action), _Overlay()
        else:
            overlay.add(action)
    return overlay.applied_to(state)


def _with_files(state: LogState, added: FileTable) -> LogState:
    keys = file_keys(added.rows)
    return replace(
        state,
        files=FileTable(_stack(_without(state.files.rows, keys), added.rows)),
        tombstones=_without(state.tombstones, keys),
    )


class _Overlay:
    """The newest action of each kind and key. Local to one `replay`."""

    def __init__(self) -> None:
        self._protocol: Protocol | None = None
        self._metadata: Metadata | None = None
        self._files: dict[FileActionKey, FileAction] = {}
        self._transactions: dict[str, SetTransaction] = {}
        self._domains: dict[str, DomainMetadata] = {}

    def add(self, action: Action) -> None:
        """Record one action; it replaces an older action with the same key."""
        match action:
            case Add() | Remove():
                key = FileActionKey.of(action)
                # A file that is added again takes its place at the end.
                self._files.pop(key, None)
                self._files[key] = action
            case Metadata():
                self._metadata = action
            case Protocol():
                self._protocol = action
            case SetTransaction():
                self._transactions[action.app_id] = action
            case DomainMetadata():
                self._domains[action.domain] = action
            case _:  # provenance, change files and actions of checkpoints are no state
                pass

    def applied_to(self, state: LogState) -> LogState:
        """Return the state with the recorded actions applied."""
        domains = {**state.domain_metadata, **self._domains}
        files, tombstones = self._apply_files(state)
        return replace(
            state,
            protocol=self._protocol or state.protocol,
            metadata=self._metadata or state.metadata,
            files=files,
            tombstones=tombstones,
            set_transactions={**state.set_transactions, **self._transactions},
            domain_metadata={k: d for k, d in domains.items() if not d.removed},
        )

    def _apply_files(self, state: LogState) -> tuple[FileTable, pa.Table]:
        if not self._files:
            return state.files, state.tombstones
        keys = pa.array([key.encoded for key in self._files], pa.string())
        added = FileTable.of(a for a in self._files.values() if isinstance(a, Add))
        removed = tombstone_table(a for a in self._files.values() if isinstance(a, Remove))
        return (
            FileTable(_stack(_without(state.files.rows, keys), added.rows)),
            _stack(_without(state.tombstones, keys), removed),
        )


def _without(rows: pa.Table, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
    if rows.num_rows == 0:
        return rows
    superseded = pc.is_in(file_keys(rows), value_set=keys)
    return rows.filter(pc.invert(superseded)) if pc.any(superseded).as_py() else rows


def _stack(below: pa.Table, above: pa.Table) -> pa.Table:
    if above.num_rows == 0:
        return below
    if below.num_rows == 0:
        return above
    stacked = pa.concat_tables([below, above])
    copies = stacked.num_rows <= _COPIED_ROWS_MAX or stacked["path"].num_chunks > _CHUNKS_MAX
    return stacked.combine_chunks() if copies else stacked
