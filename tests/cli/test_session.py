"""Commands that need Spark, in the shared session: what they print, write and leave alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytest.importorskip("click")

import puredelta
from puredelta.cli import spark_commands
from puredelta.cli.output import ExitCode
from puredelta.cli.run import run_command_line


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The commands use this session, and do not stop it."""

    @contextmanager
    def session(_context: object, _title: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(spark_commands, "spark_session", session)
    assert puredelta.activate(spark)
    yield spark
    puredelta.deactivate()


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run_command_line(["--json", *arguments]) == code, capsys.readouterr().err
    text = capsys.readouterr().out
    return json.loads(text) if text else None


def test_a_table_from_parquet_to_restore(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, news = str(tmp_path / "t"), str(tmp_path / "news.parquet")
    shared.sql("SELECT id, id % 2 AS p FROM range(10)").write.partitionBy("p").parquet(table)
    shared.sql("SELECT id, 1L AS p FROM range(9, 12)").coalesce(1).write.parquet(news)

    answer(capsys, "convert", table, "--partitions", "p BIGINT", "--dry-run")
    assert not (tmp_path / "t" / "_delta_log").exists()
    answer(capsys, "convert", table, "--partitions", "p BIGINT")
    [row] = answer(capsys, "sql", f"SELECT count(*) AS n FROM delta.`{table}`")
    assert row == {"n": 10}

    [counts] = answer(capsys, "merge", table, "--source", news, "--keys", "id")
    assert counts["num_inserted_rows"] == 2
    script = tmp_path / "merge.sql"
    script.write_text(
        f"-- nothing; new\nMERGE INTO delta.`{table}` t USING parquet.`{news}` s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE;\n"
    )
    [counts] = answer(capsys, "merge", str(script))
    assert counts["num_deleted_rows"] == 3

    then = answer(capsys, "restore", table, "--version", "0")
    assert (then["numRowsNow"], then["numRowsThen"]) == (9, 10)
    assert shared.read.format("delta").load(table).count() == 9, "nothing is changed"
    assert answer(capsys, "restore", table, "--version", "0", "--apply")["restored"]
    assert shared.read.format("delta").load(table).count() == 10

    found = answer(capsys, "vacuum", table)
    assert found["dryRun"]
    assert found["numDeleted"] == 0
    assert answer(capsys, "optimize", table)["numFilesRemoved"] >= 0
    assert answer(capsys, "vacuum", table, "--retain", "0", code=ExitCode.USAGE) is None


@pytest.mark.thorough
def test_rows_that_differ(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(tmp_path / "t")
    for rows in ([(1, "a"), (2, "b"), (3, "c")], [(1, "a"), (2, "x"), (4, "d")]):
        frame = shared.createDataFrame(rows, "id INT, v STRING").coalesce(1)
        puredelta.write(frame, table, mode="overwrite")
    found = answer(capsys, "diff", table, "0", "--rows", "--keys", "id")
    assert sorted((r["_change"], r["id"], r["before"], r["after"]) for r in found) == [
        ("added", 4, None, {"v": "d"}),
        ("changed", 2, {"v": "b"}, {"v": "x"}),
        ("removed", 3, {"v": "c"}, None),
    ]
    found = answer(capsys, "diff", table, "0", "1", "--rows")
    assert sorted((r["_change"], r["id"], r["v"]) for r in found) == [
        ("added", 2, "x"), ("added", 4, "d"), ("removed", 2, "b"), ("removed", 3, "c"),
    ]  # fmt: skip
    assert run_command_line(["diff", table, "0", "--rows", "-n", "1"]) == 0
    assert "first 1 rows" in capsys.readouterr().err
    answer(capsys, "diff", table, "1", "0", "--rows", code=ExitCode.USAGE)
    answer(capsys, "diff", table, "0", "--keys", "id", code=ExitCode.USAGE)
    answer(capsys, "diff", table, "0", "--rows", "--keys", "no", code=ExitCode.USAGE)


def test_what_is_wrong_has_an_exit_code(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["vacuum", str(tmp_path / "none")]) == ExitCode.NOT_FOUND
    assert run_command_line(["sql", "SELEKT 1"]) == ExitCode.FAILED
    assert run_command_line(["sql", " -- nothing"]) == ExitCode.USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_rows_beyond_the_limit_are_said_to_be_there(
    shared: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["sql", "SELECT 'a' AS x FROM range(5)", "-n", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.out.count("a") == 2
    assert "first 2 rows" in captured.err


@pytest.mark.thorough
def test_merge_by_keys_is_the_upsert_of_the_recipes(
    shared: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(tmp_path / "t")
    rows = shared.createDataFrame(
        [(1, "a", True), (None, "b", True)], "id INT, v STRING, w BOOLEAN"
    )
    puredelta.write(rows.coalesce(1), table)
    news, twice = str(tmp_path / "news.csv"), str(tmp_path / "twice.csv")
    Path(news).write_text("ID,v\n1,a\n,c\n3,d\n")  # the first row is the same as in the table
    Path(twice).write_text("id,v\n5,a\n5,b\n")

    [counts] = answer(capsys, "merge", table, "--source", news, "--keys", "id")
    assert counts == {
        "num_affected_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0,
        "num_inserted_rows": 1,
    }  # fmt: skip
    found = answer(capsys, "show", table)
    assert sorted((r["id"] or 0, r["v"], r["w"]) for r in found) == [
        (0, "c", True), (1, "a", True), (3, "d", None),
    ]  # fmt: skip

    [counts] = answer(capsys, "merge", table, "--source", news, "--keys", "id")
    assert set(counts.values()) == {0}
    assert len(answer(capsys, "history", table)) == 2, "the second call commits nothing"

    line = ["--json", "merge", table, "--source", twice, "--keys", "id"]
    assert run_command_line(line) == ExitCode.USAGE
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "DELTA_SOURCE_KEY_NOT_UNIQUE"
    line = ["merge", str(tmp_path / "none"), "--source", news, "--keys", "id"]
    assert run_command_line(line) == ExitCode.NOT_FOUND
