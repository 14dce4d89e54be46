"""A bank on a table: whatever the store does and whoever else writes, no money is made or lost.

Each account is a file whose row count is its balance; a transfer replaces the files of two
accounts by new ones. The one number that must hold is the total. Beside it: the log has no
gap, each acknowledged transfer is on disk once, and none that was reported as failed is.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from puredelta.errors import CommitUnknownError, ConflictError
from puredelta.log.commit.commit_request import Phase, ignore_phase
from puredelta.log.files.clock import random_id
from puredelta.log.files.file_table import remove_file
from puredelta.log.files.row_counts import physical_rows
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.log_paths import LOG_DIRECTORY, CommitFile, parse_log_name
from puredelta.store.base import StorageError, Store
from tests.faults import FailAt, Fault, MemoryStore
from tests.log.tables import TRUNCATE, Client, add, create_table, equal, transact

ACCOUNTS = ("1", "2", "3")
START = 100
INTERVAL = "4"


def open_bank(store: Store) -> None:
    files = [add(f"start-{a}", {"part": a}, rows=START) for a in ACCOUNTS]
    # The store's clock is years behind: nothing may expire.
    properties = {"checkpointInterval": INTERVAL, "enableExpiredLogCleanup": "false"}
    configuration = {f"delta__{name}": value for name, value in properties.items()}
    create_table(store, *files, partitioned_by=("part",), **configuration)


def balances(store: Store) -> Counter[str]:
    total: Counter[str] = Counter()
    for file in TableLog(store).snapshot().files.adds():
        total[file.partition_values["part"] or ""] += physical_rows(file) or 0
    return total


@dataclass
class Transfer:
    """A client that has read the balances and will move money when told to."""

    source: str
    target: str
    amount: int
    client: Client
    txn_id: str
    files: dict[str, Add]

    @classmethod
    def begin(
        cls,
        store: Store,
        source: str,
        target: str,
        amount: int,
        on_phase: Callable[[Phase], None] = ignore_phase,
    ) -> Transfer:
        log = TableLog(store)
        snapshot = log.snapshot()
        txn_id = random_id()
        client = Client(log, snapshot, new_id=lambda: txn_id, on_phase=on_phase)
        files = {}
        for account in (source, target):
            mask = [
                dict(values)["part"] == account
                for values in snapshot.files.rows["partition_values"].to_pylist()
            ]
            mine = snapshot.files.select(mask)
            client.read_files(equal("part", int(account)), mine)
            (files[account],) = mine.adds()
        return cls(source, target, amount, client, txn_id, files)

    def finish(self) -> str:
        changes = {self.source: -self.amount, self.target: self.amount}
        actions = []
        for account, change in changes.items():
            old = self.files[account]
            name = f"{self.txn_id}-{account}"
            rows = (physical_rows(old) or 0) + change
            actions += [
                remove_file(old, deleted_ms=1),
                add(name, {"part": account}, rows=rows),
            ]
        self.client.commit(actions, TRUNCATE)
        return self.txn_id


def committed_ids(store: MemoryStore) -> list[str]:
    """Every txnId in the log, by version; the log must be dense."""
    versions = {}
    for file in store.list_from(LOG_DIRECTORY):
        name = parse_log_name(file.name)
        if isinstance(name, CommitFile):
            first = store.files[file.path].splitlines()[0]
            versions[name.version] = json.loads(first)["commitInfo"]["txnId"]
    assert sorted(versions) == list(range(len(versions)))
    return [versions[v] for v in sorted(versions)]


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("contended", [False, True])
def test_a_fault_at_every_call_of_a_transfer(fault: Fault, contended: bool) -> None:
    for nth in itertools.count(1):
        disk = MemoryStore()
        open_bank(disk)
        for _ in range(2):  # the transfer's own version 3 or 4 writes a checkpoint
            Transfer.begin(disk, "3", "1", 1).finish()
        store = FailAt(disk, nth, fault)
        txn_id = None
        try:
            transfer = Transfer.begin(store, "1", "2", 10)
            txn_id = transfer.txn_id
            if contended:
                rival_log = TableLog(disk)
                transact(rival_log).commit([add("interest", {"part": "3"}, rows=1)], TRUNCATE)
            transfer.finish()
        except CommitUnknownError:
            outcome = None
        except StorageError:
            outcome = False
        else:
            outcome = True
        landed = committed_ids(disk).count(txn_id or "")
        assert landed == 1 if outcome else outcome is None or landed == 0
        assert sum(balances(disk).values()) == 3 * START + int(contended and txn_id is not None)
        if not store.tripped:
            assert outcome
            return


@settings(max_examples=60, stateful_step_count=25, deadline=None)
class Bank(RuleBasedStateMachine):
    """Clients begin and finish transfers in any order, over stores that fail at any call."""

    clients = st.tuples(
        st.sampled_from(ACCOUNTS), st.sampled_from(ACCOUNTS), st.integers(0, 5)
    ).filter(lambda t: t[0] != t[1])
    faults = st.none() | st.tuples(st.integers(1, 12), st.sampled_from(Fault))

    @initialize()
    def open(self) -> None:
        self.disk = MemoryStore()
        open_bank(self.disk)
        self.begun: list[Transfer] = []
        self.acknowledged: dict[str, Transfer] = {}
        self.denied: set[str] = set()
        self.expected = Counter(dict.fromkeys(ACCOUNTS, START))
        self.unknown = False

    @rule(client=clients, fault=faults)
    def begin(self, client: tuple[str, str, int], fault: tuple[int, Fault] | None) -> None:
        store = self.disk if fault is None else FailAt(self.disk, *fault)
        try:
            self.begun.append(Transfer.begin(store, *client))
        except StorageError:
            return

    @rule(pick=st.integers(0, 10))
    def finish(self, pick: int) -> None:
        if not self.begun:
            return
        transfer = self.begun.pop(pick % len(self.begun))
        try:
            txn_id = transfer.finish()
        except CommitUnknownError:
            self.unknown = True
        except (StorageError, ConflictError):
            self.denied.add(transfer.txn_id)
        else:
            self.acknowledged[txn_id] = transfer
            self.expected[transfer.source] -= transfer.amount
            self.expected[transfer.target] += transfer.amount

    @invariant()
    def every_acknowledged_transfer_is_on_disk_once(self) -> None:
        counts = Counter(committed_ids(self.disk))
        assert all(counts[txn_id] == 1 for txn_id in self.acknowledged)
        assert not self.denied & counts.keys()

    @invariant()
    def the_total_stays(self) -> None:
        now = balances(self.disk)
        assert sum(now.values()) == len(ACCOUNTS) * START
        if not self.unknown:
            assert now == self.expected


TestBank = Bank.TestCase


@pytest.mark.parametrize("phase", Phase)
def test_a_rival_transfer_at_every_phase(phase: Phase) -> None:
    disk = MemoryStore()
    open_bank(disk)
    fired: list[bool] = []

    def on_phase(reached: Phase) -> None:
        if reached is phase and not fired:
            fired.append(True)
            Transfer.begin(disk, "2", "3", 7).finish()

    transfer = Transfer.begin(disk, "1", "2", 10, on_phase)
    try:
        transfer.finish()
        done = 10
    except ConflictError:
        done = 0
    assert sum(balances(disk).values()) == 3 * START
    assert balances(disk)["1"] == START - done
