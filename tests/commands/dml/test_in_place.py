"""UPDATE and MERGE of few columns: rows keep their places, other chunks are copied as bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.commands.dml import in_place
from puredelta.commands.statement.report import last_report
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import Add
from puredelta.spark.offload.rewrite import ArrowRewriter
from puredelta.spark.session.session import NotApplicable
from puredelta.tables import DeltaTable
from puredelta.worker.data_files.byte_ranges import byte_ranges
from puredelta.worker.data_files.spliced_file import ParquetBytes
from tests.commands.dml.tables import lay_table

COLUMNS = {f"c{n}": pa.int64() if n % 2 else pa.string() for n in range(12)}
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), *COLUMNS.items()])


def row(number: int) -> dict[str, Any]:
    values = {
        name: number + 1 if kind == pa.int64() else f"t{number}" for name, kind in COLUMNS.items()
    }
    return {"id": number, "x": number / 2, **values}


WORKERS_REASON = "Arrow computes them as Spark does"
FILES = [[row(n) for n in range(start, start + 40)] for start in (0, 40, 80)]


def laid(path: Path) -> None:
    lay_table(path, SCHEMA, FILES)


def active_files(path: Path) -> tuple[Add, ...]:
    return tuple(TableLog.open(str(path)).snapshot().files.adds())


def rows_of(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    found = DeltaTable.forPath(spark, str(path)).toDF().orderBy("id").collect()
    return [one.asDict() for one in found]


def chunks_of(path: Path) -> dict[tuple[int, bytes], bytes]:
    """Return the pages of the columns of a file, by the first id of the row group and their
    names."""
    file, content = ParquetBytes.of(byte_ranges(str(path))), path.read_bytes()
    read = pq.ParquetFile(path)
    firsts = [
        int(read.read_row_group(n, columns=["id"])["id"][0].as_py())
        for n in range(read.num_row_groups)
    ]
    return {
        (first, chunk.path[0]): content[slice(*chunk.span)]
        for first, group in zip(firsts, file.footer.groups, strict=True)
        for chunk in group.chunks
    }


def files_of(path: Path) -> list[Path]:
    return [path / add.path for add in active_files(path)]


def all_chunks(path: Path) -> dict[tuple[int, bytes], bytes]:
    return {key: chunk for file in files_of(path) for key, chunk in chunks_of(file).items()}


def test_an_update_copies_every_other_column(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    laid(path)
    before = all_chunks(path)
    table = DeltaTable.forPath(spark, str(path))
    table.update("id % 5 = 3 AND id < 60 AND id % 40 < 20", {"c1": "c3 * 2", "x": "NULL"})
    wanted = [row(n) for n in range(120)]
    for one in wanted:
        if one["id"] % 5 == 3 and one["id"] < 60 and one["id"] % 40 < 20:
            one |= {"c1": one["c3"] * 2, "x": None}
    assert rows_of(spark, path) == wanted
    after = all_chunks(path)
    assert {key for key in before if before[key] != after[key]} == {
        (first, name) for first in (0, 40) for name in (b"c1", b"x")
    }
    metrics = table.history(1).collect()[0]["operationMetrics"]
    counted = [metrics[name] for name in ("numUpdatedRows", "numCopiedRows", "numAddedFiles")]
    assert counted == ["8", "72", "2"]
    stats = sorted(str(add.stats) for add in active_files(path))
    assert sum('"nullCount":{"id":0,"x":4' in one for one in stats) == 2


def test_a_merge_copies_every_other_column_and_inserts(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    laid(path)
    before = all_chunks(path)
    source = spark.createDataFrame([(5, 50), (45, 450), (500, 1)], "id long, v long")
    table = DeltaTable.forPath(spark, str(path))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"c1": "s.v", "c2": "'new'"}).whenNotMatchedInsert(
        values={"id": "s.id", "c1": "s.v"}
    ).execute()
    wanted = [row(n) for n in range(120)]
    for number in (5, 45):
        wanted[number] |= {"c1": number * 10, "c2": "new"}
    assert rows_of(spark, path)[:120] == wanted
    assert rows_of(spark, path)[120]["c1"] == 1
    assert sorted(json.loads(add.stats or "{}")["numRecords"] for add in active_files(path)) == [
        1,
        40,
        40,
        40,
    ]
    after = all_chunks(path)
    assert all(after[first, b"c5"] == before[first, b"c5"] for first in (0, 40, 80))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by_workers", [True, False])
def test_files_of_which_a_row_goes_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_workers: bool
) -> None:
    path = tmp_path / "t"
    laid(path)
    if not by_workers:
        monkeypatch.setattr(in_place, "computed_values", lambda *_: "a test says so")
    source = spark.createDataFrame([(5, 50), (45, None), (46, 1)], "id long, v long")
    table = DeltaTable.forPath(spark, str(path))
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedDelete("s.v IS NULL").whenMatchedUpdate(set={"c1": "s.v"}).execute()
    wanted = [row(n) for n in range(120) if n != 45]
    for one in wanted:
        if one["id"] in (5, 46):
            one["c1"] = {5: 50, 46: 1}[one["id"]]
    assert rows_of(spark, path) == wanted
    assert len(files_of(path)) == (3 if by_workers else 4)
    metrics = DeltaTable.forPath(spark, str(path)).history(1).collect()[0]["operationMetrics"]
    counted = [metrics[f"numTargetRows{name}"] for name in ("Updated", "Deleted", "Copied")]
    assert counted == ["2", "1", "77"]


def test_every_row_of_a_table_in_place(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    laid(path)
    DeltaTable.forPath(spark, str(path)).update(set={"c1": "id"})
    assert rows_of(spark, path) == [{**row(n), "c1": n} for n in range(120)]
    assert len(files_of(path)) == 3


def test_a_file_that_is_refused_is_rewritten_beside_the_others(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    odd = path / "part-00001.parquet"
    table = pq.read_table(odd)
    pq.write_table(
        table.rename_columns(["C1" if n == "c1" else n for n in table.column_names]), odd
    )
    before = all_chunks(path)
    updates = []
    plain = ArrowRewriter.update

    def counted(*arguments: Any) -> Any:
        updates.append(plain(*arguments))
        return updates[-1]

    monkeypatch.setattr(ArrowRewriter, "update", counted)
    source = spark.createDataFrame([(5, 50), (45, 450), (46, 460), (500, 1)], "id long, v long")
    merge = DeltaTable.forPath(spark, str(path)).alias("t").merge(source.alias("s"), "t.id = s.id")
    only_spark = "t.c1 + s.v + bit_count(t.id - t.id)"
    merge.whenMatchedUpdate(set={"c1": only_spark}).whenNotMatchedInsert(
        values={"id": "s.id", "c1": "s.v"}
    ).execute()
    wanted = [row(n) for n in range(120)]
    for number in (5, 45, 46):
        wanted[number]["c1"] += number * 10
    assert rows_of(spark, path)[:120] == wanted
    assert rows_of(spark, path)[120]["id"] == 500
    (done,) = updates
    assert list(done.refused) == [1]
    assert "spelled otherwise" in done.refused[1]
    assert (done.num_updated, done.num_rows) == (1, 39)
    after = all_chunks(path)
    assert after[0, b"c5"] == before[0, b"c5"]
    counts = [json.loads(add.stats or "{}")["numRecords"] for add in active_files(path)]
    assert sorted(counts) == [1, 2, 38, 40, 40]
    found = {add.path for add in active_files(path)}
    assert {file.name for file in path.glob("*.parquet")} - found <= {
        f"part-0000{n}.parquet" for n in range(3)
    }
    metrics = DeltaTable.forPath(spark, str(path)).history(1).collect()[0]["operationMetrics"]
    assert metrics["numTargetRowsUpdated"] == "3"
    assert metrics["numTargetRowsInserted"] == "1"
    assert metrics["numTargetRowsCopied"] == "77"


def test_a_refusal_leaves_the_work_to_a_rewrite(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    refused = NotApplicable(reason="a test says so")
    monkeypatch.setattr(ArrowRewriter, "compute", lambda *_: refused)
    monkeypatch.setattr(ArrowRewriter, "update", lambda *_: refused)
    DeltaTable.forPath(spark, str(path)).update("id = 3", {"c1": "-1"})
    wanted = [row(n) for n in range(120)]
    wanted[3]["c1"] = -1
    assert rows_of(spark, path) == wanted
    assert TableLog.open(str(path)).snapshot().version == 1


def made_by_workers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets what becomes of files whose new values workers compute."""
    done: list[Any] = []
    plain = ArrowRewriter.compute

    def counted(*arguments: Any) -> Any:
        done.append(plain(*arguments))
        return done[-1]

    monkeypatch.setattr(ArrowRewriter, "compute", counted)
    return done


