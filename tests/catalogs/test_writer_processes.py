"""Eight processes that commit to one managed table: each commit once, in a log that all can read.

``UC_URL`` names a real server, with ``UC_TOKEN``; otherwise the stand-in is used.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from puredelta.catalogs.catalog import DescribedSchema, TableIdentifier
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.tokens import fixed_token
from puredelta.catalogs.transport import HttpTransport
from puredelta.catalogs.unity import UnityCatalog
from puredelta.log.replay.table_log import TableLog
from puredelta.store.registry import Storage
from tests.catalogs.managed import Orders
from tests.servers.unity import unity_server

PROCESSES = 8
COMMITS = int(os.environ.get("PUREDELTA_CATALOG_COMMITS", "3"))
TIMEOUT_S = 300


def catalog_at(url: str) -> UnityCatalog:
    return UnityCatalog(
        name="main",
        url=url,
        tokens=fixed_token(os.environ.get("UC_TOKEN")),
        send=HttpTransport(timeout_s=30).send,
    )


@contextmanager
def server_url(root: Path) -> Iterator[str]:
    if url := os.environ.get("UC_URL"):
        try:
            catalog_at(url).create_schema(DescribedSchema(name="sales"))
        except CatalogRequestError as failure:
            if failure.refusal is not Refusal.EXISTS:
                raise
        yield url
        return
    with unity_server(f"file:{root}") as server:
        yield server.url


def write(url: str, name: str, writer: str) -> None:
    """Commit one file after the other; runs in a process of its own."""
    catalog, table = catalog_at(url), TableIdentifier("main", "sales", name)
    orders = Orders.open(catalog, name=table)
    for number in range(COMMITS):
        orders.append(f"{writer}-{number}", sleep=time.sleep)


def test_each_commit_of_eight_processes_counts_once(tmp_path: Path) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    table = TableIdentifier("main", "sales", name)
    with server_url(tmp_path) as url:
        catalog = catalog_at(url)
        Orders.create(catalog, name=table)
        command = [sys.executable, "-m", __name__, url, name]
        started = [
            subprocess.Popen([*command, str(n)], stderr=subprocess.PIPE, text=True)
            for n in range(PROCESSES)
        ]
        ended = [
            (process.communicate(timeout=TIMEOUT_S)[1], process.returncode) for process in started
        ]
        assert [code for _, code in ended] == [0] * PROCESSES, [
            text for text, code in ended if code
        ]
        snapshot = Orders.open(catalog, name=table).log.snapshot()
        assert snapshot.version == PROCESSES * COMMITS
        paths = sorted(snapshot.files.rows["path"].to_pylist())
        assert paths == sorted(f"{w}-{n}" for w in range(PROCESSES) for n in range(COMMITS))
        location = catalog.load(table).location
        plain = TableLog(Storage().open(location))
        named = Counter(
            action["add"]["path"]
            for version in range(1, snapshot.version + 1)
            for line in plain.store.read(f"_delta_log/{version:020d}.json").splitlines()
            if "add" in (action := json.loads(line))
        )
        assert set(named.values()) == {1}
        assert len(named) == PROCESSES * COMMITS
        catalog.drop(table)


if __name__ == "__main__":
    write(*sys.argv[1:])
