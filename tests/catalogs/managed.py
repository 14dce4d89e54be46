"""A catalog-managed table without Spark: its catalog, its log, and commits to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from puredelta.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.tokens import fixed_token
from puredelta.catalogs.transport import Answer, HttpRequest, HttpTransport
from puredelta.catalogs.unity import UnityCatalog
from puredelta.log.commit.commit_request import Committed
from puredelta.log.managed.managed_store import ManagedStore, NewManagedTable
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Metadata, Protocol
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.features.feature_registry import Capability
from puredelta.store.registry import Storage
from tests.log.tables import SCHEMA, Client, add, feature_protocol, metadata
from tests.servers.unity import LostError, UnityServer

ORDERS = TableIdentifier("main", "sales", "orders")
MANAGED = feature_protocol(
    "inCommitTimestamp",
    readers=("catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"),
)
CREATE = Operation(name="CREATE TABLE", parameters={})
WRITE = Operation(name="WRITE", parameters={"mode": "Append"})


def no_wait(_: float) -> None:
    """Wait for nothing."""


def unity(server: UnityServer, token: str | None = None, **rest: Any) -> UnityCatalog:
    return UnityCatalog(
        name="main",
        url=server.url,
        tokens=fixed_token(token),
        send=HttpTransport(timeout_s=20).send,
        sleep=no_wait,
        **rest,
    )


def direct(server: UnityServer) -> UnityCatalog:
    """Return a client that calls the stand-in in its own thread, also from within an answer."""

    def send(request: HttpRequest) -> Answer:
        body = None if request.body is None else json.loads(request.body)
        headers = {key.lower(): text for key, text in request.headers.items()}
        target = request.url.removeprefix(server.url)
        try:
            status, value = server.answer(request.method, target, body, headers)
        except LostError:
            raise CatalogRequestError("lost", refusal=Refusal.NO_ANSWER) from None
        return Answer(status=status, json=json.loads(json.dumps(value)))

    return replace(unity(server), send=send)


@dataclass
class Orders:
    """The table ``main.sales.orders`` as one process sees it."""

    log: TableLog
    catalog: Catalog

    @classmethod
    def create(cls, catalog: Catalog, *, name: TableIdentifier = ORDERS, **rest: Any) -> Orders:
        staged = catalog.stage(name)
        files = Storage().open(staged.location)
        store = ManagedStore(
            files, catalog, NewManagedTable(name=name, staged=staged), sleep=no_wait
        )
        orders = cls(TableLog(store), catalog)
        first = replace(
            metadata(schema=rest.pop("schema", SCHEMA)),
            configuration={**staged.required_properties, **rest.pop("properties", {})},
        )
        orders.commit([MANAGED, first], on=None, operation=CREATE, **rest)
        return orders

    @classmethod
    def open(cls, catalog: Catalog, *, name: TableIdentifier = ORDERS) -> Orders:
        table = catalog.load(name)
        store = ManagedStore(Storage().open(table.location), catalog, table, sleep=no_wait)
        return cls(TableLog(store), catalog)

    @property
    def store(self) -> ManagedStore:
        assert self.log.managed is not None
        return self.log.managed

    @property
    def folder(self) -> Path:
        return Path(self.log.root_uri.removeprefix("file:"))

    @property
    def table(self) -> LoadedTable:
        return self.catalog.load(ORDERS)

    def commit(
        self,
        actions: Sequence[Action],
        *,
        on: Snapshot | str | None = "newest",
        operation: Operation = WRITE,
        **environment: Any,
    ) -> Committed:
        read = self.log.snapshot() if isinstance(on, str) else on
        client = Client(
            self.log,
            read,
            capability=Capability.ADMINISTER,
            **{"sleep": no_wait, **environment},
        )
        return client.commit(actions, operation)

    def append(self, path: str, **rest: Any) -> int:
        return self.commit([add(path)], **rest).version

    def paths(self, version: int | None = None) -> list[str]:
        snapshot = self.log.snapshot(version=version)
        return sorted(snapshot.files.rows["path"].to_pylist())

    def published(self) -> list[str]:
        names = [path.name for path in (self.folder / "_delta_log").glob("*.json")]
        return sorted(name for name in names if "checkpoint" not in name)

    def staged(self) -> list[str]:
        folder = self.folder / "_delta_log" / "_staged_commits"
        return sorted(path.name for path in folder.glob("*")) if folder.exists() else []


def with_properties(snapshot: Snapshot, **changes: str | None) -> Metadata:
    """Return the metadata of a version with other properties; None removes one."""
    known = {**snapshot.metadata.configuration}
    for key, text in changes.items():
        name = key.replace("__", ".")
        known.pop(name, None)
        if text is not None:
            known[name] = text
    return replace(snapshot.metadata, configuration=known)


def with_feature(protocol: Protocol, name: str) -> Protocol:
    return replace(protocol, writer_features=(protocol.writer_features or frozenset()) | {name})
