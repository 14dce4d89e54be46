"""Creating one version: X-01, X-10."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from puredelta.errors import CommitUnknownError, ErrorCode
from puredelta.log.commit.commit_retry import (
    READS_TO_SETTLE_MAX,
    Created,
    LostRace,
    create_version,
    find_txn_id,
)
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.store.base import PutOutcome, StorageError
from tests.faults import FailAt, Fault, MemoryStore

V0 = log_path(commit_name(0))


def body(txn_id: str) -> bytes:
    return json.dumps({"commitInfo": {"txnId": txn_id}}).encode() + b'\n{"txn":{}}\n'


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("contended", [False, True])
@pytest.mark.parametrize("error", [StorageError, PermissionError])
def test_a_failure_at_any_call_never_lies_about_the_outcome(
    fault: Fault, contended: bool, error: type[OSError]
) -> None:
    for nth in itertools.count(1):
        disk = MemoryStore()
        if contended:
            create_version(disk, 0, body("rival"), txn_id="rival")
        store = FailAt(disk, nth, fault, error=error)
        try:
            outcome = create_version(store, 0, body("mine"), txn_id="mine")
        except error:
            assert b"mine" not in disk.files.get(V0, b""), "reported as failed, and there"
            continue
        landed = b"mine" in disk.files[V0]
        assert outcome == (Created(0) if landed else LostRace(0))
        if not store.tripped:
            break


@pytest.mark.parametrize("refused", [PutOutcome.ALREADY_EXISTS, StorageError("no answer")])
def test_an_unreadable_store_leaves_the_outcome_unknown(refused: PutOutcome | OSError) -> None:
    reads = 0

    class Silent(MemoryStore):
        def put_if_absent(self, *_: object) -> PutOutcome:
            if isinstance(refused, OSError):
                raise refused
            return refused

        def read(self, *_: object) -> bytes:
            nonlocal reads
            reads += 1
            raise StorageError("no answer")

    with pytest.raises(CommitUnknownError, match="mine") as caught:
        create_version(Silent(), 0, body("mine"), txn_id="mine")
    assert caught.value.code is ErrorCode.COMMIT_STATE_UNKNOWN
    assert reads == READS_TO_SETTLE_MAX


def test_a_file_that_exists_and_cannot_be_found_leaves_the_outcome_unknown() -> None:
    class Forgetful(MemoryStore):
        def put_if_absent(self, *_: object) -> PutOutcome:
            return PutOutcome.ALREADY_EXISTS

    with pytest.raises(CommitUnknownError):
        create_version(Forgetful(), 0, body("mine"), txn_id="mine")


def test_a_refusal_is_passed_on_as_it_is() -> None:
    class ReadOnly(MemoryStore):
        def put_if_absent(self, *_: object) -> PutOutcome:
            raise PermissionError(V0)

    with pytest.raises(PermissionError):
        create_version(ReadOnly(), 0, body("mine"), txn_id="mine")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (body("a"), "a"),
        (b'{"add":{"path":"x"}}\n{"commitInfo":{"txnId":"b"}}\n', "b"),
        (b'{"add":{"path":"\\"commitInfo\\""}}\n', None),
        (b'{"commitInfo":{"operation":"WRITE"}}\n', None),
        (b'{"commitInfo":\n', None),
        (b"", None),
    ],
)
def test_txn_id_is_found_wherever_a_writer_put_it(content: bytes, expected: str | None) -> None:
    assert find_txn_id(content) == expected


class TwoWriters(RuleBasedStateMachine):
    """Writers race over a store that loses answers; the log must stay dense and honest."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryStore()
        self.acknowledged: dict[int, str] = {}
        self.attempts = 0

    @rule(
        fault=st.none() | st.tuples(st.integers(1, 3), st.sampled_from(Fault)),
        behind=st.integers(0, 2),
    )
    def write(self, fault: tuple[int, Fault] | None, behind: int) -> None:
        self.attempts += 1
        txn_id = f"txn-{self.attempts}"
        store = self.disk if fault is None else FailAt(self.disk, *fault)
        version = max(0, len(self.disk.files) - behind)
        taken = version < len(self.disk.files)
        try:
            outcome = create_version(store, version, body(txn_id), txn_id=txn_id)
        except StorageError:
            return
        assert outcome == (LostRace(version) if taken else Created(version))
        if not taken:
            self.acknowledged[version] = txn_id

    @invariant()
    def versions_are_dense(self) -> None:
        expected = [log_path(commit_name(v)) for v in range(len(self.disk.files))]
        assert sorted(self.disk.files) == expected

    @invariant()
    def every_acknowledged_commit_is_on_disk(self) -> None:
        for version, txn_id in self.acknowledged.items():
            assert find_txn_id(self.disk.files[log_path(commit_name(version))]) == txn_id


TestTwoWriters = TwoWriters.TestCase
