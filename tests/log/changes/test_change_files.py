from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from puredelta.errors import CorruptTableError, ErrorCode
from puredelta.log.changes.change_feed import (
    ChangedFile,
    ChangeFiles,
    VectorChange,
    find_change_files,
    read_vector_changes,
)
from puredelta.log.replay.commit_files import Commit
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    AddChangeFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Remove,
)
from puredelta.protocol.actions.deletion_vector import vector_path
from puredelta.protocol.table.change_data import ChangeType
from tests.deletion_vectors import encode_file, encode_inline
from tests.log.tables import add

UNCHANGED = CommitInfo(
    operation="MERGE",
    operation_metrics={
        "numTargetRowsInserted": "0",
        "numTargetRowsUpdated": "0",
        "numTargetRowsDeleted": "0",
    },
)


def remove(path: str, **rest: object) -> Remove:
    made = Remove(
        path=path,
        deleted_ms=4,
        data_change=True,
        extended_file_metadata=True,
        partition_values={"p": "x"},
        size_bytes=7,
    )
    return replace(made, **rest)  # type: ignore[arg-type]


def vector(*rows: int) -> DeletionVectorDescriptor:
    return encode_inline(np.array(rows, np.uint64))


def changes_of(*actions: Action, version: int = 3) -> ChangeFiles:
    commit = Commit(version=version, modified_ms=1, actions=actions)
    return find_change_files([commit], {version: 50})


def brief(files: list[ChangedFile]) -> list[tuple[str, ChangeType | None, int, int]]:
    return [(f.file.path, f.change, f.version, f.timestamp_ms) for f in files]


def test_files_that_came_and_went() -> None:
    found = changes_of(add("a", {"p": "1"}), remove("b"), add("c"))
    assert brief(found.whole) == [
        ("a", ChangeType.INSERT, 3, 50),
        ("c", ChangeType.INSERT, 3, 50),
        ("b", ChangeType.DELETE, 3, 50),
    ]
    assert found.whole[0].file.partition_values == {"p": "1"}
    assert (found.whole[2].file.partition_values, found.whole[2].file.size_bytes) == ({"p": "x"}, 7)
    assert (found.recorded, found.vector_changes) == ([], [])


def test_m_123_change_files_speak_for_the_whole_commit() -> None:
    recorded = AddChangeFile(path="_change_data/cdc-0", partition_values={"p": "1"}, size_bytes=5)
    commits = [
        Commit(version=0, modified_ms=1, actions=(add("a"),)),
        Commit(version=1, modified_ms=1, actions=(add("b"), recorded, remove("a"))),
        Commit(version=2, modified_ms=1, actions=(remove("b"),)),
    ]
    found = find_change_files(commits, {0: 10, 1: 20, 2: 30})
    assert brief(found.recorded) == [("_change_data/cdc-0", None, 1, 20)]
    assert found.recorded[0].file.partition_values == {"p": "1"}
    assert brief(found.whole) == [
        ("a", ChangeType.INSERT, 0, 10),  # M-124
        ("b", ChangeType.DELETE, 2, 30),
    ]


def test_m_125_a_merge_that_changed_nothing_is_skipped() -> None:
    assert changes_of(UNCHANGED, add("a"), remove("b")) == ChangeFiles()
    merged = replace(UNCHANGED, operation_metrics={"numTargetRowsInserted": "0"})
    assert len(changes_of(merged, add("a"), remove("b")).whole) == 2


def test_rearranged_files_are_no_changes() -> None:
    found = changes_of(
        add("a", data_change=False), remove("b", data_change=False), add("c"), UNCHANGED_INFO
    )
    assert brief(found.whole) == [("c", ChangeType.INSERT, 3, 50)]


UNCHANGED_INFO = CommitInfo(operation="OPTIMIZE")


def test_a_file_with_a_different_deletion_vector() -> None:
    old, new = vector(1), vector(1, 2)
    found = changes_of(
        remove("p=a%20b/f", deletion_vector=old),
        replace(add("p=a b/f"), deletion_vector=new),  # another spelling of the path
        remove("same", deletion_vector=old),
        replace(add("same"), deletion_vector=old),
        remove("bare"),
        add("bare"),
        remove("gone", deletion_vector=new),
    )
    assert found.vector_changes == [
        VectorChange(file=add("p=a b/f"), before=old, after=new, version=3, timestamp_ms=50)
    ]
    assert brief(found.whole) == [("gone", ChangeType.DELETE, 3, 50)]
    assert found.whole[0].file.deletion_vector == new


def test_a_remove_that_does_not_say_enough() -> None:
    for lacking in (remove("b", partition_values=None), remove("b", size_bytes=None)):
        with pytest.raises(CorruptTableError, match="extendedFileMetadata") as raised:
            changes_of(lacking)
        assert raised.value.code is ErrorCode.REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA
        # What is not read need not be complete: the add has it all, or nothing changed.
        both = changes_of(lacking, replace(add("b"), deletion_vector=vector(3)))
        assert len(both.vector_changes) == 1
        changes_of(UNCHANGED, lacking)
        changes_of(replace(lacking, data_change=False))


def redrawn(
    file: Add,
    before: DeletionVectorDescriptor | None,
    after: DeletionVectorDescriptor | None,
) -> VectorChange:
    return VectorChange(file=file, before=before, after=after, version=1, timestamp_ms=2)


def test_vectors_are_compared(tmp_path: Path) -> None:
    content, (first, second) = encode_file(
        [np.array([1, 2**33], np.uint64), np.array([1, 4], np.uint64)], uuid.uuid4()
    )
    path = vector_path(first)
    assert path is not None
    (tmp_path / path).write_bytes(content)
    cases = [
        redrawn(add("a"), None, first),
        redrawn(add("b"), second, None),
        redrawn(add("c"), first, second),
        redrawn(add("d"), second, vector(1, 4)),
        redrawn(add("e"), first, vector(1, 7, 2**33)),
    ]
    found = [
        (r.file.file.path, r.file.change, r.rows.tolist())
        for r in read_vector_changes(cases, f"file:{tmp_path}")
    ]
    assert found == [
        ("a", ChangeType.DELETE, [1, 2**33]),
        ("b", ChangeType.INSERT, [1, 4]),
        ("c", ChangeType.DELETE, [4]),
        ("c", ChangeType.INSERT, [2**33]),
        ("e", ChangeType.DELETE, [7]),
    ]
    assert read_vector_changes([], f"file:{tmp_path}") == []
