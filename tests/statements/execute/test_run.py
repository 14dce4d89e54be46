"""Statement text executed: what is ours, what is Spark's, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from puredelta.api import read, write
from puredelta.errors import ErrorCode, InvalidRequestError, TableNotFoundError
from puredelta.statements.execute.dispatch import run_sql
from puredelta.tables import DeltaTable

UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """k = 0..3, v = 'old'."""
    path = str(tmp_path / "it`s table")
    write(spark.sql("SELECT id AS k, 'old' AS v FROM range(4)"), path)
    return path


@pytest.fixture
def updates(spark: SparkSession) -> Iterator[str]:
    """k = 3..4, v = 'new'."""
    spark.sql("SELECT id AS k, 'new' AS v FROM range(3, 5)").createOrReplaceTempView("updates")
    yield "updates"
    spark.catalog.dropTempView("updates")


def name(path: str) -> str:
    return "delta.`" + path.replace("`", "``") + "`"


def contents(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in read(spark, path).collect())


OLD = [(0, "old"), (1, "old"), (2, "old"), (3, "old")]
UPSERTED = [(0, "old"), (1, "old"), (2, "old"), (3, "new"), (4, "new")]


# what is ours


@pytest.mark.thorough
def test_columns_under_the_whole_name_of_the_target(spark: SparkSession, table: str) -> None:
    target = name(table)
    before = spark.catalog.listTables()
    run_sql(
        spark,
        f"WITH s AS (SELECT k + 1 AS k, v FROM {{rows}}) MERGE INTO {target} USING s "
        f"ON {target}.k = s.k "
        f"WHEN MATCHED THEN UPDATE SET {target}.v = concat(spark_catalog.{target}.v, s.v)",
        fields={"rows": spark.sql("SELECT 2 AS k, 'new' AS v")},
    )
    assert contents(spark, table)[3] == (3, "oldnew")
    assert spark.catalog.listTables() == before


@pytest.mark.smoke
def test_every_kind_of_clause(spark: SparkSession, table: str, updates: str) -> None:
    [row] = run_sql(
        spark,
        f"""-- nightly
        MERGE INTO {name(table)} AS t USING updates AS s ON t.k = s.k
        WHEN MATCHED AND CASE WHEN s.v = 'WHEN MATCHED' THEN true ELSE false END THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.v = 'x, y'
        WHEN NOT MATCHED BY TARGET AND s.k > 3 THEN INSERT (v, k) VALUES (upper(s.v), s.k)
        WHEN NOT MATCHED BY SOURCE AND t.k = 0 THEN DELETE /* one */
        WHEN NOT MATCHED BY SOURCE AND t.k = 1 THEN UPDATE SET v = 'gone';""",
    ).collect()
    assert tuple(row) == (4, 2, 1, 1)
    assert contents(spark, table) == [(1, "gone"), (2, "old"), (3, "x, y"), (4, "NEW")]


def test_parameters(spark: SparkSession, table: str) -> None:
    run_sql(
        spark,
        "MERGE INTO IDENTIFIER(concat(:format, '.', :path)) t "
        "USING (SELECT explode(:keys) AS k) s ON t.k = s.k - :shift "
        "WHEN MATCHED AND t.k > :low THEN UPDATE SET v = :text "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, :none)",
        args={
            "format": "delta",
            "path": "`" + table.replace("`", "``") + "`",
            "keys": [11, 12, 19],
            "shift": 10,
            "low": 1,
            "text": "it's",
            "none": None,
        },
    )
    assert contents(spark, table) == [(0, "old"), (1, "old"), (2, "it's"), (3, "old"), (19, None)]


def test_a_parameter_without_value(spark: SparkSession, table: str, updates: str) -> None:
    text = f"MERGE INTO {name(table)} t USING updates s ON t.k = :x {UPSERT}"
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        run_sql(spark, text, args={"y": 1})
    with pytest.raises(AnalysisException, match="UNBOUND_SQL_PARAMETER"):
        run_sql(spark, text)
    assert contents(spark, table) == OLD


# errors


@pytest.mark.parametrize(
    ("rest", "condition", "place"),
    [
        ("ON t.k = = s.k\nWHEN MATCHED THEN DELETE", "PARSE_SYNTAX_ERROR", "line 2, pos 9"),
        ("ON t.k = s.k", "MERGE_WITHOUT_WHEN", "line 1, position 1"),
        (
            "ON t.k = s.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
            "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
            "line 1, position 1",
        ),
        (
            "ON t.k = s.k WHEN NOT MATCHED THEN INSERT *\nWHEN MATCHED THEN DELETE",
            "PARSE_SYNTAX_ERROR",
            "line 3, pos 5",
        ),
        ("ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 1 AS x", "PARSE_SYNTAX_ERROR", "line 2"),
        ("ON", "PARSE_SYNTAX_ERROR", "line 2, pos 2"),
    ],
)
def test_wrong_text_gets_sparks_own_error(  # E-01, M-08, M-09
    spark: SparkSession, table: str, rest: str, condition: str, place: str
) -> None:
    with pytest.raises(ParseException) as caught:
        run_sql(spark, f"MERGE INTO {name(table)} t USING updates s\n{rest}")
    assert caught.value.getCondition() == condition
    assert place in str(caught.value)


def test_a_table_that_is_not_there(spark: SparkSession, tmp_path: Path, updates: str) -> None:
    text = f"MERGE INTO delta.`{tmp_path}/none` t USING updates s ON t.k = s.k {UPSERT}"
    with pytest.raises(TableNotFoundError):
        run_sql(spark, text)


# CONVERT


def test_convert(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT id AS k, id % 2 AS part FROM range(4)")
    rows.write.partitionBy("part").parquet(str(tmp_path / "data"))
    text = f"CONVERT TO DELTA parquet.`{tmp_path}/data` NO STATISTICS PARTITIONED BY (part int)"
    result = run_sql(spark, text)
    assert (result.columns, result.collect()) == ([], [])
    assert contents(spark, f"{tmp_path}/data") == [(0, 0), (1, 1), (2, 0), (3, 1)]
    run_sql(spark, text)  # C-05


def test_convert_says_where_it_is_wrong(spark: SparkSession) -> None:
    with pytest.raises(ParseException, match=r"line 1, pos 29") as caught:
        run_sql(spark, "CONVERT TO DELTA parquet.`/x` PARTITIONED (part int)".replace("` ", "`"))
    assert caught.value.getCondition() == "PARSE_SYNTAX_ERROR"


# what is not ours


class Recorder:
    """In the place of a session: says what reached it."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm, self._jsparkSession = spark._jvm, spark._jsparkSession  # Spark's parser
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.catalog = SimpleNamespace(
            currentCatalog=lambda: "another",
            getTable=lambda _: SimpleNamespace(isTemporary=False, tableType="MANAGED"),
        )

    def sql(self, *args: Any, **kwargs: Any) -> str:
        self.calls.append((args, kwargs))
        return "from spark"


