"""Planted damage that the deep check of a table finds, and healthy tables with none."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.cli.run import run_command_line
from puredelta.errors import InvalidRequestError
from puredelta.inspection.damage import data_files
from puredelta.inspection.damage.deep import deep_findings
from puredelta.inspection.damage.kinds import Damage
from puredelta.inspection.findings import Finding, Severity
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add, SetTransaction
from puredelta.protocol.actions.paths import decode_path
from puredelta.protocol.schema.types import LONG, StructField, StructType
from tests.filled_table import SmallTable, column
from tests.inspection.damaged import (
    PROTOCOL,
    SCHEMA,
    age,
    change_feed_step,
    change_lines,
    delete_rows_step,
    healthy,
    lines,
    log_file,
    write_lines,
)

SAMPLE = 200
THOROUGH = 1_000
_PARTS = 20


def check(table: SmallTable) -> dict[str, Finding]:
    table.log.__init__(table.log.store)  # type: ignore[misc]
    return {f.check: f for f in deep_findings(table.log) if f.severity is not Severity.OK}


def check_seeds(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        table = healthy(tmp_path / str(seed), seed)
        found = check(table)
        assert not found, (seed, found)
        shutil.rmtree(table.root)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("part", range(_PARTS))
def test_nothing_is_reported_of_healthy_tables(tmp_path: Path, part: int) -> None:
    size = SAMPLE // _PARTS
    check_seeds(tmp_path, range(part * size, (part + 1) * size))


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(_PARTS))
def test_nothing_is_reported_of_many_healthy_tables(tmp_path: Path, part: int) -> None:
    size = (THOROUGH - SAMPLE) // _PARTS
    check_seeds(tmp_path, range(SAMPLE + part * size, SAMPLE + (part + 1) * size))


# --- one table, and ways to damage it -------------------------------------------------------


def made(root: Path) -> SmallTable:
    """Return a table with ten commits, a checkpoint at version 5, a vector and change files."""
    table = SmallTable(
        root,
        SCHEMA,
        partitioned_by=("p",),
        protocol=PROTOCOL,
        delta__enableDeletionVectors="true",
        delta__enableInCommitTimestamps="true",
        delta__checkpointInterval="5",
        delta__columnMapping__maxColumnId="0",
    )
    for number in range(1, 4):
        table.append([{"id": number, "p": "a", "x": 1.5, "s": "text", "n": None}] * 3)
    table.commit(
        table.file([{"id": 4, "p": "b"}]),
        SetTransaction(app_id="stream", version=7, last_updated_ms=1),
    )
    table.append([{"id": 5, "p": "b", "x": 2.5}, {"id": 6, "p": "b"}])

    random_ = random.Random(1)
    delete_rows_step(table, random_, 0)
    change_feed_step(table, random_, 0)
    table.commit(
        table.file([{"id": 8, "p": "c"}]),
        SetTransaction(app_id="stream", version=8, last_updated_ms=1),
    )
    table.append([{"id": 9, "p": "c"}])
    age(root)
    return table


def newest(table: SmallTable) -> int:
    return max(int(f.stem) for f in (table.root / "_delta_log").glob("*[0-9].json"))


def active(table: SmallTable, *, vector: bool = False) -> Any:
    files = table.log.snapshot().files.adds()
    return next(f for f in files if (f.deletion_vector is not None) is vector)


def path_of(table: SmallTable, name: str) -> Path:
    return table.root / name.replace("%20", " ")


def entry(table: SmallTable, path: str) -> int:
    """Return the commit that adds a file."""
    for version in range(newest(table) + 1):
        if any(action.get("add", {}).get("path") == path for action in lines(table, version)):
            return version
    raise AssertionError(path)


def change_stats(table: SmallTable, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the statistics of the newest file, in a commit after the checkpoint."""
    version = newest(table)

    def changed(add: dict[str, Any]) -> None:
        stats = json.loads(add["stats"])
        change(stats)
        add["stats"] = json.dumps(stats)

    change_lines(table, version, "add", changed)


