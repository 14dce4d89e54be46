"""OPTIMIZE beside changes of rows: the commit that lost follows the moved rows (X-27b)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from puredelta.errors import ConflictError
from puredelta.log.commit.commit_request import Phase
from puredelta.log.commit.row_places import ROW_ORDER_TAG, moved_files, row_order_tag
from puredelta.log.files.file_table import FileTable, remove_file
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Action, Add, Remove
from puredelta.protocol.actions.operations import Operation, optimize
from puredelta.protocol.schema.predicates import FALSE
from tests.faults import MemoryStore
from tests.log.commit.test_row_reconciliation import (
    DELETE,
    file_named,
    hidden,
    hide,
    reading,
    rival,
    table,
)
from tests.log.tables import Client, add, create_table, transact

OPTIMIZE: Operation = optimize()


class Compaction:
    """Files ``a`` and ``b`` of ten rows each, compacted to ``big`` as the table is now."""

    def __init__(self, log: TableLog, *, tells: bool = True, **environment: object) -> None:
        self.log = log
        self.client: Client = transact(log, **environment)
        old = [file_named(log, path) for path in ("a", "b")]
        num_rows = sum(10 - len(hidden(log, file)) for file in old)
        self.actions: list[Action] = [
            add("big", rows=num_rows, data_change=False),
            *(remove_file(file, deleted_ms=4, data_change=False) for file in old),
        ]
        self.tags = row_order_tag([2]) if tells else None
        self.client.read_files(FALSE, FileTable.of(old))

    def commit(self) -> None:
        self.client.commit(self.actions, OPTIMIZE, tags=self.tags, is_blind_append=False)


def rows_in_big(log: TableLog) -> set[int]:
    return hidden(log, file_named(log, "big"))


def names(log: TableLog) -> list[str]:
    return sorted(file.path for file in log.snapshot().files.adds())


# --- OPTIMIZE lost ------------------------------------------------------------------------------


def test_a_compaction_hides_rows_that_were_deleted_meanwhile() -> None:
    log = table()
    rival(log, *hide(log, "a", {0, 5}))
    ours = Compaction(log)
    rival(log, *hide(log, "a", {3, 9}), *hide(log, "b", {0}))
    rival(log, *hide(log, "b", {9}), add("new"))
    ours.commit()
    assert names(log) == ["big", "new"]
    # `a` has eight rows left for `big`: 1 2 3 4 6 7 8 9
    assert rows_in_big(log) == {2, 7, 8, 17}
    big = file_named(log, "big")
    assert not big.data_change
    assert '"tightBounds":false' in (big.stats or "").replace(" ", "")
    (last,) = log.commits_after(log.snapshot().version - 1)
    assert ROW_ORDER_TAG not in (last.commit_info.tags or {})  # type: ignore[union-attr]
    removed = {a.path: a for a in last.actions if isinstance(a, Remove)}
    before = {
        f.path: f for f in TableLog(log.store).snapshot(version=last.version - 1).files.adds()
    }
    assert {p: r.deletion_vector for p, r in removed.items()} == {
        p: before[p].deletion_vector for p in ("a", "b")
    }


@pytest.mark.parametrize("copy", [[], [add("copy", rows=3)]], ids=["removed", "copied"])
def test_a_compaction_hides_all_rows_of_a_file_that_is_gone(copy: list[Add]) -> None:
    log = table()
    rival(log, *hide(log, "a", {0}))
    ours = Compaction(log)
    rival(log, *hide(log, "a", {1}))
    rival(log, remove_file(file_named(log, "a"), deleted_ms=5), *copy)
    ours.commit()
    assert names(log) == sorted(["big", *(file.path for file in copy)])
    assert rows_in_big(log) == set(range(9))


def test_a_compaction_of_nothing_that_is_left_adds_nothing() -> None:
    log = table()
    ours = Compaction(log)
    rival(log, *(remove_file(file_named(log, p), deleted_ms=5) for p in ("a", "b")), add("new"))
    ours.commit()
    assert names(log) == ["new"]


# --- a change lost ------------------------------------------------------------------------------


def test_a_change_deletes_its_rows_where_they_moved_to() -> None:
    log = table()
    rival(log, *hide(log, "a", {0, 5}))
    mine = reading(log, "a", "b", alone=False)
    actions = [*hide(log, "a", {3, 9}), *hide(log, "b", {0}), add("changed", rows=3)]
    Compaction(log).commit()
    committed = mine.commit(actions, DELETE)
    assert names(log) == ["big", "changed"]
    assert rows_in_big(log) == {2, 7, 8}
    (gone,) = (action for action in committed.actions if isinstance(action, Remove))
    assert (gone.path, gone.data_change, gone.deletion_vector) == ("big", True, None)
    (again,) = (a for a in committed.actions if isinstance(a, Add) and a.path == "big")
    assert again.data_change


def test_a_copied_file_is_deleted_where_it_moved_to() -> None:
    log = table()
    rival(log, *hide(log, "b", {4}))
    mine = reading(log, "b")
    actions = [remove_file(file_named(log, "b"), deleted_ms=5), add("copy", rows=8)]
    Compaction(log).commit()
    mine.commit(actions, DELETE)
    assert names(log) == ["big", "copy"]
    assert rows_in_big(log) == set(range(10, 19))


def test_vectors_of_two_winners_and_a_compaction_become_one() -> None:
    log = table()
    mine = reading(log, "a")
    actions = hide(log, "a", {1})
    rival(log, *hide(log, "a", {2}))
    Compaction(log).commit()
    rival(log, *hide(log, "big", {18}))
    mine.commit(actions, DELETE)
    # row 1 of `a` is row 1 of `big`, row 2 did not move
    assert rows_in_big(log) == {1, 18}


def test_each_attempt_follows() -> None:
    log = table()
    steps: list[Callable[[], None]] = [
        lambda: rival(log, *hide(log, "a", {7})),
        lambda: Compaction(log).commit(),
        lambda: rival(log, *hide(log, "big", {0})),
    ]

    def faster(phase: Phase) -> None:
        if phase in {Phase.STAGED, Phase.REBASED} and steps:
            steps.pop(0)()

    mine = reading(log, "a", "b", on_phase=faster)
    mine.commit([*hide(log, "a", {8}), *hide(log, "b", {9})], DELETE)
    assert rows_in_big(log) == {0, 7, 18}


# --- conflicts ----------------------------------------------------------------------------------


def gone(log: TableLog, path: str) -> list[Action]:
    return [remove_file(file_named(log, path), deleted_ms=5)]


def restored(log: TableLog) -> list[Action]:
    was = next(f for f in log.snapshot(version=0).files.adds() if f.path == "a")
    return [*gone(log, "a"), was]


@pytest.mark.parametrize(
    "theirs", [restored, lambda log: Compaction(log).actions], ids=["rows came back", "compacted"]
)
def test_a_compaction_conflicts(theirs: Callable[[TableLog], list[Action]]) -> None:
    log = table()
    rival(log, *hide(log, "a", {0}))
    ours = Compaction(log)
    rival(log, *theirs(log))
    with pytest.raises(ConflictError):
        ours.commit()


def test_a_compaction_that_does_not_tell_places_conflicts() -> None:
    log = table()
    ours = Compaction(log, tells=False)
    rival(log, *hide(log, "a", {0}))
    with pytest.raises(ConflictError):
        ours.commit()
    mine = reading(log, "a")
    actions = hide(log, "a", {3})
    Compaction(log, tells=False).commit()
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_without_deletion_vectors_all_stay_conflicts() -> None:
    log = create_table(MemoryStore(), add("a"), add("b"))
    ours = Compaction(log)
    mine = reading(log, "a")
    actions = gone(log, "a")
    rival(log, *gone(log, "a"), add("copy", rows=9))
    with pytest.raises(ConflictError):
        ours.commit()
    log = create_table(MemoryStore(), add("a"), add("b"))
    mine, actions = reading(log, "a"), gone(log, "a")
    Compaction(log).commit()
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_the_same_row_is_a_conflict_after_it_moved() -> None:
    log = table()
    mine = reading(log, "a")
    actions = hide(log, "a", {1})
    Compaction(log).commit()
    rival(log, *hide(log, "big", {1}))
    with pytest.raises(ConflictError):
        mine.commit(actions, DELETE)


def test_a_read_row_that_moved_and_was_deleted_is_a_conflict() -> None:
    """Also for a commit that removes nothing of the file."""
    log = table()
    mine = reading(log, "a", alone=False)
    Compaction(log).commit()
    rival(log, *gone(log, "big"), add("copy", rows=3))
    with pytest.raises(ConflictError):
        mine.commit([add("answer")], DELETE)


# --- the tag ------------------------------------------------------------------------------------


def compacted(*rows: int, into: Iterable[int] = (20,)) -> tuple[list[Add], list[Remove]]:
    adds = [add(f"big{n}", rows=count, data_change=False) for n, count in enumerate(into)]
    old = [add(f"f{n}", rows=count) for n, count in enumerate(rows)]
    return adds, [remove_file(file, deleted_ms=1, data_change=False) for file in old]


def test_places_follow_from_the_counts() -> None:
    adds, removes = compacted(3, 4, 5, into=(7, 5))
    found = moved_files(adds, removes, {ROW_ORDER_TAG: "[2, 1]"})
    assert [(path, m.into.path, m.first) for path, m in found.items()] == [
        ("f0", "big0", 0),
        ("f1", "big0", 3),
        ("f2", "big1", 0),
    ]


@pytest.mark.parametrize(
    "text", ["", "[2]", "[1, 1]", "[2, 1, 1]", "[2, true]", "[3, 0]", '{"a": 2}', "[2", "null", "7"]
)
def test_a_tag_that_does_not_fit_tells_nothing(text: str) -> None:
    adds, removes = compacted(3, 4, 5, into=(7, 5))
    assert moved_files(adds, removes, {ROW_ORDER_TAG: text}) == {}
    assert moved_files(adds, removes, None) == {}


def test_counts_that_do_not_add_up_tell_nothing() -> None:
    adds, removes = compacted(3, 4, 5, into=(8, 5))
    assert [*moved_files(adds, removes, {ROW_ORDER_TAG: "[2, 1]"})] == ["f2"]
    unknown = [removes[0], removes[1], replace(removes[2], stats=None)]
    assert moved_files(adds, unknown, {ROW_ORDER_TAG: "[2, 1]"}) == {}
    changing = [replace(remove, data_change=True) for remove in removes]
    assert moved_files(adds, changing, {ROW_ORDER_TAG: "[2, 1]"}) == {}