@pytest.mark.parametrize(
    "text",
    [
        " SELECT * FROM delta.a -- delta.`/a` \n;",
        "MERGE INTO db.t USING s ON true WHEN MATCHED THEN DELETE",
        "/* x */ DELETE FROM db.t WHERE {a} = :b",
        "UPDATE delta.t SET a = 1",
        "MERGE nonsense",
        "UPDATE",
        "INSERT INTO db.a TABLE s",
        "CREATE TABLE t USING parquet AS SELECT 1",
        "CREATE TEMPORARY VIEW v AS SELECT {a}, :b",
        "CREATE TABLE t LIKE s USING parquet",
        "TRUNCATE TABLE db.t now",
        "SHOW PARTITIONS t PARTITION (p = 1)",
        "",
    ],
)
def test_other_statements_reach_spark_as_they_are(spark: SparkSession, text: str) -> None:
    session: Any = Recorder(spark)
    assert run_sql(session, text) == "from spark"
    assert run_sql(session, text, args={"b": 1}) == "from spark"
    assert run_sql(session, text, args=[1, 2]) == "from spark"
    assert run_sql(session, text, fields={"a": 1, "b": 2}) == "from spark"
    assert session.calls == [
        ((text,), {}),
        ((text,), {"args": {"b": 1}}),
        ((text,), {"args": [1, 2]}),
        ((text,), {"a": 1, "b": 2}),
    ]


def test_other_statements_work(spark: SparkSession, updates: str) -> None:
    rows: DataFrame = run_sql(spark, "SELECT v FROM updates WHERE k = :k", args={"k": 4})
    assert [tuple(row) for row in rows.collect()] == [("new",)]