def forget_checkpoints(table: SmallTable) -> None:
    for file in (table.root / "_delta_log").glob("*checkpoint*"):
        file.unlink()


def commit_missing(table: SmallTable) -> None:
    log_file(table, 3).unlink()


def commit_empty(table: SmallTable) -> None:
    log_file(table, 3).write_text("")


def commit_cut_off(table: SmallTable) -> None:
    log_file(table, 3).write_bytes(log_file(table, 3).read_bytes()[:-20])


def commit_of_zeros(table: SmallTable) -> None:
    log_file(table, 3).write_bytes(bytes(200))


def commit_replaced_by_a_copy(table: SmallTable) -> None:
    shutil.copy(log_file(table, 8), log_file(table, 3))
    forget_checkpoints(table)


def commit_overwritten(table: SmallTable) -> None:
    """A rival without put-if-absent has won: the file that it replaced is left as an orphan."""
    actions = [action for action in lines(table, 8) if "add" not in action]
    rival = next(action["add"] for action in lines(table, 8) if "add" in action)
    first = path_of(table, rival["path"])
    shutil.copy2(first, first.with_name("rival.parquet"))
    write_lines(table, 8, [*actions, {"add": {**rival, "path": "rival.parquet"}}])


def removal_after_a_lost_commit(table: SmallTable) -> None:
    gone = next(a["add"]["path"] for a in lines(table, 2) if "add" in a)
    remove = {"path": gone, "deletionTimestamp": 1, "dataChange": True, "partitionValues": {}}
    write_lines(table, 9, [*lines(table, 9), {"remove": remove}])
    write_lines(table, 2, [action for action in lines(table, 2) if "add" not in action])
    forget_checkpoints(table)


def first_commit_replaced(table: SmallTable) -> None:
    write_lines(table, 0, [action for action in lines(table, 0) if "protocol" not in action])


def two_definitions(table: SmallTable) -> None:
    metadata = next(action for action in lines(table, 0) if "metaData" in action)
    write_lines(table, 0, [*lines(table, 0), metadata])


def same_transaction(table: SmallTable) -> None:
    known = next(a["commitInfo"]["txnId"] for a in lines(table, 6) if "commitInfo" in a)
    change_lines(table, 9, "commitInfo", lambda info: info.update(txnId=known))


def clock_of_yesterday(table: SmallTable) -> None:
    def older(info: dict[str, Any]) -> None:
        info["timestamp"] -= 86_400_000

    change_lines(table, 7, "commitInfo", older)


def no_in_commit_timestamp(table: SmallTable) -> None:
    change_lines(table, 7, "commitInfo", lambda info: info.pop("inCommitTimestamp"))


def in_commit_timestamp_earlier(table: SmallTable) -> None:
    change_lines(table, 7, "commitInfo", lambda info: info.update(inCommitTimestamp=5))


def provenance_is_not_first(table: SmallTable) -> None:
    write_lines(table, 7, lines(table, 7)[::-1])


def application_goes_back(table: SmallTable) -> None:
    change_lines(table, 8, "txn", lambda txn: txn.update(version=3))


def file_added_again(table: SmallTable) -> None:
    version = entry(table, active(table).path)
    add = next(action for action in lines(table, version) if "add" in action)
    write_lines(table, 9, [*lines(table, 9), add])


def file_added_and_removed(table: SmallTable) -> None:
    add = next(action["add"] for action in lines(table, 9) if "add" in action)
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}
    write_lines(table, 9, [*lines(table, 9), {"remove": remove}])


def file_with_two_vectors(table: SmallTable) -> None:
    marked = active(table, vector=True)
    add = next(a["add"] for a in lines(table, entry(table, marked.path)) if "add" in a)
    add = {key: value for key, value in add.items() if key != "deletionVector"}
    write_lines(table, 9, [*lines(table, 9), {"add": {**add, "dataChange": False}}])


