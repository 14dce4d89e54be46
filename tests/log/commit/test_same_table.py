"""A commit is refused where its table was removed or made anew since it was read (X-08a)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from puredelta.errors import ErrorCode, MetadataChangedException
from puredelta.log.commit.commit_request import CommitRequest, Environment
from puredelta.log.commit.transaction import Transaction
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.log_paths import commit_name
from tests.log.tables import ENGINE, PLAIN, WRITE, metadata

_QUICK = Environment(sleep=lambda _: None)


def _add(name: str) -> Add:
    return Add(
        path=name, partition_values={}, size_bytes=1, modified_ms=1, data_change=True, stats=None
    )


def _commit(transaction: Transaction, *names: str) -> int:
    actions = [_add(name) for name in names]
    return transaction.commit(CommitRequest(actions=actions, operation=WRITE)).version


def _make(root: Path, name: str, *, versions: int) -> TableLog:
    """Make a table with an identity of its own, and append to it."""
    log = TableLog.open(str(root))
    actions = [PLAIN, replace(metadata(), id=name), _add(f"{name}-0")]
    created = CommitRequest(actions=actions, operation=WRITE)
    Transaction(log, None, engine_info=ENGINE).commit(created)
    for number in range(1, versions):
        _commit(Transaction(log, log.snapshot(), engine_info=ENGINE), f"{name}-{number}")
    return log


def _begun(log: TableLog) -> Transaction:
    return Transaction(log, log.snapshot(), engine_info=ENGINE, environment=_QUICK)


@pytest.mark.parametrize("versions", [0, 2, 6, 9])
def test_a_table_that_was_made_anew_is_left_alone(tmp_path: Path, versions: int) -> None:
    root = tmp_path / "t"
    transaction = _begun(_make(root, "old", versions=6))
    shutil.rmtree(root)
    if versions:
        _make(root, "new", versions=versions)
    with pytest.raises(MetadataChangedException, match="version 5 ") as refused:
        _commit(transaction, "late")
    assert refused.value.code is ErrorCode.METADATA_CHANGED
    left = TableLog.open(str(root)).find_snapshot()
    paths = [] if left is None else left.files.rows["path"].to_pylist()
    assert paths == [f"new-{number}" for number in range(versions)]


def test_an_older_copy_of_the_table_gets_no_gap(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = _make(root, "t", versions=2)
    shutil.copytree(root, tmp_path / "backup")
    for name in ("a", "b"):
        _commit(_begun(log), name)
    transaction = _begun(log)
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "backup", root)
    with pytest.raises(MetadataChangedException, match="an older copy"):
        _commit(transaction, "late")
    assert TableLog.open(str(root)).snapshot().version == 1


def test_a_copy_of_the_same_version_is_the_same_table(tmp_path: Path) -> None:
    root = tmp_path / "t"
    transaction = _begun(_make(root, "t", versions=3))
    root.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", root, copy_function=shutil.copyfile)
    assert _commit(transaction, "late") == 3


def test_a_commit_that_was_cleaned_up_is_no_other_table(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = _make(root, "t", versions=3)
    transaction = _begun(log)
    _commit(_begun(log), "rival")
    write_checkpoint(log.store, log.snapshot(), now_ms=0)
    for version in range(3):
        (root / "_delta_log" / commit_name(version)).unlink()
    assert _commit(transaction, "late") == 4
    of_checkpoint = _begun(TableLog.open(str(root)))
    assert _commit(of_checkpoint, "later") == 5


def test_a_version_that_only_its_checkpoint_shows_is_there(tmp_path: Path) -> None:
    root = tmp_path / "t"
    log = _make(root, "t", versions=3)
    write_checkpoint(log.store, log.snapshot(), now_ms=0)
    for version in range(3):
        (root / "_delta_log" / commit_name(version)).unlink()
    assert _commit(_begun(TableLog.open(str(root))), "late") == 3
