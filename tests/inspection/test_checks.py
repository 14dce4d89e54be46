from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from puredelta.inspection.commits import diff_lines, newest_commits
from puredelta.inspection.described import detail_row, file_rows, first_rows
from puredelta.inspection.findings import Severity, worst
from puredelta.inspection.overlap import column_depths
from puredelta.inspection.table_checks import table_findings
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.log_paths import commit_name, log_path
from tests.inspection.small_tables import append, make_table, take_away
from tests.log.tables import WRITE, transact

DAY_MS = 86_400_000


def severities(log: TableLog, **rest: object) -> dict[str, Severity]:
    return {f.check: f.severity for f in table_findings(log, **rest)}  # type: ignore[arg-type]


def test_a_healthy_table_has_nothing_to_mend(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2], [3])
    found = list(table_findings(log))
    assert worst(found) is Severity.OK
    assert not [f for f in found if f.mend]


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2], [3])
    (tmp_path / "f1.parquet").unlink()
    found = {f.check: f for f in table_findings(log)}
    assert found["missing-files"].severity is Severity.ERROR
    assert "f1.parquet" in found["missing-files"].message


def test_a_name_with_an_escape_is_not_missing(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    append(log, tmp_path, "day=1 %/x.parquet", [2])
    assert severities(log)["missing-files"] is Severity.OK


def test_old_files_that_no_version_needs_are_named_with_vacuum(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    orphan = tmp_path / "orphan.parquet"
    orphan.write_bytes(b"12345")
    assert severities(log)["unreferenced-files"] is Severity.OK, "it may belong to a writer"
    os.utime(orphan, (1, 1))
    found = {f.check: f for f in table_findings(log)}
    assert found["unreferenced-files"].severity is Severity.WARNING
    assert "VACUUM" in str(found["unreferenced-files"].mend)
    assert orphan.exists()


def test_a_gap_is_an_error_where_the_newest_version_needs_it(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    for number in range(1, 4):
        append(log, tmp_path, f"g{number}.parquet", [number])
    (tmp_path / log_path(commit_name(2))).unlink()
    found = {f.check: f for f in table_findings(TableLog.open(str(tmp_path)))}
    assert found["log-gap"].severity is Severity.ERROR
    assert "Version 2" in found["log-gap"].message
    assert found["log"].severity is Severity.ERROR


def test_a_gap_before_a_checkpoint_is_a_warning(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    for number in range(1, 12):
        append(log, tmp_path, f"g{number}.parquet", [number])
    (tmp_path / log_path(commit_name(4))).unlink()
    found = severities(TableLog.open(str(tmp_path)))
    assert found["log-gap"] is Severity.WARNING
    assert found["missing-files"] is Severity.OK


def test_a_commit_without_content_is_an_error(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    assert "empty-commits" not in severities(log)
    append(log, tmp_path, "lost.parquet", [2])
    (tmp_path / log_path(commit_name(1))).write_bytes(b"")
    found = {f.check: f for f in table_findings(TableLog.open(str(tmp_path)))}
    assert found["empty-commits"].severity is Severity.ERROR
    assert commit_name(1) in found["empty-commits"].message
    assert "VACUUM" in str(found["empty-commits"].mend)
    assert found["log-gap"].severity is Severity.OK


def test_a_damaged_commit_is_an_error(tmp_path: Path) -> None:
    make_table(tmp_path, [1])
    (tmp_path / log_path(commit_name(1))).write_text("{nonsense\n")
    assert severities(TableLog.open(str(tmp_path)))["log"] is Severity.ERROR


def test_features_that_are_refused_are_named(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["redirectWriterOnly-preview"],
    }
    commit = tmp_path / log_path(commit_name(log.snapshot().version + 1))
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    found = {f.check: f for f in table_findings(log)}
    assert found["features"].severity is Severity.WARNING
    assert "redirectWriterOnly-preview" in found["features"].message


def test_many_small_files_ask_for_optimize(tmp_path: Path) -> None:
    log = make_table(tmp_path, *[[n] for n in range(25)])
    found = {f.check: f for f in table_findings(log)}
    assert found["small-files"].severity is Severity.WARNING
    assert "OPTIMIZE" in str(found["small-files"].mend)


def test_a_checkpoint_that_is_far_behind_is_a_warning(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1], delta__checkpointInterval="1")
    for number in range(1, 14):
        append(log, tmp_path, f"g{number}.parquet", [number])
    for checkpoint in (tmp_path / "_delta_log").glob("*.checkpoint*"):
        checkpoint.unlink()
    (tmp_path / "_delta_log" / "_last_checkpoint").unlink(missing_ok=True)
    assert severities(TableLog.open(str(tmp_path)))["checkpoint"] is Severity.WARNING


def test_files_without_statistics_are_counted(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    found = next(iter(log.snapshot().files.adds()))
    bare = type(found)(**{n: getattr(found, n) for n in found.__slots__} | {"stats": None})
    transact(log).commit([bare], WRITE)
    assert severities(log)["statistics"] is Severity.WARNING


@pytest.mark.parametrize(
    ("files", "average", "deepest"),
    [
        ([[1, 2], [3, 4], [5]], 1.0, 1),
        ([[1, 9], [1, 9], [1, 9]], 3.0, 3),
        ([[1, 5], [4, 9]], 1.5, 2),
    ],
)
def test_depth_is_how_many_files_hold_a_value(
    tmp_path: Path, files: list[list[int]], average: float, deepest: int
) -> None:
    depths = {d.column: d for d in column_depths(make_table(tmp_path, *files).snapshot())}
    assert depths["id"].average == pytest.approx(average)
    assert depths["id"].deepest == deepest
    assert depths["id"].skipped_share == pytest.approx(1 - average / len(files))


def test_depth_agrees_with_a_count_by_hand(tmp_path: Path) -> None:
    spans = [(n * 7 % 23, n * 7 % 23 + n % 5) for n in range(1, 20)]
    snapshot = make_table(tmp_path, *[list(span) for span in spans]).snapshot()
    ends = [end for span in spans for end in span]
    counts = [sum(low <= end <= high for low, high in spans) for end in ends]
    found = next(d for d in column_depths(snapshot) if d.column == "id")
    assert found.average == pytest.approx(sum(counts) / len(counts))
    assert found.deepest == max(counts)


def test_an_empty_table_has_no_depth(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    assert all(d.average == 0 and d.deepest == 0 for d in column_depths(log.snapshot()))
    assert worst(table_findings(log)) is Severity.OK


def test_first_rows_are_read_with_columns_of_now(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2], [3])
    rows = first_rows(log.snapshot(), 2)
    assert rows.to_pylist() == [
        {"id": 1, "part": 1, "sub": None},
        {"id": 2, "part": 1, "sub": None},
    ]
    assert first_rows(log.snapshot(), 100).num_rows == 3


def test_detail_and_files(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2], list(range(3, 400)))
    detail = detail_row(log.snapshot())
    assert (detail["numFiles"], detail["numRows"], detail["version"]) == (2, 399, 0)
    assert detail["columns"] == {"id": "bigint", "part": "int", "sub": "int"}
    assert [row["numRows"] for row in file_rows(log.snapshot())] == [397, 2]
    assert [row["path"] for row in file_rows(log.snapshot(), limit=1)] == ["f1.parquet"]


def test_commits_in_numbers(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1, 2])
    append(log, tmp_path, "g.parquet", [3, 4, 5], metrics={"numOutputRows": 3})
    take_away(log, "f0.parquet")
    first, second, third = newest_commits(log, log.snapshot(), limit=10)
    assert (first.rows_inserted, second.rows_inserted, third.rows_inserted) == (2, 3, 0)
    assert second.changed_bytes == second.added_bytes > 0
    assert (third.num_added, third.num_removed) == (0, 1)
    assert [c.version for c in newest_commits(log, log.snapshot(), limit=2)] == [1, 2]


def test_versions_differ_in_columns_and_properties(tmp_path: Path) -> None:
    log = make_table(tmp_path, [1])
    before = log.snapshot()
    changed = before.metadata
    new = type(changed)(
        **{n: getattr(changed, n) for n in changed.__slots__}
        | {"configuration": {"delta.appendOnly": "true"}}
    )
    transact(log).commit([new], WRITE)
    assert ("property delta.appendOnly", "", "true") in list(diff_lines(before, log.snapshot()))