def another_table(table: SmallTable) -> None:
    metadata = json.loads(json.dumps(next(a for a in lines(table, 0) if "metaData" in a)))
    metadata["metaData"]["id"] = "another"
    write_lines(table, 9, [*lines(table, 9), metadata])


def lines_lost(table: SmallTable) -> None:
    def say(info: dict[str, Any]) -> None:
        info["operation"] = "WRITE"
        info["operationMetrics"] = {"numFiles": "3", "numOutputRows": "3"}

    change_lines(table, 9, "commitInfo", say)


def partition_column_missing(table: SmallTable) -> None:
    change_lines(table, 9, "add", lambda add: add.update(partitionValues={}))


def column_id_above_the_highest(table: SmallTable) -> None:
    mapped = StructType(tuple(column(f.name, f.type, n + 1) for n, f in enumerate(SCHEMA.fields)))
    table.change(mapped, delta__columnMapping__mode="name", delta__columnMapping__maxColumnId="3")


def checkpoint_without_a_file(table: SmallTable) -> None:
    change_checkpoint(table, drop=1)


def change_checkpoint(table: SmallTable, *, drop: int) -> None:
    path = next((table.root / "_delta_log").glob("*.checkpoint.parquet"))
    content = pq.read_table(path)
    places = [n for n, add in enumerate(content["add"].to_pylist()) if add is not None]
    kept = [n for n in range(content.num_rows) if n not in places[:drop]]
    pq.write_table(content.take(kept), path)


def checkpoint_cut_off(table: SmallTable) -> None:
    path = next((table.root / "_delta_log").glob("*.checkpoint.parquet"))
    path.write_bytes(path.read_bytes()[:-30])


def hint_without_checkpoint(table: SmallTable) -> None:
    (table.root / "_delta_log/_last_checkpoint").write_text('{"version": 7, "size": 3}')


def hint_of_garbage(table: SmallTable) -> None:
    (table.root / "_delta_log/_last_checkpoint").write_text("{")


def wrong_checksum_file(table: SmallTable) -> None:
    text = json.dumps({"numFiles": 1_000, "tableSizeBytes": 1})
    (table.root / f"_delta_log/{9:020d}.crc").write_text(text)


def wrong_compaction(table: SmallTable) -> None:
    actions = [action for action in lines(table, 6) if "commitInfo" not in action]
    path = table.root / f"_delta_log/{6:020d}.{9:020d}.compacted.json"
    path.write_text("".join(json.dumps(a) + "\n" for a in actions))


def data_file_gone(table: SmallTable) -> None:
    path_of(table, active(table).path).unlink()


def data_file_cut_off(table: SmallTable) -> None:
    path = path_of(table, active(table).path)
    path.write_bytes(path.read_bytes()[:-10])


def data_file_of_zeros(table: SmallTable) -> None:
    path = path_of(table, active(table).path)
    path.write_bytes(bytes(path.stat().st_size))


def data_file_longer(table: SmallTable) -> None:
    path = path_of(table, active(table).path)
    content = pq.read_table(path)
    pq.write_table(content, path, compression="none", use_dictionary=False)


def fewer_rows(table: SmallTable) -> None:
    path = path_of(table, active(table).path)
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def wrong_count(table: SmallTable) -> None:
    change_stats(table, lambda stats: stats.update(numRecords=5))


def wrong_minimum(table: SmallTable) -> None:
    change_stats(table, lambda stats: stats["minValues"].update(id=100))


def wrong_maximum(table: SmallTable) -> None:
    change_stats(table, lambda stats: stats["maxValues"].update(id=1))


def bounds_in_wrong_order(table: SmallTable) -> None:
    def swap(stats: dict[str, Any]) -> None:
        stats["minValues"]["id"], stats["maxValues"]["id"] = 90, 10

    change_stats(table, swap)


def wrong_nulls(table: SmallTable) -> None:
    change_stats(table, lambda stats: stats["nullCount"].update(s=0))


def null_in_required_column(table: SmallTable) -> None:
    schema = StructType((StructField("id", SCHEMA.fields[0].type), *SCHEMA.fields[1:]))
    table.append([{"p": "c"}], schema=schema)


