"""RESTORE on the log alone."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from puredelta.commands.restore import differing_files, restore_table
from puredelta.commands.vacuum import vacuum
from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConflictError,
    ErrorCode,
    InvalidRequestError,
)
from puredelta.log.files.clock import wall_clock
from puredelta.log.maintenance.running_vacuums import require_kept
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, DeletionVectorDescriptor
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_usage import (
    IDENTITY_ALLOWS_EXPLICIT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
)
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.protocol.table.clustering import CLUSTERING_DOMAIN, clustering_domain
from puredelta.store.local import LocalStore
from tests.commands.recorded import DAY_MS, ENDED, NOW_MS, STARTED, record
from tests.commands.sessions import FakeSession
from tests.faults import Meddling, at_first
from tests.log.tables import (
    WRITE,
    Client,
    add,
    create_table,
    feature_protocol,
    metadata,
    remove,
)

SPARK: Any = FakeSession(spark__sql__session__timeZone="UTC")


def commit(log: TableLog, *actions: Any) -> None:
    Client(log, log.snapshot()).commit(list(actions), WRITE)


def paths(log: TableLog) -> set[str]:
    return {file.path for file in log.snapshot().files.adds()}


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    """Versions: 0 has a, 1 has a and b, 2 has b and c and a property."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.parquet").write_bytes(b"x")
    log = create_table(LocalStore(tmp_path), add("a.parquet"))
    commit(log, add("b.parquet"))
    commit(log, remove("a.parquet"), add("c.parquet"), metadata(mine="1"))
    return log


def test_files_and_metadata_are_those_of_the_version(log: TableLog) -> None:
    outcome = restore_table(SPARK, log, version=1)
    assert outcome is not None
    assert outcome.metrics() == {
        "tableSizeAfterRestore": 200,
        "numOfFilesAfterRestore": 2,
        "numRemovedFiles": 1,
        "numRestoredFiles": 1,
        "removedFilesSize": 100,
        "restoredFilesSize": 100,
    }
    assert paths(log) == {"a.parquet", "b.parquet"}
    assert log.snapshot().metadata.configuration == {}
    info = log.history()[0].commit_info
    assert info is not None
    assert (info.operation, info.operation_parameters["version"]) == ("RESTORE", 1)
    assert restore_table(SPARK, log, version=3) is None