@pytest.mark.thorough
def test_the_builder_says_the_same(spark: SparkSession, table: str, updates: str) -> None:
    run_sql(spark, f"MERGE INTO {name(table)} t USING updates s ON t.k = s.k {UPSERT}")
    history = DeltaTable.forPath(spark, table).history(1).collect()[0]
    assert history["operation"] == "MERGE"
    source = spark.table("updates").alias("s")
    builder = DeltaTable.forPath(spark, table).alias("t").merge(source, "t.k = s.k")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert contents(spark, table) == UPSERTED
    again = DeltaTable.forPath(spark, table).history(1).collect()[0]
    parameters = again["operationParameters"]
    assert parameters == history["operationParameters"]


# UPDATE and DELETE


def test_update_and_delete(spark: SparkSession, table: str) -> None:
    target = name(table)
    changed = run_sql(
        spark,
        f"""WITH more AS (SELECT 7L AS k), most AS (SELECT max(k) AS k FROM more)
        UPDATE {target} AS t
        SET t.v = concat(:text, (SELECT max(m.k) FROM most m WHERE m.k > t.k)), k = -k
        WHERE k IN (1, 2) /* both */;""",
        args={"text": "it's "},
    )
    assert (changed.columns, [tuple(row) for row in changed.collect()]) == (
        ["num_affected_rows"],
        [(2,)],
    )
    assert contents(spark, table) == [(-2, "it's 7"), (-1, "it's 7"), (0, "old"), (3, "old")]
    run_sql(spark, f"DELETE FROM {target} WHERE {target}.k < 0")
    assert contents(spark, table) == [(0, "old"), (3, "old")]
    [row] = run_sql(spark, f"DELETE FROM spark_catalog.{target}").collect()
    assert (row.num_affected_rows, contents(spark, table)) == (2, [])
    history = DeltaTable.forPath(spark, table).history().collect()
    assert [h.operation for h in history[:3]] == ["DELETE", "DELETE", "UPDATE"]


def test_a_subquery_reads_delta_tables(spark: SparkSession, table: str) -> None:
    run_sql(
        spark,
        f"UPDATE {name(table)} AS t SET v = (SELECT string(count(*)) FROM {name(table)} VERSION AS "
        f"OF 0 o WHERE o.k < t.k) WHERE k > 1",
    )
    assert contents(spark, table) == [(0, "old"), (1, "old"), (2, "2"), (3, "3")]


@pytest.mark.thorough
def test_a_merge_with_subqueries(spark: SparkSession, table: str, updates: str) -> None:
    run_sql(
        spark,
        f"""WITH c AS (SELECT 'q' AS v) MERGE INTO {name(table)} t USING updates s ON t.k = s.k
        WHEN MATCHED THEN UPDATE SET v = (SELECT v FROM c)
        WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, (SELECT max(v) FROM {name(table)}))""",
    )
    assert contents(spark, table) == [*OLD[:3], (3, "q"), (4, "old")]
    with pytest.raises(InvalidRequestError) as caught:
        run_sql(
            spark,
            f"WITH c AS (SELECT 1 AS k) MERGE INTO {name(table)} t USING updates s ON t.k = s.k "
            "WHEN MATCHED AND t.k IN (SELECT k FROM c) THEN DELETE",
        )
    assert caught.value.code is ErrorCode.UNSUPPORTED_SUBQUERY


@pytest.mark.parametrize(
    ("text", "condition", "place"),
    [
        ("UPDATE {} AS t(a, b) SET a = 1", "COLUMN_ALIASES_NOT_ALLOWED", "line 1"),
        ("UPDATE {} SET *", "PARSE_SYNTAX_ERROR", "line 1, pos"),
        ("UPDATE {}\nSET v = 'a' WHERE", "PARSE_SYNTAX_ERROR", "line 2, pos 17"),
        ("DELETE FROM {}\nWHERE k = = 1", "PARSE_SYNTAX_ERROR", "line 2, pos 10"),
        ("DELETE FROM {} WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("DELETE FROM {} AS t WHERE {}.k = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "k"),
    ],
)
def test_wrong_updates_and_deletes(
    spark: SparkSession, table: str, text: str, condition: str, place: str
) -> None:
    with pytest.raises((ParseException, AnalysisException)) as caught:
        run_sql(spark, text.replace("{}", name(table)))
    assert caught.value.getCondition() == condition
    assert place in str(caught.value)