def statistics_of_garbage(table: SmallTable) -> None:
    change_lines(table, 9, "add", lambda add: add.update(stats='{"numRecords":1'))


def vector_gone(table: SmallTable) -> None:
    next(table.root.glob("**/deletion_vector_*.bin")).unlink()


def vector_damaged(table: SmallTable) -> None:
    path = next(table.root.glob("**/deletion_vector_*.bin"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)


def vector_of_other_length(table: SmallTable) -> None:
    marked = active(table, vector=True)
    for version in range(newest(table) + 1):
        change_lines(
            table, version, "add",
            lambda add: "deletionVector" in add and add["deletionVector"].update(cardinality=3),
        )  # fmt: skip
    assert marked is not None


def change_file_gone(table: SmallTable) -> None:
    next((table.root / "_change_data").iterdir()).unlink()


def change_file_of_garbage(table: SmallTable) -> None:
    next((table.root / "_change_data").iterdir()).write_bytes(b"PAR1")


def change_rows_missing(table: SmallTable) -> None:
    path = next((table.root / "_change_data").iterdir())
    pq.write_table(pq.read_table(path).slice(1), path)


def orphan(table: SmallTable) -> None:
    path = path_of(table, active(table).path)
    shutil.copy2(path, path.with_name("orphan.parquet"))


PLANTED: list[tuple[Damage, Callable[[SmallTable], None]]] = [
    (Damage.COMMIT_MISSING, commit_missing),
    (Damage.COMMIT_UNREADABLE, commit_empty),
    (Damage.COMMIT_UNREADABLE, commit_cut_off),
    (Damage.COMMIT_UNREADABLE, commit_of_zeros),
    (Damage.READ_VERSION, commit_replaced_by_a_copy),
    (Damage.ORPHANS, commit_overwritten),
    (Damage.REMOVED_UNKNOWN, removal_after_a_lost_commit),
    (Damage.FIRST_COMMIT, first_commit_replaced),
    (Damage.DEFINITIONS, two_definitions),
    (Damage.TRANSACTION_TWICE, same_transaction),
    (Damage.TIMESTAMPS, clock_of_yesterday),
    (Damage.IN_COMMIT_TIMESTAMP, no_in_commit_timestamp),
    (Damage.IN_COMMIT_TIMESTAMP, in_commit_timestamp_earlier),
    (Damage.IN_COMMIT_TIMESTAMP, provenance_is_not_first),
    (Damage.APPLICATION_VERSION, application_goes_back),
    (Damage.ADDED_AGAIN, file_added_again),
    (Damage.ADDED_AND_REMOVED, file_added_and_removed),
    (Damage.FILE_TWICE, file_with_two_vectors),
    (Damage.TABLE_ID, another_table),
    (Damage.LOST_ACTIONS, lines_lost),
    (Damage.PARTITION_VALUES, partition_column_missing),
    (Damage.COLUMN_IDS, column_id_above_the_highest),
    (Damage.CHECKPOINT_DIFFERS, checkpoint_without_a_file),
    (Damage.CHECKPOINT_UNREADABLE, checkpoint_cut_off),
    (Damage.CHECKPOINT_HINT, hint_without_checkpoint),
    (Damage.CHECKPOINT_HINT, hint_of_garbage),
    (Damage.CHECKSUM_FILE, wrong_checksum_file),
    (Damage.COMPACTED_FILE, wrong_compaction),
    (Damage.FILE_MISSING, data_file_gone),
    (Damage.FILE_UNREADABLE, data_file_cut_off),
    (Damage.FILE_UNREADABLE, data_file_of_zeros),
    (Damage.FILE_SIZE, data_file_longer),
    (Damage.NUM_RECORDS, fewer_rows),
    (Damage.NUM_RECORDS, wrong_count),
    (Damage.BOUNDS, wrong_minimum),
    (Damage.BOUNDS, wrong_maximum),
    (Damage.BOUNDS_ORDER, bounds_in_wrong_order),
    (Damage.NULL_COUNT, wrong_nulls),
    (Damage.NULL_IN_COLUMN, null_in_required_column),
    (Damage.STATISTICS, statistics_of_garbage),
    (Damage.VECTOR, vector_gone),
    (Damage.VECTOR, vector_damaged),
    (Damage.VECTOR, vector_of_other_length),
    (Damage.CHANGE_FILE, change_file_gone),
    (Damage.CHANGE_FILE, change_file_of_garbage),
    (Damage.CHANGE_ROWS, change_rows_missing),
    (Damage.ORPHANS, orphan),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "plant"), PLANTED, ids=lambda one: getattr(one, "__name__", ""))
