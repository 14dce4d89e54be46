from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.store.base import Store
from puredelta.store.local import LocalStore
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage, is_same_location, open_store


@pytest.mark.parametrize(
    ("location", "root_uri"),
    [
        ("/data/t", "file:/data/t"),
        ("/data/t/", "file:/data/t"),
        ("file:/data/t", "file:/data/t"),
        ("file:///data/t/", "file:/data/t"),
        ("file://localhost/data/t", "file:/data/t"),
        ("FILE:///data/t", "file:/data/t"),
        ("/data/my table", "file:/data/my table"),
        ("file:/data/a%20b", "file:/data/a%20b"),
        ("/data/x#y?z", "file:/data/x#y?z"),
        ("/data/12:30", "file:/data/12:30"),
    ],
)
def test_spellings_of_one_root(location: str, root_uri: str) -> None:
    assert open_store(location).root_uri == root_uri


def test_relative_paths_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("a/t").root_uri == f"file:{tmp_path}/a/t"
    assert open_store("./a:b").root_uri == f"file:{tmp_path}/a:b"
    assert open_store("~/t").root_uri == f"file:{tmp_path}/~/t"
    assert open_store(tmp_path / "t").root_uri == f"file:{tmp_path}/t"


@pytest.mark.parametrize("scheme", ["hdfs", "dbfs", "http", "oss"])
def test_other_storage_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'{scheme}' storage.*mount") as caught:
        open_store(f"{scheme}://bucket/t")
    assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    assert "./" not in str(caught.value), "following that would make a local directory"
    with pytest.raises(UnsupportedError) as caught:
        open_store(f"{scheme}:/t")
    assert "./" not in str(caught.value)


def test_a_local_name_with_a_colon_is_told_how_to_be_written() -> None:
    with pytest.raises(UnsupportedError, match=r"is written \./day:11"):
        open_store("day:11")


@pytest.mark.parametrize("location", ["", "a\0b", "file:relative", "file:"])
def test_what_is_no_location(location: str) -> None:
    with pytest.raises(InvalidRequestError):
        open_store(location)


def test_a_file_uri_with_a_host() -> None:
    with pytest.raises(UnsupportedError, match="names the host 'server'"):
        open_store("file://server/share")


class Schemes:
    """The file systems of a session that has some; a location is opened below a local folder."""

    def __init__(self, *schemes: str) -> None:
        self.schemes = schemes
        self.opened: list[str] = []

    def has_scheme(self, scheme: str) -> bool:
        return scheme in self.schemes

    def open(self, location: str, *, open_at: Callable[[str], Store]) -> Store:
        self.opened.append(location)
        return LocalStore("/data/t", open_at=open_at)

    def remove(self, location: str) -> None:
        raise NotImplementedError(location)


@pytest.mark.parametrize(
    ("location", "root_uri"),
    [
        ("s3://lake/t/", "s3://lake/t"),
        ("S3A://lake//t", "s3a://lake/t"),
        ("gs://lake/my table%20", "gs://lake/my table%20"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
    ],
)
def test_object_stores_are_opened_by_name(location: str, root_uri: str) -> None:
    store = open_store(location)
    assert isinstance(store, ObjectStore)
    assert store.root_uri == root_uri


def test_s3_is_named_as_the_session_can_read_it() -> None:
    def root(location: str, *schemes: str) -> str:
        return Storage(file_systems=Schemes(*schemes)).open(location).root_uri

    assert root("s3://lake/t", "s3a") == "s3a://lake/t"
    assert root("s3://lake/t", "s3", "s3a") == "s3://lake/t"
    assert root("s3a://lake/t", "s3") == "s3://lake/t"
    assert root("s3://lake/t") == "s3://lake/t"


def test_other_storage_is_left_to_the_session() -> None:
    file_systems = Schemes("hdfs")
    storage = Storage(file_systems=file_systems)
    store = storage.open("hdfs://name/t")
    assert file_systems.opened == ["hdfs://name/t"]
    assert isinstance(store.at("s3://lake/other"), ObjectStore)
    with pytest.raises(UnsupportedError, match="'viewfs' storage"):
        store.at("viewfs://name/t")


def test_what_cannot_be_translated_is_left_to_the_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"fs.s3a.aws.credentials.provider": "com.corp.Vault"}
    with pytest.raises(UnsupportedError, match=r"com\.corp\.Vault, which only the JVM"):
        Storage(settings=settings).open("s3a://lake/t")
    file_systems = Schemes("s3a")
    storage = Storage(settings=settings, file_systems=file_systems)
    for _ in range(2):
        storage.open("s3a://lake/t")
    assert file_systems.opened == ["s3a://lake/t"] * 2
    said = [r.getMessage() for r in caplog.records if "com.corp.Vault" in r.getMessage()]
    assert len(said) == 1


def test_options_of_one_call_win() -> None:
    storage = Storage(settings={"fs.s3a.endpoint": "a"}, options={"region": "r"})
    more = storage.with_options({"fs.s3a.endpoint": "b", "timeout": "9s"})
    assert more.settings == {"fs.s3a.endpoint": "b"}
    assert more.options == {"region": "r", "timeout": "9s"}
    assert storage.with_options(None) is storage
    assert "settings" not in repr(more)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://lake/t", "s3a://lake/t", True),
        ("s3n://lake/a%20b", "s3://lake/a%20b", True),
        ("s3://lake/a%20b", "s3://lake/a b", False),
        ("s3://lake/t", "s3://other/t", False),
        ("s3://lake/t", "gs://lake/t", False),
        ("file:/no/such", "file:/no/such", True),
        ("file:/no/such", "file:/no/other", False),
        ("hdfs://name/t", "file:/t", False),
    ],
)
def test_two_roots_of_one_table(one: str, other: str, *, same: bool) -> None:
    assert is_same_location(one, other) is same
