"""Eight processes that write to one managed table: each commit once, each row once.

The rows are compared by this library's log, and by delta-rs. That one knows no catalogs, so it
reads a copy of the published log without the feature. ``UC_URL`` names a real server, with
``UC_TOKEN``; otherwise the stand-in is used.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.catalogs.catalog import DescribedSchema, TableIdentifier
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.tokens import fixed_token
from puredelta.catalogs.transport import HttpTransport
from puredelta.catalogs.unity import UnityCatalog
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.store.registry import Storage
from tests.catalogs.managed import Orders
from tests.log.tables import add, remove
from tests.servers.unity import unity_server

PROCESSES = 8
ROWS = 20
"""Of a commit."""
REPLACED_EVERY = 3
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
    """Write one file of rows after the other, and replace the one before at times."""
    catalog, table = catalog_at(url), TableIdentifier("main", "sales", name)
    orders = Orders.open(catalog, name=table)
    for number in range(COMMITS):
        file = written(orders.folder, int(writer), number)
        actions: list[Action] = [file]
        if number % REPLACED_EVERY == REPLACED_EVERY - 1:
            actions.append(remove(path_of(int(writer), number - 1), size_bytes=1))
        orders.commit(actions, sleep=time.sleep)


def path_of(writer: int, number: int) -> str:
    return f"{writer}-{number}.parquet"


def rows_of(writer: int, number: int) -> list[int]:
    """Return the rows of a file; one that replaces another has the rows of both."""
    whose = [number - 1, number] if number % REPLACED_EVERY == REPLACED_EVERY - 1 else [number]
    return [1_000_000 * writer + 1_000 * one + row for one in whose for row in range(ROWS)]


def written(folder: Path, writer: int, number: int) -> Add:
    """Write the rows of a file, and return its action."""
    path, rows = folder / path_of(writer, number), rows_of(writer, number)
    pq.write_table(pa.table({"id": pa.array(rows, pa.int64())}), path)
    return replace(add(path.name, rows=len(rows)), size_bytes=path.stat().st_size)


def rows_by_delta_rs(folder: Path, copied: Path) -> list[int]:
    """Return the rows that another reader finds in a copy of the published log."""
    deltalake = pytest.importorskip("deltalake")
    shutil.copytree(folder, copied)
    shutil.rmtree(copied / "_delta_log" / "_staged_commits", ignore_errors=True)
    for checkpoint in (copied / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    first = copied / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
    first.write_text("\n".join(map(json.dumps, actions)))
    found: list[int] = deltalake.DeltaTable(str(copied)).to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


def test_each_row_of_eight_processes_is_there_once(tmp_path: Path) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    table = TableIdentifier("main", "sales", name)
    with server_url(tmp_path) as url:
        catalog = catalog_at(url)
        Orders.create(catalog, name=table, schema=StructType((StructField("id", LONG),)))
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
        read = Orders.open(catalog, name=table)
        snapshot = read.log.snapshot()
        assert snapshot.version == PROCESSES * COMMITS
        paths = snapshot.files.rows["path"].to_pylist()
        rows = [r for p in paths for r in pq.read_table(read.folder / p)["id"].to_pylist()]
        everything = [(writer, number) for writer in range(PROCESSES) for number in range(COMMITS)]
        expected = sorted({row for one in everything for row in rows_of(*one)})
        assert sorted(rows) == expected
        assert len(expected) == PROCESSES * COMMITS * ROWS
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
        if read.log.root_uri.startswith("file:"):
            assert rows_by_delta_rs(read.folder, tmp_path / "copy") == expected
        catalog.drop(table)


if __name__ == "__main__":
    write(*sys.argv[1:])