def test_planted_damage_is_found(
    tmp_path: Path, kind: Damage, plant: Callable[[SmallTable], None]
) -> None:
    table = made(tmp_path)
    assert not check(table)
    plant(table)
    found = check(table)
    assert kind.label in found, found
    finding = found[kind.label]
    assert finding.evidence
    assert finding.mend
    assert finding.certainty is not None


def tracked(root: Path) -> SmallTable:
    table = SmallTable(
        root, SCHEMA, protocol=PROTOCOL, delta__enableRowTracking="true",
        delta__rowTracking__materializedRowIdColumnName="_id",
        delta__rowTracking__materializedRowCommitVersionColumnName="_version",
    )  # fmt: skip
    for number in range(3):
        table.append([{"id": number}] * 2)
    age(root)
    return table


def row_id_twice(table: SmallTable) -> None:
    change_lines(table, 3, "add", lambda add: add.update(baseRowId=1))


def no_row_id(table: SmallTable) -> None:
    change_lines(table, 3, "add", lambda add: add.pop("baseRowId"))


def version_of_the_future(table: SmallTable) -> None:
    change_lines(table, 3, "add", lambda add: add.update(defaultRowCommitVersion=99))


def mark_too_low(table: SmallTable) -> None:
    text = '{"rowIdHighWaterMark":2}'
    change_lines(table, 3, "domainMetadata", lambda one: one.update(configuration=text))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("plant", [row_id_twice, no_row_id, version_of_the_future, mark_too_low])
def test_damaged_row_ids_are_found(tmp_path: Path, plant: Callable[[SmallTable], None]) -> None:
    table = tracked(tmp_path)
    assert not check(table)
    plant(table)
    assert Damage.ROW_IDS.label in check(table)


def test_every_kind_is_in_the_guide() -> None:
    page = Path(__file__).parents[2] / "docs/guides/damage.md"
    rows = [
        line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    told = {row.split("`")[1]: row.split("|")[2].strip() for row in rows}
    assert told == {kind.label: kind.certainty.value for kind in Damage}


def test_every_kind_is_planted() -> None:
    assert {kind for kind, _ in PLANTED} | {Damage.ROW_IDS} == set(Damage)
    assert len(set(Damage)) >= 30


def test_partition_value_that_is_none(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, SCHEMA, partitioned_by=("n",), protocol=PROTOCOL)
    table.append([{"id": 1, "n": 5}])
    change_lines(table, 1, "add", lambda add: add.update(partitionValues={"n": "five"}))
    assert "n = 'five'" in check(table)[Damage.PARTITION_VALUES.label].evidence[0]


def test_log_without_its_beginning(tmp_path: Path) -> None:
    """A cleaned log is healthy; damage after its first checkpoint is found."""
    table = made(tmp_path)
    for version in range(5):
        log_file(table, version).unlink()
    assert not check(table)
    application_goes_back(table)
    assert Damage.APPLICATION_VERSION.label in check(table)


def test_files_without_rows_are_no_orphans(tmp_path: Path) -> None:
    """delta-spark counts an empty file in its metrics, and does not add it."""
    table = made(tmp_path)
    path = path_of(table, active(table).path)
    pq.write_table(pq.read_table(path).slice(0, 0), path.with_name("empty.parquet"))
    age(tmp_path)

    def say(info: dict[str, Any]) -> None:
        info["operation"] = "WRITE"
        info["operationMetrics"] = {"numFiles": "2", "numOutputRows": "1"}

    change_lines(table, 9, "commitInfo", say)
    assert not check(table)


def test_orphans_beside_lost_commits_are_likely(tmp_path: Path) -> None:
    table = made(tmp_path)
    removal_after_a_lost_commit(table)
    orphan(table)
    found = check(table)[Damage.ORPHANS.label]
    assert found.certainty is not None
    assert found.certainty.value == "likely"


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path)
    assert run_command_line(["doctor", str(tmp_path), "--deep", "--json"]) == 0
    assert "damage" in {one["check"] for one in json.loads(capsys.readouterr().out)}
    wrong_minimum(table)
    assert run_command_line(["doctor", str(tmp_path), "--deep", "--json"]) == 5
    answer = {one["check"]: one for one in json.loads(capsys.readouterr().out)}
    assert answer["bounds"]["certainty"] == "certain"
    assert "column id" in answer["bounds"]["evidence"][0]
    assert run_command_line(["doctor", str(tmp_path), "--deep"]) == 5
    assert "certainty: certain" in capsys.readouterr().out
    assert run_command_line(["doctor", "--deep", "--json"]) == 2


