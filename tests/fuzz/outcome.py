"""What the library makes of a log: read, refused with a code, or a violation that is raised."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial

from puredelta.errors import DeltaError
from puredelta.log.commit.commit_request import CommitRequest
from puredelta.log.commit.transaction import Transaction
from puredelta.log.files.deletion_vectors import read_positions
from puredelta.log.maintenance.checkpoint_write import write_checkpoint
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.log.skipping.pruning import prune_files
from puredelta.protocol.actions.actions import Add
from puredelta.protocol.actions.operations import Operation
from puredelta.protocol.schema.predicates import Compare, CompareOp, Const, Ref, Side
from puredelta.protocol.schema.types import STRING
from puredelta.protocol.table.clustering import clustering_columns
from puredelta.protocol.table.stored_expressions import stored_expressions
from tests.faults import MemoryStore
from tests.fuzz.logs import ROOT
from tests.fuzz.replayed import UnclearError, key_of, replayed

SECONDS_MAX = 10.0
"""Of a processor, for every use of a log of a mebibyte; a larger one may take as much more."""
_NEW = Add(
    path="new", partition_values={"p": "x"}, size_bytes=1, modified_ms=1, data_change=True,
    stats='{"numRecords":1}',
)  # fmt: skip


def outcome(files: Mapping[str, bytes]) -> str:
    """Read and use a log in every way that needs no Spark; return what came of it.

    Raises:
        AssertionError: the rows are others than those of a plain replay, a checkpoint changed
            them, or it took too long.
        Exception: anything that is no `DeltaError`.
    """
    signal.signal(signal.SIGPROF, _too_long)
    size = sum(map(len, files.values()))
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX * max(1, size / (1 << 20)))
    try:
        return _used(files)
    except DeltaError as refusal:
        return _code(refusal)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _tried(use: Callable[[], object]) -> None:
    """Do something that may be refused; what comes after it is tried, too."""
    try:
        use()
    except DeltaError as refusal:
        _code(refusal)


def _code(refusal: DeltaError) -> str:
    assert len(str(refusal)) < 5_000, "a message repeats the input"
    return refusal.code.name


def _too_long(*_: object) -> None:
    raise AssertionError("no answer: it hangs, or its time grows faster than the input")


def _used(files: Mapping[str, bytes]) -> str:
    log = TableLog(_store(files))
    snapshot = log.snapshot()
    active = _keys(snapshot)
    try:
        assert replayed(files) == active, "rows of a plain replay"
        result = "read, as a plain replay does"
    except UnclearError:
        result = "read"
    for use in (_look, _append, _checkpointed, _older):
        _tried(partial(use, files, snapshot))
    return result


def _store(files: Mapping[str, bytes]) -> MemoryStore:
    store = MemoryStore(ROOT)
    for path, content in files.items():
        store.put(path, content)
    return store


def _keys(snapshot: Snapshot) -> set[tuple[str, str]]:
    keys = set()
    for add in snapshot.files.adds():
        vector = add.deletion_vector
        found = None if vector is None else {
            "storageType": vector.storage_type,
            "pathOrInlineDv": vector.path_or_inline,
            "offset": vector.offset,
        }  # fmt: skip
        keys.add(key_of(add.path, found))
    return keys


def _look(files: Mapping[str, bytes], snapshot: Snapshot) -> None:
    config, table = snapshot.config, snapshot.files
    table.num_records()
    assert table.total_size_bytes is not None
    assert len(list(table.adds())) == len(table)
    for field in config.schema.fields:
        ref = Ref(Side.TARGET, (field.name,), field.type)
        value = "5" if field.type == STRING else 5
        mask = prune_files(table, config, Compare(CompareOp.LESS, ref, Const(value)))
        assert len(mask) == len(table)
    list(TableLog(_store(files)).history())
    for use in (
        lambda: stored_expressions(config),
        lambda: config.identity_columns,
        lambda: config.padded_columns,
        config.properties.validate,
        lambda: clustering_columns(config, snapshot.domain_metadata),
        lambda: read_positions(table, ROOT, open_at=lambda _: _store(files)),
    ):
        _tried(use)


def _append(files: Mapping[str, bytes], snapshot: Snapshot) -> None:
    """What is committed on such a log can be read again.

    Unless a compaction of versions that are not there yet begins to count with it.
    """
    if any(path.endswith(".compacted.json") for path in files):
        return
    log = TableLog(_store(files))
    transaction = Transaction(log, log.snapshot(), engine_info="fuzz")
    request = CommitRequest(actions=[_NEW], operation=Operation(name="WRITE", parameters={}))
    transaction.commit(request)
    again = TableLog(log.store).snapshot()
    assert _keys(again) == _keys(snapshot) | {("new", "")}


def _checkpointed(files: Mapping[str, bytes], snapshot: Snapshot) -> None:
    store = _store(files)
    write_checkpoint(store, snapshot, now_ms=0)
    for path in list(store.files):
        if path.endswith(f"{snapshot.version:020d}.json"):
            store.delete(path)
    assert _keys(TableLog(store).snapshot()) == _keys(snapshot)


def _older(files: Mapping[str, bytes], snapshot: Snapshot) -> None:
    log = TableLog(_store(files))
    for version in range(max(0, snapshot.version - 3), snapshot.version + 1):
        _tried(partial(log.snapshot, version=version))
    log.commits_after(snapshot.version - 1)
