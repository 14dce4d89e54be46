"""Statements that read the table they write: which version, and what conflicts with them (X-29a).

The rows and the exceptions are those that delta-spark 4.4.0 gave for the same calls, but where a
test says otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from puredelta import DeltaTable
from puredelta.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ErrorCode,
    InvalidRequestError,
)
from puredelta.log.commit.transaction import Transaction
from puredelta.log.replay.table_log import TableLog

RIVAL = 100
"""The id of the row that the other writer adds."""

Form = Callable[[str, DataFrame], object]
"""Writes rows that a frame of the table gives into that table."""


def commits(path: str) -> list[tuple[str, bool]]:
    """Return the operation of every commit after the first, and whether it is a blind append."""
    files = sorted(Path(path, "_delta_log").glob("*.json"))[1:]
    infos = [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files]
    return [(info["operation"], info["isBlindAppend"]) for info in infos]


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(path).select("id").collect())


def append_as_rival(path: str, *, part: int = 0) -> None:
    """Commit one row as another engine would."""
    name = f"p={part}/rival.parquet"
    Path(path, name).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([RIVAL], pa.int64())}), Path(path, name))
    stats = {
        "numRecords": 1,
        "minValues": {"id": RIVAL},
        "maxValues": {"id": RIVAL},
        "nullCount": {"id": 0},
    }
    add = {
        "path": name,
        "partitionValues": {"p": str(part)},
        "size": Path(path, name).stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    info = {"timestamp": 1, "operation": "WRITE", "isBlindAppend": True}
    commit_as_rival(path, {"commitInfo": info}, {"add": add})


def commit_as_rival(path: str, *actions: object) -> None:
    version = TableLog.open(path).latest_version()
    assert version is not None
    file = Path(path, f"_delta_log/{version + 1:020d}.json")
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import puredelta  # noqa: PLC0415 - the tests use the activated session

    path = tmp_path_factory.mktemp("template") / "table"
    rows = spark.range(10).selectExpr("id", "id % 2 AS p").coalesce(1)
    puredelta.write(rows, path, partition_by=["p"])
    return path


@pytest.fixture
def path(active: SparkSession, template: Path, tmp_path: Path) -> str:
    """Rows 0 to 9, partitioned by their parity."""
    shutil.copytree(template, tmp_path / "table")
    return str(tmp_path / "table")


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Let another writer commit once when a statement is about to."""

    def prepare(rival: Callable[[], None]) -> None:
        pending, commit = [rival], Transaction.commit

        def raced(self: Transaction, request: object) -> object:
            if pending:
                pending.pop()()
            return commit(self, request)  # type: ignore[arg-type]

        monkeypatch.setattr(Transaction, "commit", raced)

    return prepare


# --- the forms ------------------------------------------------------------------------------


def append_all(path: str, rows: DataFrame) -> None:
    rows.write.format("delta").mode("append").save(path)


def append(path: str, rows: DataFrame) -> None:
    append_all(path, rows.where("id < 3"))


def overwrite(path: str, rows: DataFrame) -> None:
    rows.where("id % 2 = 0").write.format("delta").mode("overwrite").save(path)


def overwrite_partitions(path: str, rows: DataFrame) -> None:
    writer = rows.where("p = 0").write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)


def replace_partition(path: str, rows: DataFrame) -> None:
    writer = rows.where("p = 0").write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "p = 0").save(path)


def replace_rows(path: str, rows: DataFrame) -> None:
    writer = rows.where("id < 4").write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "id < 4").save(path)