@pytest.mark.parametrize(
    ("recorded", "removed_ago_ms", "may_go"),
    [
        pytest.param([(STARTED, 1000)], 8 * DAY_MS, True, id="running"),
        pytest.param([(STARTED, 1000), (ENDED, 500)], 8 * DAY_MS, False, id="ended"),
        pytest.param(
            [(STARTED, 1000), (STARTED, 900), (ENDED, 500)], 8 * DAY_MS, True, id="two, one ended"
        ),
        pytest.param([(STARTED, 1000)], 6 * DAY_MS, False, id="it keeps what is so young"),
        pytest.param([(STARTED, 2 * DAY_MS)], 10 * DAY_MS, False, id="nobody takes so long"),
    ],
)
def test_x24a_a_vacuum_that_may_delete_the_files_is_waited_for(
    tmp_path: Path, recorded: list[tuple[Operation, int]], removed_ago_ms: int, may_go: bool
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    log = create_table(LocalStore(tmp_path), add("a.parquet"))
    commit(log, remove("a.parquet", deleted_ms=NOW_MS - removed_ago_ms))
    for operation, ago_ms in recorded:
        record(log, operation, ago_ms=ago_ms)
    if may_go:
        with pytest.raises(ConcurrentDeleteReadException, match="VACUUM"):
            restore_table(SPARK, log, version=0, clock=lambda: NOW_MS)
        assert paths(log) == set()
    else:
        restore_table(SPARK, log, version=0, clock=lambda: NOW_MS)
        assert paths(log) == {"a.parquet"}


def test_x24a_a_vacuum_that_came_between_is_a_conflict(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"x")
    os.utime(file, (1, 1))
    log = create_table(LocalStore(tmp_path), add("a.parquet"))
    commit(log, remove("a.parquet", deleted_ms=wall_clock() - 10 * DAY_MS))
    vacuumed = at_first("put_if_absent", lambda: vacuum(SPARK, log))
    with pytest.raises(ConcurrentDeleteReadException, match="VACUUM START"):
        restore_table(SPARK, TableLog(Meddling(log.store, before=vacuumed)), version=0)
    assert not file.exists()
    assert paths(log) == set()


@pytest.mark.parametrize(
    ("statement", "conflict", "left"),
    [
        (add("d.parquet"), ConcurrentAppendException, {"b.parquet", "c.parquet", "d.parquet"}),
        (remove("c.parquet"), ConcurrentDeleteReadException, {"b.parquet"}),
    ],
)
def test_a_statement_that_came_between_is_a_conflict(
    log: TableLog, statement: Action, conflict: type[ConflictError], left: set[str]
) -> None:
    rival = at_first("put_if_absent", lambda: commit(log, statement))
    with pytest.raises(conflict):
        restore_table(SPARK, TableLog(Meddling(log.store, before=rival)), version=1)
    assert paths(log) == left


def test_commits_may_be_cleaned_up_while_vacuums_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    log = create_table(LocalStore(tmp_path), add("a.parquet"))
    commit(log, remove("a.parquet", deleted_ms=NOW_MS - 8 * DAY_MS))
    commit(log, add("b.parquet"))
    listed: list[object] = []

    def clean_up(operation: str) -> None:
        if operation == "list_from":
            listed.append(operation)
        elif listed and operation == "read":
            (tmp_path / log_path(commit_name(1))).unlink(missing_ok=True)

    snapshot = log.snapshot()
    restored, _ = differing_files(log.snapshot(version=0).files, snapshot.files)
    store = Meddling(log.store, before=clean_up)
    require_kept(store, snapshot, restored, now_ms=wall_clock())
    assert not (tmp_path / log_path(commit_name(1))).exists()


def test_a_time_chooses_the_version(log: TableLog) -> None:
    moment = dt.datetime.fromtimestamp(log.history()[-1].timestamp_ms / 1000, tz=dt.timezone.utc)
    restore_table(SPARK, log, timestamp=moment)  # type: ignore[arg-type]
    assert paths(log) == {"a.parquet"}
    late = dt.datetime(2091, 1, 1, tzinfo=dt.timezone.utc)
    with pytest.raises(InvalidRequestError) as error:
        restore_table(SPARK, log, timestamp=late)  # type: ignore[arg-type]
    assert error.value.code is ErrorCode.CANNOT_RESTORE_TIMESTAMP_GREATER


def test_a_lost_deletion_vector_is_a_lost_file(tmp_path: Path) -> None:
    """VACUUM takes a vector that was replaced, while its data file stays in use."""
    vector = DeletionVectorDescriptor(
        storage_type="u",
        path_or_inline="^-aqEH.-t@S}K{vb[*k^",
        offset=1,
        size_bytes=3,
        cardinality=1,
    )
    marked = replace(
        add("a.parquet"), deletion_vector=vector, stats='{"numRecords":10,"tightBounds":false}'
    )
    (tmp_path / "a.parquet").write_bytes(b"x")
    log = create_table(
        LocalStore(tmp_path),
        marked,
        protocol=feature_protocol(readers=("deletionVectors",)),
        delta__enableDeletionVectors="true",
    )
    commit(log, replace(remove("a.parquet"), deletion_vector=vector), add("a.parquet"))
    with pytest.raises(InvalidRequestError, match=r"deletion_vector_\S+\.bin") as error:
        restore_table(SPARK, log, version=0)
    assert error.value.code is ErrorCode.FILE_NOT_FOUND
    assert log.snapshot().version == 1


def test_lost_files_and_unknown_versions_are_refused(log: TableLog, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InvalidRequestError, match=r"a\.parquet") as error:
        restore_table(SPARK, log, version=0)
    assert error.value.code is ErrorCode.FILE_NOT_FOUND
    for version in (-1, 99):
        with pytest.raises(InvalidRequestError) as error:
            restore_table(SPARK, log, version=version)
        assert error.value.code is ErrorCode.CANNOT_RESTORE_TABLE_VERSION
    assert log.latest_version() == 2
    tolerant: Any = FakeSession(spark__sql__files__ignoreMissingFiles="true")
    restore_table(tolerant, log, version=0)
    assert paths(log) == {"a.parquet"}


def test_features_and_counters_never_go_back(tmp_path: Path) -> None:
    def identity(mark: int | None) -> StructType:
        keys: dict[str, object] = {
            IDENTITY_START: 1,
            IDENTITY_STEP: 1,
            IDENTITY_ALLOWS_EXPLICIT: False,
        }
        if mark is not None:
            keys[IDENTITY_HIGH_WATER_MARK] = mark
        return StructType((StructField("id", LONG, True, keys),))

    log = create_table(
        LocalStore(tmp_path),
        protocol=feature_protocol("identityColumns"),
        schema=identity(None),
    )
    commit(
        log,
        metadata(schema=identity(7)),
        feature_protocol("identityColumns", "domainMetadata", "clustering"),
    )
    clustered = clustering_domain(log.snapshot().config, [("id",)])
    commit(log, clustered)
    restore_table(SPARK, log, version=0)
    snapshot = log.snapshot()
    assert snapshot.config.schema.fields[0].metadata[IDENTITY_HIGH_WATER_MARK] == 7
    assert snapshot.config.supports("clustering")
    assert CLUSTERING_DOMAIN not in snapshot.domain_metadata
    restore_table(SPARK, log, version=2)
    assert log.snapshot().domain_metadata[CLUSTERING_DOMAIN] == replace(clustered)
