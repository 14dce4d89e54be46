from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puredelta.log.files.file_table import file_keys
from puredelta.log.replay.replay import EMPTY_STATE, LogState, replay
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.action_json import parse_action
from tests.faults import MemoryStore
from tests.log.log_files import (
    METADATA,
    PROTOCOL,
    Json,
    add,
    remove,
    write_checkpoint,
    write_commit,
    write_compacted,
    write_parts,
    write_v2_checkpoint,
)


def _state(*commits: Sequence[Json]) -> LogState:
    state = EMPTY_STATE
    for actions in commits:
        state = replay(state, [a for j in actions if (a := parse_action(j)) is not None])
    return state


def _files(state: LogState) -> list[tuple[str, str | None]]:
    return [
        (a.path, None if a.deletion_vector is None else a.deletion_vector.path_or_inline)
        for a in state.files.adds()
    ]


def test_the_latest_of_a_file_wins() -> None:
    state = _state([add("a", rows=1), add("b")], [remove("b"), add("a", rows=2)], [add("c")])
    assert _files(state) == [("a", None), ("c", None)]
    assert next(state.files.adds()).stats == '{"numRecords": 2}'
    assert state.tombstones["path"].to_pylist() == ["b"]


def test_a_removed_file_may_come_back() -> None:
    state = _state([add("a")], [remove("a")], [add("a")])
    assert _files(state) == [("a", None)]
    assert state.tombstones.num_rows == 0


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("old", "new"), [(None, "v1"), ("v1", "v2"), ("v1", None)])
def test_a_vector_is_exchanged_in_either_order_inside_a_commit(
    old: str | None, new: str | None, flip: bool
) -> None:
    exchange = [remove("a", dv=old), add("a", dv=new)]
    state = _state([add("a", dv=old)], exchange[::-1] if flip else exchange)
    assert _files(state) == [("a", new)]
    (removed,) = state.tombstones["deletion_vector"].to_pylist()
    assert (removed and removed["path_or_inline"]) == old


@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("a%20b.parquet", "a b.parquet"),
        ("p=%C3%A9/x", "p=é/x"),
        ("/root/x", "file:///root/x"),
        ("file:/root/x", "/root/x"),
        ("x%25y", "x%25y"),
        ("a:b", "a%3Ab"),
        ("a%23b", "a#b"),
    ],
)
@pytest.mark.parametrize("one_commit_later", [False, True])
def test_spellings_of_a_path_are_one_file(
    added: str, removed: str, one_commit_later: bool
) -> None:
    commits = [[add(added)], [remove(removed)]]
    state = _state(*commits) if one_commit_later else _state(commits[0] + commits[1])
    assert _files(state) == []


def test_percent_signs_are_decoded_once() -> None:
    assert len(_state([add("x%2520y")], [remove("x%20y")]).files) == 1


def test_transactions_and_domains() -> None:
    def domain(name: str, value: str, *, removed: bool = False) -> Json:
        return {"domainMetadata": {"domain": name, "configuration": value, "removed": removed}}

    state = _state(
        [{"txn": {"appId": "a", "version": 1}}, domain("d", "1"), domain("e", "1")],
        [{"txn": {"appId": "a", "version": 2}}, {"txn": {"appId": "b", "version": 9}}],
        [domain("d", "2"), domain("e", "", removed=True)],
    )
    assert {k: t.version for k, t in state.set_transactions.items()} == {"a": 2, "b": 9}
    assert {k: d.configuration for k, d in state.domain_metadata.items()} == {"d": "2"}


def test_a_state_is_not_changed_by_replay_on_top_of_it() -> None:
    before = _state([add("a"), {"txn": {"appId": "a", "version": 1}}])
    replay(before, [a for j in [remove("a")] if (a := parse_action(j)) is not None])
    assert _files(before) == [("a", None)]


# --- every way to store a log gives the state of a plain fold over its actions ---------------


FILE_ACTIONS = st.builds(
    lambda kind, path, dv, rows: kind(path, dv=dv, **({"rows": rows} if kind is add else {})),
    st.sampled_from([add, remove]),
    st.sampled_from(["a", "b%20c", "b c", "/abs", "file:/abs"]),
    st.sampled_from([None, "v1", "v2"]),
    st.integers(0, 9),
)
OTHER_ACTIONS = st.sampled_from(
    [
        {"txn": {"appId": "a", "version": 1}},
        {"txn": {"appId": "a", "version": 2}},
        {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}},
        {"domainMetadata": {"domain": "d", "configuration": "", "removed": True}},
        {"commitInfo": {"operation": "WRITE"}},
        {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
    ]
)
COMMITS = st.lists(st.lists(st.one_of(FILE_ACTIONS, OTHER_ACTIONS), max_size=5), max_size=6)


