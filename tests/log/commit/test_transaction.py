"""Transactions: what is committed, what is refused, and what happens when rivals are faster."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    ConflictError,
    DeltaError,
    ErrorCode,
    InvalidRequestError,
    MetadataChangedException,
    ProtocolChangedException,
    UnsupportedError,
)
from puredelta.log.commit.commit_request import IfCreated, Phase
from puredelta.log.commit.post_commit import CheckpointWish
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import (
    Action,
    Add,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    SetTransaction,
)
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.column_mapping import assign_columns
from puredelta.protocol.features.feature_registry import Capability
from puredelta.protocol.schema.predicates import TRUE
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.store.base import PutOutcome, StorageError, StoredFile
from puredelta.store.local import LocalStore
from tests.faults import MemoryStore
from tests.log.tables import (
    ENGINE,
    PLAIN,
    SCHEMA,
    TRUNCATE,
    WRITE,
    Client,
    add,
    create_table,
    equal,
    feature_protocol,
    metadata,
    remove,
    transact,
)

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline="v", offset=1, size_bytes=9, cardinality=1
)
VECTORS = feature_protocol(readers=("deletionVectors",))
TRACKED = feature_protocol("rowTracking", "domainMetadata")
TIMED = feature_protocol("inCommitTimestamp")

NOW_MS = 1_800_000_000_000


def lines(store: MemoryStore, version: int) -> list[dict[str, object]]:
    return [json.loads(line) for line in store.files[log_path(commit_name(version))].splitlines()]


def info(store: MemoryStore, version: int) -> dict[str, object]:
    return lines(store, version)[0]["commitInfo"]  # type: ignore[return-value]


def paths(log: TableLog) -> set[str]:
    return {file.path for file in log.snapshot().files.adds()}


def versions(store: MemoryStore) -> int:
    return sum(path.endswith(".json") for path in store.files)


def rival(log: TableLog, *actions: Action, operation: Operation = WRITE) -> None:
    """Commit as another process would: through a log of its own."""
    transact(TableLog(log.store)).commit(actions, operation)


# --- what is written --------------------------------------------------------------------------


def test_a_new_table_x03_x04() -> None:
    store = MemoryStore()
    committed = Client(TableLog(store), None, clock=lambda: 7, new_id=lambda: "id-1").commit(
        [add("a"), metadata(), PLAIN], WRITE, metrics={"numFiles": 1, "numOutputRows": "10"}
    )
    assert (committed.version, committed.timestamp_ms) == (0, 7)
    assert [next(iter(line)) for line in lines(store, 0)] == [
        "commitInfo",
        "metaData",
        "protocol",
        "add",
    ]
    # As delta-spark 4.4.0 writes it: no readVersion in a table's first version.
    assert info(store, 0) == {
        "timestamp": 7,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1", "numOutputRows": "10"},
        "engineInfo": ENGINE,
        "txnId": "id-1",
    }


def test_provenance_of_a_later_commit_m161() -> None:
    store = MemoryStore()
    log = create_table(store, add("a"))
    snapshot = log.snapshot()
    txn = transact(log)
    txn.read_files(TRUE, snapshot.files)
    txn.commit(
        [remove("a"), add("b")],
        TRUNCATE,
        user_metadata="by hand",
        tags={"k": "v"},
    )
    written = info(store, 1)
    assert written["readVersion"] == 0
    assert written["isBlindAppend"] is False
    assert (written["userMetadata"], written["tags"]) == ("by hand", {"k": "v"})
    assert "operationMetrics" not in written


def test_convert_writes_read_version_minus_one_c56() -> None:
    store = MemoryStore()
    Client(TableLog(store), None).commit(
        [metadata(), PLAIN, add("a")],
        Operation(name="CONVERT", parameters={}),
        is_blind_append=False,
        checkpoint=CheckpointWish.ALWAYS,
    )
    assert info(store, 0)["readVersion"] == -1
    assert info(store, 0)["isBlindAppend"] is False
    assert log_path("00000000000000000000.checkpoint.parquet") in store.files  # C-58


@pytest.mark.parametrize("protocol", [PLAIN, TIMED, TRACKED])
def test_the_checkpoint_of_a_first_version_says_what_its_commit_says(protocol: Protocol) -> None:
    """C-58: it is made from the actions, without reading the commit back."""
    store = MemoryStore()
    log = TableLog(store)
    in_parts = metadata(partitioned_by=("part",), delta__enableInCommitTimestamps="true")
    files = [add("part=1/a%20b", {"part": "1"}, ids=(1, 2)), add("c", {"part": None})]
    domains = [DomainMetadata(domain="app", configuration="{}")] if protocol is TRACKED else []
    Client(log, None).commit(
        [in_parts, protocol, *files, *domains],
        WRITE,
        checkpoint=CheckpointWish.ALWAYS,
    )
    from_checkpoint = TableLog(store).snapshot()
    assert from_checkpoint.last_checkpoint_version == 0
    for path in list(store.files):
        if not path.endswith(commit_name(0)):
            del store.files[path]
    from_commit = TableLog(store).snapshot()
    assert from_commit.last_checkpoint_version is None
    for name in ("version", "protocol", "metadata", "domain_metadata", "set_transactions"):
        assert getattr(from_checkpoint, name) == getattr(from_commit, name)
    assert [replace(f, data_change=True) for f in from_checkpoint.files.adds()] == list(
        from_commit.files.adds()
    )


def test_a_commit_without_data_change_says_snapshot_isolation() -> None:
    store = MemoryStore()
    log = create_table(store, add("a"))
    moved = [remove("a", data_change=False), add("b", data_change=False)]
    transact(log).commit(moved, Operation(name="OPTIMIZE", parameters={}))
    assert info(store, 1)["isolationLevel"] == "SnapshotIsolation"


def test_repeated_txn_actions_become_one() -> None:
    store = MemoryStore()
    log = create_table(store)
    one = SetTransaction(app_id="app", version=3)
    transact(log).commit([one, add("a"), one], WRITE)
    assert [next(iter(line)) for line in lines(store, 1)] == ["commitInfo", "txn", "add"]


def test_an_application_version_is_read() -> None:
    store = MemoryStore()
    log = create_table(store, SetTransaction(app_id="app", version=3))
    assert transact(log).read_app_id("app") == 3
    assert transact(log).read_app_id("other") is None
    assert Client(TableLog(MemoryStore()), None).read_app_id("a") is None


@pytest.mark.parametrize(("age_hours", "known"), [(23, 3), (25, None)])
def test_an_application_version_expires(age_hours: int, known: int | None) -> None:
    store = MemoryStore()
    log = create_table(
        store,
        SetTransaction(app_id="app", version=3, last_updated_ms=NOW_MS - age_hours * 3_600_000),
        SetTransaction(app_id="silent", version=3),
        delta__setTransactionRetentionDuration="interval 1 day",
    )
    assert transact(log, clock=lambda: NOW_MS).read_app_id("app") == known
    assert transact(log, clock=lambda: NOW_MS).read_app_id("silent") is None


# --- what is refused, with the table unchanged -----------------------------------------------


@pytest.mark.parametrize(
    ("table", "actions", "error", "code"),
    [
        pytest.param(
            {"delta__appendOnly": "true"},
            [remove("a")],
            InvalidRequestError,
            ErrorCode.CANNOT_MODIFY_APPEND_ONLY,
            id="M-111 append-only",
        ),
        pytest.param(
            {"partitioned_by": ("part",)},
            [add("b", {"sub": "1"})],
            InvalidRequestError,
            ErrorCode.INVALID_PARTITIONING_SCHEMA,
            id="X-05 other partition column",
        ),
        pytest.param(
            {},
            [add("b", {"part": "1"})],
            InvalidRequestError,
            ErrorCode.INVALID_PARTITIONING_SCHEMA,
            id="X-05 not partitioned",
        ),
        pytest.param(
            {},
            [add("x%20y"), add("x y")],
            InvalidRequestError,
            ErrorCode.DUPLICATE_ACTIONS_FOUND,
            id="X-06 added twice",
        ),
        pytest.param(
            {},
            [remove("a"), remove("a", deletion_vector=VECTOR)],
            InvalidRequestError,
            ErrorCode.DUPLICATE_ACTIONS_FOUND,
            id="X-06 removed twice, one with a vector",
        ),
        pytest.param(
            {},
            [remove("a"), add("a")],
            InvalidRequestError,
            ErrorCode.DUPLICATE_ACTIONS_FOUND,
            id="X-06 removed and added alike",
        ),
        pytest.param(
            {"protocol": feature_protocol("domainMetadata")},
            [DomainMetadata(domain="d", configuration="")] * 2,
            InvalidRequestError,
            ErrorCode.DUPLICATE_DOMAIN_METADATA,
            id="X-15 a domain twice",
        ),
        pytest.param(
            {},
            [DomainMetadata(domain="d", configuration="")],
            InvalidRequestError,
            ErrorCode.DOMAIN_METADATA_NOT_SUPPORTED,
            id="X-15 without the feature",
        ),
        pytest.param(
            {"protocol": VECTORS},
            [remove("a"), replace(add("a"), deletion_vector=VECTOR)],
            InvalidRequestError,
            ErrorCode.ADDING_DELETION_VECTORS_DISALLOWED,
            id="a vector while they are disabled",
        ),
        pytest.param(
            {"protocol": VECTORS, "delta__enableDeletionVectors": "true"},
            [remove("a"), replace(add("a"), deletion_vector=VECTOR, stats=None)],
            InvalidRequestError,
            ErrorCode.DELETION_VECTOR_MISSING_NUM_RECORDS,
            id="X-71 a vector without row count",
        ),
        pytest.param(
            {"protocol": VECTORS, "delta__enableDeletionVectors": "true"},
            [remove("a"), replace(add("a"), deletion_vector=VECTOR)],
            InvalidRequestError,
            ErrorCode.ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED,
            id="M-134 a vector with tight bounds",
        ),
        pytest.param(
            {},
            [feature_protocol("catalogManaged")],
            UnsupportedError,
            ErrorCode.CATALOG_MANAGED_TABLE_BY_PATH,
            id="X-16 catalog-managed",
        ),
        pytest.param({}, [metadata(), metadata()], ValueError, None, id="X-03 two metadata"),
        pytest.param({}, [CommitInfo()], ValueError, None, id="provenance is not the caller's"),
        pytest.param(
            {},
            [SetTransaction(app_id="a", version=1), SetTransaction(app_id="a", version=2)],
            ValueError,
            None,
            id="two versions of an application",
        ),
    ],
)
def test_refused(
    table: dict[str, object],
    actions: list[Action],
    error: type[Exception],
    code: ErrorCode | None,
) -> None:
    store = MemoryStore()
    file = add("a", {"part": "1"} if "partitioned_by" in table else {})
    log = create_table(store, file, **table)  # type: ignore[arg-type]
    before = dict(store.files)
    with pytest.raises(error) as caught:
        transact(log).commit(actions, WRITE)
    assert code is None or caught.value.code is code  # type: ignore[attr-defined]
    assert store.files == before


@pytest.mark.parametrize("actions", [[add("a")], [add("a"), metadata()], [add("a"), PLAIN]])
def test_a_new_table_needs_protocol_and_metadata_x04(actions: list[Action]) -> None:
    store = MemoryStore()
    with pytest.raises(InvalidRequestError) as caught:
        Client(TableLog(store), None).commit(actions, WRITE)
    assert caught.value.code is ErrorCode.METADATA_ABSENT
    assert store.files == {}


def test_rows_may_move_in_an_append_only_table() -> None:
    log = create_table(MemoryStore(), add("a"), delta__appendOnly="true")
    moved = [remove("a", data_change=False), add("b", data_change=False)]
    assert transact(log).commit(moved, WRITE).version == 1


def test_a_table_that_cannot_be_written_is_refused_before_any_file_is_written_x56() -> None:
    store = MemoryStore()
    create_table(store)
    body = json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 8}}).encode()
    store.put(log_path(commit_name(1)), body)
    with pytest.raises(UnsupportedError) as caught:
        transact(TableLog(store))
    assert caught.value.code is ErrorCode.INVALID_PROTOCOL_VERSION


def test_what_the_command_does_decides_what_the_table_must_allow() -> None:
    schema, _ = assign_columns(SCHEMA, max_column_id=0)
    log = create_table(
        MemoryStore(),
        protocol=feature_protocol(readers=("columnMapping",)),
        schema=schema,
        delta__columnMapping__mode="name",
    )
    assert transact(log, capability=Capability.APPEND).commit([add("a")], WRITE).version == 1
    with pytest.raises(UnsupportedError):
        transact(log, capability=Capability.CONVERT)


def test_a_blind_append_cannot_have_read() -> None:
    log = create_table(MemoryStore())
    txn = transact(log)
    txn.read_files(TRUE, log.snapshot().files)
    with pytest.raises(ValueError, match="blind append"):
        txn.commit([add("a")], WRITE, is_blind_append=True)


def test_a_transaction_commits_once() -> None:
    log = create_table(MemoryStore())
    txn = transact(log)
    txn.commit([add("a")], WRITE)
    with pytest.raises(ValueError, match="once"):
        txn.commit([add("b")], WRITE)
    with pytest.raises(ValueError, match="once"):
        txn.read_app_id("app")
    assert paths(log) == {"a"}


def test_a_transaction_that_lost_is_spent_too() -> None:
    log = create_table(MemoryStore())
    txn = transact(log)
    rival(log, metadata(delta__appendOnly="true"))
    with pytest.raises(MetadataChangedException):
        txn.commit([add("a")], WRITE)
    with pytest.raises(ValueError, match="once"):
        txn.commit([add("a")], WRITE)


# --- rivals -------------------------------------------------------------------------------------


def test_appends_follow_each_other_and_keep_the_version_they_read() -> None:
    store = MemoryStore()
    log = create_table(store)
    txn = transact(log)
    for name in "abc":
        rival(log, add(name))
    committed = txn.commit([add("mine")], WRITE)
    assert committed.version == 4
    assert info(store, 4)["readVersion"] == 0
    assert paths(log) == {"a", "b", "c", "mine"}


@pytest.mark.parametrize(
    ("winner", "ours", "error", "words"),
    [
        (
            [add("b", {"part": "1"})],
            [add("c", {"part": "1"})],
            ConcurrentAppendException,
            [
                "a concurrent WRITE added data to table delta.`memory:/table`",
                "(committed at version 1)",
                "in the partition [part=1]",
                "(b)",
                "had read version 0",
                "see version 1",
            ],
        ),
        (
            [remove("a", {"part": "1"})],
            [add("c", {"part": "1"})],
            ConcurrentDeleteReadException,
            ["deleted data from table", "that this transaction read", "[part=1] that was", "(a)"],
        ),
        (
            [remove("z", {"part": "2"})],
            [remove("z", {"part": "2"})],
            ConcurrentDeleteDeleteException,
            ["attempted to delete", "[part=2]", "(z)"],
        ),
        (
            [metadata(partitioned_by=("part",), delta__appendOnly="true")],
            [add("c", {"part": "1"})],
            MetadataChangedException,
            ["metadata of the Delta table", "changed the table properties delta.appendOnly"],
        ),
        (
            [feature_protocol("checkConstraints")],
            [add("c", {"part": "1"})],
            ProtocolChangedException,
            ["protocol version of the Delta table", "checkConstraints"],
        ),
        (
            [SetTransaction(app_id="app", version=5)],
            [add("c", {"part": "1"})],
            ConcurrentTransactionException,
            ["application transaction app", "one streaming query"],
        ),
    ],
)
def test_a_conflict_leaves_the_rivals_table_and_says_what_happened(
    winner: list[Action], ours: list[Action], error: type[ConflictError], words: list[str]
) -> None:
    """X-09, E-03: nothing is run again."""
    store = MemoryStore()
    log = create_table(
        store, add("a", {"part": "1"}), add("z", {"part": "2"}), partitioned_by=("part",)
    )
    txn = transact(log)
    txn.read_app_id("app")
    snapshot = log.snapshot()
    txn.read_files(equal("part", 1), snapshot.files.select(_in_partition(snapshot.files, "1")))
    rival(log, *winner)
    after_rival = dict(store.files)
    with pytest.raises(error) as caught:
        txn.commit(ours, WRITE)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.details["version"] == 1
    assert caught.value.details["readVersion"] == 0
    assert store.files == after_rival


def _in_partition(files: FileTable, value: str) -> object:
    return [dict(values)["part"] == value for values in files.rows["partition_values"].to_pylist()]


def test_only_a_few_of_many_offending_files_are_listed() -> None:
    log = create_table(MemoryStore())
    txn = transact(log)
    txn.read_files(TRUE, log.snapshot().files)
    rival(log, *(add(f"f{n}") for n in range(10)))
    with pytest.raises(ConcurrentAppendException, match=r"\(f0, f1, f2 and 7 more files\)") as e:
        txn.commit([add("mine")], WRITE)
    assert len(e.value.details["files"]) == 10  # type: ignore[arg-type]


def test_the_tables_name_is_used_where_it_has_one() -> None:
    store = MemoryStore()
    log = TableLog(store)
    named = replace(metadata(), name="sales")
    Client(log, None).commit([named, PLAIN], WRITE)
    txn = transact(log)
    txn.read_files(None, log.snapshot().files)
    rival(log, add("a"))
    with pytest.raises(ConcurrentAppendException, match="to table sales "):
        txn.commit([add("mine")], WRITE)


def test_a_rival_that_makes_the_table_unwritable_stops_us() -> None:
    store = MemoryStore()
    log = create_table(store)
    txn = transact(log)
    changed = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["redirectReaderWriter-preview"],
            "writerFeatures": ["appendOnly", "invariants", "redirectReaderWriter-preview"],
        }
    }
    store.put(log_path(commit_name(1)), json.dumps(changed).encode())
    with pytest.raises(UnsupportedError):
        txn.commit([add("a")], WRITE)
    assert versions(store) == 2


def test_the_number_of_attempts_has_a_limit_x08() -> None:
    store = MemoryStore()
    log = create_table(store)
    names = iter(range(100))

    def always_faster(phase: Phase) -> None:
        if phase in {Phase.STAGED, Phase.REBASED}:
            rival(log, add(f"rival-{next(names)}"))

    with pytest.raises(ConflictError, match="tried 5 times") as caught:
        transact(log, on_phase=always_faster, attempts_max=5).commit([add("mine")], WRITE)
    assert caught.value.code is ErrorCode.MAX_COMMIT_RETRIES_EXCEEDED
    assert "mine" not in paths(log)


class StaleListings(MemoryStore):
    """As NFS behind a cache of directories: new names are there before they are listed."""

    hidden: str | None = None

    def list_from(self, directory: str, start: str = "") -> Iterator[StoredFile]:
        return (f for f in super().list_from(directory, start) if f.name != self.hidden)


def test_a_commit_waits_for_a_rival_that_is_not_listed_yet() -> None:
    store = StaleListings()
    log = create_table(store)
    waits: list[float] = []

    def sleep(wait_s: float) -> None:
        waits.append(wait_s)
        store.hidden = None if wait_s >= 1 else store.hidden

    txn = transact(log, sleep=sleep)
    rival(log, add("theirs"))
    store.hidden = commit_name(1)
    assert txn.commit([add("mine")], WRITE).version == 2
    assert waits == [0.0, 0.01, 0.05, 0.25, 1.0]


def test_a_rival_that_is_never_listed_is_no_crowd_of_writers() -> None:
    store = StaleListings()
    log = create_table(store)
    waits: list[float] = []
    txn = transact(log, sleep=waits.append)
    rival(log, add("theirs"))
    store.hidden = commit_name(1)
    with pytest.raises(ConflictError, match="no listing of the log shows it") as caught:
        txn.commit([add("mine")], WRITE)
    assert caught.value.code is ErrorCode.MAX_COMMIT_RETRIES_EXCEEDED
    assert len(waits) < 10


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("clash", [True, False])
def test_a_rival_commits_at_every_point(phase: Phase, clash: bool) -> None:
    store = MemoryStore()
    log = create_table(store, add("a"), add("b"))
    fired = []

    def on_phase(reached: Phase) -> None:
        if reached is phase and not fired:
            fired.append(phase)
            rival(log, remove("a" if clash else "b"))

    txn = transact(log, on_phase=on_phase)
    # The first attempt always loses, so that every phase is reached.
    rival(log, add("first"))
    ours = [remove("a"), SetTransaction(app_id="mine", version=1)]
    seen_in_time = phase in {Phase.STAGED, Phase.LOST_RACE, Phase.REBASED}
    if clash and seen_in_time:
        with pytest.raises(ConcurrentDeleteDeleteException):
            txn.commit(ours, TRUNCATE)
        assert "mine" not in log.snapshot().set_transactions
        assert paths(log) == {"b", "first"}
    else:
        txn.commit(ours, TRUNCATE)
        assert "mine" in log.snapshot().set_transactions
        assert "a" not in paths(log)
    assert fired == [phase]


# --- creation races -----------------------------------------------------------------------------


@pytest.mark.parametrize("if_created", IfCreated)
def test_two_writers_create_the_same_table(if_created: IfCreated) -> None:
    store = MemoryStore()
    txn = Client(TableLog(store), None)
    create_table(store, add("theirs"))
    rival(TableLog(store), add("more"))
    ours = [PLAIN, replace(metadata(), id="another"), add("mine")]
    if if_created is IfCreated.APPEND:
        committed = txn.commit(ours, WRITE, if_created=if_created)
        assert committed.version == 2
        assert [next(iter(line)) for line in lines(store, 2)] == ["commitInfo", "add"]
        assert paths(TableLog(store)) == {"theirs", "more", "mine"}
    else:
        with pytest.raises(ConcurrentWriteException, match="WRITE created the table") as caught:
            txn.commit(ours, WRITE, if_created=if_created)
        assert caught.value.code is ErrorCode.CONCURRENT_WRITE
        assert paths(TableLog(store)) == {"theirs", "more"}


def test_a_batch_that_both_creators_hold_is_in_the_table_once() -> None:
    """The old driver of a streaming query may still be alive when the new one begins."""
    store = MemoryStore()
    batch = SetTransaction(app_id="query", version=0)
    txn, other = (Client(TableLog(store), None) for _ in range(2))
    for client in (txn, other):
        assert client.read_app_id("query") is None
    ours = [PLAIN, metadata(), batch]
    other.commit([*ours, add("theirs")], WRITE, if_created=IfCreated.APPEND)
    with pytest.raises(ConcurrentTransactionException, match="application transaction query"):
        txn.commit([*ours, add("mine")], WRITE, if_created=IfCreated.APPEND)
    assert paths(TableLog(store)) == {"theirs"}


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        ({"schema": StructType((StructField("other", LONG),))}, "schema"),
        ({"partitioned_by": ("part",)}, "partitioned by"),
        ({"delta__appendOnly": "true"}, "properties"),
    ],
)
def test_a_different_table_is_not_joined(theirs: dict[str, object], reason: str) -> None:
    store = MemoryStore()
    txn = Client(TableLog(store), None)
    create_table(store, **theirs)  # type: ignore[arg-type]
    with pytest.raises(ConcurrentWriteException, match=reason):
        txn.commit([PLAIN, metadata(), add("mine")], WRITE, if_created=IfCreated.APPEND)


# --- in-commit timestamps (X-11) -----------------------------------------------------------------


def timed_table(store: MemoryStore) -> TableLog:
    return create_table(store, protocol=TIMED, delta__enableInCommitTimestamps="true")


def test_a_table_born_with_in_commit_timestamps() -> None:
    store = MemoryStore()
    timed_table(store)
    assert next(iter(info(store, 0))) == "inCommitTimestamp"
    assert info(store, 0)["inCommitTimestamp"] == 1_000
    assert "inCommitTimestampEnablementVersion" not in str(lines(store, 0))


def test_in_commit_timestamps_only_grow_whatever_the_clock_says() -> None:
    store = MemoryStore()
    log = timed_table(store)
    for now, expected in ((5_000, 5_000), (4_000, 5_001), (5_001, 5_002)):
        committed = transact(log, clock=lambda now=now: now).commit([add(f"f{expected}")], WRITE)
        assert committed.timestamp_ms == expected
        assert info(store, committed.version)["inCommitTimestamp"] == expected


def test_an_in_commit_timestamp_is_given_anew_after_a_lost_race() -> None:
    store = MemoryStore()
    log = timed_table(store)
    txn = transact(log, clock=lambda: 2_000)
    transact(TableLog(store), clock=lambda: 9_000).commit([add("theirs")], WRITE)
    assert txn.commit([add("mine")], WRITE).timestamp_ms == 9_001
    assert info(store, 2)["timestamp"] == 2_000


def test_switching_in_commit_timestamps_on_records_since_when() -> None:
    store = MemoryStore()
    log = create_table(store)
    rival(log, add("a"))
    modified_ms = store.modified_ms[log_path(commit_name(1))]
    switched = metadata(delta__enableInCommitTimestamps="true")
    committed = transact(log, clock=lambda: 5).commit([TIMED, switched], WRITE)
    assert committed.timestamp_ms == modified_ms + 1
    configuration = log.snapshot().metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(modified_ms + 1)


def test_a_rival_that_switches_them_on_makes_us_write_one() -> None:
    store = MemoryStore()
    log = create_table(store)
    txn = transact(log, clock=lambda: 5)
    rival(log, TIMED, metadata(delta__enableInCommitTimestamps="true"))
    committed = txn.commit([add("a")], WRITE)
    assert info(store, 2)["inCommitTimestamp"] == committed.timestamp_ms
    assert committed.timestamp_ms > info(store, 1)["inCommitTimestamp"]  # type: ignore[operator]


# --- row tracking (X-14) -------------------------------------------------------------------------


def row_ids(log: TableLog) -> dict[str, tuple[int | None, int | None]]:
    return {
        f.path: (f.base_row_id, f.default_row_commit_version) for f in log.snapshot().files.adds()
    }


def high_water_mark(log: TableLog) -> int:
    return json.loads(log.snapshot().domain_metadata["delta.rowTracking"].configuration)[  # type: ignore[no-any-return]
        "rowIdHighWaterMark"
    ]


@pytest.fixture
def tracked() -> Callable[..., TableLog]:
    return lambda *actions, **rest: create_table(MemoryStore(), *actions, protocol=TRACKED, **rest)


def test_new_files_get_row_ids_above_the_mark(tracked: Callable[..., TableLog]) -> None:
    log = tracked(add("a", rows=10), add("b", rows=5))
    assert row_ids(log) == {"a": (0, 0), "b": (10, 0)}
    assert high_water_mark(log) == 14
    transact(log).commit([add("c", rows=1)], WRITE)
    assert row_ids(log)["c"] == (15, 1)
    assert high_water_mark(log) == 15


def test_row_ids_are_given_anew_after_a_lost_race(tracked: Callable[..., TableLog]) -> None:
    log = tracked(add("a", rows=10))
    txn = transact(log)
    rival(log, add("theirs", rows=7))
    txn.commit([add("mine", rows=3)], WRITE)
    assert row_ids(log) == {"a": (0, 0), "theirs": (10, 1), "mine": (17, 2)}
    assert high_water_mark(log) == 19


def test_a_file_committed_again_keeps_its_ids(tracked: Callable[..., TableLog]) -> None:
    log = tracked(add("a", rows=10))
    (file,) = log.snapshot().files.adds()
    transact(log).commit([replace(file, tags={"k": "v"}, data_change=False)], WRITE)
    assert row_ids(log) == {"a": (0, 0)}


def test_ids_a_rival_filled_in_are_kept(tracked: Callable[..., TableLog]) -> None:
    store = MemoryStore()
    log = create_table(store, add("a", rows=10))
    (file,) = log.snapshot().files.adds()
    txn = transact(log)
    rival(log, TRACKED)
    rival(log, replace(file, data_change=False))
    assert row_ids(log) == {"a": (0, 2)}
    txn.commit([remove_file(file, deleted_ms=1), add("b", rows=1)], WRITE)
    removed = next(line["remove"] for line in lines(store, 3) if "remove" in line)
    assert (removed["baseRowId"], removed["defaultRowCommitVersion"]) == (0, 2)  # type: ignore[index]
    assert row_ids(log) == {"b": (10, 3)}


def test_row_ids_need_a_row_count(tracked: Callable[..., TableLog]) -> None:
    log = tracked()
    with pytest.raises(InvalidRequestError) as caught:
        transact(log).commit([replace(add("a"), stats=None)], WRITE)
    assert caught.value.code is ErrorCode.ROW_ID_ASSIGNMENT_WITHOUT_STATS


def test_suspended_row_tracking_gives_no_ids(tracked: Callable[..., TableLog]) -> None:
    log = tracked(add("a"), delta__rowTrackingSuspended="true")
    assert row_ids(log) == {"a": (None, None)}


def test_commits_say_whether_rows_kept_their_ids(tracked: Callable[..., TableLog]) -> None:
    log = tracked(add("a"), delta__enableRowTracking="true")
    (file,) = log.snapshot().files.adds()
    transact(log).commit([remove_file(file, deleted_ms=1), add("b")], WRITE)
    transact(log).commit([add("c")], WRITE, tags={"delta.rowTracking.preserved": "true"})
    store = log.store
    assert isinstance(store, MemoryStore)
    (*_, last) = log.snapshot().files.adds()
    transact(log).commit([remove_file(last, deleted_ms=1)], WRITE)
    said = [info(store, v)["tags"]["delta.rowTracking.preserved"] for v in range(4)]  # type: ignore[index]
    assert said == ["true", "false", "true", "true"]


# --- checkpoints after commits -------------------------------------------------------------------


def checkpoints(store: MemoryStore) -> list[str]:
    return sorted(path[-33:-19] for path in store.files if path.endswith(".checkpoint.parquet"))


def test_a_checkpoint_at_every_interval_x32() -> None:
    store = MemoryStore()
    log = create_table(store, delta__checkpointInterval="3", delta__enableExpiredLogCleanup="false")
    for n in range(7):
        transact(log).commit([add(f"f{n}")], WRITE)
    written = [p for p in sorted(store.files) if p.endswith(".checkpoint.parquet")]
    assert [int(p.split("/")[1][:20]) for p in written] == [3, 6]
    hint = json.loads(store.files["_delta_log/_last_checkpoint"])
    assert (hint["version"], hint["numOfAddFiles"]) == (6, 6)
    assert paths(TableLog(store)) == {f"f{n}" for n in range(7)}


class NoCheckpoints(MemoryStore):
    """Takes commits and nothing else."""

    failure: Exception = StorageError("disk full")

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        if path.endswith(".parquet"):
            raise self.failure
        return super().put_if_absent(path, content)


@pytest.mark.parametrize(
    "failure",
    [
        StorageError("disk full"),
        PermissionError("no"),
        DeltaError("x", code=ErrorCode.WRITE_FAILED),
    ],
)
def test_a_failing_checkpoint_never_fails_the_commit(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store = NoCheckpoints()
    store.failure = failure
    log = create_table(store, delta__checkpointInterval="1")
    with caplog.at_level(logging.WARNING):
        assert transact(log).commit([add("a")], WRITE).version == 1
    assert "Version 1 of memory:/table is committed, but no checkpoint" in caplog.text
    assert paths(log) == {"a"}


def test_a_hint_that_cannot_be_written_is_no_failure_either() -> None:
    class NoHint(MemoryStore):
        def put(self, *_: object) -> None:
            raise StorageError("no")

    store = NoHint()
    log = create_table(store, delta__checkpointInterval="1")
    assert transact(log).commit([add("a")], WRITE).version == 1
    assert paths(TableLog(store)) == {"a"}


def test_bad_interval_in_a_foreign_table_is_no_failure_either() -> None:
    store = MemoryStore()
    create_table(store)
    foreign = {
        "metaData": {
            "id": "i",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": metadata().schema_string,
            "partitionColumns": [],
            "configuration": {"delta.checkpointInterval": "often"},
        }
    }
    store.put(log_path(commit_name(1)), json.dumps(foreign).encode())
    assert transact(TableLog(store)).commit([add("a")], WRITE).version == 2


def test_phases_come_in_order() -> None:
    log = create_table(MemoryStore())
    seen: list[Phase] = []
    txn = transact(log, on_phase=seen.append)
    rival(log, add("theirs"))
    txn.commit([add("mine")], WRITE)
    assert seen == list(Phase)


def test_many_adds_stay_adds() -> None:
    """A commit of many files is one line per file and nothing else."""
    store = MemoryStore()
    log = create_table(store)
    files: list[Action] = [add(f"f{n}") for n in range(1_000)]
    transact(log).commit(files, WRITE)
    assert len(lines(store, 1)) == 1_001
    assert all(isinstance(file, Add) for file in log.snapshot().files.adds())


def test_threads_race_on_a_real_directory(tmp_path: Path) -> None:
    create_table(LocalStore(tmp_path), delta__checkpointInterval="5")
    writers, commits = 4, 8
    start = threading.Barrier(writers)

    def write(writer: int) -> list[int]:
        log = TableLog(LocalStore(tmp_path))
        start.wait()
        return [
            transact(log).commit([add(f"w{writer}-{n}")], WRITE).version for n in range(commits)
        ]

    with ThreadPoolExecutor(writers) as pool:
        versions = [v for got in pool.map(write, range(writers)) for v in got]
    assert sorted(versions) == list(range(1, writers * commits + 1))
    snapshot = TableLog(LocalStore(tmp_path)).snapshot()
    assert len(snapshot.files) == writers * commits
    assert snapshot.last_checkpoint_version == 30
