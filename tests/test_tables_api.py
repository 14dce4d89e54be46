"""The facade: arguments and texts as ``delta.tables`` has them (M-14), and what it forwards."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from typing_extensions import Self

from puredelta import tables
from puredelta.commands.dml.spec import (
    Assignment,
    Delete,
    Insert,
    Matched,
    MergeSpec,
    NotMatched,
    NotMatchedBySource,
    Star,
    Update,
)
from puredelta.commands.write.options import SaveMode
from puredelta.commands.write.write_table import WriteRequest, write_table
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.log.replay import load, table_log
from puredelta.log.replay.table_log import TableLog
from puredelta.tables import (
    DeltaMergeBuilder,
    DeltaTable,
    DeltaTableBuilder,
    IdentityGenerator,
)
from puredelta.tables.open_table import OpenTable

NOT_AN_EXPRESSION = "'condition' must be a Spark SQL Column or a string (expression in SQL syntax)"
MERGING = WriteRequest(mode=SaveMode.APPEND, options={"mergeSchema": "true"})
NOT_VALUES = "must contain only Spark SQL Columns or strings (expressions in SQL syntax) as values"


class AnyFrame(DataFrame):
    """A DataFrame as far as argument checks look."""

    def __new__(cls) -> Self:
        return object.__new__(cls)


@pytest.fixture
def builder() -> DeltaMergeBuilder:
    return DeltaMergeBuilder(
        None, None, MergeSpec(on="true", clauses=()), target_rows=None, source_rows=None
    )


@pytest.mark.parametrize(
    ("source", "condition", "error", "text"),
    [
        (None, "a = b", ValueError, "'source' in merge cannot be None"),
        ("rows", "a = b", TypeError, "Type of 'source' in merge must be DataFrame."),
        (AnyFrame, None, ValueError, "'condition' in merge cannot be None"),
        (
            AnyFrame,
            5,
            TypeError,
            f"{NOT_AN_EXPRESSION}, found to be of type <class 'int'>",
        ),
    ],
)
def test_merge_arguments(source: Any, condition: Any, error: type[Exception], text: str) -> None:
    rows = AnyFrame() if source is AnyFrame else source
    with pytest.raises(error) as caught:
        DeltaTable(OpenTable(None, None, None)).merge(rows, condition)
    assert str(caught.value) == text


WITH_MAPPING = [
    ("whenMatchedUpdate", "set"),
    ("whenNotMatchedInsert", "values"),
    ("whenNotMatchedBySourceUpdate", "set"),
]
CONDITIONAL = [
    "whenMatchedUpdateAll",
    "whenMatchedDelete",
    "whenNotMatchedInsertAll",
    "whenNotMatchedBySourceDelete",
]


@pytest.mark.parametrize(("method", "name"), WITH_MAPPING)
@pytest.mark.parametrize(
    ("mapping", "error", "text"),
    [
        (None, ValueError, "{} cannot be None"),
        ("k = v", TypeError, "{} must be a dict, found to be <class 'str'>"),
        ({1: "1"}, TypeError, "Keys of dict in {} must contain only strings with column names"),
        (
            {"k": 1},
            TypeError,
            f"Values of dict in {{}} {NOT_VALUES}, found '1' of type '<class 'int'>'",
        ),
    ],
)
def test_mappings(
    builder: DeltaMergeBuilder, *, method: str, name: str, mapping: Any, error: Any, text: str
) -> None:
    with pytest.raises(error) as caught:
        getattr(builder, method)(**{name: mapping})
    assert str(caught.value).startswith(text.format(f"'{name}' in {method}"))


@pytest.mark.parametrize("method", CONDITIONAL)
def test_conditions_are_text_or_columns(builder: DeltaMergeBuilder, method: str) -> None:
    with pytest.raises(TypeError, match="'condition' must be a Spark SQL Column or a string"):
        getattr(builder, method)(7)


@pytest.mark.parametrize(("method", "name"), WITH_MAPPING)
def test_conditions_beside_a_mapping(builder: DeltaMergeBuilder, method: str, name: str) -> None:
    with pytest.raises(TypeError, match="'condition' must be a Spark SQL Column or a string"):
        getattr(builder, method)(7, **{name: {"a": "b"}})


def test_every_call_gives_a_new_builder(builder: DeltaMergeBuilder) -> None:
    extended = (
        builder.whenMatchedUpdate("a", {"k": "v"})
        .whenMatchedUpdateAll("b")
        .whenMatchedDelete()
        .whenNotMatchedInsert(values={"k": "v"})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate(set={"k": "v"})
        .whenNotMatchedBySourceDelete("c")
        .withSchemaEvolution()
    )
    one = (Assignment("k", "v"),)
    assert builder._spec.clauses == ()
    assert extended._spec == MergeSpec(
        on="true",
        clauses=(
            Matched(Update(one), "a"),
            Matched(Update(Star.STAR), "b"),
            Matched(Delete()),
            NotMatched(Insert(one)),
            NotMatched(Insert(Star.STAR)),
            NotMatchedBySource(Update(one)),
            NotMatchedBySource(Delete(), "c"),
        ),
        evolve_schema=True,
    )


def test_an_empty_update_without_condition_adds_nothing(builder: DeltaMergeBuilder) -> None:
    """M-11; with a condition it stays, and shields rows from later clauses."""
    assert builder.whenMatchedUpdate(set={}) is builder
    assert builder.whenNotMatchedBySourceUpdate(set={}) is builder
    kept = builder.whenMatchedUpdate("a", {}).whenNotMatchedInsert(values={})
    assert kept._spec.clauses == (Matched(Update(()), "a"), NotMatched(Insert(())))


PARAMETERS: dict[Callable[..., Any], list[str]] = {
    DeltaTable.forPath: ["sparkSession", "path", "hadoopConf"],
    DeltaTable.isDeltaTable: ["sparkSession", "identifier"],
    DeltaTable.convertToDelta: [
        *("sparkSession", "identifier", "partitionSchema"),
        *("collect_stats", "verify"),
    ],
    DeltaTable.alias: ["self", "aliasName"],
    DeltaTable.toDF: ["self"],
    DeltaTable.merge: ["self", "source", "condition"],
    DeltaTable.history: ["self", "limit"],
    DeltaTable.detail: ["self"],
    DeltaTable.create: ["sparkSession"],
    DeltaTable.createIfNotExists: ["sparkSession"],
    DeltaTable.replace: ["sparkSession"],
    DeltaTable.createOrReplace: ["sparkSession"],
    DeltaTable.vacuum: ["self", "retentionHours"],
    DeltaTable.restoreToVersion: ["self", "version"],
    DeltaTable.restoreToTimestamp: ["self", "timestamp"],
    DeltaTable.generate: ["self", "mode"],
    DeltaTable.clone: ["self", "target", "isShallow", "replace", "properties"],
    DeltaTable.cloneAtVersion: [
        *("self", "version", "target", "isShallow", "replace", "properties")
    ],
    DeltaTable.cloneAtTimestamp: [
        *("self", "timestamp", "target", "isShallow", "replace", "properties")
    ],
    DeltaTable.upgradeTableProtocol: ["self", "readerVersion", "writerVersion"],
    DeltaTable.addFeatureSupport: ["self", "featureName"],
    DeltaTable.dropFeatureSupport: ["self", "featureName", "truncateHistory"],
    DeltaTableBuilder.addColumn: [
        *("self", "colName", "dataType", "nullable"),
        *("generatedAlwaysAs", "generatedByDefaultAs", "comment"),
    ],
    DeltaTableBuilder.addColumns: ["self", "cols"],
    DeltaTableBuilder.property: ["self", "key", "value"],
    IdentityGenerator: ["start", "step"],
    DeltaMergeBuilder.whenMatchedUpdate: ["self", "condition", "set"],
    DeltaMergeBuilder.whenNotMatchedInsert: ["self", "condition", "values"],
    DeltaMergeBuilder.whenNotMatchedBySourceUpdate: ["self", "condition", "set"],
    DeltaMergeBuilder.whenNotMatchedBySourceDelete: ["self", "condition"],
    DeltaMergeBuilder.execute: ["self"],
    DeltaMergeBuilder.explain: ["self", "mode"],
    DeltaMergeBuilder.dry_run: ["self", "check_new_rows"],
    DeltaMergeBuilder.preview: ["self", "limit"],
    DeltaTable.prepareUpdate: ["self", "condition", "set"],
    DeltaTable.prepareDelete: ["self", "condition"],
    DeltaTable.prepareVacuum: ["self", "retentionHours"],
    DeltaTable.prepareRestore: ["self", "version", "timestamp"],
}


@pytest.mark.parametrize("function", PARAMETERS, ids=lambda f: f.__qualname__)
def test_names_of_arguments(function: Callable[..., Any]) -> None:
    assert list(inspect.signature(function).parameters) == PARAMETERS[function]


def test_public_names() -> None:
    assert tables.__all__ == [
        "DeltaMergeBuilder",
        "DeltaOptimizeBuilder",
        "DeltaTable",
        "DeltaTableBuilder",
        "IdentityGenerator",
        "PreparedChange",
        "PreparedMaintenance",
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.upgradeTableProtocol("1", 3), "readerVersion needs to be an integer"),
        (lambda t: t.upgradeTableProtocol(1, [3]), "writerVersion needs to be an integer"),
        (lambda t: t.addFeatureSupport(1), "featureName needs to be a string"),
        (lambda t: t.dropFeatureSupport("x", 1), "truncateHistory needs to be a boolean"),
        (lambda t: t.restoreToVersion("0"), "version needs to be an int but got '<class 'str'>'"),
        (lambda t: t.restoreToTimestamp(1), "timestamp needs to be a string"),
        (lambda t: t.clone(1), "target needs to be a string"),
        (lambda t: t.clone("/x", "yes"), "isShallow needs to be a boolean"),
        (lambda t: t.clone("/x", True, 1), "replace needs to be a boolean"),
        (lambda t: t.clone("/x", True, True, [1]), "properties needs to be a dict"),
        (lambda t: t.clone("/x", True, True, {"a": 1}), "All property values including 1"),
        (lambda t: t.clone("x", True), "absolute path"),
    ],
)
def test_arguments_of_the_wrong_type_are_value_errors(
    call: Callable[[DeltaTable], Any], message: str
) -> None:
    table = DeltaTable(OpenTable(Any, Any, Any))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=re.escape(message)):
        call(table)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    location = str(tmp_path / "table")
    rows = spark.sql("select 1L as id, 'a' as p union all select 2L, 'b'")
    write_table(rows, TableLog.open(location), WriteRequest(partition_by=["p"]))
    return location


@pytest.mark.smoke
def test_merge_history_and_detail(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    known = table.toDF()
    source = spark.sql("select 2L as id, 'c' as p union all select 3L, 'c'")
    result = (
        table.merge(source, known["id"] == source["id"])
        .whenMatchedUpdate(known["p"] == "b", {"p": source["p"]})
        .whenNotMatchedInsertAll()
        .execute()
    )
    assert [r.asDict() for r in result.collect()] == [
        {
            "num_affected_rows": 2,
            "num_updated_rows": 1,
            "num_deleted_rows": 0,
            "num_inserted_rows": 1,
        }
    ]
    assert sorted(map(tuple, table.toDF().collect())) == [(1, "a"), (2, "c"), (3, "c")]
    history = table.history().collect()
    assert [(r.version, r.operation) for r in history] == [(1, "MERGE"), (0, "WRITE")]
    assert history[0].operationMetrics["numTargetRowsUpdated"] == "1"
    assert history[0].operationParameters["notMatchedPredicates"] == '[{"actionType":"insert"}]'
    assert history[0].timestamp >= history[1].timestamp
    assert [r.version for r in table.history(1).collect()] == [1]
    assert table.history(0).collect() == []
    detail = table.detail().collect()[0]
    assert (detail.format, detail.location) == ("delta", f"file:{path}")
    assert (detail.partitionColumns, detail.numFiles) == (["p"], 2)
    assert detail.sizeInBytes > 0
    assert (detail.minReaderVersion, detail.minWriterVersion) == (1, 2)
    assert detail.tableFeatures == ["appendOnly", "invariants"]


def test_is_delta_table(spark: SparkSession, path: str, tmp_path: Path) -> None:
    assert DeltaTable.isDeltaTable(spark, path)
    assert DeltaTable.isDeltaTable(spark, f"file:{path}")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "missing"))


@pytest.mark.parametrize("name", ["", "missing"])
def test_paths_without_a_table(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with pytest.raises(TableNotFoundError, match="is not a Delta table") as caught:
        DeltaTable.forPath(spark, str(tmp_path / name))
    assert caught.value.code is ErrorCode.MISSING_DELTA_TABLE


def test_a_table_is_opened_by_one_listing(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def ask(*arguments: object, **options: object) -> object:
            asked.append(real.__name__)
            return real(*arguments, **options)

        return ask

    for module in (table_log, load):
        for name in ("read_checkpoint_hint", "list_log"):
            monkeypatch.setattr(module, name, counted(getattr(module, name)))
    table = DeltaTable.forPath(spark, path)
    assert asked == ["read_checkpoint_hint", "list_log"]
    asked.clear()
    source = spark.range(1, 3).alias("s")
    table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete().execute()
    assert asked == ["list_log"]


def test_settings_that_are_no_file_systems_are_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"only supports .* but got \['x\.fs'\]"):
        DeltaTable.forPath(spark, path, {"x.fs": "y", "fs.z": "1"})
    assert DeltaTable.forPath(spark, path, {"fs.z": "1"}).toDF().count() == 2


def test_convert_to_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-04; what was just written is not read again before somebody wants to know."""
    location = str(tmp_path / "plain")
    spark.range(3).write.parquet(location)
    with monkeypatch.context() as patch:
        patch.setattr(load, "read_checkpoint", None)
        table = DeltaTable.convertToDelta(spark, f"parquet.`{location}`")
        with pytest.raises(TypeError):
            table.toDF()
    assert table.alias("t").toDF().where("t.id > 0").count() == 2
    again = DeltaTable.convertToDelta(spark, f"parquet.`{location}`")
    assert again.toDF().columns == ["id"]


