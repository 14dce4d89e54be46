from __future__ import annotations

import errno
import multiprocessing
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, UnsupportedError
from puredelta.store.base import NameRule, PutOutcome, StorageError, StoredDirectory, StoredFile
from puredelta.store.local import LocalStore


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_root_uri_is_absolute_decoded_and_bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert LocalStore("a b%20/../c#d/").root_uri == f"file:{tmp_path}/c#d"


def test_nothing_is_created_before_a_put(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "table")
    assert list(store.list_from("_delta_log")) == []
    assert not (tmp_path / "table").exists()


def test_no_temporary_stays_behind(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put_if_absent("d/a", b"1")
    store.put_if_absent("d/a", b"2")
    store.put("d/b", b"3")
    assert _names(tmp_path / "d") == ["a", "b"]


def test_a_temporary_that_may_not_be_removed_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def refuse(path: Path) -> None:
        if path.suffix == ".tmp":
            raise PermissionError(errno.EPERM, "in use")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", refuse)
    store = LocalStore(tmp_path)
    assert store.put_if_absent("a", b"1") is PutOutcome.CREATED
    assert store.put_if_absent("a", b"2") is PutOutcome.ALREADY_EXISTS
    assert store.read("a") == b"1"


@pytest.mark.parametrize("verb", ["put", "put_if_absent", "delete"])
def test_a_checksum_hadoop_kept_goes_with_the_content_it_was_for(tmp_path: Path, verb: str) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / ".a.crc").touch()
    if verb == "put_if_absent":
        assert store.put_if_absent("a", b"new") is PutOutcome.CREATED
    elif verb == "put":
        (tmp_path / "a").write_bytes(b"old")
        store.put("a", b"new")
    else:
        (tmp_path / "a").write_bytes(b"old")
        store.delete("a")
    assert ".a.crc" not in _names(tmp_path)


def test_a_lost_race_leaves_the_winners_checksum(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "a").write_bytes(b"theirs")
    (tmp_path / ".a.crc").touch()
    assert store.put_if_absent("a", b"mine") is PutOutcome.ALREADY_EXISTS
    assert _names(tmp_path) == [".a.crc", "a"]


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    name = "n" * 250  # with the dot and the ending of a checksum, 255
    LocalStore(tmp_path).put(name, b"")
    assert _names(tmp_path) == [name]


def _fail(error: OSError) -> object:
    def broken(*_: object, **__: object) -> None:
        raise error

    return broken


@pytest.mark.parametrize("verb", ["put", "put_if_absent"])
def test_disk_full_is_a_storage_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    store = LocalStore(tmp_path)
    monkeypatch.setattr(os, "fsync", _fail(OSError(errno.ENOSPC, "No space left on device", "x")))
    with pytest.raises(StorageError, match="No space left") as caught:
        getattr(store, verb)("a", b"1")
    assert caught.value.errno == errno.ENOSPC
    assert _names(tmp_path) == []


def test_no_hard_links_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _fail(OSError(errno.EOPNOTSUPP, "Operation not supported")))
    with pytest.raises(UnsupportedError, match=r"has no hard links.*s3a://bucket/path") as caught:
        LocalStore(tmp_path).put_if_absent("a", b"1")
    assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE
    assert _names(tmp_path) == []


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO])
def test_a_link_that_worked_without_an_answer_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    link = os.link

    def lossy(source: Path, target: Path) -> None:
        link(source, target)
        raise OSError(code, "retransmitted", str(target))

    monkeypatch.setattr(os, "link", lossy)
    assert LocalStore(tmp_path).put_if_absent("a", b"1") is PutOutcome.CREATED


def test_permission_denied_stays_permission_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.put("d/a", b"1")
    # Patched rather than chmod-ed: root may do everything.
    denied = _fail(PermissionError(errno.EACCES, "Permission denied", "d"))
    monkeypatch.setattr(os, "scandir", denied)
    monkeypatch.setattr(Path, "open", denied)
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(PermissionError):
        list(store.list_from("d"))
    with pytest.raises(PermissionError):
        list(store.walk("d"))
    with pytest.raises(PermissionError):
        store.read("d/a")
    with pytest.raises(PermissionError):
        store.put_if_absent("d/b", b"")


