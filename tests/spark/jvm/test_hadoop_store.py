"""What a put by rename says when Hadoop's client fails: nothing is guessed, no error is renamed."""

from __future__ import annotations

import errno
from typing import cast

import pytest

from puredelta.spark.jvm.hadoop import AlreadyThereError, HadoopFiles, HadoopStore
from puredelta.store.base import PutOutcome, StorageError, UnknownOutcomeError

NAME = "_delta_log/00000000000000000001.json"


class Files:
    """A directory of HDFS in memory whose calls fail as they are asked to."""

    root_uri = "hdfs://name:8020/t"

    def __init__(self, **failures: Exception) -> None:
        self.files: dict[str, bytes] = {}
        self._failures = failures

    def create(self, path: str, content: bytes, *, overwrites: bool) -> None:
        if path in self.files and not overwrites:
            raise AlreadyThereError(errno.EEXIST, "it is there", path)
        self.files[path] = content
        self._fail("create")

    def rename(self, path: str, new_path: str, *, overwrites: bool) -> None:
        self._fail("rename")
        if new_path in self.files and not overwrites:
            raise AlreadyThereError(errno.EEXIST, "it is there", new_path)
        self.files[new_path] = self.files.pop(path)
        self._fail("rename_answer")

    def delete(self, path: str) -> bool:
        self._fail("delete")
        return self.files.pop(path, None) is not None

    def _fail(self, call: str) -> None:
        if call in self._failures:
            raise self._failures[call]


def _put(files: Files) -> PutOutcome:
    store = HadoopStore(cast("HadoopFiles", files), open_at=lambda _: pytest.fail("not asked"))
    return store.put_if_absent(NAME, b"{}")


def test_the_first_of_a_name_wins() -> None:
    files = Files()
    assert [_put(files), _put(files)] == [PutOutcome.CREATED, PutOutcome.ALREADY_EXISTS]
    assert list(files.files) == [NAME]


@pytest.mark.parametrize("call", ["create", "rename"])
@pytest.mark.parametrize(
    "error", [StorageError(errno.ENOSPC, "full"), StorageError("no data nodes")], ids=str
)
def test_a_failure_before_the_name_is_taken_is_raised_as_it_is(call: str, error: Exception) -> None:
    files = Files(**{call: error})
    with pytest.raises(StorageError) as raised:
        _put(files)
    assert raised.value is error
    assert files.files == {}


def test_a_rename_that_is_not_allowed_is_raised_as_it_is() -> None:
    files = Files(rename=PermissionError(errno.EACCES, "read-only", NAME))
    with pytest.raises(PermissionError, match="read-only"):
        _put(files)
    assert files.files == {}


def test_a_rename_whose_answer_is_lost_is_settled_by_what_is_left() -> None:
    files = Files(rename_answer=StorageError(errno.EIO, "lost"))
    assert _put(files) is PutOutcome.CREATED
    assert list(files.files) == [NAME]


@pytest.mark.parametrize("call", ["rename", "rename_answer"])
def test_a_store_that_does_not_say_what_is_left_leaves_it_unknown(call: str) -> None:
    lost = StorageError(errno.EIO, "lost")
    with pytest.raises(UnknownOutcomeError, match="lost"):
        _put(Files(**{call: lost, "delete": lost}))
