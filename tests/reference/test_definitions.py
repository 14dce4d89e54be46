"""Tables created, altered and maintained by both: the same commits, or the same error class."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import types as T

from puredelta import tables as ours
from puredelta.commands.alter.change import cluster_table_by
from puredelta.commands.alter.columns import (
    ColumnEdit,
    NewColumn,
    Unset,
    add_table_columns,
    change_table_columns,
    drop_table_columns,
    rename_table_column,
)
from puredelta.commands.alter.constraints import add_check_constraint, drop_check_constraint
from puredelta.commands.alter.properties import set_table_properties, unset_table_properties
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.schema.schema_edit import After, End
from tests.reference.commits import latest_version, outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Define = Callable[[Any, Any], Any]

DEFINITIONS: dict[str, Define] = {
    "comment, NOT NULL, property": lambda b, _: (
        b.addColumn("a", "INT", nullable=False, comment="c")
        .addColumn("b", T.StringType())
        .property("mine", "1")
        .property("delta.appendonly", "TRUE")
        .comment("table")
    ),
    "partitioned": lambda b, _: b.addColumn("a", "INT").addColumn("p", "DATE").partitionedBy("P"),
    "clustered and mapped": lambda b, _: (
        b.addColumn("a", "INT")
        .addColumn("s", "STRUCT<x: INT, l: ARRAY<STRUCT<q: INT>>>")
        .clusterBy("s.x", "a")
        .property("delta.columnMapping.mode", "name")
    ),
    "generated": lambda b, _: b.addColumn("a", "INT").addColumn(
        "g", "INT", generatedAlwaysAs="a + 1", comment="gc"
    ),
    "identity": lambda b, module: b.addColumn(
        "a", "BIGINT", generatedAlwaysAs=module.IdentityGenerator()
    ).addColumn("b", "BIGINT", generatedByDefaultAs=module.IdentityGenerator(5, -2)),
    "char and varchar": lambda b, _: b.addColumn("a", "CHAR(3)").addColumn("v", "VARCHAR(5)"),
    "timestamp_ntz": lambda b, _: b.addColumn("a", "TIMESTAMP_NTZ"),
    "metadata": lambda b, _: b.addColumns(
        [T.StructField("a", T.IntegerType(), False, {"mine": 1, "comment": "c"})]
    ),
    "a default in the metadata": lambda b, _: b.addColumns(
        [T.StructField("a", T.IntegerType(), True, {"CURRENT_DEFAULT": "1"})]
    ).property("delta.feature.allowColumnDefaults", "supported"),
    "ids of another table in the metadata": lambda b, _: b.addColumns(
        [
            T.StructField(
                "a",
                T.IntegerType(),
                True,
                {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "x"},
            )
        ]
    ),
}
PROPERTIES = [
    {"delta.columnMapping.mode": "id"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableTypeWidening": "true"},
    {"delta.enableRowTracking": "true"},
    {"delta.feature.rowTracking": "supported"},
    {"delta.enableInCommitTimestamps": "true"},
    {"delta.checkpointPolicy": "v2"},
    {"delta.feature.VacuumProtocolCheck": "enabled"},
    {"delta.constraints.c": "a > 0"},
    {"delta.minReaderVersion": "3"},
    {"delta.minWriterVersion": "7"},
    {"delta.minWriterVersion": "4"},
    {"delta.dataSkippingStatsColumns": "a"},
    {"delta.unknown": "1"},
    {"delta.columnMapping.maxColumnId": "7"},
    {"delta.feature.clustering": "supported"},
    {"delta.feature.bogus": "supported"},
]
REPLACEMENTS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"delta.columnMapping.mode": "name"}, {}),
    ({"delta.columnMapping.mode": "name"}, {"delta.columnMapping.mode": "name"}),
    ({}, {"delta.columnMapping.mode": "name"}),
    ({"delta.enableInCommitTimestamps": "true"}, {}),
    ({}, {"delta.enableInCommitTimestamps": "true"}),
    ({"delta.enableRowTracking": "true"}, {"mine": "1"}),
    ({"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"}, {}),
    ({"delta.enableDeletionVectors": "true"}, {"delta.enableDeletionVectors": "false"}),
    ({"delta.checkpointPolicy": "v2"}, {"delta.checkpointPolicy": "classic"}),
    ({"delta.enableDeletionVectors": "false", "delta.checkpointPolicy": "classic"}, {}),
    ({"delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"}, {}),
    ({"delta.columnMapping.mode": "name"}, {"delta.columnMapping.mode": "id"}),
]


@contextmanager
def both() -> Iterator[list[Any]]:
    """What the reference did and what puredelta did; they have to be equal."""
    results: list[Any] = []
    yield results
    theirs, mine = results
    assert mine == theirs


def modules() -> tuple[tuple[str, Any], ...]:
    reference = pytest.importorskip("delta.tables")
    return (("reference", reference), ("puredelta", ours))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with both() as results:
        for who, module in modules():
            path = tmp_path / who
            define = DEFINITIONS[name](module.DeltaTable.create(spark), module)
            results.append(outcome(path, define.location(str(path)).execute))


@pytest.mark.parametrize("properties", PROPERTIES, ids=str)
def test_properties_of_a_new_table(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    with both() as results:
        for who, module in modules():
            path = tmp_path / who
            results.append(outcome(path, _builder(spark, module, path, properties).execute))


@pytest.mark.parametrize(("before", "after"), REPLACEMENTS, ids=str)
def test_a_replacement(
    spark: SparkSession, tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    with both() as results:
        for who, module in modules():
            path = tmp_path / who
            _builder(spark, modules()[0][1], path, before).execute()
            replacement = module.DeltaTable.replace(spark).location(str(path))
            for key, value in after.items():
                replacement = replacement.property(key, value)
            results.append(outcome(path, replacement.addColumn("z", "INT").execute))


def _builder(spark: SparkSession, module: Any, path: Path, properties: dict[str, str]) -> Any:
    builder = module.DeltaTable.create(spark).location(str(path))
    for key, value in properties.items():
        builder = builder.property(key, value)
    return builder.addColumn("a", "INT").addColumn("b", "STRING")


# --- ALTER TABLE: one table each, changed step by step --------------------------------------

Step = tuple[str, Callable[[Any, TableLog], Any]]

STEPS: list[Step] = [
    (
        "SET TBLPROPERTIES ('mine'='1', 'delta.appendonly'='false', 'comment'='new')",
        lambda s, t: set_table_properties(
            s, t, {"mine": "1", "delta.appendonly": "false", "comment": "new"}
        ),
    ),
    (
        "SET TBLPROPERTIES ('delta.constraints.x'='a > 0')",
        lambda s, t: set_table_properties(s, t, {"delta.constraints.x": "a > 0"}),
    ),
    (
        "UNSET TBLPROPERTIES ('delta.appendOnly', 'comment', 'nope')",
        lambda s, t: unset_table_properties(s, t, ["delta.appendOnly", "comment", "nope"]),
    ),
    (
        "ADD COLUMNS (c INT COMMENT 'cc', s.z INT AFTER x, l.element.w STRING FIRST, k CHAR(3))",
        lambda s, t: add_table_columns(
            s,
            t,
            [
                NewColumn(field=T.StructField("c", T.IntegerType(), True, {"comment": "cc"})),
                NewColumn(
                    field=T.StructField("z", T.IntegerType()), parent=("s",), place=After("x")
                ),
                NewColumn(
                    field=T.StructField("w", T.StringType()),
                    parent=("l", "element"),
                    place=End.FIRST,
                ),
                NewColumn(field=T.StructField("k", T.CharType(3))),
            ],
        ),
    ),
    (
        "ADD COLUMN (n INT NOT NULL)",
        lambda s, t: add_table_columns(
            s, t, [NewColumn(field=T.StructField("n", T.IntegerType(), nullable=False))]
        ),
    ),
    (
        "ADD COLUMN (c INT)",
        lambda s, t: add_table_columns(
            s, t, [NewColumn(field=T.StructField("c", T.IntegerType()))]
        ),
    ),
    ("RENAME COLUMN a TO aa", lambda s, t: rename_table_column(s, t, ("a",), "aa")),
    ("DROP COLUMN a", lambda s, t: drop_table_columns(s, t, [("a",)])),
    (
        "ALTER COLUMN s.x COMMENT 'nested'",
        lambda s, t: change_table_columns(s, t, [(("s", "x"), ColumnEdit(comment="nested"))]),
    ),
    (
        "ALTER COLUMN a DROP NOT NULL",
        lambda s, t: change_table_columns(s, t, [(("a",), ColumnEdit(nullable=True))]),
    ),
    (
        "ALTER COLUMN a AFTER s",
        lambda s, t: change_table_columns(s, t, [(("a",), ColumnEdit(place=After("s")))]),
    ),
    (
        "ALTER COLUMN a TYPE BIGINT",
        lambda s, t: change_table_columns(s, t, [(("a",), ColumnEdit(data_type=T.LongType()))]),
    ),
    (
        "ALTER COLUMN c SET DEFAULT 4",
        lambda s, t: change_table_columns(s, t, [(("c",), ColumnEdit(default="4"))]),
    ),
    (
        "SET TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported')",
        lambda s, t: set_table_properties(s, t, {"delta.feature.allowColumnDefaults": "supported"}),
    ),
    (
        "ALTER COLUMN c SET DEFAULT 4",
        lambda s, t: change_table_columns(s, t, [(("c",), ColumnEdit(default="4"))]),
    ),
    (
        "ALTER COLUMN c DROP DEFAULT",
        lambda s, t: change_table_columns(s, t, [(("c",), ColumnEdit(default=Unset.DEFAULT))]),
    ),
    (
        "ADD CONSTRAINT Positive CHECK (a > 0)",
        lambda s, t: add_check_constraint(s, t, "Positive", "a > 0"),
    ),
    (
        "ADD CONSTRAINT big CHECK (a > 5)",
        lambda s, t: add_check_constraint(s, t, "big", "a > 5"),
    ),
    ("ADD CONSTRAINT b CHECK (a)", lambda s, t: add_check_constraint(s, t, "b", "a")),
    (
        "SET TBLPROPERTIES ('delta.columnMapping.mode'='id')",
        lambda s, t: set_table_properties(s, t, {"delta.columnMapping.mode": "id"}),
    ),
    (
        "SET TBLPROPERTIES ('delta.columnMapping.mode'='name')",
        lambda s, t: set_table_properties(s, t, {"delta.columnMapping.mode": "name"}),
    ),
    ("DROP COLUMN a", lambda s, t: drop_table_columns(s, t, [("a",)])),
    ("DROP CONSTRAINT positive", lambda s, t: drop_check_constraint(s, t, "positive")),
    ("DROP CONSTRAINT nope", lambda s, t: drop_check_constraint(s, t, "nope")),
    ("RENAME COLUMN a TO `a b`", lambda s, t: rename_table_column(s, t, ("a",), "a b")),
    ("RENAME COLUMN p TO pp", lambda s, t: rename_table_column(s, t, ("p",), "pp")),
    ("DROP COLUMN pp", lambda s, t: drop_table_columns(s, t, [("pp",)])),
    (
        "DROP COLUMNS (s.x, c)",
        lambda s, t: drop_table_columns(s, t, [("s", "x"), ("c",)]),
    ),
    (
        "ADD COLUMN (n STRUCT<q: INT>)",
        lambda s, t: add_table_columns(
            s,
            t,
            [
                NewColumn(
                    field=T.StructField("n", T.StructType([T.StructField("q", T.IntegerType())]))
                )
            ],
        ),
    ),
    (
        "SET TBLPROPERTIES ('delta.enableTypeWidening'='true')",
        lambda s, t: set_table_properties(s, t, {"delta.enableTypeWidening": "true"}),
    ),
    (
        "ALTER COLUMN m.value TYPE BIGINT",
        lambda s, t: change_table_columns(
            s, t, [(("m", "value"), ColumnEdit(data_type=T.LongType()))]
        ),
    ),
    (
        "ALTER COLUMN pp TYPE BIGINT",
        lambda s, t: change_table_columns(s, t, [(("pp",), ColumnEdit(data_type=T.LongType()))]),
    ),
    ("CLUSTER BY (`a b`)", lambda s, t: cluster_table_by(s, t, [("a b",)])),
    (
        "SET TBLPROPERTIES ('delta.enableInCommitTimestamps'='true')",
        lambda s, t: set_table_properties(s, t, {"delta.enableInCommitTimestamps": "true"}),
    ),
    (
        "SET TBLPROPERTIES ('delta.enableRowTracking'='true')",
        lambda s, t: set_table_properties(s, t, {"delta.enableRowTracking": "true"}),
    ),
]
# Errors that Spark's analyzer raises before delta-spark is asked, and puredelta's for the same.
SAME_MEANING: set[tuple[str, str]] = set()


def differences(
    steps: Iterable[tuple[str, Callable[[], Any], Callable[[], Any]]], theirs: Path, mine: Path
) -> list[tuple[str, Any, Any]]:
    """Run each step with both; return where the commits or the error classes differ."""
    found = [
        (text, outcome(theirs, expected), outcome(mine, tried)) for text, expected, tried in steps
    ]
    return [
        (text, expected, tried)
        for text, expected, tried in found
        if expected != tried and (str(expected), str(tried)) not in SAME_MEANING
    ]


def test_a_table_altered_step_by_step(spark: SparkSession, tmp_path: Path) -> None:
    theirs, mine = tmp_path / "reference", tmp_path / "puredelta"
    spark.sql(
        f"""CREATE TABLE delta.`{theirs}` (a INT NOT NULL, b STRING COMMENT 'bc',
        s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<q: INT>>, m MAP<STRING, INT>, p INT)
        USING delta PARTITIONED BY (p)"""
    )
    spark.sql(
        f"""INSERT INTO delta.`{theirs}` VALUES (1, 'x', named_struct('x', 1, 'y', 'z'),
        array(named_struct('q', 1)), map('k', 1), 1)"""
    )
    shutil.copytree(theirs, mine)
    log = TableLog.open(str(mine))
    steps = (
        (
            text,
            partial(spark.sql, f"ALTER TABLE delta.`{theirs}` {text}"),
            partial(change, spark, log),
        )
        for text, change in STEPS
    )
    assert differences(steps, theirs, mine) == []
    assert ours.DeltaTable.forPath(spark, str(mine)).toDF().count() == 1
    rows = spark.read.format("delta").load(str(mine))
    assert rows.collect() == spark.read.format("delta").load(str(theirs)).collect()


# --- maintenance ----------------------------------------------------------------------------


@pytest.fixture
def twins(spark: SparkSession, tmp_path: Path) -> tuple[Path, Path]:
    """The same table twice: two versions of rows, one of them with a deletion vector."""
    theirs, mine = tmp_path / "reference", tmp_path / "puredelta"
    spark.sql(
        f"""CREATE TABLE delta.`{theirs}` (id BIGINT, p INT) USING delta PARTITIONED BY (p)
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',
                       'delta.enableRowTracking' = 'true')"""
    )
    spark.range(8).selectExpr("id", "CAST(id % 2 AS INT) p").coalesce(1).write.format("delta").mode(
        "append"
    ).save(str(theirs))
    modules()[0][1].DeltaTable.forPath(spark, str(theirs)).delete("id = 3")
    shutil.copytree(theirs, mine)
    return theirs, mine


def _on(command: Callable[[Any, Path], Any], module: Any, spark: SparkSession, path: Path) -> Any:
    return command(module.DeltaTable.forPath(spark, str(path)), path)


def test_maintenance(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    commands: list[Callable[[Any, Path], Any]] = [
        lambda t, _: t.restoreToVersion(1),
        lambda t, _: t.restoreToVersion(0),
        lambda t, _: t.restoreToVersion(2),
        lambda t, _: t.restoreToVersion(99),
        lambda t, _: t.restoreToTimestamp("2001-01-01"),
        lambda t, _: t.restoreToTimestamp("nonsense"),
        lambda t, _: t.generate("symlink_format_manifest"),
        lambda t, _: t.generate("nonsense"),
        lambda t, p: t.clone(str(p) + "-deep"),
        lambda t, _: t.vacuum(0),
        lambda t, _: t.upgradeTableProtocol(2, 5),
        lambda t, _: t.upgradeTableProtocol(1, 2),
        lambda t, _: t.addFeatureSupport("vacuumProtocolCheck"),
        lambda t, _: t.addFeatureSupport("nonsense"),
        lambda t, _: t.dropFeatureSupport("nonsense"),
        lambda t, _: t.dropFeatureSupport("domainMetadata"),
        lambda t, _: t.dropFeatureSupport("appendOnly"),
        lambda t, _: t.dropFeatureSupport("vacuumProtocolCheck"),
    ]
    (_, reference), (_, puredelta) = modules()
    steps = (
        (
            str(number),
            partial(_on, command, reference, spark, twins[0]),
            partial(_on, command, puredelta, spark, twins[1]),
        )
        for number, command in enumerate(commands)
    )
    assert differences(steps, *twins) == []
    assert latest_version(twins[0]) == latest_version(twins[1])


def test_the_reference_reads_a_shallow_clone(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    source = ours.DeltaTable.forPath(spark, str(twins[1]))
    target = f"{twins[1]}-clone"
    source.clone(target, isShallow=True, properties={"mine": "1"})
    rows = spark.read.format("delta").load(target)
    assert {row["id"] for row in rows.collect()} == {0, 1, 2, 4, 5, 6, 7}


def test_a_vacuum_leaves_the_same_files(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        left = []
        for (_, module), path in zip(modules(), twins, strict=True):
            (path / "job" / "deep").mkdir(parents=True)
            for name in ("orphan.parquet", "job/deep/o.parquet", "_hidden", "p=1/.x"):
                (path / name).write_bytes(b"x")
            module.DeltaTable.forPath(spark, str(path)).vacuum(0)
            files = (p for p in path.rglob("*") if p.is_file() and not p.name.endswith(".crc"))
            left.append({str(p.relative_to(path)) for p in files if "_delta_log" not in p.parts})
        assert left[0] == left[1]
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def test_detail_and_history_have_the_same_columns(
    spark: SparkSession, twins: tuple[Path, Path]
) -> None:
    details, histories = [], []
    for (_, module), path in zip(modules(), twins, strict=True):
        table = module.DeltaTable.forPath(spark, str(path))
        details.append(table.detail().drop("location", "lastModified"))
        histories.append(table.history().drop("timestamp"))
    assert details[0].schema.simpleString() == details[1].schema.simpleString()
    assert details[0].collect() == details[1].collect()
    assert histories[0].schema.simpleString() == histories[1].schema.simpleString()
    assert histories[0].collect() == histories[1].collect()
