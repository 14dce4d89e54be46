"""Deletion vectors of two writers on different rows of one file both stand (X-27a)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from puredelta.errors import CommitUnknownError, ConflictError
from puredelta.log.commit.commit_request import Phase
from puredelta.log.files.deletion_vectors import DeletionVectorUpdate, read_vector, write_vectors
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, Remove
from puredelta.protocol.actions.log_paths import commit_name, log_path
from puredelta.protocol.actions.operations import delete
from puredelta.protocol.schema.predicates import FALSE
from puredelta.store.base import PutOutcome, StorageError
from tests.faults import MemoryStore
from tests.log.tables import Client, add, create_table, feature_protocol, transact

DELETE = delete("...")
VECTORS = feature_protocol(readers=("deletionVectors",))
MINE, THEIRS = {1, 2}, {7, 8}


def table(store: object | None = None, *files: Add) -> TableLog:
    return create_table(
        store or MemoryStore(),  # type: ignore[arg-type]
        *(files or (add("a"), add("b"))),
        protocol=VECTORS,
        delta__enableDeletionVectors="true",
    )


def file_named(log: TableLog, path: str) -> Add:
    return next(file for file in log.snapshot().files.adds() if file.path == path)


def hidden(log: TableLog, file: Add) -> set[int]:
    vector = file.deletion_vector
    return set() if vector is None else set(read_vector(vector, log.root_uri, store=log.store))


def hide(log: TableLog, path: str, rows: Iterable[int]) -> list[Action]:
    """Delete rows of a file beside those that are deleted."""
    file = file_named(log, path)
    gone = np.array(sorted({*hidden(log, file), *rows}), np.uint64)
    written = write_vectors(
        [DeletionVectorUpdate(file=file, rows=gone)],
        store=log.store,
        config=log.snapshot().config,
    )
    return [remove_file(file, deleted_ms=5), *written.adds]


def rival(log: TableLog, *actions: Action) -> None:
    transact(TableLog(log.store)).commit(actions, DELETE)


def reading(log: TableLog, *paths: str, alone: bool = True, **environment: object) -> Client:
    client = transact(log, **environment)
    files = FileTable.of([file_named(log, path) for path in paths])
    client.read_files(FALSE, files, judges_rows_alone=alone)
    return client


def vector_files(store: MemoryStore) -> set[str]:
    return {path for path in store.files if path.endswith(".bin")}


def named_vectors(log: TableLog) -> int:
    vectors = [file.deletion_vector for file in log.snapshot().files.adds()]
    return len({v.path_or_inline for v in vectors if v is not None})


def test_both_stand_if_the_rows_are_others() -> None:
    log = table()
    mine = reading(log, "a")
    actions = hide(log, "a", MINE)
    rival(log, *hide(log, "a", THEIRS))
    committed = mine.commit(actions, DELETE)
    assert committed.version == 2
    file = file_named(log, "a")
    assert hidden(log, file) == MINE | THEIRS
    assert file.deletion_vector is not None
    assert file.deletion_vector.cardinality == 4
    (gone,) = (action for action in committed.actions if isinstance(action, Remove))
    theirs = TableLog(log.store).snapshot(version=1).files.adds()
    assert gone.deletion_vector == next(f for f in theirs if f.path == "a").deletion_vector


def test_with_several_winners_and_vectors_that_are_there_already() -> None:
    log = table()
    rival(log, *hide(log, "a", {0}))
    mine = reading(log, "a", "b")
    actions = hide(log, "a", MINE)
    for row in (7, 8, 9):
        rival(log, *hide(log, "a", {row}))
    rival(log, *hide(log, "b", {3}))
    mine.commit(actions, DELETE)
    assert hidden(log, file_named(log, "a")) == {0, *MINE, 7, 8, 9}
    assert hidden(log, file_named(log, "b")) == {3}


def test_a_file_without_rows_goes() -> None:
    log = table()
    mine = reading(log, "a")
    actions = hide(log, "a", range(5))
    rival(log, *hide(log, "a", range(5, 10)))
    mine.commit(actions, DELETE)
    assert [file.path for file in log.snapshot().files.adds()] == ["b"]


def test_a_file_that_was_only_read_may_lose_rows() -> None:
    log = table()
    mine = reading(log, "a", "b")
    actions = hide(log, "b", MINE)
    rival(log, *hide(log, "a", THEIRS))
    mine.commit(actions, DELETE)
    assert hidden(log, file_named(log, "a")) == THEIRS
    assert hidden(log, file_named(log, "b")) == MINE


def back(log: TableLog) -> list[Action]:
    """Let a row that was deleted come back, as RESTORE does."""
    file = file_named(log, "a")
    was = next(f for f in log.snapshot(version=0).files.adds() if f.path == "a")
    return [remove_file(file, deleted_ms=5), was]


def gone(log: TableLog) -> list[Action]:
    return [remove_file(file_named(log, "a"), deleted_ms=5)]


def copied(log: TableLog) -> list[Action]:
    return [*gone(log), add("copy", rows=8)]


@pytest.mark.parametrize(
    "theirs",
    [lambda log: hide(log, "a", {2, 9}), back, gone, copied],
    ids=["the same row", "a row came back", "the file is gone", "the file was copied"],
)
def test_what_cannot_be_proved_is_a_conflict(
    theirs: Callable[[TableLog], list[Action]],
) -> None:
    log = table()
    rival(log, *hide(log, "a", {0}))
    mine = reading(log, "a")
    actions = hide(log, "a", MINE)
    rival(log, *theirs(log))
    before = log.snapshot().version
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)
    assert TableLog(log.store).snapshot().version == before


@pytest.mark.parametrize("ours", [gone, copied], ids=["removes", "copies"])
def test_only_vectors_are_reconciled(ours: Callable[[TableLog], list[Action]]) -> None:
    log = table()
    mine = reading(log, "a")
    actions = ours(log)
    rival(log, *hide(log, "a", THEIRS))
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_rows_that_depend_on_others_are_not_reconciled() -> None:
    """An INSERT of a MERGE, or a subquery over the table itself, looked at the rows that went."""
    log = table()
    mine = reading(log, "a", alone=False)
    actions = hide(log, "a", MINE)
    rival(log, *hide(log, "a", THEIRS))
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)
    again = reading(log, "a")
    again.read_files(FALSE, log.snapshot().files)
    actions = hide(log, "a", MINE)
    rival(log, *hide(log, "a", {9}))
    with pytest.raises(ConflictError):
        again.commit(actions, DELETE)


def test_rows_that_the_winner_wrote_elsewhere_still_conflict() -> None:
    log = table(None, add("a", ids=(1, 10)))
    mine = transact(log)
    mine.read_files(None, log.snapshot().files, judges_rows_alone=True)
    actions = hide(log, "a", MINE)
    rival(log, *hide(log, "a", THEIRS), add("new", ids=(1, 2)))
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_a_vector_that_is_gone_is_a_conflict_not_a_crash() -> None:
    store = MemoryStore()
    log = table(store)
    mine = reading(log, "a")
    actions = hide(log, "a", MINE)
    ours = vector_files(store)
    rival(log, *hide(log, "a", THEIRS))
    (theirs,) = vector_files(store) - ours
    store.delete(theirs)
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_unions_that_lost_their_race_are_removed() -> None:
    """Each attempt writes its own; what is left is what the table names, and our first one."""
    store = MemoryStore()
    log = table(store)
    rows = iter((7, 8, 9))

    def faster(phase: Phase) -> None:
        if phase in {Phase.STAGED, Phase.REBASED} and (row := next(rows, None)) is not None:
            rival(log, *hide(log, "a", {row}))

    mine = reading(log, "a", on_phase=faster)
    mine.commit(hide(log, "a", MINE), DELETE)
    assert hidden(log, file_named(log, "a")) == {*MINE, 7, 8, 9}
    # one of ours that was never committed, three of the rivals, and the union
    assert len(vector_files(store)) == 5
    assert named_vectors(log) == 1


class _Unreliable(MemoryStore):
    """Fails to create one file, or does and cannot be asked for it any more."""

    def __init__(self, path: str, *, answer_is_lost: bool) -> None:
        super().__init__()
        self._path = path
        self._answer_is_lost = answer_is_lost

    def put_if_absent(self, path: str, content: bytes) -> PutOutcome:
        if path != self._path:
            return super().put_if_absent(path, content)
        if self._answer_is_lost:
            super().put_if_absent(path, content)
        raise StorageError("no answer")

    def read(self, path: str) -> bytes:
        if path == self._path and self._answer_is_lost:
            raise StorageError("no answer")
        return super().read(path)


@pytest.mark.parametrize(
    ("answer_is_lost", "error", "num_left"),
    [(False, StorageError, 0), (True, CommitUnknownError, 1)],
)
def test_a_union_goes_only_if_its_commit_is_known_not_to_stand(
    answer_is_lost: bool, error: type[Exception], num_left: int
) -> None:
    store = _Unreliable(log_path(commit_name(2)), answer_is_lost=answer_is_lost)
    log = table(store)
    mine = reading(log, "a")
    actions = hide(log, "a", MINE)
    rival(log, *hide(log, "a", THEIRS))
    before = vector_files(store)
    with pytest.raises(error):
        mine.commit(actions, DELETE)
    assert len(vector_files(store) - before) == num_left