def _fold(
    commits: Sequence[Sequence[Json]],
) -> tuple[dict[Any, Json], dict[str, Json], dict[str, Json]]:
    """Reconcile naively, in dictionaries: what the protocol says, one action at a time."""
    same = {"b%20c": "b c", "file:/abs": "/abs"}
    files: dict[Any, Json] = {}
    transactions: dict[str, Json] = {}
    domains: dict[str, Json] = {}
    for action in (a for commit in commits for a in commit):
        ((kind, body),) = action.items()
        if kind in ("add", "remove"):
            dv = body.get("deletionVector", {}).get("pathOrInlineDv")
            files[same.get(body["path"], body["path"]), dv] = action
        elif kind == "txn":
            transactions[body["appId"]] = action
        elif kind == "domainMetadata":
            domains[body["domain"]] = action
    return files, transactions, domains


def _live(domains: Mapping[str, Json]) -> dict[str, Json]:
    return {k: d for k, d in domains.items() if not d["domainMetadata"]["removed"]}


def _checkpoint_of(commits: Sequence[Sequence[Json]]) -> list[Json]:
    files, transactions, domains = _fold(commits)
    return [PROTOCOL, METADATA, *files.values(), *transactions.values(), *_live(domains).values()]


def _compaction_of(commits: Sequence[Sequence[Json]]) -> list[Json]:
    """Net actions of a range: a removal must stay, it may concern what lies before."""
    files, transactions, domains = _fold(commits)
    return [*files.values(), *transactions.values(), *domains.values()]


def _observed(log: TableLog, **where: int) -> Mapping[str, Any]:
    snapshot = log.snapshot(**where)
    keys = file_keys(snapshot.files.rows).to_pylist()
    stats = [a.stats for a in snapshot.files.adds()]
    assert len(set(keys)) == len(keys)
    return {
        "files": dict(zip(keys, stats, strict=True)),
        "removed": set(file_keys(snapshot.tombstones).to_pylist()),
        "transactions": {k: t.version for k, t in snapshot.set_transactions.items()},
        "domains": {k: d.configuration for k, d in snapshot.domain_metadata.items()},
    }


def _expected(commits: Sequence[Sequence[Json]]) -> Mapping[str, Any]:
    files, transactions, domains = _fold(commits)

    def key(path: str, dv: str | None) -> str:
        return path if dv is None else f"{path}\0u{dv}@1"

    return {
        "files": {key(*k): a["add"].get("stats") for k, a in files.items() if "add" in a},
        "removed": {key(*k) for k, a in files.items() if "remove" in a},
        "transactions": {k: t["txn"]["version"] for k, t in transactions.items()},
        "domains": {k: d["domainMetadata"]["configuration"] for k, d in _live(domains).items()},
    }


@settings(deadline=None, max_examples=60)
@given(commits=COMMITS, data=st.data())
def test_checkpoints_compaction_and_refreshes_change_nothing(
    commits: list[list[Json]], data: st.DataObject
) -> None:
    commits = [[PROTOCOL, METADATA], *commits]
    newest = len(commits) - 1
    store = MemoryStore()
    log = TableLog(store)
    for version, actions in enumerate(commits):
        write_commit(store, version, *actions)
        if data.draw(st.booleans(), label="refresh"):
            assert _observed(log) == _expected(commits[: version + 1])
    low = data.draw(st.integers(0, newest), label="low")
    high = data.draw(st.integers(low, newest), label="high")
    if low < high:
        head = [PROTOCOL, METADATA] if low == 0 else []
        write_compacted(store, low, high, *head, *_compaction_of(commits[low : high + 1]))
    at = data.draw(st.integers(0, newest), label="checkpoint")
    _write_any_checkpoint(store, at, _checkpoint_of(commits[: at + 1]), data)
    assert _observed(log) == _observed(TableLog(store)) == _expected(commits)
    for version in range(newest + 1):
        assert _observed(TableLog(store), version=version) == _expected(commits[: version + 1])


def _write_any_checkpoint(
    store: MemoryStore, version: int, actions: list[Json], data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["classic", "parts", "json", "parquet"]), label="kind")
    half = len(actions) // 2
    if kind == "classic":
        write_checkpoint(store, version, *actions)
    elif kind == "parts":
        write_parts(store, version, [actions[:half], actions[half:]])
    else:
        files = [a for a in actions if "add" in a or "remove" in a]
        rest = [a for a in actions if a not in files]
        inline = data.draw(st.integers(0, len(files)), label="inline")
        sidecars = [files[inline::2], files[inline + 1 :: 2]]
        write_v2_checkpoint(store, version, [*rest, *files[:inline]], *sidecars, form=kind)