def insert(path: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("own_rows")
    rows.sparkSession.sql(f"INSERT INTO delta.`{path}` SELECT id, p FROM own_rows WHERE id < 3")


def insert_overwrite(path: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("own_rows")
    rows.sparkSession.sql(f"INSERT OVERWRITE delta.`{path}` SELECT id, 1L FROM own_rows WHERE p=0")


def write_to_append(path: str, rows: DataFrame) -> None:
    rows.where("id < 3").writeTo(f"delta.`{path}`").append()


def write_to_overwrite(path: str, rows: DataFrame) -> None:
    rows.where("p = 0").writeTo(f"delta.`{path}`").overwrite(F.expr("p = 0"))


def write_to_replace(path: str, rows: DataFrame) -> None:
    rows.where("p = 0").writeTo(f"delta.`{path}`").using("delta").replace()


def replace_as_select(path: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("own_rows")
    rows.sparkSession.sql(
        f"CREATE OR REPLACE TABLE delta.`{path}` USING delta AS SELECT * FROM own_rows WHERE p = 0"
    )


def merge_insert(path: str, rows: DataFrame) -> None:
    source = rows.where("p = 0").selectExpr("id + 1000 AS id", "p").alias("s")
    target = DeltaTable.forPath(rows.sparkSession, path).alias("t")
    target.merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()


def merge_of_query(path: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("own_rows")
    rows.sparkSession.sql(
        f"""MERGE INTO delta.`{path}` t USING (SELECT max(id) + 1 AS id, 0L AS p FROM own_rows) s
        ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"""
    )


def append_self_join(path: str, rows: DataFrame) -> None:
    joined = rows.alias("a").join(rows.alias("b"), "id").select("id", "a.p").where("id < 3")
    joined.write.format("delta").mode("append").save(path)


EVEN, ALL = [0, 2, 4, 6, 8], list(range(10))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (append, [0, 0, 1, 1, 2, 2, *range(3, 10), RIVAL]),
        (overwrite, [*EVEN, RIVAL]),
        (overwrite_partitions, [*ALL, RIVAL]),
        (replace_partition, [*ALL, RIVAL]),
        (replace_rows, [*ALL, RIVAL]),
        (insert, [0, 0, 1, 1, 2, 2, *range(3, 10), RIVAL]),
        (insert_overwrite, [*EVEN, RIVAL]),
        (write_to_append, [0, 0, 1, 1, 2, 2, *range(3, 10), RIVAL]),
        (write_to_overwrite, [*ALL, RIVAL]),
        (write_to_replace, [*EVEN, RIVAL]),
        (replace_as_select, [*EVEN, RIVAL]),
        (merge_insert, [*ALL, RIVAL, *(1000 + n for n in EVEN), 1000 + RIVAL]),
        (merge_of_query, [*ALL, RIVAL, RIVAL + 1]),
        (append_self_join, [0, 0, 1, 1, 2, 2, *range(3, 10), RIVAL]),
    ],
)
def test_x_29a_a_frame_made_before_a_rivals_commit_gives_the_rows_after_it(
    active: SparkSession, path: str, form: Form, expected: list[int]
) -> None:
    rows = active.read.format("delta").load(path)
    append_as_rival(path)
    form(path, rows)
    assert ids(active, path) == expected
    assert commits(path)[1][1] is False


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "form",
    [
        append,
        overwrite,
        overwrite_partitions,
        replace_rows,
        insert,
        write_to_append,
        replace_as_select,
        merge_insert,
        append_self_join,
    ],
)
def test_x_29a_a_rivals_rows_that_should_have_been_read_conflict(
    active: SparkSession,
    path: str,
    race: Callable[[Callable[[], None]], None],
    form: Form,
) -> None:
    before = {file for file in Path(path).rglob("*.parquet") if "rival" not in file.name}
    race(lambda: append_as_rival(path))
    with pytest.raises(ConcurrentAppendException):
        form(path, active.read.format("delta").load(path).selectExpr("id + 0 AS id", "p"))
    assert ids(active, path) == [*ALL, RIVAL]
    assert {file for file in Path(path).rglob("*.parquet") if "rival" not in file.name} == before


def test_x_29a_rows_of_another_table_are_no_reads(
    active: SparkSession, path: str, template: Path, race: Callable[[Callable[[], None]], None]
) -> None:
    race(lambda: append_as_rival(path))
    append(path, active.read.format("delta").load(str(template)))
    assert commits(path) == [("WRITE", True), ("WRITE", True)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("p = 0", "elsewhere"),
        ("p = 0", "within"),
        ("p = 0 AND id < 5", "elsewhere"),
        # delta-spark conflicts: it looks at partition columns only.
        ("p = 0 AND id < 5", "elsewhere by statistics"),
        ("id IN (1, 2)", "elsewhere by statistics"),
        ("p = 0 OR rand() < 2", "who knows"),
        ("p = 0 OR current_timestamp() > '2020-01-01'", "who knows"),
    ],
)
def test_x_29a_a_filter_bounds_what_is_read(
    active: SparkSession,
    path: str,
    race: Callable[[Callable[[], None]], None],
    condition: str,
    where: str,
) -> None:
    rows = active.read.format("delta").load(path).where(condition)
    race(lambda: append_as_rival(path, part=1 if where in {"elsewhere", "who knows"} else 0))
    if where in {"within", "who knows"}:
        with pytest.raises(ConcurrentAppendException):
            append_all(path, rows)
    else:
        append_all(path, rows)
        assert commits(path) == [("WRITE", True), ("WRITE", False)]


