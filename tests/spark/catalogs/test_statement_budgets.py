"""Requests to the catalog and calls of the store of statements by name, beside those by path.

A read costs at most two round trips more than on the same table at a path, a commit three requests
and three calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.errors import UnsupportedError
from puredelta.store.local import LocalStore
from puredelta.tables import DeltaTable
from tests.servers.unity import REQUIRED, SUGGESTED, UnityServer, unity_server
from tests.spark.catalogs.conftest import activated

NAME = "main.sales.t"
CALLS = (
    "delete",
    "exists",
    "flush",
    "inventory",
    "list_from",
    "move",
    "open",
    "put",
    "put_parts_if_absent",  # `put_if_absent` calls it
    "read",
    "read_end",
    "walk",
)
READ, COMMIT = 2, 3


class Both:
    """A managed table and one at a path with the same properties, with counts of a call."""

    def __init__(self, spark: SparkSession, server: UnityServer, folder: Path) -> None:
        self.spark, self.server, self.folder = spark, server, folder
        self.path = f"{folder}/plain"
        self.place = f"delta.`{self.path}`"
        self.calls: Counter[str] = Counter()
        spark.sql(
            f"CREATE TABLE {NAME} (id BIGINT, note STRING) "
            "TBLPROPERTIES ('delta.checkpointInterval' = '1000')"
        )
        stated = {
            "delta.checkpointInterval": "1000",
            **REQUIRED,
            **{key: text for key, text in SUGGESTED.items() if text},
        }
        self.properties = ", ".join(f"'{key}' = '{text}'" for key, text in stated.items())
        spark.sql(f"CREATE TABLE {self.place} (id BIGINT, note STRING) {self.definition}")
        for table in (NAME, self.place):
            spark.sql(f"INSERT INTO {table} SELECT id, 'a' FROM range(9)")

    @property
    def definition(self) -> str:
        return f"USING delta TBLPROPERTIES ({self.properties})"

    def count(self, call: Callable[[], Any]) -> tuple[list[str], Counter[str]]:
        """Return the requests and the calls of the store."""
        self.calls.clear()
        self.server.requests.clear()
        call()
        return [f"{method} {path}" for method, path, _ in self.server.requests], +self.calls


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("budgets")
    with (
        pytest.MonkeyPatch.context() as patch,
        unity_server(f"file:{folder}/unity") as server,
        activated(spark, server) as session,
    ):
        for module in ("log.managed.managed_store", "spark.session.catalogs"):
            patch.setattr(f"puredelta.{module}.ANSWER_S", 60.0)  # on a busy machine, too
        made = Both(session, server, folder)
        for name in CALLS:
            patch.setattr(LocalStore, name, _counted(made, name, getattr(LocalStore, name)))
        yield made


def _counted(both: Both, name: str, method: Any) -> Any:
    def call(*args: Any, **rest: Any) -> Any:
        both.calls[name] += 1
        return method(*args, **rest)

    return call


MERGE = (
    "MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
READS = [
    "SELECT * FROM {t}",
    "SELECT count(*) FROM {t} WHERE id > 3",
    "SELECT * FROM {t} VERSION AS OF 1",
    "SELECT a.id FROM {t} AS a JOIN {t} AS b ON a.id = b.id",
    "WITH q AS (SELECT * FROM {t}) SELECT * FROM q WHERE id IN (SELECT id FROM {t})",
    "DESCRIBE DETAIL {t}",
    "DESCRIBE TABLE {t}",
    "DESCRIBE HISTORY {t}",
    "SHOW TBLPROPERTIES {t}",
    "UPDATE {t} SET note = 'none' WHERE id = -1",
]
WRITES = [
    "INSERT INTO {t} VALUES (11, 'b')",
    "INSERT INTO {t} SELECT id + 20, note FROM {t}",
    "INSERT INTO {t} REPLACE WHERE id = 11 VALUES (11, 'c')",
    "UPDATE {t} SET note = 'u' WHERE id = 3",
    "DELETE FROM {t} WHERE id = 4",
    MERGE.replace("{s}", "(SELECT 1L AS id, 'm' AS note)"),
    MERGE.replace("{s}", "{t}"),
    "ALTER TABLE {t} ADD COLUMNS (more INT)",
    "TRUNCATE TABLE {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 1",
    "ALTER TABLE {t} SET TBLPROPERTIES ('my.owner' = 'us')",
]
ONE_QUESTION = [
    "DESCRIBE HISTORY {t}",
    "DESCRIBE HISTORY {t} LIMIT 1",
    "SHOW TBLPROPERTIES {t}",
    "SELECT * FROM {t}",
    "SELECT * FROM {t} VERSION AS OF 1",
    "SELECT * FROM table_changes('{t}', 1)",
    "SELECT * FROM table_changes('{t}', 1, 2)",
]
"""Statements that need no more than one answer, however often they list the log."""


def compare(both: Both, run: Callable[[str], Any], *, requests: int, calls: int) -> None:
    _, beside = both.count(lambda: run(both.place))
    asked, called = both.count(lambda: run(NAME))
    assert len(asked) <= requests, asked
    assert called.total() - beside.total() <= calls, (called, beside)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", READS)
def test_a_read_costs_two_requests_and_no_call_more(both: Both, text: str) -> None:
    compare(both, lambda t: both.spark.sql(text.format(t=t)).collect(), requests=READ, calls=0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", WRITES)
def test_a_write_costs_a_read_and_a_commit_more(both: Both, text: str) -> None:
    compare(both, lambda t: both.spark.sql(text.format(t=t)), requests=READ + COMMIT, calls=COMMIT)


@pytest.fixture(scope="module")
def feed(both: Both) -> str:
    """A table of its own, with a change data feed and three versions."""
    name = f"{NAME}_feed"
    properties = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    both.spark.sql(f"CREATE TABLE {name} (id BIGINT) {properties}")
    for number in range(2):
        both.spark.sql(f"INSERT INTO {name} VALUES ({number})")
    return name


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ONE_QUESTION)
def test_one_answer_serves_a_whole_statement(both: Both, feed: str, text: str) -> None:
    asked, _ = both.count(lambda: both.spark.sql(text.format(t=feed)).collect())
    assert len(asked) == 1, asked


@pytest.mark.thorough
def test_versions_that_an_answer_has_named_are_read_without_another(both: Both, feed: str) -> None:
    """A builder that holds a table asks for its newest version each time, for older ones never."""
    held = DeltaTable.forName(both.spark, feed)
    for call, limit in (
        (lambda: DeltaTable.forName(both.spark, feed), 1),
        (lambda: held.history().collect(), 1),
        (lambda: held.restoreToVersion(1), 1 + COMMIT),
        (lambda: puredelta.upsert(feed, both.spark.range(9, 10), keys="id"), READ + COMMIT),
    ):
        asked, _ = both.count(call)
        assert len(asked) <= limit, asked


@pytest.mark.thorough
def test_frames_and_builders(both: Both) -> None:
    spark, rows = both.spark, both.spark.sql("SELECT 1L AS id, 'f' AS note")

    def read(t: str) -> None:
        frame = spark.table(t) if t == NAME else spark.read.format("delta").load(both.path)
        frame.collect()

    def append(t: str) -> None:
        writer = rows.write.format("delta").mode("append")
        writer.saveAsTable(t) if t == NAME else writer.save(both.path)

    def delete(t: str) -> None:
        found = DeltaTable.forName if t == NAME else DeltaTable.forPath
        found(spark, t if t == NAME else both.path).delete("id = 1")

    compare(both, read, requests=READ, calls=0)
    # `saveAsTable` looks at the columns first, whatever the table is.
    compare(both, append, requests=READ + COMMIT, calls=1 + COMMIT)
    compare(both, delete, requests=1 + READ + COMMIT, calls=READ + COMMIT)


def test_new_tables(both: Both) -> None:
    def create(t: str) -> None:
        name = f"{NAME}2" if t == NAME else f"delta.`{both.path}2`"
        defined = "" if t == NAME else both.definition
        both.spark.sql(f"CREATE TABLE {name} {defined} AS SELECT 1L AS id")

    compare(both, create, requests=COMMIT, calls=COMMIT)


def test_an_answer_serves_one_call(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has seen nothing of another one's commits reads them with its next call."""
    spark = both.spark
    held = DeltaTable.forName(spark, NAME)
    for call in (
        lambda: spark.sql(f"SELECT * FROM {NAME}").count(),
        lambda: spark.table(NAME).count(),
        lambda: held.toDF().count(),
    ):
        before = call()
        with monkeypatch.context() as patch:
            patch.setattr("puredelta.log.managed.managed_store._newest_seen", {})
            for table in (NAME, both.place):  # they stay alike
                spark.sql(f"INSERT INTO {table} (id) VALUES (700)")
        assert call() == before + 1


