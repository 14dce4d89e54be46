from __future__ import annotations

import itertools
import json
import multiprocessing
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.errors import CommitUnknownError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.log.commit.commit_retry import Created, LostRace, create_version
from puredelta.log.replay.table_log import TableLog
from puredelta.store.base import (
    NameRule,
    PutOutcome,
    StorageError,
    Store,
    StoredDirectory,
    StoredFile,
    UnknownOutcomeError,
)
from puredelta.store.location import ObjectAccess, parse_object_location
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage, open_store
from tests.log.log_files import METADATA, PROTOCOL
from tests.servers import s3
from tests.servers.proxy import QUICK, Fault, Proxy, Request
from tests.store.contract import StoreContract

_roots = itertools.count()


def new_root() -> str:
    return f"s3a://{s3.BUCKET}/t {next(_roots)}%20é"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not s3.is_installed("moto"):
        pytest.skip("moto[server] is not installed")
    with s3.s3_server("moto", tmp_path_factory.mktemp("s3")) as started:
        yield started


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, endpoint: str) -> Store:
        return s3.storage(endpoint).open(new_root())


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self, monkeypatch: pytest.MonkeyPatch) -> Store:
        client = obstore.store.MemoryStore()
        monkeypatch.setattr("puredelta.store.object_store.client_of", lambda _: client)
        location = parse_object_location("gs://bucket/t")
        assert location is not None
        return ObjectStore(location, ObjectAccess(url="gs://bucket"), open_at=open_store)


class Removed(list[str]):
    """Remembers which directories were removed."""

    def remove(self, location: str, *, recursive: bool = True) -> bool:
        assert not recursive
        self.append(location)
        return not location.endswith("/a")