def test_x_29a_two_filtered_reads_are_both_counted(
    active: SparkSession, path: str, race: Callable[[Callable[[], None]], None]
) -> None:
    table = active.read.format("delta").load(path)
    rows = table.where("p = 0").union(table.where("p = 1"))
    race(lambda: append_as_rival(path, part=1))
    with pytest.raises(ConcurrentAppendException):
        append_all(path, rows)


def test_x_29a_a_filter_above_an_aggregation_bounds_nothing(
    active: SparkSession, path: str, race: Callable[[Callable[[], None]], None]
) -> None:
    rows = active.read.format("delta").load(path).groupBy("p").agg(F.max("id").alias("id"))
    race(lambda: append_as_rival(path, part=1))
    with pytest.raises(ConcurrentAppendException):
        append_all(path, rows.where("id < 10"))


def test_x_29a_a_filter_above_what_counts_rows_bounds_nothing(
    active: SparkSession, path: str, race: Callable[[Callable[[], None]], None]
) -> None:
    rows = active.read.format("delta").load(path).withColumn("id", F.monotonically_increasing_id())
    race(lambda: append_as_rival(path, part=1))
    with pytest.raises(ConcurrentAppendException):
        append_all(path, rows.where("p = 0"))


def test_x_29a_a_version_that_was_asked_for_is_read_as_it_is(
    active: SparkSession, path: str, race: Callable[[Callable[[], None]], None]
) -> None:
    append_as_rival(path)
    rows = active.read.format("delta").option("versionAsOf", 0).load(path)
    append(path, rows)
    assert commits(path)[1] == ("WRITE", True)
    overwrite(path, rows)
    assert ids(active, path) == EVEN


def test_x_29a_rows_that_a_rival_deleted_conflict(
    active: SparkSession, path: str, race: Callable[[Callable[[], None]], None]
) -> None:
    (add,) = (a for a in TableLog.open(path).snapshot().files.adds() if "p=0" in a.path)
    remove = {"path": add.path, "deletionTimestamp": 1, "dataChange": True}
    race(lambda: commit_as_rival(path, {"commitInfo": {"timestamp": 1}}, {"remove": remove}))
    rows = active.read.format("delta").load(path).where("p = 0")
    with pytest.raises(ConcurrentDeleteReadException):
        append(path, rows)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spelling", ["{}/", "file:{}", "file://{}", "{}/../table"])
def test_x_29a_a_table_is_known_by_any_path(active: SparkSession, path: str, spelling: str) -> None:
    rows = active.read.format("delta").load(spelling.format(path))
    append_as_rival(path)
    overwrite(path, rows)
    assert ids(active, path) == [*EVEN, RIVAL]