@pytest.mark.thorough
def test_a_table_object_sees_the_columns_of_today(spark: SparkSession, path: str) -> None:
    """Rows have them; a merge is of the columns there were when the object was made (M-34)."""
    table = DeltaTable.forPath(spark, path)
    more = spark.sql("select 5L as id, 'e' as p, 1 as n")
    write_table(more, TableLog.open(path), MERGING)
    assert table.toDF().columns == ["id", "p", "n"]
    assert [row.p for row in table.toDF().where(table.toDF()["n"] == 1).collect()] == ["e"]
    for old in (table, table.alias("x")):
        merge = old.alias("t").merge(more.alias("s"), "t.id = s.id").whenMatchedDelete()
        with pytest.raises(InvalidRequestError) as caught:
            merge.execute()
        assert caught.value.code is ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS
    new = DeltaTable.forPath(spark, path).alias("t").merge(more.alias("s"), "t.id = s.id")
    new.whenMatchedUpdate(set={"n": "s.n + 1"}).execute()
    assert table.toDF().where("id = 5").collect()[0].n == 2


@pytest.mark.thorough
def test_columns_may_change_inside_before_the_merge_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """M-34: fields and types are those of the table as it is."""
    log = TableLog.open(str(tmp_path / "nested"))
    write_table(spark.sql("select 1L as id, named_struct('a', 1) as s"), log)
    table = DeltaTable.forPath(spark, log.root_uri).alias("t")
    rows = table.toDF()
    more = spark.sql("select 2L as id, named_struct('a', 1, 'b', 2) as s")
    merge = table.merge(more.alias("s"), rows["id"] < F.expr("s.id")).whenMatchedUpdate(
        set={"t.s": F.struct((rows["s.a"] + 1).alias("a"), F.expr("s.s.b"))}
    )
    write_table(more, log, MERGING)
    merge.execute()
    assert sorted(map(str, table.toDF().collect())) == [
        "Row(id=1, s=Row(a=2, b=2))",
        "Row(id=2, s=Row(a=1, b=2))",
    ]


def test_columns_that_change_before_the_merge_runs(spark: SparkSession, path: str) -> None:
    """M-34: the statement was written for other columns."""
    table = DeltaTable.forPath(spark, path)
    merge = table.alias("t").merge(spark.range(1).alias("s"), "t.id = s.id").whenMatchedDelete()
    more = spark.sql("select 5L as id, 'e' as p, 1 as n")
    write_table(more, TableLog.open(path), MERGING)
    with pytest.raises(InvalidRequestError) as caught:
        merge.execute()
    assert caught.value.code is ErrorCode.SCHEMA_CHANGE_SINCE_ANALYSIS
    assert "n int is new. It was struct<id:bigint" in caught.value.message
    assert TableLog.open(path).latest_version() == 1
