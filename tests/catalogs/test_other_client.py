"""Another stand-in and another client beside ours, where the data directory has them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from puredelta.catalogs.tokens import fixed_token
from puredelta.catalogs.transport import HttpTransport
from puredelta.catalogs.unity import UnityCatalog
from tests.catalogs.managed import Orders, no_wait, with_properties
from tests.data_dir import require_data
from tests.servers.process import free_port

BASE = "/api/2.1/unity-catalog"


@dataclass
class Other:
    """The server and the client of the data directory."""

    url: str
    client: Any
    module: ModuleType

    @property
    def catalog(self) -> UnityCatalog:
        return UnityCatalog(
            name="main",
            url=self.url,
            tokens=fixed_token("any"),
            send=HttpTransport(timeout_s=20).send,
            sleep=no_wait,
        )

    def post(self, path: str, body: Any) -> None:
        request = urllib.request.Request(
            self.url + BASE + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer any"},
        )
        urllib.request.urlopen(request, timeout=20).close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    recipes = require_data("recipes", "unity")
    port = free_port()
    command = [sys.executable, recipes / "ucstub.py", str(port), f"file://{tmp_path}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("READY")
        spec = importlib.util.spec_from_file_location("recipe_client", recipes / "ucclient.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        url = f"http://127.0.0.1:{port}"
        made = Other(url, module.UC(url, "any"), module)
        made.post("/catalogs", {"name": "main"})
        made.post("/schemas", {"name": "sales", "catalog_name": "main"})
        yield made
    finally:
        server.terminate()
        server.wait(timeout=20)


def test_two_clients_share_a_table(other: Other) -> None:
    orders = Orders.create(other.catalog)
    number = 0
    for turn in range(6):
        if turn % 2:
            actions = [{"txn": {"appId": "other", "version": turn}}]
            number = other.module.commit(other.client, "main.sales.orders", actions)
        else:
            number = orders.append(f"f{turn}")
    assert number == 6
    assert orders.paths() == ["f0", "f2", "f4"]
    snapshot = orders.log.snapshot()
    assert snapshot.set_transactions["other"].version == 5
    orders.commit([with_properties(snapshot, team="me")])
    assert orders.table.properties["team"] == "me"
    assert [entry.version for entry in orders.log.history()] == list(range(7, -1, -1))


def test_a_table_of_the_other_client_is_read_and_written(other: Other) -> None:
    other.client.create("main.sales.orders", [("id", "long")])
    orders = Orders.open(other.catalog)
    assert orders.append("a") == 1
    files = other.module.log_files(other.client.load("main.sales.orders"))
    assert sorted(files) == [0, 1]


@pytest.mark.thorough
def test_both_race_with_faults(other: Other) -> None:
    orders = Orders.create(other.catalog)
    match = "POST .*/tables/orders"
    for kind in ("lost-answer", "lost-request"):
        other.post("/stub/faults", {"match": match, "times": 3, "kind": kind})
    failures: list[BaseException] = []

    def theirs() -> None:
        try:
            for turn in range(8):
                actions = [{"txn": {"appId": f"other-{turn}", "version": 1}}]
                name = "main.sales.orders"
                other.module.commit(other.client, name, actions, attempts=50)
        except BaseException as failure:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(failure)

    thread = threading.Thread(target=theirs)
    thread.start()
    for turn in range(8):
        orders.append(f"f{turn}", sleep=time.sleep)
    thread.join()
    assert not failures
    snapshot = Orders.open(other.catalog).log.snapshot()
    assert snapshot.version == 16
    assert len(snapshot.files) == 8
    assert len(snapshot.set_transactions) == 8
