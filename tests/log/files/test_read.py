"""Deletion vectors read through the store: by file, checked, wherever they lie (M-138)."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

import numpy as np
import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.files.deletion_vectors import read_positions, vector_indexes
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import Add, DeletionVectorDescriptor
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.store.base import Store
from puredelta.store.registry import open_store
from tests.deletion_vectors import encode_file, encode_inline


def add(vector: DeletionVectorDescriptor | None) -> Add:
    return Add(
        path="f",
        partition_values={},
        size_bytes=1,
        modified_ms=0,
        data_change=True,
        deletion_vector=vector,
    )


def stored(root: Path, *rows: list[int], prefix: str = "") -> tuple[DeletionVectorDescriptor, ...]:
    """One file of vectors."""
    vectors = [np.array(some, np.uint64) for some in rows]
    content, descriptors = encode_file(vectors, uuid.uuid4(), prefix=prefix)
    path = vector_path(descriptors[0])
    assert path is not None
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_bytes(content)
    return descriptors


def test_every_kind_of_vector_by_index_of_its_file(tmp_path: Path) -> None:
    root = tmp_path / "my table"
    root.mkdir()
    first, second = stored(root, [1, 2], [2**33])
    (prefixed,) = stored(root, [7], prefix="ab")
    (elsewhere,) = stored(tmp_path, [9])
    absolute = dataclasses.replace(
        elsewhere, storage_type="p", path_or_inline=f"file://{tmp_path}/{vector_path(elsewhere)}"
    )
    inline = encode_inline(np.array([3, 5], np.uint64))
    vectors = [None, second, inline, absolute, None, first, prefixed]
    files = FileTable.of([add(v) for v in vectors])
    assert list(vector_indexes(files)) == [1, 2, 3, 5, 6]
    found = read_positions(files, f"file:{root}")
    assert {n: rows.tolist() for n, rows in sorted(found.items())} == {
        1: [2**33],
        2: [3, 5],
        3: [9],
        5: [1, 2],
        6: [7],
    }


def test_file_of_many_vectors_is_opened_once(tmp_path: Path) -> None:
    descriptors = stored(tmp_path, *([n] for n in range(20)))
    opened: list[str] = []

    def counting(location: str) -> Store:
        opened.append(location)
        return open_store(location)

    files = FileTable.of([add(v) for v in descriptors])
    found = read_positions(files, f"file:{tmp_path}", open_at=counting)
    assert {n: rows.tolist() for n, rows in found.items()} == {n: [n] for n in range(20)}
    assert len(opened) == 1


def test_table_without_vectors(tmp_path: Path) -> None:
    assert read_positions(FileTable.of([add(None)]), f"file:{tmp_path}") == {}
    assert read_positions(FileTable.of([]), f"file:{tmp_path}") == {}


def test_missing_file_is_named(tmp_path: Path) -> None:
    (vector,) = stored(tmp_path, [1])
    (path,) = tmp_path.glob("*.bin")
    path.unlink()
    with pytest.raises(CorruptTableError, match=path.name) as raised:
        read_positions(FileTable.of([add(vector)]), f"file:{tmp_path}")
    assert raised.value.code is ErrorCode.FILE_NOT_FOUND
