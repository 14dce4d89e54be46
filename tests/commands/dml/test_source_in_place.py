"""A source that is nothing but Parquet files is read where it lies, and watched."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta.commands.dml import source
from puredelta.commands.dml.actions import Outcome
from puredelta.commands.dml.settings import ExecutionSettings, KeyLimits
from puredelta.errors import DeltaError, ErrorCode, InvalidRequestError
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.table.stats import LeafStatistics
from puredelta.spark.scan.plain_scan import PlainScan, plain_scan
from puredelta.spark.scan.table_rows import table_rows as shown_rows
from puredelta.spark.session.session import NotApplicable
from tests.commands.dml.tables import (
    data_files,
    delete_by_source,
    insert,
    lay_table,
    merge,
    table_rows,
    update,
)

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
JOBS_OF_AN_UPSERT = 2
"""Look keys up, split, write."""
ALL = "spark.databricks.delta.merge.materializeSource"


@pytest.fixture
def new_log(tmp_path: Path) -> Callable[[], TableLog]:
    """Make tables of ids 0 to 19 in two files."""
    made: list[TableLog] = []

    def new() -> TableLog:
        rows = [[{"id": n, "p": "a", "v": n} for n in range(k, k + 10)] for k in (0, 10)]
        made.append(lay_table(tmp_path / f"table {len(made)}", SCHEMA, rows))
        return made[-1]

    return new


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two files, one of them with a NULL key, and one of no rows."""
    parts = [
        {"id": [3, 50], "p": ["x", "y"], "v": [300, 5000], "more": [b"", b""]},
        {"id": [None, 12], "p": ["n", "z"], "v": [1, 1200], "more": [None, b"1"]},
        {"id": [], "p": [], "v": [], "more": []},
    ]
    schema = pa.schema([*SCHEMA, ("more", pa.binary())])
    (tmp_path / "the source").mkdir()
    for n, columns in enumerate(parts):
        pq.write_table(pa.table(columns, schema), tmp_path / "the source" / f"{n}%.parquet")
    return tmp_path / "the source"


class Modes(list[str]):
    """How the source of each statement was read."""

    def __call__(self, stage: str, outcome: Any) -> None:
        if stage == "3 source":
            self.append(outcome.source.mode)


@pytest.fixture
def modes() -> Modes:
    return Modes()


def counted(spark: SparkSession, group: str, work: Callable[[], Outcome]) -> int:
    context = spark.sparkContext
    context.setJobGroup(group, "counted")
    try:
        work()
    finally:
        context.setJobGroup("other", "not counted")
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.mark.smoke
def test_an_upsert_reads_the_source_where_it_lies(
    spark: SparkSession,
    new_log: Callable[[], TableLog],
    directory: Path,
    modes: Modes,
) -> None:
    log, before = new_log(), data_files(directory)
    rows = spark.read.parquet(str(directory))
    outcomes: list[Outcome] = []

    def upsert() -> Outcome:
        outcomes.append(merge(spark, log, rows, "t.id = s.id", update(), insert(), observe=modes))
        return outcomes[-1]

    jobs = counted(spark, "in place", upsert)
    assert jobs == JOBS_OF_AN_UPSERT
    assert modes == ["4 source rows are read from its own 2 files"]
    found = {r["id"]: (r["p"], r["v"]) for r in table_rows(spark, log)}
    assert found == {
        **{n: ("a", n) for n in range(20)},
        3: ("x", 300),
        12: ("z", 1200),
        50: ("y", 5000),
        None: ("n", 1),
    }
    assert data_files(directory) == before
    metrics = outcomes[0].metrics
    assert (metrics["numSourceRows"], metrics["materializeSourceTimeMs"]) == (4, 0)


def test_all_sources_are_copied_if_the_user_wants_that(
    spark: SparkSession,
    new_log: Callable[[], TableLog],
    directory: Path,
    modes: Modes,
    conf: Callable[[str, str], None],
) -> None:
    conf(ALL, "all")
    rows = spark.read.parquet(str(directory))
    outcome = merge(spark, new_log(), rows, "t.id = s.id", update(), observe=modes)
    assert modes == [f"4 source rows were staged ({ALL} is all)"]
    assert outcome.metrics["materializeSourceTimeMs"] > 0


def as_they_are(rows: DataFrame) -> DataFrame:
    return rows