def test_an_empty_object_may_stand_for_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where Hadoop is in reach, and never one that has a suffix."""
    client, removed = obstore.store.MemoryStore(), Removed()
    monkeypatch.setattr("puredelta.store.object_store.client_of", lambda _: client)
    location, access = parse_object_location("s3a://bucket/t"), ObjectAccess(url="s3://bucket")
    assert location is not None
    alone = ObjectStore(location, access, open_at=open_store)
    store = ObjectStore(location, access, open_at=open_store, directories=removed)
    for name, content in (("a/empty", b""), ("b.parquet", b""), ("c", b"1")):
        store.put(name, content)
    found = {entry.path: entry for entry in store.inventory("", is_wanted=lambda _: True)}
    assert sorted(found) == ["a/empty", "b.parquet", "c"]
    assert [path for path, e in found.items() if isinstance(e, StoredDirectory)] == ["a/empty"]
    assert all(isinstance(e, StoredFile) for e in alone.inventory("", is_wanted=lambda _: True))
    store.put("a/empty/inner", b"1")  # a marker of the directory does not hide what is in it
    now = [e for e in store.inventory("", is_wanted=lambda _: True) if e.path.startswith("a/")]
    assert [isinstance(e, StoredDirectory) and not e.is_empty for e in now] == [True, False]
    assert store.delete_directory("a/empty")
    assert removed == ["s3a://bucket/t/a/empty", "s3a://bucket/t/a"]
    assert not alone.delete_directory("a/empty")


def _put(endpoint: str, root: str, version: int, writer: int) -> bool:
    store = s3.storage(endpoint).open(root)
    return store.put_if_absent(f"{version}", f"{writer}".encode() * 500) is PutOutcome.CREATED


def test_processes_race_without_a_double_winner(endpoint: str) -> None:
    root = new_root()
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        jobs = [(endpoint, root, version, writer) for version in range(10) for writer in range(3)]
        created = pool.starmap(_put, jobs, chunksize=1)
    store = s3.storage(endpoint).open(root)
    for version in range(10):
        winners = [j[3] for j, won in zip(jobs, created, strict=True) if won and j[2] == version]
        assert len(winners) == 1
        assert store.read(str(version)) == f"{winners[0]}".encode() * 500


def test_tables_of_one_bucket_share_a_client(endpoint: str) -> None:
    one, other = (
        s3.storage(endpoint).open(f"{scheme}://{s3.BUCKET}/a") for scheme in ("s3", "s3n")
    )
    assert isinstance(one, ObjectStore)
    assert isinstance(other, ObjectStore)
    assert one._client is other._client
    assert (one.root_uri, other.root_uri) == (f"s3://{s3.BUCKET}/a", f"s3n://{s3.BUCKET}/a")


def test_a_store_travels_to_another_process(endpoint: str) -> None:
    store = s3.storage(endpoint).open(new_root())
    store.put("a", b"x")
    again = pickle.loads(pickle.dumps(store))
    assert again.root_uri == store.root_uri
    assert again.read("a") == b"x"
    assert again.at(store.root_uri).read("a") == b"x"


def test_an_object_that_stands_for_a_directory_is_no_file(endpoint: str) -> None:
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=s3.KEY,
        aws_secret_access_key=s3.SECRET,
        region_name="us-east-1",
    )
    root = new_root()
    store = s3.storage(endpoint).open(root)
    key = root.removeprefix(f"s3a://{s3.BUCKET}/")
    client.put_object(Bucket=s3.BUCKET, Key=f"{key}/p=1/", Body=b"")
    store.put("p=1/a.bin", b"x")
    store.put("p=1-b", b"")
    client.put_object(Bucket=s3.BUCKET, Key=f"{key}/job/", Body=b"")
    assert list(store.walk("job")) == []
    store.delete_tree("job")
    client.delete_object(Bucket=s3.BUCKET, Key=f"{key}/job/")
    assert {f.path for f in store.walk("")} == {"p=1/a.bin", "p=1-b"}
    assert [f.path for f in store.list_from("")] == ["p=1-b"]


@pytest.mark.thorough
def test_more_names_than_a_page_has(endpoint: str) -> None:
    store = s3.storage(endpoint).open(new_root())
    with ThreadPoolExecutor(8) as putters:
        list(putters.map(lambda n: store.put(f"d/{n:05d}", b""), range(1_005)))
    assert len(list(store.list_from("d", "00002"))) == 1_003
    assert len(list(store.list_from("d"))) == len(list(store.walk(""))) == 1_005
    store.delete_tree("d")
    assert list(store.walk("")) == []


def test_a_footer_is_one_request_and_a_column_another(endpoint: str) -> None:
    with Proxy(endpoint) as proxy:
        store = s3.storage(proxy.endpoint).open(new_root())
        sink = pa.BufferOutputStream()
        table = pa.table({n: pa.array(range(200_000)) for n in "abc"})
        pq.write_table(table, sink, use_dictionary=False, compression="none")
        store.put("x.parquet", sink.getvalue().to_pybytes())
        proxy.requests.clear()
        with store.open("x.parquet") as opened:
            parquet = pq.ParquetFile(opened, pre_buffer=True)
            assert parquet.metadata.num_rows == 200_000
            assert len(proxy.requests) == 1
            assert parquet.read(["b"])["b"].to_pylist()[-1] == 199_999
        assert [r.verb for r in proxy.requests] == ["GET", "GET"]


def test_one_trial_shows_that_puts_are_conditional(endpoint: str) -> None:
    with Proxy(endpoint) as proxy:
        root = new_root()
        store = s3.storage(proxy.endpoint).open(root)
        assert store.name_rule() is NameRule.EXACT
        assert [r.verb for r in proxy.requests] == ["PUT", "PUT", "POST"]
        assert s3.storage(proxy.endpoint).open(root).name_rule() is NameRule.EXACT
        assert len(proxy.requests) == 3
        assert list(store.walk("")) == []


def test_a_store_without_conditional_puts_is_not_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = obstore.store.MemoryStore()
    monkeypatch.setattr("puredelta.store.object_store.client_of", lambda _: client)
    put = obstore.put

    def careless_put(client: Any, path: str, content: bytes, **_: object) -> None:
        put(client, path, content)

    monkeypatch.setattr(obstore, "put", careless_put)
    location = parse_object_location("s3://naive/t")
    assert location is not None
    store = ObjectStore(location, ObjectAccess(url="s3://naive"), open_at=open_store)
    with pytest.raises(UnsupportedError, match=r"s3://naive/t.*If-None-Match") as caught:
        store.name_rule()
    assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    assert list(store.walk("")) == []
    store.put("a", b"readable")
    assert store.read("a") == b"readable"


def _is_commit(request: Request) -> bool:
    return request.verb == "PUT" and ".json" in request.path


@pytest.mark.parametrize("fault", QUICK)
def test_a_commit_whose_answer_is_lost_once(endpoint: str, fault: Fault) -> None:
    faults = iter([fault])
    with Proxy(endpoint, lambda r: next(faults, None) if _is_commit(r) else None) as proxy:
        store = s3.storage(proxy.endpoint).open(new_root())
        content = commit_bytes({"commitInfo": {"txnId": "ours"}})
        assert create_version(store, 0, content, txn_id="ours") == Created(0)
        other = commit_bytes({"commitInfo": {"txnId": "theirs"}})
        assert create_version(store, 0, other, txn_id="theirs") == LostRace(0)
        assert store.read("_delta_log/00000000000000000000.json") == content


def test_a_commit_that_nobody_answers_is_unknown(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.store.location.RETRIES_MAX", 1)
    with Proxy(endpoint, lambda r: Fault.REFUSED if _is_commit(r) else None) as proxy:
        store = s3.storage(proxy.endpoint).open(new_root())
        content = commit_bytes({"commitInfo": {"txnId": "ours"}})
        with pytest.raises(CommitUnknownError):
            create_version(store, 0, content, txn_id="ours")
        with pytest.raises(UnknownOutcomeError):
            store.put_if_absent("x.json", b"")


def test_errors_say_what_and_hide_secrets(endpoint: str, tmp_path: Path) -> None:
    store = s3.storage(endpoint).open("s3a://no-such-bucket/t")
    with pytest.raises(StorageError, match=r"s3a://no-such-bucket/t.*NoSuchBucket"):
        store.put_if_absent("a", b"")
    with pytest.raises(StorageError, match="NoSuchBucket"):
        list(store.list_from("_delta_log"))
    with pytest.raises(StorageError, match="NoSuchBucket"):
        TableLog(store).snapshot()
    azure = Storage(options={"account_key": "top-secret-value"})
    with pytest.raises(InvalidRequestError, match="Account must be specified"):
        azure.open("az://c/t")
    with pytest.raises(InvalidRequestError, match="az://c cannot be reached") as caught:
        azure.with_options({"account_name": "a"}).open("az://c/t")
    assert "top-secret-value" not in str(caught.value)


@pytest.mark.parametrize("key", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"])
def test_the_environment_may_name_a_server_without_tls(
    endpoint: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {key: endpoint, "AWS_REGION": "us-east-1"}
    environment |= {"AWS_ACCESS_KEY_ID": s3.KEY, "AWS_SECRET_ACCESS_KEY": s3.SECRET}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    store = open_store(new_root())
    store.put("a", b"a")
    assert store.read("a") == b"a"


def test_a_server_that_is_not_there_is_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puredelta.store.location.RETRIES_MAX", 2)
    store = s3.storage("http://127.0.0.1:1").open("s3a://lake/t")
    start = time.monotonic()
    with pytest.raises(StorageError, match="lake/t"):
        store.read("a")
    assert time.monotonic() - start < 20


def test_the_requests_of_a_table(endpoint: str) -> None:
    with Proxy(endpoint) as proxy:
        store = s3.storage(proxy.endpoint).open(new_root())
        store.put("_delta_log/00000000000000000000.json", commit_bytes(PROTOCOL, METADATA))
        for version in range(1, 9):
            content = commit_bytes({"commitInfo": {"txnId": "a"}})
            proxy.requests.clear()
            assert create_version(store, version, content, txn_id="a") == Created(version)
            assert [r.verb for r in proxy.requests] == ["PUT"]
        proxy.requests.clear()
        log = TableLog(store)
        assert log.snapshot().version == 8
        paths = [r.path for r in proxy.requests]
        assert "_last_checkpoint" in paths[0]
        assert "list-type=2" in paths[1]
        assert len(paths) == 2 + 9, "a file of the log is read once"
        proxy.requests.clear()
        assert log.snapshot().version == 8
        assert len(proxy.requests) == 1
        proxy.requests.clear()
        assert len(log.history()) == 9
        assert len(proxy.requests) == 2 + 9


def test_files_of_the_log_are_read_side_by_side(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    store = s3.storage(endpoint).open(new_root())
    store.put("_delta_log/00000000000000000000.json", commit_bytes(PROTOCOL, METADATA))
    for version in range(1, 4):
        store.put(f"_delta_log/{version:020}.json", commit_bytes({"commitInfo": {}}))
    together = threading.Barrier(4)
    get = obstore.get

    def meet(client: Any, path: str, **options: Any) -> Any:
        if path.endswith(".json"):
            together.wait(10)
        return get(client, path, **options)

    monkeypatch.setattr(obstore, "get", meet)
    assert TableLog(store).snapshot().version == 3


def test_a_file_that_goes_while_it_is_read_ahead(endpoint: str) -> None:
    store = s3.storage(endpoint).open(new_root())
    for name in "ab":
        store.put(name, name.encode())
    files = list(store.list_from(""))
    store.delete("b")
    ahead = store.read_ahead(files)
    assert ahead.read("a") == b"a"
    with ahead.open("a") as opened:
        assert opened.read() == b"a"
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            ahead.read("b")
    assert store.read_ahead(files[:1]).read("a") == b"a"


def commit_bytes(*actions: Any) -> bytes:
    return "\n".join(json.dumps(action) for action in actions).encode()
