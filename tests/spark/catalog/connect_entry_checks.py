"""What `test_connect_entries` asks of a Connect server, whose session catalog is of one kind.

The server's Python does not exist. The server is in this process's JVM, so that a classic session
beside it makes entries to compare with, and shows what the catalog has stored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.commands.convert.undo import undo_convert
from puredelta.errors import DeltaError
from puredelta.spark.catalog.catalog_entries import (
    EntryName,
    default_location,
    entry_mark,
    entry_name,
    find_relation,
    is_taken,
    register,
    require_possible,
    session_catalog,
    stated_location,
    unregister,
    update_columns,
)
from puredelta.spark.catalog.connect_entries import entry_source
from puredelta.spark.jvm.catalog import CatalogTable, ViewEntry, _plain, _raw_entry
from puredelta.spark.session.session import is_connect
from puredelta.spark.session.storage import open_log
from tests.connect_session import Requests, answers_to

COLUMNS = T.StructType(
    [
        T.StructField("id", T.LongType(), False, {"comment": "it's"}),
        T.StructField(
            "a b.c",
            T.StructType(
                [T.StructField("x", T.IntegerType()), T.StructField("y z", T.StringType())]
            ),
            metadata={"comment": "one\ntwo"},
        ),
        T.StructField("d", T.DecimalType(3, 1)),
    ]
)
OTHER_COLUMNS = T.StructType(
    [
        T.StructField("z", T.IntegerType()),
        T.StructField("c", T.CharType(3)),
        T.StructField("id", T.VarcharType(3), metadata={"comment": "v"}),
        T.StructField(
            "k",
            T.StringType(),
            metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(4)", "comment": "as in the log"},
        ),
        T.StructField(
            "nested",
            T.ArrayType(
                T.StructType(
                    [
                        T.StructField("a", T.StringType()),
                        T.StructField("m", T.MapType(T.StringType(), T.StringType(), False)),
                    ]
                )
            ),
            metadata={
                "__CHAR_VARCHAR_TYPE_STRING": "array<struct<a:varchar(2),m:map<string,char(3)>>>"
            },
        ),
    ]
)
COMMENT = "it's\nLocation: Berlin\nProvider: parquet"
_OF_THE_MOMENT = {"createTime", "lastAccessTime", "identifier"}


def refused(action: Callable[[], object]) -> str | None:
    try:
        action()
    except DeltaError as error:
        return error.code.error_class
    except PySparkException as error:
        return error.getCondition()
    return "not refused"


def stored(classic: SparkSession, name: str) -> Mapping[str, Any]:
    """What the catalog keeps of an entry of ``db``, beside its name and the time."""
    text = json.dumps(kept_entry(classic, "db", name), sort_keys=True).replace(name, "NAME")
    found: Mapping[str, Any] = json.loads(text)
    return found


def kept_entry(classic: SparkSession, database: str, name: str) -> Mapping[str, Any]:
    """What the catalog keeps of an entry, beside the time."""
    entry: dict[str, Any] = dict(_plain(classic, _raw_entry(classic, database, name)))
    entry["schema"] = json.loads(str(_raw_entry(classic, database, name).schema().json()))
    entry["properties"].pop("transient_lastDdlTime", None)
    return {key: value for key, value in entry.items() if key not in _OF_THE_MOMENT}


def same_entries(spark: SparkSession, classic: SparkSession, root: Path) -> Any:
    """Entries of both sessions: external and managed, made and changed, without columns."""
    for session, prefix in ((spark, "sent_"), (classic, "made_")):
        for n, columns in enumerate((COLUMNS, T.StructType())):
            name = EntryName(database="db", name=f"{prefix}{n}")
            register(session, name, columns, location=f"{root}/t x%20/{name.name}", comment=COMMENT)
        managed = EntryName(database="db", name=f"{prefix}2")
        register(session, managed, COLUMNS, location=None)
        update_columns(session, managed, OTHER_COLUMNS)
        emptied = EntryName(database="db", name=f"{prefix}3")
        register(session, emptied, COLUMNS, location=None)
        update_columns(session, emptied, T.StructType())
    pairs = [(stored(classic, f"sent_{n}"), stored(classic, f"made_{n}")) for n in range(4)]
    found = [
        find_relation(spark, ("db", name)) == find_relation(classic, ("db", name))
        for name in (f"sent_{n}" for n in range(4))
    ]
    different = [
        {key: (one.get(key), two.get(key)) for key in {*one, *two} if one.get(key) != two.get(key)}
        for one, two in pairs
    ]
    return [found, different]


def names(spark: SparkSession, classic: SparkSession, root: Path) -> Any:
    """What a name stands for, by its spelling."""
    register(spark, EntryName(database="db", name="n"), COLUMNS, location=f"{root}/n")
    run = session_catalog(spark).run_command
    run(spark, f"CREATE TABLE db.other (id INT) USING parquet LOCATION '{root}/other'")
    run(
        spark,
        "CREATE VIEW db.v COMMENT 'View Text: no' AS SELECT 1 AS a\n-- Location: x\nWHERE true",
    )
    run(spark, "CREATE TEMPORARY VIEW tv AS SELECT 2 AS a")
    spark.range(1).createOrReplaceTempView("n")
    spark.range(1).createOrReplaceGlobalTempView("g")

    def what(*parts: str) -> str:
        match find_relation(spark, parts):
            case CatalogTable() as table:
                return table.full_name
            case ViewEntry() as view:
                return f"{view.database}.{view.name}: {view.text.split()}"
            case None:
                return ""

    found = [
        what("db", "n"), what("db", "N"), what("spark_catalog", "db", "n"),
        what("cat", "db", "n"), what("a", "cat", "db", "n"), what("nowhere", "n"),
        what("db", "missing"), what("db", "n|v"), what("db", "*"), what("db", "it's `n`"),
        what("n"), what("tv"), what("db", "v"), what("db", "other"), what("global_temp", "g"),
    ]  # fmt: skip
    run(spark, "USE db")
    found += [what("n"), what("v"), str(entry_name(spark, ("x",))), what("tv")]
    run(spark, "DROP VIEW n")
    found += [what("n")]
    run(spark, "USE default")
    run(spark, "SET spark.sql.caseSensitive = true")
    cased = [what("db", "n"), what("db", "N")]
    run(spark, "RESET spark.sql.caseSensitive")
    taken = [is_taken(spark, EntryName(database="db", name=name)) for name in ("v", "tv", "other")]
    return [found, cased, taken]


def places(spark: SparkSession, classic: SparkSession, _: Path) -> Any:
    """Locations that Spark chooses or completes, and places that are not there."""
    name = EntryName(database="db", name="At")
    relative = ("x", "x/../y z/", "./x", "../x")
    return [
        default_location(spark, name) == default_location(classic, name),
        [stated_location(spark, name, at) == stated_location(classic, name, at) for at in relative],
        refused(lambda: require_possible(spark, EntryName(database="db", name="a b"))),
        refused(lambda: require_possible(spark, EntryName(database="nowhere", name="a"))),
        refused(lambda: register(spark, EntryName(database="nowhere", name="a"), COLUMNS,
                                 location=None)),
    ]  # fmt: skip


def taken_back(spark: SparkSession, _: SparkSession, __: Path) -> Any:
    """The directory of a managed table stays with everything in it."""
    name = EntryName(database="db", name="back")
    register(spark, name, COLUMNS, location=None)
    mark = entry_mark(spark, name)
    directory = Path(default_location(spark, name).removeprefix("file:"))
    (directory / "kept").write_text("x")
    unregister(spark, name)
    left = sorted(path.name for path in directory.parent.glob("back*"))
    return [bool(mark), is_taken(spark, name), left, [path.name for path in directory.iterdir()]]


def unreadable(spark: SparkSession, _: SparkSession, root: Path) -> Any:
    """Nobody reads the directory as files of another format."""
    register(spark, EntryName(database="db", name="u"), COLUMNS, location=f"{root}/u")
    texts = ("SELECT * FROM db.u", "INSERT INTO db.u VALUES (1, NULL, 2)", "TABLE db.u")
    other = spark.newSession()
    run = session_catalog(spark).run_command
    return [
        [refused(lambda text=text: other.sql(text).collect()) for text in texts],
        [refused(lambda text=text: run(spark, text)) for text in texts],
    ]


def converted(spark: SparkSession, classic: SparkSession, root: Path) -> Any:
    """Tables of Parquet files that CONVERT makes Delta tables: partitioned and not."""
    columns = "`i-d` INT COMMENT 'it''s', c CHAR(3), n STRING DEFAULT 'x, y', p INT, `q-r` STRING"
    for session, prefix in ((spark, "sent_"), (classic, "made_")):
        run = partial(session_catalog(session).run_command, session)
        for name, partitions in (("plain", ""), ("parts", " PARTITIONED BY (p, `q-r`)")):
            table = f"{prefix}{name}"
            run(f"CREATE TABLE db.{table} ({columns}) USING parquet{partitions} COMMENT 'co\\nm' "
                f"LOCATION '{root}/a b%20/{table}' TBLPROPERTIES ('k' = 'v, w=[1]')")  # fmt: skip
            run(f"INSERT INTO db.{table} VALUES (1, 'a', 'n', 1, 'a b/=%'), (2, 'b', 'm', 2, NULL)")
            convert_to_delta(session, f"db.{table}")
    run = partial(session_catalog(spark).run_command, spark)
    run("CREATE TABLE db.managed (id INT) USING parquet")
    found: list[Any] = [refused(partial(convert_to_delta, spark, "db.managed"))]
    found += [
        _definition(root / f"a b%20/sent_{name}") == _definition(root / f"a b%20/made_{name}")
        for name in ("plain", "parts")
    ]
    at, name = f"{root}/a b%20/sent_plain", EntryName(database="db", name="made_as")
    register(classic, name, _LISTED, location=at, comment="co\nm")
    one = json.dumps(stored(classic, "sent_plain")).replace("NAME", "sent_plain")
    found.append(
        one.replace("sent_plain", "NAME")
        == json.dumps(stored(classic, "made_as")).replace("sent_plain", "NAME")
    )
    found.append(refused(partial(undo_convert, spark, "db.sent_plain")))
    return [*found, open_log(spark, at).latest_version()]


_LISTED = T.StructType(
    [
        T.StructField("i-d", T.IntegerType(), metadata={"comment": "it's"}),
        T.StructField("c", T.StringType()),
        T.StructField("n", T.StringType()),
        T.StructField("p", T.IntegerType()),
        T.StructField("q-r", T.StringType()),
    ]
)


def _definition(root: Path) -> Any:
    """The first commit, as far as two of the same files are the same."""
    lines = (root / "_delta_log/00000000000000000000.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    [meta] = [action["metaData"] for action in actions if "metaData" in action]
    added = [action["add"] for action in actions if "add" in action]
    tags = [action["commitInfo"]["tags"] for action in actions if "commitInfo" in action]
    kept = json.loads(tags[0]["puredelta.convertedEntry"])
    kept["properties"].pop("transient_lastDdlTime", None)
    for key in ("serdeName", "locationUri"):
        kept["storage"].pop(key, None)
    for field in kept["schema"]["fields"]:  # Hive's metastore repeats the type, which is there
        field["metadata"].pop("__CHAR_VARCHAR_TYPE_STRING", None)
    return [
        [meta[key] for key in ("schemaString", "partitionColumns", "configuration", "description")],
        sorted(json.dumps([add["partitionValues"], add["stats"]]) for add in added),
        kept,
    ]


def requests(spark: SparkSession, _: SparkSession, root: Path) -> Any:
    """The number of requests: of the first entry of a session, of another one, of a look."""
    other = spark.newSession()
    with Requests(other) as sent:
        counts = []
        for n in range(2):
            sent.clear()
            name = EntryName(database="db", name=f"r{n}")
            register(other, name, COLUMNS, location=f"{root}/r")
            counts.append(dict(sent))
        for parts in (("db", "r0"), ("spark_catalog", "db", "r0")):
            sent.clear()
            find_relation(other, parts)
            counts.append(dict(sent))
    return counts


CHECKS = (same_entries, names, places, taken_back, unreadable, converted, requests)
AMOUNTS = {"sample": (same_entries, names, taken_back, requests), "every": CHECKS}


def session_of(root: Path, kind: str) -> SparkSession:
    """Start a server whose session catalog is in memory, or a metastore of Hive."""
    spark: SparkSession = (
        SparkSession.builder.remote("local[2]")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={root} -Duser.timezone=UTC")
        .config("spark.sql.warehouse.dir", str(root / "warehouse"))
        .config("spark.sql.catalogImplementation", kind)
        .config("spark.pyspark.python", "/no/such/python")
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            f"jdbc:derby:;databaseName={root}/metastore;create=true",
        )
        .config("spark.hadoop.datanucleus.schema.autoCreateAll", "true")
        .config("spark.hadoop.hive.metastore.schema.verification", "false")
        .getOrCreate()
    )
    assert is_connect(spark)
    return spark


def main(root: Path, kind: str, amount: str) -> None:
    spark = session_of(root, kind)
    classic: Any = SparkSession._instantiatedSession
    classic.sparkContext.setLogLevel("OFF")
    classic.dataSource.register(entry_source())
    session_catalog(spark).run_command(spark, "CREATE DATABASE db")
    answers = answers_to(AMOUNTS[amount], spark, classic, directory=root)
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
