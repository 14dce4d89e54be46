"""Iceberg tables in a catalog of a test's own, and rows of them that pyiceberg cannot delete."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy", reason="the catalog of the tests")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    SetSnapshotRefUpdate,
)
from pyiceberg.typedef import Record

_numbers = itertools.count(1)
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


def new_catalog(root: Path) -> SqlCatalog:
    """Make a catalog with the namespace ``db``, everything below a directory."""
    root.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("test", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}")
    catalog.create_namespace("db")
    return catalog


def root_of(table: Table) -> Path:
    """Return the directory of a table."""
    return Path(table.location().removeprefix("file://"))


def identifier(table: Table) -> str:
    """Return what a conversion is to be called with."""
    return f"iceberg.`{table.metadata_location}`"


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def delete_rows(
    table: Table,
    rows: Iterable[tuple[str, int]],
    *,
    content: DataFileContent = DataFileContent.POSITION_DELETES,
    file_format: FileFormat = FileFormat.PARQUET,
) -> Table:
    """Commit a file that deletes rows by their positions, as merge-on-read writers do."""
    number = next(_numbers)
    path = f"{table.location()}/data/deletes-{number}.parquet"
    found = pa.Table.from_pylist(
        [{"file_path": file, "pos": place} for file, place in sorted(rows)], _POSITIONS
    )
    pq.write_table(found, path.removeprefix("file://"))
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=file_format,
        partition=Record(),
        record_count=found.num_rows,
        file_size_in_bytes=Path(path.removeprefix("file://")).stat().st_size,
        equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
    )
    file.spec_id = 0
    _commit_deletes(table, file, number)
    return table.refresh()


def _commit_deletes(table: Table, file: DataFile, number: int) -> None:
    metadata, io = table.metadata, table.io
    before = metadata.current_snapshot()
    assert before is not None
    snapshot_id, sequence = metadata.new_snapshot_id(), metadata.next_sequence_number()
    manifest_path = f"{table.location()}/metadata/deletes-{number}.avro"
    writer = _DeletesWriter(
        metadata.specs()[0], metadata.schema(), io.new_output(manifest_path), snapshot_id, "null"
    )
    with writer:
        writer.add_entry(
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=snapshot_id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
        )
    list_path = f"{table.location()}/metadata/snap-{number}.avro"
    with write_manifest_list(
        2, io.new_output(list_path), snapshot_id, before.snapshot_id, sequence, "null"
    ) as manifests:
        manifests.add_manifests([*before.manifests(io), writer.to_manifest_file()])
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=before.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=before.timestamp_ms + 1,
        manifest_list=list_path,
        summary=Summary(Operation.DELETE),
        schema_id=metadata.current_schema_id,
    )
    updates = (
        AddSnapshotUpdate(snapshot=snapshot),
        SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id),
    )
    table.catalog.commit_table(
        table, (AssertRefSnapshotId(ref="main", snapshot_id=before.snapshot_id),), updates
    )


def rewrite_metadata(table: Table, change: Any) -> str:
    """Write another metadata file with a change to its JSON; return its path."""
    path = Path(table.metadata_location.removeprefix("file://"))
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    other = path.with_name(f"v{next(_numbers)}.metadata.json")
    other.write_text(json.dumps(content), encoding="utf-8")
    return str(other)


def rows_as_text(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """Return rows as text that is equal for equal rows of both formats."""
    plain = [
        {name: _plain(row[name]) for name in columns} for row in table.select(columns).to_pylist()
    ]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in plain)


def _plain(value: Any) -> Any:
    match value:
        case float() if value != value:  # noqa: PLR0124 - NaN
            return "NaN"
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case bytes():
            return value.hex()
        case _ if hasattr(value, "utcoffset") and value.utcoffset() is not None:
            return str(value.astimezone(timezone.utc))
        case _:
            return value