def renamed(rows: DataFrame) -> DataFrame:
    """Other names and order, a column twice; the name of one column is another's."""
    return rows.select(F.col("v").alias("p"), "id", F.col("p").alias("v"), "id").toDF(
        "v", "id", "p", "same"
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("shape", "on", "clauses"),
    [
        (
            as_they_are,
            "t.id = s.id AND s.v > 1",
            [update("t.v < 5"), update("s.p = 'z'", v="-1"), insert()],
        ),
        (
            renamed,
            "t.id <=> s.id",
            [update(v="t.v + s.same"), delete_by_source("t.id > 5"), insert()],
        ),
    ],
)
def test_the_result_is_that_of_a_copy(  # noqa: PLR0917 - one per fixture
    spark: SparkSession,
    new_log: Callable[[], TableLog],
    directory: Path,
    modes: Modes,
    conf: Callable[[str, str], None],
    shape: Callable[[DataFrame], DataFrame],
    on: str,
    clauses: Sequence[Any],
) -> None:
    results = []
    for mode in ("auto", "all"):
        conf(ALL, mode)
        log = new_log()
        rows = shape(spark.read.parquet(str(directory)))
        outcome = merge(spark, log, rows, on, *clauses, observe=modes)
        results.append((table_rows(spark, log), outcome.rows))
    assert results[0] == results[1]
    assert ["own" in how for how in modes] == [True, False]


def test_several_matches_are_named(
    spark: SparkSession, new_log: Callable[[], TableLog], directory: Path
) -> None:
    rows = spark.read.parquet(str(directory), str(directory))
    with pytest.raises(InvalidRequestError, match=r"\(id = 3\) matches 2 source rows"):
        merge(spark, new_log(), rows.withColumnRenamed("id", "k"), "t.id = s.k", update(v="1"))


@pytest.mark.parametrize("change", ["touched", "gone"])
def test_a_source_that_changes_meanwhile_commits_nothing(
    spark: SparkSession,
    new_log: Callable[[], TableLog],
    directory: Path,
    change: str,
) -> None:
    log = new_log()
    path = min(directory.glob("*.parquet"))

    def change_source(stage: str, _: Any) -> None:
        if stage == "5 search" and change == "gone":
            path.unlink()
        elif stage == "5 search":
            os.utime(path)

    rows, before = spark.read.parquet(str(directory)), data_files(Path(log.root_uri[5:]))
    with pytest.raises(DeltaError, match="Nothing was committed") as raised:
        merge(spark, log, rows, "t.id = s.id", update(), insert(), observe=change_source)
    assert raised.value.code is ErrorCode.MERGE_SOURCE_CHANGED
    assert log.latest_version() == 0
    assert data_files(Path(log.root_uri[5:])) == before


def refused(spark: SparkSession, rows: DataFrame) -> str:
    found = plain_scan(spark, rows)
    assert isinstance(found, NotApplicable)
    return found.reason


def test_frames_that_are_no_plain_scan(
    spark: SparkSession, directory: Path, tmp_path: Path
) -> None:
    rows = spark.read.parquet(str(directory))
    assert refused(spark, rows.where("id > 1")) == "the plan has a Filter"
    assert refused(spark, rows.limit(1)) == "the plan has a GlobalLimit"
    assert refused(spark, rows.withColumn("id", F.expr("id + 1"))) == "column id is computed"
    for hidden in ("_metadata", "_metadata.file_path"):
        assert refused(spark, rows.select("id", hidden)) == "it shows more than its files have"
    assert refused(spark, rows.select(F.lit("id#4L").alias("id"))) == "column id is computed"
    assert refused(spark, spark.range(3)) == "the plan has a Range"
    assert refused(spark, spark.createDataFrame([(1,)], "id long")) == "the plan has a LogicalRDD"
    options = spark.read.option("mergeSchema", "true").option("pathGlobFilter", "*")
    assert refused(spark, options.parquet(str(directory))) == (
        "reader options ['mergeschema', 'pathglobfilter']"
    )
    (tmp_path / "parts" / "q=1").mkdir(parents=True)
    (tmp_path / "parts" / "q=1" / "x.parquet").write_bytes((directory / "0%.parquet").read_bytes())
    assert refused(spark, spark.read.parquet(str(tmp_path / "parts"))) == (
        "it has partition columns"
    )
    assert refused(spark, spark.read.format("csv").schema("a int").load(str(directory))) == (
        "its files are of the kind CSVFileFormat"
    )
    assert refused(spark, rows.sparkSession.newSession().read.parquet(str(directory))) == (
        "the frame is of another session"
    )
    part = rows.select("id").cache()
    try:
        assert refused(spark, rows.select("id").alias("s")) == "its rows are cached"
        assert isinstance(plain_scan(spark, rows), PlainScan)
    finally:
        part.unpersist()


def test_names_over_a_scan(spark: SparkSession, directory: Path) -> None:
    """Views of either kind, hints and aliases are nothing but names."""
    rows = spark.read.parquet(str(directory))
    rows.hint("broadcast").createOrReplaceTempView("source_view")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW source_text AS "
        f"SELECT id AS k, v FROM parquet.`{directory}`"
    )
    for name, columns in (("source_view", ["id", "p", "v", "more"]), ("source_text", ["id", "v"])):
        found = plain_scan(spark, spark.table(name).alias("s"))
        assert isinstance(found, PlainScan)
        assert [field.name for field in found.fields] == columns
        assert {file.name for file in found.files} == {"0%.parquet", "1%.parquet", "2%.parquet"}
        assert not found.is_table