def test_workers_compute_the_values_of_an_update(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    done, streamed = made_by_workers(monkeypatch), []
    monkeypatch.setattr(ArrowRewriter, "update", lambda *_: streamed.append(1))
    table = DeltaTable.forPath(spark, str(path))
    table.update(
        "id % 10 = 3",
        {"c1": "c3 * 2 + id", "c2": "concat(upper(c4), '!')", "x": "nullif(x, 1.5D)"},
    )
    wanted = [row(n) for n in range(120)]
    for one in wanted:
        if one["id"] % 10 == 3:
            x = None if one["x"] == 1.5 else one["x"]
            one |= {"c1": one["c3"] * 2 + one["id"], "c2": one["c4"].upper() + "!", "x": x}
    assert rows_of(spark, path) == wanted
    assert [(one.num_updated, one.num_rows, one.refused) for one in done] == [(12, 108, {})]
    assert not streamed


@pytest.mark.thorough
def test_most_columns_are_updated_in_place_if_workers_compute_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    done = made_by_workers(monkeypatch)
    table = DeltaTable.forPath(spark, str(path))
    integers = [name for name, kind in COLUMNS.items() if kind == pa.int64()]
    texts = [name for name in COLUMNS if name not in integers]
    assert len(COLUMNS) > len(SCHEMA) / 2
    values = {name: f"{name} + 1" for name in integers} | dict.fromkeys(texts, "'new'")
    wanted = [row(n) for n in range(120)]
    for one in wanted[3::10]:
        one.update({name: one[name] + 1 for name in integers} | dict.fromkeys(texts, "new"))
    table.update("id % 10 = 3", values)
    assert rows_of(spark, path) == wanted
    assert [(one.num_updated, one.num_rows, one.refused) for one in done] == [(12, 108, {})]
    # Spark computes them with whole rows, and so it does for a file that a worker cannot hold.
    spoiled = {**values, integers[0]: f"ascii({texts[0]})"}
    (one,) = (c for c in table.prepareUpdate("id = 3", spoiled).explain().choices if is_values(c))
    assert one.chosen == "computed by Spark, with whole rows"
    assert str(one.reason).startswith("more than half of the columns change, and Ascii is no")
    monkeypatch.setattr(in_place, "_MOST_BYTES_MAX", 1)
    for one in wanted[4::10]:
        one.update({name: one[name] + 1 for name in integers} | dict.fromkeys(texts, "new"))
    table.update("id % 10 = 4", values)
    assert rows_of(spark, path) == wanted
    assert len(done) == 1


def is_values(choice: Any) -> bool:
    return bool(choice.subject == "new values")


def test_workers_compute_the_values_of_clauses_of_a_merge(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    done = made_by_workers(monkeypatch)
    source = spark.createDataFrame([(n,) for n in range(0, 120, 7)], "id long")
    merge = DeltaTable.forPath(spark, str(path)).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate("t.id < 60", set={"c1": "t.c1 + 1"}).whenNotMatchedBySourceUpdate(
        "t.id % 2 = 0", set={"c3": "-1", "c2": "NULL"}
    ).execute()
    wanted = [row(n) for n in range(120)]
    for one in wanted:
        if one["id"] % 7 == 0:
            one["c1"] += int(one["id"] < 60)
        elif one["id"] % 2 == 0:
            one |= {"c3": -1, "c2": None}
    assert rows_of(spark, path) == wanted
    assert [one.refused for one in done] == [{}]


@pytest.mark.thorough
def test_a_partition_column_is_no_column_of_the_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    schema = pa.schema([("p", pa.int64()), *SCHEMA])
    files = [[{"p": n, **one} for one in rows] for n, rows in enumerate(FILES, 7)]
    lay_table(path, schema, files, partition_by=["p"])
    done = made_by_workers(monkeypatch)
    table = DeltaTable.forPath(spark, str(path))
    table.update("id % 10 = 3", {"c1": "p + 1"})
    found = table.toDF().where("id % 10 = 3").select("p", "c1").distinct().collect()
    assert sorted(map(tuple, found)) == [(7, 8), (8, 9), (9, 10)]
    assert not done
    table.update("id % 10 = 4", {"c1": "c3 + 1"})
    found = table.toDF().where("id % 10 = 4").select("p", "id", "c1").collect()
    assert {(one["id"], one["c1"]) for one in found} == {(n, n + 2) for n in range(4, 120, 10)}
    assert [one.refused for one in done] == [{}]


def test_an_error_of_a_row_is_that_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    laid(path)
    done = made_by_workers(monkeypatch)
    table = DeltaTable.forPath(spark, str(path))
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        table.update("id = 3", {"c1": "c1 + 9223372036854775807"})
    assert list(done[0].refused) == [0]
    assert TableLog.open(str(path)).snapshot().version == 0
    assert len(list(path.glob("*.parquet"))) == 3


def test_a_report_says_who_computes_the_values(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    laid(path)
    table = DeltaTable.forPath(spark, str(path))
    found = {}
    for value in ("c3 + 1", "ascii(c2)"):
        report = table.prepareUpdate("id = 3", {"c1": value}).explain()
        found[value] = {one.subject: one for one in report.choices}["new values"]
    assert found["c3 + 1"].chosen == "computed by workers, in the files"
    assert found["ascii(c2)"].chosen == "computed by Spark"
    assert found["ascii(c2)"].reason == "Ascii is no function that workers compute"


@pytest.mark.thorough
def test_a_report_says_who_did_compute_the_values(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    lay_table(path, SCHEMA, [*FILES[:2], [{**row(n), "c2": "É"} for n in range(80, 120)]])
    table = DeltaTable.forPath(spark, str(path))

    def made(condition: str) -> tuple[str, str | None]:
        table.update(condition, {"c2": "lower(c2)"})
        report = last_report()
        assert report is not None
        (one,) = (one for one in report.choices if one.subject == "new values")
        return one.chosen, one.reason

    no_proof = "new values: a text that is not of ASCII letters"
    assert made("id = 3") == ("computed by workers, in the files", WORKERS_REASON)
    assert made("id = 83") == ("computed by Spark", no_proof)
    found = made("id IN (4, 84)")
    assert found == ("computed by workers, in the files; by Spark for 1 file", no_proof)
