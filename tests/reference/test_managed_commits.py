"""Commits to one managed table by this library and by the reference's Java client, at once.

delta-spark's JARs have Java Kernel with a client of Unity Catalog. The connector for Spark is not
published to Maven Central, so Spark itself takes no part.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from puredelta.log.replay.snapshot import Snapshot
from puredelta.protocol.schema.types import LONG, StructField, StructType
from tests.catalogs.managed import ORDERS, Orders, unity
from tests.log.tables import add, remove
from tests.servers.unity import UnityServer, unity_server

pytestmark = pytest.mark.reference

COMMITS = 100
"""Of each of both clients."""
PROGRAM = Path(__file__).with_name("KernelWriter.java")
FIRST = 1000
"""The first row of the Java client."""
REMOVED_EVERY = 5
TIMEOUT_S = 900


def jars() -> str:
    """Return the class path of Spark's and delta-spark's JARs; skip without a Java compiler."""
    found = sorted(str(path) for path in Path.home().glob(".ivy2*/jars/*.jar"))
    if not any("delta-kernel-unitycatalog" in path for path in found):
        pytest.skip("delta-spark's JARs are not here: the other tests of this folder bring them")
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler is installed")
    return ":".join([str(Path(pyspark.__file__).parent / "jars" / "*"), *found])


@pytest.fixture
def class_path(tmp_path: Path) -> str:
    """The compiled program with the JARs."""
    known = jars()
    subprocess.run(["javac", "-d", tmp_path, "-cp", known, PROGRAM], check=True, timeout=TIMEOUT_S)
    return f"{tmp_path}:{known}"


def start_kernel(class_path: str, server: UnityServer, commits: int) -> subprocess.Popen[str]:
    table = server.tables[ORDERS.parts]
    where = [server.url, *ORDERS.parts, table.id, table.location]
    return subprocess.Popen(
        ["java", "-cp", class_path, "KernelWriter", *where, str(FIRST), str(commits)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer_of(kernel: subprocess.Popen[str]) -> list[str]:
    printed, failures = kernel.communicate(timeout=TIMEOUT_S)
    assert kernel.returncode == 0, failures[-3000:]
    return printed.splitlines()


def commit_here(orders: Orders) -> list[int]:
    """Append a row per commit, remove every fifth again; return the rows that stay."""
    kept: list[int] = []
    row = 0
    for number in range(COMMITS):
        if number % REMOVED_EVERY == REMOVED_EVERY - 1:
            orders.commit([remove(f"own-{kept.pop()}.parquet", size_bytes=1)])
            continue
        path = orders.folder / f"own-{row}.parquet"
        pq.write_table(pa.table({"id": pa.array([row], pa.int64())}), path)
        written = replace(add(path.name, rows=1), size_bytes=path.stat().st_size)
        orders.commit([written])
        kept.append(row)
        row += 1
    return kept


def rows_of(snapshot: Snapshot, folder: Path) -> list[int]:
    paths = snapshot.files.rows["path"].to_pylist()
    return sorted(row for path in paths for row in pq.read_table(folder / path)["id"].to_pylist())


def test_each_commit_of_both_clients_counts_once(tmp_path: Path, class_path: str) -> None:
    schema = StructType((StructField("id", LONG),))
    with unity_server(f"file:{tmp_path}/tables") as server:
        orders = Orders.create(unity(server), schema=schema)
        kernel = start_kernel(class_path, server, COMMITS)
        kept = commit_here(Orders.open(unity(server)))
        answer_of(kernel)
        assert server.tables[ORDERS.parts].latest == 2 * COMMITS
        snapshot = Orders.open(unity(server)).log.snapshot()
        assert rows_of(snapshot, orders.folder) == sorted([*kept, *range(FIRST, FIRST + COMMITS)])
        version, *seen = answer_of(start_kernel(class_path, server, 0))
        assert version == f"version {2 * COMMITS}"
        files = [Path(path).name for path in snapshot.files.rows["path"].to_pylist()]
        assert sorted(Path(line).name for line in seen) == sorted(files)
    names = sorted((orders.folder / "_delta_log").glob("0*.json"))
    versions = [int(path.stem) for path in names if path.stem.isdecimal()]
    assert versions == list(range(2 * COMMITS + 1))
