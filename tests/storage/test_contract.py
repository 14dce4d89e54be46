from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.spark.jvm.hadoop import HadoopFiles, HadoopStore
from puredelta.spark.session.storage import session_storage
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.store.base import NameRule, PutOutcome, Store, StoredDirectory
from puredelta.store.registry import Storage
from tests.servers import azure, gcs, s3
from tests.store.contract import AWKWARD_NAMES, StoreContract

_roots = itertools.count()


class TestHdfs(StoreContract):
    @pytest.fixture
    def store(self, spark: SparkSession, hdfs_uri: str) -> Iterator[Store]:
        with temporary_settings(spark, {"dfs.replication": "1"}):
            yield session_storage(spark).open(f"{hdfs_uri}/a b/{next(_roots)}%20é")

    @pytest.mark.parametrize("name", [n for n in AWKWARD_NAMES if ":" not in n and "\\" not in n])
    def test_names_are_taken_literally(self, store: Store, name: str) -> None:
        super().test_names_are_taken_literally(store, name)

    def test_directories_are_seen_and_removed(self, store: Store) -> None:
        store.put("d/x/a", b"")
        store.delete("d/x/a")
        found = list(store.inventory("", is_wanted=lambda _: True))
        assert [(f.path, f.is_empty) for f in found if isinstance(f, StoredDirectory)] == [
            ("d", False),
            ("d/x", True),
        ]
        assert store.delete_directory("d/x")
        assert not store.exists("d/x")

    def test_nothing_is_left_beside_a_commit(self, store: Store) -> None:
        assert store.put_if_absent("d/1", b"a") is PutOutcome.CREATED
        assert store.put_if_absent("d/1", b"b") is PutOutcome.ALREADY_EXISTS
        assert [f.path for f in store.walk("")] == ["d/1"]


@pytest.fixture(scope="module", params=["versitygw", "minio"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if not s3.is_installed(request.param):
        pytest.skip(f"SERVERS_BIN has no {request.param}: run scripts/servers")
    with s3.s3_server(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, server: str) -> Store:
        return s3.storage(server).open(f"s3://{s3.BUCKET}/t {next(_roots)}")

    def test_puts_are_found_to_be_conditional(self, store: Store) -> None:
        assert store.name_rule() is NameRule.EXACT
        assert list(store.walk("")) == []


@pytest.fixture(scope="module")
def gcs_storage() -> Iterator[Storage]:
    with gcs.gcs() as endpoint:
        yield gcs.storage(endpoint)


class TestGcs(StoreContract):
    @pytest.fixture
    def store(self, gcs_storage: Storage) -> Store:
        return gcs_storage.open(f"gs://{gcs.BUCKET}/t {next(_roots)}")

    def test_puts_are_found_to_be_conditional(self, store: Store) -> None:
        assert store.name_rule() is NameRule.EXACT
        assert list(store.walk("")) == []


@pytest.fixture(scope="module")
def azure_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    if not azure.is_installed():
        pytest.skip("SERVERS_BIN has no azurite-blob: run scripts/servers")
    with azure.azurite(tmp_path_factory.mktemp("azure")) as endpoint:
        yield azure.storage(endpoint)


class TestAzure(StoreContract):
    @pytest.fixture
    def store(self, azure_storage: Storage) -> Store:
        return azure_storage.open(f"{azure.ROOT}/t {next(_roots)}")

    # Azurite lists a name with a backslash otherwise than it was put.
    @pytest.mark.parametrize("name", [n for n in AWKWARD_NAMES if "\\" not in n])
    def test_names_are_taken_literally(self, store: Store, name: str) -> None:
        super().test_names_are_taken_literally(store, name)

    def test_puts_are_found_to_be_conditional(self, store: Store) -> None:
        assert store.name_rule() is NameRule.EXACT
        assert list(store.walk("")) == []


def test_a_scheme_that_is_not_known_is_read_and_not_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    store = HadoopStore(HadoopFiles(spark, f"file:{tmp_path}"), open_at=session_storage(spark).open)
    assert store.read("a") == b"0123456789"
    assert store.read_end("a", 3) == (b"789", 10)
    for write in (
        store.name_rule,
        lambda: store.put_if_absent("b", b""),
        lambda: store.put("b", b""),
    ):
        with pytest.raises(UnsupportedError, match="'file' storage") as caught:
            write()
        assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    assert [f.path for f in store.walk("")] == ["a"]
