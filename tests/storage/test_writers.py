"""Many processes commit to one table on S3, half of them delta-rs: nothing acknowledged is lost."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest

from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from tests.log.tables import WRITE, add, create_table, transact
from tests.servers import s3

COMMITS = 50
_roots = itertools.count()


@pytest.fixture(scope="module", params=["versitygw", "minio"])
def endpoint(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if not s3.is_installed(request.param):
        pytest.skip(f"SERVERS_BIN has no {request.param}: run scripts/servers")
    with s3.s3_server(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


def _write(endpoint: str, root: str, writer: int) -> list[str]:
    """Append files by our transactions, and return their names."""
    log = TableLog(s3.storage(endpoint).open(root))
    names = [f"part-{writer}-{n}.parquet" for n in range(COMMITS)]
    for name in names:
        transact(log).commit([add(name, rows=1)], WRITE)
    return names


def _write_by_delta_rs(endpoint: str, root: str, writer: int) -> list[str]:
    import deltalake  # noqa: PLC0415 - an independent writer, in a process of its own
    from deltalake.transaction import AddAction  # noqa: PLC0415

    options = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    names = [f"part-{writer}-{n}.parquet" for n in range(COMMITS)]
    table = deltalake.DeltaTable(root.replace("s3a://", "s3://"), storage_options=options)
    for name in names:
        action = AddAction(name, 1, {}, 0, True, '{"numRecords":1}')
        many = deltalake.CommitProperties(max_commit_retries=1_000)
        table.create_write_transaction([action], "append", table.schema(), commit_properties=many)
        table.update_incremental()
    return names


def test_every_acknowledged_commit_is_there_once(endpoint: str, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    root = f"s3a://{s3.BUCKET}/race-{next(_roots)}"
    log = TableLog(s3.storage(endpoint).open(root))
    create_table(log.store)
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        jobs = [
            pool.apply_async(write, (endpoint, root, number))
            for number, write in enumerate([_write, _write_by_delta_rs] * 4)
        ]
        acknowledged = [name for job in jobs for name in job.get(600)]
    assert len(acknowledged) == len(set(acknowledged)) == 8 * COMMITS
    commits = log.commits_after(0)
    assert len(commits) == 8 * COMMITS
    committed = [a.path for c in commits for a in c.actions if isinstance(a, Add)]
    assert sorted(committed) == sorted(acknowledged)
    assert len(log.snapshot().files) == 8 * COMMITS