def test_x_29a_a_table_is_known_through_links(
    active: SparkSession, path: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(path)
    rows = active.read.format("delta").load(str(tmp_path / "link"))
    append_as_rival(path)
    overwrite(path, rows)
    assert ids(active, path) == [*EVEN, RIVAL]


@pytest.fixture
def named(active: SparkSession, path: str) -> Iterator[str]:
    active.sql(f"CREATE TABLE own_reads USING delta LOCATION '{path}'")
    yield path
    active.sql("DROP TABLE own_reads")


SELF_INSERTS = [
    "INSERT INTO own_reads SELECT max(id) + 1, 0L FROM own_reads",
    "INSERT INTO own_reads SELECT max(id) + 1, 0L FROM delta.`{path}`",
    "INSERT INTO delta.`{path}` SELECT max(id) + 1, 0L FROM own_reads",
    "INSERT INTO own_reads SELECT (SELECT max(id) + 1 FROM own_reads), 0L",
    """INSERT INTO own_reads SELECT id, 0L FROM range({end}) r
        WHERE NOT EXISTS (SELECT 1 FROM own_reads o WHERE o.id = r.id)""",
    "WITH c AS (SELECT id FROM own_reads) INSERT INTO own_reads SELECT max(id) + 1, 0L FROM c",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", SELF_INSERTS)
def test_x_29a_an_insert_of_its_own_rows_is_no_blind_append(
    active: SparkSession, named: str, race: Callable[[Callable[[], None]], None], text: str
) -> None:
    active.sql(text.format(path=named, end=11))
    assert ids(active, named) == list(range(11))
    assert commits(named) == [("WRITE", False)]
    race(lambda: append_as_rival(named))
    with pytest.raises(ConcurrentAppendException):
        active.sql(text.format(path=named, end=12))


SELF_CHANGES = [
    "UPDATE own_reads SET id = (SELECT max(id) + 1 FROM delta.`{path}`) WHERE id = 1",
    """MERGE INTO own_reads t USING (SELECT 1L AS id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET id = 1 + (SELECT max(id) FROM delta.`{path}`)""",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", SELF_CHANGES)
def test_x_29a_a_value_that_looks_at_the_table_itself_is_a_read(
    active: SparkSession, named: str, race: Callable[[Callable[[], None]], None], text: str
) -> None:
    active.sql(text.format(path=named))
    assert ids(active, named) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    active.sql("UPDATE own_reads SET id = 1 WHERE id = 10")
    race(lambda: append_as_rival(named))
    with pytest.raises(ConcurrentAppendException):
        active.sql(text.format(path=named))


@pytest.mark.thorough
def test_x_29a_frames_of_names_and_views_are_brought_up_to_date(
    active: SparkSession, named: str
) -> None:
    active.read.format("delta").load(named).createOrReplaceTempView("own_view")
    active.sql("CREATE OR REPLACE TEMP VIEW own_view_of_view AS SELECT id, p FROM own_view")
    by_view, by_name = active.table("own_view_of_view"), active.table("own_reads")
    append_as_rival(named)
    by_view.where("id > 5").write.format("delta").mode("overwrite").saveAsTable("own_reads")
    assert ids(active, named) == [6, 7, 8, 9, RIVAL]
    by_name.where("id > 7").write.insertInto("own_reads")
    assert ids(active, named) == [6, 7, 8, 8, 9, 9, RIVAL, RIVAL]


def test_x_29a_a_cached_frame_is_no_excuse(active: SparkSession, path: str) -> None:
    """delta-spark writes the cached rows: the rival's row is gone."""
    rows = active.read.format("delta").load(path).cache()
    try:
        assert rows.count() == len(ALL)
        append_as_rival(path)
        overwrite(path, rows)
    finally:
        rows.unpersist()
    assert ids(active, path) == [*EVEN, RIVAL]


def test_x_29a_columns_that_are_gone_are_an_error(active: SparkSession, path: str) -> None:
    rows = active.read.format("delta").load(path)
    new = active.sql("SELECT 'a' AS other, 0L AS p")
    new.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    with pytest.raises(InvalidRequestError) as caught:
        new.join(rows.select("id"), F.lit(True)).select("other", "p").write.format("delta").mode(
            "append"
        ).save(path)
    assert caught.value.code is ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS
    assert len(commits(path)) == 1


def test_x_29a_columns_that_are_new_do_not_matter(active: SparkSession, path: str) -> None:
    rows = active.read.format("delta").load(path)
    active.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN c INT")
    append(path, rows)
    assert ids(active, path)[:6] == [0, 0, 1, 1, 2, 2]


def test_x_29a_a_change_feed_is_of_the_past(active: SparkSession, path: str) -> None:
    active.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    append(path, active.range(2).selectExpr("id", "0L AS p"))
    feed = active.read.format("delta").option("readChangeFeed", "true")
    append(path, feed.option("startingVersion", 2).load(path).select("id", "p"))
    assert commits(path)[-1] == ("WRITE", True)