def test_a_version_of_a_table_is_a_plain_scan(
    spark: SparkSession, new_log: Callable[[], TableLog], tmp_path: Path, modes: Modes
) -> None:
    """Its files are those of the version, whatever happens to the table."""
    log, other = new_log(), new_log()
    rows = shown_rows(spark, log.snapshot(), time_travel=False)
    merge(spark, log, rows, "t.id = s.id AND s.id = 3", update(v="-1"), observe=modes)
    merge(spark, other, rows, "t.id = s.id AND s.id = 3", update(v="s.v + 100"), observe=modes)
    assert modes == ["20 source rows are read from its own 2 files"] * 2
    assert {r["id"]: r["v"] for r in table_rows(spark, other)} == {
        n: 103 if n == 3 else n for n in range(20)
    }
    hidden = lay_table(tmp_path / "hidden", SCHEMA, [[{"id": 1}, {"id": 2}]], deleted={0: [1]})
    rows = shown_rows(spark, hidden.snapshot(), time_travel=False)
    assert isinstance(plain_scan(spark, rows), NotApplicable), "the file has rows that are deleted"


TIMES = pa.schema([("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.timezone.utc)


def times(*seconds: int | None) -> list[dt.datetime | None]:
    """Return instants, with a microsecond that only whole numbers keep."""
    return [s if s is None else NOON + dt.timedelta(seconds=s, microseconds=1) for s in seconds]


def int96_rows(
    spark: SparkSession, path: Path, at: list[dt.datetime | None], *, marked: bool = False
) -> DataFrame:
    """Lay a source with the form of timestamps that Spark writes by default."""
    table = pa.table({"at": pa.array(at, TIMES.types[0]), "v": [n + 100 for n in range(len(at))]})
    if marked:
        table = table.replace_schema_metadata({"org.apache.spark.legacyINT96": ""})
    path.mkdir()
    pq.write_table(table, path / "0.parquet", use_deprecated_int96_timestamps=True)
    return spark.read.parquet(str(path))


@pytest.mark.thorough
def test_keys_are_timestamps_of_96_bits(
    spark: SparkSession, tmp_path: Path, modes: Modes, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [[{"at": at, "v": n} for n, at in enumerate(times(*some))] for some in ((0, 1), (9, 8))]
    found = int96_rows(spark, tmp_path / "source", times(1, None, 5))
    logs = [lay_table(tmp_path / name, TIMES, files) for name in ("here", "staged")]
    known: list[Any] = []
    searched: list[bool] = []

    def observe(stage: str, outcome: Any) -> None:
        modes(stage, outcome)
        if stage == "3 source":
            known.append([*outcome.source.profile.bounds.values()])
        if stage == "4 prune":
            searched.append(outcome.lookup is not None)

    actions = update(at="s.at", v="s.v"), insert(at="s.at", v="s.v")
    merge(spark, logs[0], found, "t.at = s.at", *actions, observe=observe)
    assert modes == ["3 source rows are read from its own 1 files"]
    assert known[0][0] == LeafStatistics(*times(1, 5), null_count=1)
    monkeypatch.setattr(source, "_in_place", lambda *_: NotApplicable(reason="a test says so"))
    merge(spark, logs[1], found, "t.at = s.at", *actions, observe=observe)
    assert searched == [True, True]
    assert known[0][0] in known[1]
    rows = [sorted(map(repr, table_rows(spark, log))) for log in logs]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 6


def test_bounds_of_many_such_keys_are_those_of_a_copy(
    spark: SparkSession, tmp_path: Path, modes: Modes
) -> None:
    log = lay_table(tmp_path / "t", TIMES, [[{"at": NOON, "v": 1}]])
    many = int96_rows(spark, tmp_path / "many", times(*range(11)))
    limits = KeyLimits(rows_max=10)
    settings = replace(ExecutionSettings(), key_limits=limits)
    merge(spark, log, many, "t.at = s.at", update(v="s.v"), observe=modes, settings=settings)
    marked = int96_rows(spark, tmp_path / "marked", times(1), marked=True)
    merge(spark, log, marked, "t.at = s.at", update(v="s.v"), observe=modes)
    assert [mode.partition(" (")[0] for mode in modes] == [
        "11 source rows were staged",
        "1 source rows were staged",
    ]


@pytest.mark.thorough
def test_times_before_1900_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    old = NOON.replace(year=1500)
    log = lay_table(tmp_path / "t", TIMES, [[{"at": old, "v": 1}, {"at": NOON, "v": 2}]])
    found = int96_rows(spark, tmp_path / "source", [old, NOON])
    merge(spark, log, found, "t.at = s.at", update(v="s.v"))
    assert sorted(row["v"] for row in table_rows(spark, log)) == [100, 101]
