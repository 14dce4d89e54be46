"""How often a log in an object store makes its caller wait: requests one after the other.

What is asked for at the same time counts once. docs/storage.md states the numbers.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import Any

import obstore
import pytest

from puredelta.log.commit.commit_retry import Created, LostRace, create_version
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import log_path
from puredelta.store.base import NameRule
from puredelta.store.location import ObjectAccess, parse_object_location
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import open_store
from tests.log.log_files import (
    METADATA,
    PROTOCOL,
    add,
    write_checkpoint,
    write_parts,
    write_table,
    write_v2_checkpoint,
)
from tests.log.tables import WRITE, create_table, transact
from tests.log.tables import add as new_file

_QUIET_SECONDS = 0.25
_REQUESTS = (
    *("get", "get_range", "get_ranges", "head", "put", "copy", "delete"),
    *("list", "list_with_delimiter"),
)


class Rounds:
    """Holds requests back until no other one comes, then lets all of them go: a round trip."""

    def __init__(self) -> None:
        self.count = 0
        self.requests: list[str] = []
        self._changed, self._newest = threading.Condition(), 0.0

    def held(self, request: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*arguments: Any, **options: Any) -> Any:
            with self._changed:
                mine, self._newest = self.count, time.monotonic()
                self.requests.append(request.__name__)
                while self.count == mine:
                    left = self._newest + _QUIET_SECONDS - time.monotonic()
                    if left <= 0:
                        self.count += 1
                        self._changed.notify_all()
                    else:
                        self._changed.wait(left)
            return request(*arguments, **options)

        return wait

    def during(self, action: Callable[[], object]) -> int:
        before = self.count
        self.requests.clear()
        action()
        return self.count - before


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    client = obstore.store.MemoryStore()
    monkeypatch.setattr("puredelta.store.object_store.client_of", lambda _: client)
    monkeypatch.setattr("puredelta.store.object_store._atomic_roots", set())
    location = parse_object_location("s3://bucket/t")
    assert location is not None
    return ObjectStore(location, ObjectAccess(url="s3://bucket"), open_at=open_store)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Rounds]:
    def begin() -> Rounds:
        made = Rounds()
        for name in _REQUESTS:
            monkeypatch.setattr(obstore, name, made.held(getattr(obstore, name)))
        return made

    return begin


def hint(store: ObjectStore, version: int) -> None:
    store.put(log_path("_last_checkpoint"), f'{{"version":{version},"size":9}}'.encode())


@pytest.mark.thorough
def test_commits_alone(store: ObjectStore, rounds: Callable[[], Rounds]) -> None:
    write_table(store, *([add(f"f{v}")] for v in range(12)))
    counted, log = rounds(), TableLog(store)
    assert counted.during(log.snapshot) == 3
    assert len(counted.requests) == 2 + 12
    assert counted.during(log.snapshot) == 1


def checkpoint(store: ObjectStore) -> None:
    write_checkpoint(store, 4, PROTOCOL, METADATA, *(add(f"f{v}") for v in range(5)))


def parts(store: ObjectStore) -> None:
    write_parts(store, 4, [[PROTOCOL, METADATA], [add(f"f{v}") for v in range(5)]])


def with_sidecars(store: ObjectStore) -> None:
    files = [add(f"f{v}") for v in range(5)]
    write_v2_checkpoint(store, 4, [PROTOCOL, METADATA], files[:2], files[2:])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("write", "most"), [(checkpoint, 3), (parts, 3), (with_sidecars, 4)])
@pytest.mark.parametrize("hinted", [True, False])
def test_a_checkpoint_and_commits_after_it(
    write: Callable[[ObjectStore], None],
    most: int,
    hinted: bool,
    store: ObjectStore,
    rounds: Callable[[], Rounds],
) -> None:
    write_table(store, *([add(f"f{v}")] for v in range(8)))
    write(store)
    if hinted:
        hint(store, 4)
    counted = rounds()
    log = TableLog(store)
    assert counted.during(log.snapshot) <= most
    assert sorted(file.path for file in log.snapshot().files.adds()) == [f"f{v}" for v in range(8)]


@pytest.mark.thorough
def test_a_checkpoint_of_more_than_its_end(
    store: ObjectStore, rounds: Callable[[], Rounds]
) -> None:
    """Neither its size nor its commits make another round."""
    many = [add(hashlib.sha256(b"%d" % v).hexdigest()) for v in range(3000)]
    write_table(store, *([add(f"f{v}")] for v in range(3)))
    write_checkpoint(store, 2, PROTOCOL, METADATA, *many)
    assert any(f.size_bytes > 64 << 10 for f in store.list_from("_delta_log"))
    counted = rounds()
    log = TableLog(store)
    assert counted.during(log.snapshot) <= 3
    assert len(list(log.snapshot().files.adds())) == 3000


def test_a_commit(store: ObjectStore, rounds: Callable[[], Rounds]) -> None:
    assert store.name_rule() is NameRule.EXACT
    writer = transact(create_table(store, new_file("f0")))
    counted = rounds()
    assert counted.during(lambda: writer.commit([new_file("f1")], WRITE)) <= 3
    assert counted.requests[:2] == ["list", "put"], "is it the same table (X-08a)?"


def test_a_commit_after_a_lost_race(store: ObjectStore, rounds: Callable[[], Rounds]) -> None:
    """A listing, a put that is lost; a listing, the winner, and a put."""
    store.name_rule()
    writer = transact(create_table(store, new_file("f0")))
    transact(TableLog(store)).commit([new_file("rival")], WRITE)
    counted = rounds()
    assert counted.during(lambda: writer.commit([new_file("f1")], WRITE)) <= 6
    assert counted.requests.count("put") == 2


@pytest.mark.thorough
def test_the_first_write_below_a_root(store: ObjectStore, rounds: Callable[[], Rounds]) -> None:
    counted = rounds()
    assert counted.during(store.name_rule) == 3
    assert counted.during(store.name_rule) == 0


def test_a_version_is_one_put(store: ObjectStore, rounds: Callable[[], Rounds]) -> None:
    counted = rounds()
    created = []
    put = lambda: created.append(create_version(store, 0, b"{}", txn_id="a"))  # noqa: E731
    assert counted.during(put) == 1
    assert created == [Created(0)]
    created.clear()
    assert counted.during(put) == 2  # whose is it?
    assert isinstance(created[0], LostRace)
