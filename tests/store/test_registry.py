from __future__ import annotations

from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.store.registry import open_store


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


@pytest.mark.parametrize("scheme", ["s3", "s3a", "abfss", "gs", "hdfs", "dbfs", "http"])
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