def test_a_refusal_is_two_requests(both: Both) -> None:
    def optimize() -> None:
        with pytest.raises(UnsupportedError):
            both.spark.sql(f"OPTIMIZE {NAME}")

    asked, _ = both.count(optimize)
    assert len(asked) <= READ


@pytest.mark.thorough
def test_a_batch_of_a_stream(both: Both) -> None:
    spark = both.spark

    def read(t: str) -> None:
        reader = spark.readStream.format("delta")
        frame = reader.table(t) if t == NAME else reader.load(both.path)
        place = f"{both.folder}/read-{t == NAME}"
        writer = frame.writeStream.format("noop").option("checkpointLocation", place)
        writer.trigger(availableNow=True).start().awaitTermination()

    def write(t: str) -> None:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        writer = source.selectExpr("value AS id", "'s' AS note").writeStream.format("delta")
        place = f"{both.folder}/write-{t == NAME}"
        writer = writer.option("checkpointLocation", place).trigger(once=True)
        query = writer.toTable(t) if t == NAME else writer.start(both.path)
        query.awaitTermination()

    for _ in range(2):  # the start, a batch, and the question for the next one
        compare(both, read, requests=1 + 2 * READ, calls=0)
        compare(both, write, requests=1 + COMMIT, calls=COMMIT)
