"""Shallow clones on the log alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from puredelta.commands.create.clone import CloneRequest, clone_table
from puredelta.errors import ConcurrentDeleteReadException, DeltaError, ErrorCode
from puredelta.log.files.clock import wall_clock
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.store.local import LocalStore
from tests.commands.recorded import DAY_MS, NOW_MS, STARTED, record
from tests.commands.sessions import FakeSession
from tests.log.tables import WRITE, Client, add, create_table, feature_protocol, remove

SPARK: Any = FakeSession()
SHALLOW = CloneRequest(shallow=True)
VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="^-aqEH.-t@S}K{vb[*k^", offset=1, size_bytes=3, cardinality=1
)


@pytest.fixture
def source(tmp_path: Path) -> TableLog:
    file = replace(add("p%201.parquet"), deletion_vector=VECTOR)
    wide = replace(file, stats='{"numRecords":10,"tightBounds":false}')
    return create_table(
        LocalStore(tmp_path / "my source"),
        wide,
        protocol=feature_protocol("rowTracking", "domainMetadata", readers=("deletionVectors",)),
        delta__enableDeletionVectors="true",
        delta__enableRowTracking="true",
        mine="1",
    )


def test_a_clone_names_the_files_of_its_source(source: TableLog, tmp_path: Path) -> None:
    target = TableLog(LocalStore(tmp_path / "target"))
    request = CloneRequest(shallow=True, properties={"mine": "2", "delta.appendonly": "true"})
    assert clone_table(SPARK, source.snapshot(), target, request) == 0
    snapshot = target.snapshot()
    (file,) = snapshot.files.adds()
    assert file.path == f"file:{tmp_path}/my%20source/p%201.parquet"
    assert file.deletion_vector is not None
    assert file.deletion_vector.storage_type == "p"
    assert absolute_uri(snapshot.root_uri, file.deletion_vector.path_or_inline) == (
        f"file:{tmp_path}/my source/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    )
    assert file.default_row_commit_version == 0
    assert snapshot.metadata.configuration["mine"] == "2"
    assert snapshot.metadata.configuration["delta.appendOnly"] == "true"
    assert snapshot.metadata.id != source.snapshot().metadata.id
    assert snapshot.protocol == source.snapshot().protocol
    info = target.history()[0].commit_info
    assert info is not None
    assert info.operation_parameters == {
        "source": f"delta.`file:{tmp_path}/my source`",
        "sourceVersion": 0,
    }


def test_only_an_empty_table_is_replaced(source: TableLog, tmp_path: Path) -> None:
    target = create_table(LocalStore(tmp_path / "target"))
    before = target.snapshot().metadata
    with pytest.raises(DeltaError) as error:
        clone_table(SPARK, source.snapshot(), target, SHALLOW)
    assert error.value.code is ErrorCode.CREATE_TABLE_WITH_NON_EMPTY_LOCATION
    replacing = CloneRequest(shallow=True, replace=True)
    clone_table(SPARK, source.snapshot(), target, replacing)
    assert target.snapshot().metadata.id == before.id
    assert len(target.snapshot().files) == 1
    with pytest.raises(DeltaError) as error:
        clone_table(SPARK, source.snapshot(), target, replacing)
    assert error.value.code is ErrorCode.UNSUPPORTED_NON_EMPTY_CLONE


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CloneRequest(shallow=False), ErrorCode.UNSUPPORTED_DEEP_CLONE),
        (
            CloneRequest(shallow=True, properties={"delta.bogus": "1"}),
            ErrorCode.UNKNOWN_CONFIGURATION,
        ),
    ],
)
def test_what_cannot_be_cloned_is_refused(
    source: TableLog, tmp_path: Path, request_: CloneRequest, code: ErrorCode
) -> None:
    target = TableLog(LocalStore(tmp_path / "target"))
    with pytest.raises(DeltaError) as error:
        clone_table(SPARK, source.snapshot(), target, request_)
    assert error.value.code is code
    assert not target.exists()


def test_files_of_an_old_version_must_be_there(tmp_path: Path) -> None:
    source = create_table(LocalStore(tmp_path / "source"), add("a.parquet"))
    Client(source, source.snapshot()).commit([remove("a.parquet")], WRITE)
    target = TableLog(LocalStore(tmp_path / "target"))
    with pytest.raises(DeltaError, match=r"a\.parquet") as error:
        clone_table(SPARK, source.snapshot(version=0), target, SHALLOW)
    assert error.value.code is ErrorCode.FILE_NOT_FOUND
    assert not target.exists()
    ignoring: Any = FakeSession(spark__sql__files__ignoreMissingFiles="true")
    assert clone_table(ignoring, source.snapshot(version=0), target, SHALLOW) == 0


def test_x24a_a_vacuum_of_the_source_that_may_delete_the_files_is_waited_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    source = create_table(LocalStore(tmp_path), add("a.parquet"), add("b.parquet"))
    removed = remove("a.parquet", deleted_ms=wall_clock() - 8 * DAY_MS)
    Client(source, source.snapshot()).commit([removed], WRITE)
    record(source, STARTED, ago_ms=NOW_MS - wall_clock())
    target = TableLog(LocalStore(tmp_path.parent / "target"))
    with pytest.raises(ConcurrentDeleteReadException, match="VACUUM"):
        clone_table(SPARK, source.snapshot(version=0), target, SHALLOW)
    assert not target.exists()
    assert clone_table(SPARK, source.snapshot(), target, SHALLOW) == 0, "of what is live"