def test_nothing_is_written(tmp_path: Path) -> None:
    table = made(tmp_path)
    wrong_minimum(table)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in tmp_path.rglob("*")}
    check(table)
    assert before == {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in tmp_path.rglob("*")}


def test_an_interrupted_check_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read once, findings of the first part stay, the version is that of the start."""
    monkeypatch.setattr(data_files, "_BATCH_FILES", 2)
    table = SmallTable(tmp_path / "t", StructType((column("k", LONG),)))
    adds = [table.append([{"k": n}]) for n in range(5)]
    (table.root / decode_path(min(add.path for add in adds))).write_bytes(b"PAR1")
    kept = tmp_path / "kept.json"
    read: list[str] = []

    class StoppedError(Exception):
        pass

    def stop(text: str) -> None:
        if text.startswith("2 of 5"):
            raise StoppedError

    def noted(add: Add, *rest: Any) -> Any:
        read.append(add.path)
        return read_footer(add, *rest)

    read_footer = data_files._read_footer
    monkeypatch.setattr(data_files, "_read_footer", noted)
    with pytest.raises(StoppedError):
        list(deep_findings(table.log, progress=stop, resume=kept))
    assert len(read) == 2
    table.replace_all([{"k": 9}])
    (table.root / decode_path(max(add.path for add in adds))).unlink()  # as VACUUM does
    found = {one.check: one for one in deep_findings(table.log, resume=kept)}
    assert sorted(read) == sorted(add.path for add in adds)
    assert set(found) == {Damage.FILE_UNREADABLE.label}
    assert not kept.exists()


def test_the_work_of_another_table_is_not_used(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", StructType((column("k", LONG),)))
    table.append([{"k": 1}])
    kept = tmp_path / "kept.json"
    kept.write_text('{"table": "other", "version": 0, "count": 9, "counts": {}, "evidence": {}}')
    assert [f.severity for f in deep_findings(table.log, resume=kept)] == [Severity.OK]
    for text in ("no JSON", "[]", "{}"):
        kept.write_text(text)
        with pytest.raises(InvalidRequestError, match=r"kept\.json"):
            list(deep_findings(table.log, resume=kept))


def test_decimals_that_other_engines_skip_wrongly(tmp_path: Path) -> None:
    """delta-rs writes 2^63 - 1 as the bounds of 10^20; this library does not skip by it."""
    deltalake = pytest.importorskip("deltalake", reason="an independent writer")
    value = pa.array([Decimal(10**20)], pa.decimal128(38, 0))
    deltalake.write_deltalake(str(tmp_path), pa.table({"a": value}))
    found = {f.check: f for f in deep_findings(TableLog.open(str(tmp_path)))}
    assert found["bounds"].severity is not Severity.OK
    assert "column a" in found["bounds"].evidence[0]
