"""Requests to the catalog and calls of the store, beyond those of a table at a path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from puredelta.log.managed.managed_store import ManagedStore
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.features.feature_registry import Capability
from puredelta.store.registry import Storage
from tests.catalogs.managed import CREATE, ORDERS, WRITE, Orders, no_wait, unity
from tests.log.tables import Client, add, feature_protocol, metadata
from tests.servers.unity import UnityServer, unity_server

CALLS = ("delete", "exists", "list_from", "open", "put", "put_if_absent", "read", "read_end")


class Counted:
    """A store that counts its calls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name in CALLS:
            self.calls[name] += 1
        return getattr(self._store, name)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path}/unity") as running:
        yield running


def commit(log: TableLog, read: Any, actions: Any, operation: Any = WRITE) -> None:
    Client(log, read, capability=Capability.ADMINISTER, sleep=no_wait).commit(actions, operation)


def at_path(path: Path) -> tuple[TableLog, Counted]:
    files = Counted(Storage().open(str(path)))
    log = TableLog(files)  # type: ignore[arg-type]
    commit(log, None, [feature_protocol("inCommitTimestamp"), metadata()], CREATE)
    commit(log, log.snapshot(), [add("first")])
    return log, files


def managed(server: UnityServer) -> tuple[TableLog, Counted]:
    catalog = unity(server)
    Orders.create(catalog).append("first")
    table = catalog.load(ORDERS)
    files = Counted(Storage().open(table.location))
    return TableLog(ManagedStore(files, catalog, table, sleep=no_wait)), files  # type: ignore[arg-type]


def test_a_commit_costs_three_requests_and_three_calls_more(
    server: UnityServer, tmp_path: Path
) -> None:
    (plain, beside), (log, files) = at_path(tmp_path / "plain"), managed(server)
    plain_read, read = plain.snapshot(), log.snapshot()
    for counted in (beside, files):
        counted.calls.clear()
    server.requests.clear()
    commit(plain, plain_read, [add("second")])
    commit(log, read, [add("second")])
    assert len(server.requests) <= 3, server.requests
    assert files.calls.total() - beside.calls.total() <= 3, (files.calls, beside.calls)
    assert server.tables[ORDERS.parts].published == 2


def test_a_read_costs_two_requests_more(server: UnityServer, tmp_path: Path) -> None:
    (_, beside), (_, files) = at_path(tmp_path / "plain"), managed(server)
    for counted in (beside, files):
        counted.calls.clear()
    server.requests.clear()
    catalog = unity(server)
    fresh = TableLog(ManagedStore(files, catalog, catalog.load(ORDERS), sleep=no_wait))  # type: ignore[arg-type]
    TableLog(beside).snapshot()  # type: ignore[arg-type]
    fresh.snapshot()
    assert len(server.requests) <= 2, server.requests
    assert files.calls.total() <= beside.calls.total(), (files.calls, beside.calls)
