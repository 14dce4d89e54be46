"""What `recorded` runs: writes, streams and changes, by the calls of PySpark."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.reference.everyday import Shop, Statement, sql

Step = tuple[str, Statement]


def steps(*texts: str) -> list[Step]:
    """Statements of SQL text, which are their own labels."""
    return [(text, sql(text)) for text in texts]


def rows(query: str, use: Callable[[DataFrame], Any]) -> Statement:
    """What is done with the rows of a query."""
    return lambda shop: use(shop.spark.sql(query.replace("ROOT", shop.root)))


def into(target: str, query: str, source: str, mode: str = "append", **options: Any) -> Statement:
    """A stream from a table into another: all that is there."""

    def run(shop: Shop) -> None:
        stream = shop.spark.readStream.format("delta").load(f"{shop.root}/{source}")
        stream.createOrReplaceTempView("arriving")
        writer = shop.spark.sql(query).writeStream.format("delta").outputMode(mode)
        writer = writer.options(**options).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{shop.root}/_checkpoints/{target}")
        if "/" in target:
            writer.start(target.replace("ROOT", shop.root)).awaitTermination()
        else:
            writer.toTable(target).awaitTermination()

    return run


_NUMBERS = itertools.count()


def changes(source: str, *, again: str = "", **options: Any) -> Statement:
    """The change data feed as a stream: the rows of every batch."""

    def run(shop: Shop) -> Any:
        reader = shop.spark.readStream.format("delta").option("readChangeFeed", "true")
        reader = reader.options(**options)
        stream = reader.load(f"{shop.root}/{source}") if "/" in source else reader.table(source)
        found: list[str] = []

        def take(batch: DataFrame, _: int) -> None:
            found.extend(map(str, batch.drop("_commit_timestamp").collect()))

        name = f"{shop.root}/_checkpoints/{again or next(_NUMBERS)}"
        writer = stream.writeStream.foreachBatch(take).trigger(availableNow=True)
        writer.option("checkpointLocation", name).start().awaitTermination()
        return [stream.schema.simpleString(), *sorted(found)]

    return run


MERGES: list[Step] = [
    *steps(
        "CREATE TABLE t (id BIGINT, v INT, p INT) USING delta PARTITIONED BY (p)",
        "INSERT INTO t VALUES (1, 1, 1), (2, 2, 1), (3, 3, 2)",
    ),
    (
        "mergeInto with every clause",
        rows(
            "SELECT * FROM VALUES (1L, 10, 1), (4L, 40, 2) AS s(id, v, p)",
            lambda s: (
                s.alias("s")
                .mergeInto("t", F.expr("t.id = s.id"))
                .whenMatched(F.expr("s.v > 10"))
                .delete()
                .whenMatched()
                .update({"v": F.col("s.v")})
                .whenNotMatched(F.expr("s.v > 0"))
                .insertAll()
                .whenNotMatchedBySource(F.expr("t.id = 3"))
                .delete()
                .merge()
            ),
        ),
    ),
    (
        "mergeInto that evolves",
        rows(
            "SELECT * FROM VALUES (1L, 11, 1, 'new') AS s(id, v, p, w)",
            lambda s: (
                s.alias("s")
                .mergeInto("t", F.expr("t.id = s.id"))
                .whenMatched()
                .updateAll()
                .withSchemaEvolution()
                .merge()
            ),
        ),
    ),
]


def saved(mode: str, name: str, query: str, **options: Any) -> Statement:
    """``saveAsTable``."""

    def use(found: DataFrame) -> None:
        writer = found.write.format("delta").mode(mode)
        if "partitionBy" in options:
            writer = writer.partitionBy(options["partitionBy"])
        kept = {key: value for key, value in options.items() if key != "partitionBy"}
        writer.options(**kept).saveAsTable(name)

    return rows(query, use)


def to(name: str, query: str, use: Callable[[Any], Any], **options: Any) -> Statement:
    """``writeTo``."""

    def write(found: DataFrame) -> None:
        writer = found.writeTo(name)
        for key, value in options.items():
            writer = writer.option(key, value)
        use(writer)

    return rows(query, write)


def inserted(name: str, query: str, *, overwrite: bool | None = None, **options: Any) -> Statement:
    """``insertInto``; delta-spark reads its options after ``format("delta")`` alone."""

    def insert(found: DataFrame) -> None:
        writer = found.write.format("delta") if options else found.write
        writer.options(**options).insertInto(name, overwrite=overwrite)

    return rows(query, insert)


DYNAMIC = {"partitionOverwriteMode": "dynamic"}
TWO = "SELECT 7L AS id, 70 AS v, 1 AS p"
SAVED: list[Step] = [
    ("save a new table", saved("errorifexists", "s", TWO, partitionBy="p")),
    ("again", saved("errorifexists", "s", TWO)),
    ("ignore", saved("ignore", "s", TWO)),
    ("append", saved("append", "s", TWO)),
    ("append, by partition", saved("append", "s", TWO, partitionBy="p")),
    ("append, other order", saved("append", "s", "SELECT 3 AS p, 30 AS v, 3L AS id")),
    (
        "overwrite",
        saved("overwrite", "s", "SELECT id, 1 AS v, CAST(id % 2 AS INT) AS p FROM range(4)"),
    ),
    ("overwrite partitions", saved("overwrite", "s", TWO, **DYNAMIC)),
    (
        "overwrite partitions, by partition",
        saved("overwrite", "s", TWO, partitionBy="p", **DYNAMIC),
    ),
    ("overwrite where", saved("overwrite", "s", TWO, replaceWhere="p = 1")),
    ("overwrite where data", saved("overwrite", "s", TWO, replaceWhere="id = 7")),
    ("overwrite columns", saved("overwrite", "s", "SELECT 1 AS one", overwriteSchema="true")),
    ("overwrite, another type", saved("overwrite", "s", "SELECT 'x' AS one")),
    ("append, one more", saved("append", "s", "SELECT 2 AS one, 3 AS two", mergeSchema="true")),
    ("append with words", saved("append", "s", "SELECT 2 AS one, 3 AS two", userMetadata="why")),
    ("overwrite a table that is new", saved("overwrite", "s2", TWO)),
    ("append to a table that is new", saved("append", "s3", TWO, partitionBy="p")),
]
WRITTEN: list[Step] = [
    (
        "create",
        to(
            "w",
            TWO,
            lambda w: (
                w.using("delta").partitionedBy(F.col("p")).tableProperty("mine", "1").create()
            ),
        ),
    ),
    ("create again", to("w", TWO, lambda w: w.using("delta").create())),
    ("writeTo append", to("w", TWO, lambda w: w.append())),
    (
        "writeTo append, one more",
        to(
            "w", "SELECT 1L AS id, 2 AS v, 3 AS p, 4 AS z", lambda w: w.append(), mergeSchema="true"
        ),
    ),
    ("writeTo overwrite", to("w", TWO, lambda w: w.overwrite(F.col("p") == 1))),
    ("writeTo overwrite all", to("w", TWO, lambda w: w.overwrite(F.lit(True)))),
    ("writeTo overwrite data", to("w", TWO, lambda w: w.overwrite(F.col("id") == 7))),
    (
        "writeTo overwrite, two",
        to("w", TWO, lambda w: w.overwrite((F.col("p") == 1) & (F.col("id") > 2))),
    ),
    ("overwritePartitions", to("w", TWO, lambda w: w.overwritePartitions())),
    ("createOrReplace", to("w", TWO, lambda w: w.using("delta").createOrReplace())),
    (
        "createOrReplace, overwriteSchema",
        to(
            "w",
            "SELECT 1 AS a",
            lambda w: w.using("delta").createOrReplace(),
            overwriteSchema="true",
        ),
    ),
    (
        "createOrReplace, partitions",
        to(
            "w",
            TWO,
            lambda w: w.using("delta").partitionedBy(F.col("p")).createOrReplace(),
            **DYNAMIC,
        ),
    ),
    ("replace", to("w", TWO, lambda w: w.using("delta").replace())),
    (
        "createOrReplace a table that is new",
        to("w2", TWO, lambda w: w.using("delta").createOrReplace()),
    ),
    (
        "create a table where",
        to("w5", TWO, lambda w: w.using("delta").create(), replaceWhere="id = 7"),
    ),
    ("replace a table that is new", to("w3", TWO, lambda w: w.using("delta").replace())),
    *steps("CREATE TABLE i (id BIGINT, v INT, p INT) USING delta PARTITIONED BY (p)"),
    ("insertInto", inserted("i", TWO)),
    ("insertInto overwrite", inserted("i", TWO, overwrite=True)),
    ("insertInto dynamic", inserted("i", TWO, overwrite=True, **DYNAMIC)),
    ("insertInto where", inserted("i", TWO, overwrite=True, replaceWhere="p = 1")),
]


def built(make: str, name: str, **columns: str) -> Statement:
    """A builder by name, and the name in the detail of what it returns."""

    def run(shop: Shop) -> Any:
        builder = getattr(shop.tables.DeltaTable, make)(shop.spark).tableName(name)
        for column, kind in columns.items():
            builder = builder.addColumn(column, kind)
        table = builder.comment("built").property("mine", "1").execute()
        return [str(table.detail().select("name", "description").first())]

    return run


BUILT: list[Step] = [
    ("build", built("create", "b", a="INT")),
    ("build again", built("create", "b", a="INT")),
    ("build if there is none", built("createIfNotExists", "b", a="INT")),
    ("build anew", built("replace", "b", a="INT", c="STRING")),
    ("build or build anew", built("createOrReplace", "b", a="BIGINT")),
    ("build or build anew, new", built("createOrReplace", "default.b2", a="BIGINT")),
    ("build anew, new", built("replace", "b3", a="BIGINT")),
    ("detail by name", lambda s: [str(s.table("b").detail().select("name").first())]),
]

STREAMS: list[Step] = [
    *steps("CREATE TABLE arrivals USING delta LOCATION 'ROOT/arrivals' AS SELECT 1L AS id, 1 AS p"),
    ("stream to a path", into("ROOT/streamed", "SELECT * FROM arriving", "arrivals")),
    ("stream to a path, nothing new", into("ROOT/streamed", "SELECT * FROM arriving", "arrivals")),
    *steps("INSERT INTO arrivals VALUES (2, 2)"),
    ("stream to a path, more", into("ROOT/streamed", "SELECT * FROM arriving", "arrivals")),
    ("what was streamed", sql("SELECT * FROM delta.`ROOT/streamed`")),
    ("stream to a name", into("n", "SELECT * FROM arriving", "arrivals")),
    (
        "stream all of it",
        into(
            "counted",
            "SELECT p, count(*) AS n FROM arriving GROUP BY p",
            "arrivals",
            mode="complete",
        ),
    ),
    *steps("INSERT INTO arrivals VALUES (3, 2)"),
    (
        "stream all of it again",
        into(
            "counted",
            "SELECT p, count(*) AS n FROM arriving GROUP BY p",
            "arrivals",
            mode="complete",
        ),
    ),
    (
        "stream with a column that is new",
        into("n", "SELECT *, 1 AS extra FROM arriving", "arrivals"),
    ),
    (
        "stream and evolve",
        into("n", "SELECT *, 1 AS extra FROM arriving", "arrivals", mergeSchema="true"),
    ),
]
FAR_PAST, FAR_FUTURE = "2001-01-01T00:00:00+00:00", "2101-01-01T00:00:00+00:00"
FEEDS: list[Step] = [
    *steps(
        "CREATE TABLE f (id BIGINT, v INT) USING delta LOCATION 'ROOT/feed' "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO f VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE f SET v = 20 WHERE id = 2",
        "DELETE FROM f WHERE id = 3",
    ),
    ("feed from the snapshot", changes("/feed", again="first")),
    ("feed from the start", changes("/feed", startingVersion="0")),
    ("feed from 2", changes("/feed", startingVersion="2")),
    ("feed from the newest", changes("/feed", startingVersion="latest")),
    ("feed by name", changes("f", startingVersion="3")),
    ("feed from a time", changes("/feed", startingTimestamp=FAR_PAST)),
    ("feed from a time to come", changes("/feed", startingTimestamp=FAR_FUTURE)),
    ("feed from the next", changes("/feed", startingVersion="4")),
    ("feed from far away", changes("/feed", startingVersion="99")),
    (
        "plain stream from far away",
        lambda s: (
            s.spark.readStream.format("delta")
            .option("startingVersion", "99")
            .load(f"{s.root}/feed")
            .writeStream.format("noop")
            .option("checkpointLocation", f"{s.root}/_checkpoints/far")
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        ),
    ),
    ("feed from both", changes("/feed", startingVersion="1", startingTimestamp=FAR_PAST)),
    ("feed from nonsense", changes("/feed", startingVersion="abc")),
    ("feed from below", changes("/feed", startingVersion="-1")),
    ("feed with an end", changes("/feed", startingVersion="1", endingVersion="2")),
    ("feed of a version", changes("/feed", versionAsOf="1")),
    ("feed file by file", changes("/feed", startingVersion="0", maxFilesPerTrigger="1")),
    ("feed that ignores", changes("/feed", startingVersion="0", ignoreDeletes="true")),
    ("feed that skips", changes("/feed", startingVersion="0", skipChangeCommits="true")),
    *steps(
        "MERGE INTO f USING (SELECT 2L AS id, 200 AS v UNION ALL SELECT 5, 5) s ON f.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ),
    ("optimize", lambda s: [str(s.spark.sql("OPTIMIZE f").count())]),
    ("feed goes on", changes("/feed", again="first")),
    *steps("ALTER TABLE f ADD COLUMNS (w INT)", "INSERT INTO f VALUES (6, 6, 6)"),
    ("feed with a column more", changes("/feed", startingVersion="1")),
    *steps(
        "ALTER TABLE f SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')",
        "INSERT INTO f VALUES (7, 7, 7)",
    ),
    ("feed that ended, the snapshot", changes("/feed")),
    *steps("CREATE TABLE plain USING delta LOCATION 'ROOT/plainly' AS SELECT 1 AS a"),
    ("no feed", changes("/plainly")),
    ("no feed from the start", changes("/plainly", startingVersion="0")),
    *steps(
        "ALTER TABLE plain SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO plain VALUES (2)",
    ),
    ("feed too early", changes("/plainly", startingVersion="0")),
    ("feed as soon as it is", changes("/plainly", startingVersion="1")),
    ("feed later", changes("/plainly", startingVersion="2")),
    *steps(
        "CREATE TABLE marked (id BIGINT, p INT) USING delta PARTITIONED BY (p) LOCATION "
        "'ROOT/marked' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')",
        "INSERT INTO marked SELECT id, CAST(id % 2 AS INT) FROM range(6)",
        "DELETE FROM marked WHERE id = 3",
        "UPDATE marked SET id = 40 WHERE id = 4",
        "DELETE FROM marked WHERE p = 1",
    ),
    ("feed of marks, from the snapshot", changes("/marked")),
    ("feed of marks", changes("/marked", startingVersion="0")),
    *steps("ALTER TABLE marked RENAME COLUMN id TO key"),
    ("feed across a new name", changes("/marked", startingVersion="0")),
    ("feed of the snapshot after it", changes("/marked")),
]
