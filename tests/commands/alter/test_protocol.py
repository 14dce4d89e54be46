"""Features that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import (
    add_feature_support,
    set_table_properties,
    unset_table_properties,
    upgrade_protocol_versions,
)
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.segment import list_log
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Protocol
from tests.commands.sessions import FakeSession
from tests.faults import MemoryStore
from tests.log.tables import add, create_table, feature_protocol

SPARK: Any = FakeSession()
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)


def table(**properties: str) -> TableLog:
    log = create_table(MemoryStore(), add("x.parquet"))
    if properties:
        wanted = {key.replace("__", "."): value for key, value in properties.items()}
        set_table_properties(SPARK, log, wanted)
    return log


def operations(log: TableLog) -> list[str | None]:
    return [e.commit_info.operation for e in reversed(log.history()) if e.commit_info]


def test_versions_and_names_raise_the_protocol() -> None:
    log = table()
    assert upgrade_protocol_versions(SPARK, log, reader=1, writer=3) == 1
    assert (log.snapshot().protocol.min_writer_version) == 3
    add_feature_support(SPARK, log, "VACUUMprotocolcheck")
    snapshot = log.snapshot()
    assert snapshot.config.supports("vacuumProtocolCheck")
    info = log.history(limit=1)[0].commit_info
    assert info is not None
    assert info.operation_parameters == {
        "properties": '{"delta.feature.VACUUMprotocolcheck":"supported"}'
    }
    with pytest.raises(DeltaError) as error:
        add_feature_support(SPARK, log, "bogus")
    assert error.value.code is ErrorCode.UNSUPPORTED_FEATURES_IN_CONFIG


def test_what_readers_know_leaves_behind_a_barrier() -> None:
    log = table(delta__enableDeletionVectors="true", delta__enableExpiredLogCleanup="false")
    assert drop_feature_support(SPARK, log, "deletionVectors") == 6
    assert operations(log)[2:] == [
        "UNSET TBLPROPERTIES",
        *["Empty Commit"] * 3,
        "DROP FEATURE",
    ]
    assert sorted(list_log(log.store).checkpoints) == [3, 4, 5, 6]
    snapshot = log.snapshot()
    assert snapshot.config.supported_features == {
        *("appendOnly", "checkpointProtection", "invariants")
    }
    assert snapshot.metadata.configuration == {
        "delta.enableExpiredLogCleanup": "false",
        "delta.requireCheckpointProtectionBeforeVersion": "6",
    }
    with pytest.raises(DeltaError) as error:
        drop_feature_support(SPARK, log, "checkpointProtection")
    assert error.value.code is ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_NEEDS_TRUNCATION
    with pytest.raises(DeltaError) as error:
        drop_feature_support(SPARK, log, "checkpointProtection", truncate_history=True)
    assert error.value.code is ErrorCode.FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT
    for version in range(6):
        log.store.delete(f"_delta_log/{version:020d}.json")
    drop_feature_support(SPARK, log, "checkpointProtection", truncate_history=True)
    assert log.snapshot().protocol == PLAIN
    assert log.snapshot().metadata.configuration == {"delta.enableExpiredLogCleanup": "false"}


@pytest.mark.parametrize(
    ("properties", "feature", "left"),
    [
        (
            {"delta__enableInCommitTimestamps": "true"},
            "inCommitTimestamp",
            {"delta.enableInCommitTimestamps": "false"},
        ),
        ({"delta__enableRowTracking": "true"}, "rowTracking", {}),
    ],
)
def test_what_writers_know_alone_just_goes(
    properties: dict[str, str], feature: str, left: dict[str, str]
) -> None:
    log = table(**properties)
    drop_feature_support(SPARK, log, feature)
    snapshot = log.snapshot()
    assert not snapshot.config.supports(feature)
    assert snapshot.metadata.configuration == left
    assert "Empty Commit" not in operations(log)
    assert [f.base_row_id for f in snapshot.files.adds()] == [None]


def test_rows_are_tracked_no_more_step_by_step() -> None:
    log = table(delta__enableRowTracking="true")
    version = log.snapshot().version
    drop_feature_support(SPARK, log, "rowTracking")
    assert operations(log)[version + 1 :] == [
        "SET TBLPROPERTIES",
        "ROW TRACKING UNBACKFILL",
        "DROP FEATURE",
    ]
    assert log.snapshot().domain_metadata == {}


@pytest.mark.parametrize(
    ("feature", "truncate", "code"),
    [
        ("bogus", False, ErrorCode.FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE),
        ("delta.appendOnly", False, ErrorCode.FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY),
        ("v2Checkpoint", False, ErrorCode.FEATURE_DROP_FEATURE_NOT_PRESENT),
        ("appendOnly", False, ErrorCode.FEATURE_DROP_NONREMOVABLE_FEATURE),
        ("domainMetadata", False, ErrorCode.FEATURE_DROP_DEPENDENT_FEATURE),
        ("checkConstraints", False, ErrorCode.CANNOT_DROP_CHECK_CONSTRAINT_FEATURE),
        ("checkConstraints", True, ErrorCode.FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED),
    ],
)
def test_features_that_cannot_be_dropped(feature: str, truncate: bool, code: ErrorCode) -> None:
    log = create_table(
        MemoryStore(),
        protocol=feature_protocol(
            *("columnMapping", "checkConstraints", "clustering", "domainMetadata"),
            readers=("deletionVectors", "columnMapping", "vacuumProtocolCheck"),
        ),
        delta__constraints__c="id > 0",
    )
    with pytest.raises(DeltaError) as error:
        drop_feature_support(SPARK, log, feature, truncate_history=truncate)
    assert error.value.code is code
    assert log.latest_version() == 0


def drop_with_truncation(log: TableLog, feature: str) -> ErrorCode | None:
    try:
        drop_feature_support(SPARK, log, feature, truncate_history=True)
    except DeltaError as error:
        return error.code
    return None


def test_no_version_uses_the_check_before_a_vacuum() -> None:
    supported = feature_protocol(readers=("vacuumProtocolCheck",))
    log = create_table(MemoryStore(), protocol=supported)
    assert drop_with_truncation(log, "vacuumProtocolCheck") is None
    assert operations(log)[-2:] == ["Empty Commit", "DROP FEATURE"]
    assert not log.snapshot().config.supports("vacuumProtocolCheck")


@pytest.mark.parametrize(
    ("feature", "switch", "taken"),
    [
        ("typeWidening", {"delta.enableTypeWidening": "true"}, "UNSET TBLPROPERTIES"),
        ("columnMapping", {"delta.columnMapping.mode": "name"}, "REMOVE COLUMN MAPPING"),
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}, "UNSET TBLPROPERTIES"),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}, "SET TBLPROPERTIES"),
    ],
)
def test_history_is_truncated_once_no_old_version_uses_the_feature(
    feature: str, switch: dict[str, str], taken: str
) -> None:
    store = MemoryStore()
    kept = "delta.dropFeatureTruncateHistory.retentionDuration"
    log = create_table(store, protocol=PLAIN)
    keeps = {kept: "interval 9999999 hours", "delta.enableExpiredLogCleanup": "false"}
    set_table_properties(SPARK, log, {**switch, **keeps})
    assert drop_with_truncation(log, feature) is ErrorCode.FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
    assert drop_with_truncation(log, feature) is ErrorCode.FEATURE_DROP_HISTORICAL_VERSIONS_EXIST
    assert operations(log)[2:] == [taken, "Empty Commit", "Empty Commit"]
    assert sorted(list_log(store).checkpoints) == [3, 4]
    assert log.snapshot().config.supports(feature)
    unset_table_properties(SPARK, log, [kept])  # the files of this store are older than a day
    assert drop_with_truncation(log, feature) is None
    assert log.snapshot().protocol == PLAIN
    assert operations(log)[-1] == "DROP FEATURE"
    info = log.history(limit=1)[0].commit_info
    assert info is not None
    assert info.operation_parameters == {"featureName": feature, "truncateHistory": True}
    assert min(list_log(store).commits) > 2
