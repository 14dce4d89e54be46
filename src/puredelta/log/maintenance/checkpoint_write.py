"""Writing of checkpoints: one version in files of its own (X-32 to X-36).

If the policy of the table is V2, the checkpoint is a top file in JSON that names a sidecar with
the file actions (section "V2 Checkpoint Table Feature"). Otherwise it is one Parquet file after
the V1 spec, which every reader knows.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from puredelta.log.files.clock import IdSource, random_id
from puredelta.log.files.file_table import FileTable
from puredelta.log.maintenance.checkpoint_rows import (
    checkpoint_table,
    file_action_table,
    file_actions_of,
    file_rows,
    small_actions,
)
from puredelta.log.replay.checkpoint_read import checkpoint_hint_checksum
from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.actions.action_json import encode_action
from puredelta.protocol.actions.actions import CheckpointMetadata, Sidecar
from puredelta.protocol.actions.log_paths import (
    LAST_CHECKPOINT,
    SIDECAR_DIRECTORY,
    classic_checkpoint_name,
    log_path,
    v2_checkpoint_name,
)
from puredelta.store.base import PutOutcome, Store, put_parts_if_absent

_PART_BYTES = 8 * 1024 * 1024
_IN_MEMORY_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """A Parquet file that waits to be put."""

    num_rows: int
    size_bytes: int
    _file: IO[bytes]

    def parts(self) -> Iterator[bytes]:
        """Yield the content from its start."""
        self._file.seek(0)
        while part := self._file.read(_PART_BYTES):
            yield part


@contextlib.contextmanager
def encoded_rows(rows: pa.Table, more: Iterable[pa.Table] = ()) -> Iterator[EncodedRows]:
    """Encode rows, and those that follow them; a long file waits on the disk."""
    num_rows = rows.num_rows
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_MAX_BYTES) as file:
        with pq.ParquetWriter(
            file,
            rows.schema,
            compression="snappy",
            store_schema=False,
            write_page_checksum=True,
        ) as sink:
            sink.write_table(rows)
            for further in more:
                sink.write_table(further)
                num_rows += further.num_rows
        yield EncodedRows(num_rows, file.tell(), file)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSummary:
    """The facts about a checkpoint that ``_last_checkpoint`` has."""

    version: int
    num_actions: int
    size_bytes: int
    num_files: int


def write_checkpoint(
    store: Store,
    snapshot: Snapshot,
    *,
    now_ms: int,
    new_id: IdSource = random_id,
    more: Iterable[FileTable] = (),
) -> CheckpointSummary:
    """Write the checkpoint of a snapshot and point ``_last_checkpoint`` to it.

    An existing classic checkpoint is kept: it has the same content, and another process may be
    reading it. A version may have several V2 checkpoints. ``now_ms`` decides which tombstones
    have expired. ``more`` are files beside those of the snapshot, read once and not kept.
    """
    if snapshot.config.is_active("v2Checkpoint"):
        summary = _write_v2(store, snapshot, more, now_ms=now_ms, new_id=new_id)
        store.put(log_path(LAST_CHECKPOINT), _hint(summary))
        return summary
    table = checkpoint_table(snapshot, now_ms=now_ms)
    with encoded_rows(table, (file_rows(snapshot, files) for files in more)) as rows:
        summary = CheckpointSummary(
            version=snapshot.version,
            num_actions=rows.num_rows,
            size_bytes=rows.size_bytes,
            num_files=len(snapshot.files) + rows.num_rows - table.num_rows,
        )
        path = log_path(classic_checkpoint_name(snapshot.version))
        if put_parts_if_absent(store, path, rows.parts()) is PutOutcome.CREATED:
            store.put(log_path(LAST_CHECKPOINT), _hint(summary))
    return summary


def _write_v2(
    store: Store,
    snapshot: Snapshot,
    more: Iterable[FileTable],
    *,
    now_ms: int,
    new_id: IdSource,
) -> CheckpointSummary:
    """Write the sidecar before the top file, so that a top file never names a missing one."""
    table = file_action_table(snapshot, now_ms=now_ms)
    kinds = small_actions(snapshot, now_ms=now_ms).values()
    small = [action for some in kinds for action in some]
    lines = [encode_action(CheckpointMetadata(version=snapshot.version))]
    size_bytes = num_rows = 0
    with encoded_rows(table, (file_actions_of(snapshot, files) for files in more)) as rows:
        if num_rows := rows.num_rows:
            size_bytes = rows.size_bytes
            sidecar = Sidecar(path=f"{new_id()}.parquet", size_bytes=size_bytes, modified_ms=now_ms)
            put_parts_if_absent(store, f"{SIDECAR_DIRECTORY}/{sidecar.path}", rows.parts())
            lines.append(encode_action(sidecar))
    top = "\n".join([*lines, *map(encode_action, small)]).encode()
    store.put_if_absent(log_path(v2_checkpoint_name(snapshot.version, new_id())), top)
    return CheckpointSummary(
        version=snapshot.version,
        num_actions=num_rows + len(lines) + len(small),
        size_bytes=size_bytes + len(top),
        num_files=len(snapshot.files) + num_rows - table.num_rows,
    )


def _hint(summary: CheckpointSummary) -> bytes:
    content: dict[str, Any] = {
        "version": summary.version,
        "size": summary.num_actions,
        "sizeInBytes": summary.size_bytes,
        "numOfAddFiles": summary.num_files,
    }
    checksum = checkpoint_hint_checksum(content)
    return json.dumps({**content, "checksum": checksum}, separators=(",", ":")).encode()