def test_a_parent_that_is_a_file_is_not_read_as_already_exists(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("d", b"a file")
    with pytest.raises(StorageError):
        store.put_if_absent("d/0.json", b"")


def test_paths_stay_below_the_root(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    for path in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(ValueError, match="does not lie below the root"):
            store.read(path)
    with pytest.raises(ValueError, match="root of a table"):
        store.delete_tree("")


def test_walk_follows_links_but_no_cycles(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "f").touch()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "t")
    store = LocalStore(tmp_path / "t")
    assert [f.path for f in store.walk("")] == ["link/f"]
    with pytest.raises(StorageError, match="symbolic link"):
        store.delete_tree("link")


def test_walk_does_not_come_back_through_a_link_to_what_lies_above(tmp_path: Path) -> None:
    (tmp_path / "t" / "sub").mkdir(parents=True)
    (tmp_path / "t" / "sub" / "f").touch()
    (tmp_path / "beside").touch()
    (tmp_path / "t" / "sub" / "up").symlink_to(tmp_path)
    store = LocalStore(tmp_path / "t")
    assert [f.path for f in store.walk("")] == ["sub/f", "sub/up/beside"]


def _put(root: str, version: int, writer: int) -> bool:
    content = f"{writer}".encode() * 5000
    return LocalStore(root).put_if_absent(f"{version}", content) is PutOutcome.CREATED


def test_processes_race_without_a_double_winner(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        jobs = [(str(tmp_path), version, writer) for version in range(25) for writer in range(4)]
        created = pool.starmap(_put, jobs, chunksize=1)
    for version in range(25):
        winners = [
            job[2] for job, won in zip(jobs, created, strict=True) if won and job[1] == version
        ]
        assert len(winners) == 1
        assert (tmp_path / str(version)).read_bytes() == f"{winners[0]}".encode() * 5000


def test_an_inventory_never_leaves_the_table(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.bin").write_bytes(b"x")
    root = tmp_path / "table"
    (root / "empty").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    (root / "file-link").symlink_to(outside / "precious.bin")
    store = LocalStore(root)
    found = list(store.inventory("", is_wanted=lambda _: True))
    assert [(f.path, f.is_empty) for f in found if isinstance(f, StoredDirectory)] == [
        ("empty", True)
    ]
    assert not [f for f in found if isinstance(f, StoredFile)]
    assert store.delete_directory("empty")
    with pytest.raises(ValueError, match="root"):
        store.delete_directory("")


def test_a_trial_leaves_nothing_and_is_made_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "new" / "t")
    assert store.name_rule() is NameRule.EXACT
    assert list((tmp_path / "new" / "t").iterdir()) == []
    (tmp_path / "new" / "t").rmdir()
    assert LocalStore(tmp_path / "new" / "t").name_rule() is NameRule.EXACT
    assert not (tmp_path / "new" / "t").exists()


def test_a_trial_says_so_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(UnsupportedError, match="no hard links"):
        LocalStore(tmp_path).name_rule()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spelled", [str.upper, lambda name: unicodedata.normalize("NFD", name)])
def test_a_trial_sees_that_names_are_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: Callable[[str], str]
) -> None:
    real = Path.exists

    def exists(path: Path) -> bool:
        return real(path) or any(spelled(p.name) == path.name for p in path.parent.iterdir())

    monkeypatch.setattr(Path, "exists", exists)
    assert LocalStore(tmp_path).name_rule() is NameRule.FOLDED


def test_files_are_flushed_with_all_their_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"job/p={n % 2}/{n}.parquet" for n in range(40)]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"rows")
    flushed: list[str] = []

    def note(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr("os.fsync", note)
    LocalStore(tmp_path).flush(paths)
    above = [tmp_path, tmp_path / "job", tmp_path / "job/p=0", tmp_path / "job/p=1"]
    assert sorted(flushed) == sorted(map(str, (*above, *(tmp_path / path for path in paths))))
    assert {*flushed[: len(paths)]} == {str(tmp_path / path) for path in paths}, "files come first"
    flushed.clear()
    LocalStore(tmp_path).flush([])
    assert flushed == []
    with pytest.raises(FileNotFoundError):
        LocalStore(tmp_path).flush(["gone"])
