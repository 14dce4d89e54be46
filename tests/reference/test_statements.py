"""Statements as SQL text, by both: the same history and definition, or the same error class."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from puredelta.api import sql
from puredelta.errors import DeltaError
from tests.reference.commits import outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Each block on a table of its own, step by step.
STATEMENTS = {
    "definitions": """
        CREATE TABLE {t} (id BIGINT GENERATED ALWAYS AS IDENTITY COMMENT 'key', d INT DEFAULT
            5, g INT GENERATED ALWAYS AS (d + 1), k CHAR(3) NOT NULL) USING delta PARTITIONED
            BY (k) COMMENT 'it''s' TBLPROPERTIES ('mine' = 1,
            'delta.feature.allowColumnDefaults' = 'supported');
        CREATE TABLE {t} (a INT) USING delta;
        CREATE TABLE IF NOT EXISTS {t} (a INT) USING delta;
        CREATE OR REPLACE TABLE {t} (a INT) USING delta;
        REPLACE TABLE {t} (a INT, s STRUCT<x: INT>) USING delta CLUSTER BY (s.x);
        CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS a, 'x' AS p;
        REPLACE TABLE {t} USING delta TBLPROPERTIES (n 1) AS SELECT 2 AS b;
        CREATE TABLE {t} USING delta AS SELECT 1 AS a;
        REPLACE TABLE {t} (a INT, t DATE) USING delta PARTITIONED BY (days(t))""",
    "as select": """
        REPLACE TABLE {t} USING delta AS SELECT 1 AS a;
        CREATE TABLE {t} USING delta PARTITIONED BY (p) COMMENT 'c' AS SELECT 1 AS a, 2 AS p;
        TRUNCATE TABLE {t};
        COMMENT ON TABLE {t} IS 'other';
        GENERATE nonsense FOR TABLE {t}""",
    "changes": """
        CREATE TABLE {t} (a INT NOT NULL, s STRUCT<x: INT>, c INT) USING delta;
        ALTER TABLE {t} SET TBLPROPERTIES ('mine' = 1, two.parts = true);
        ALTER TABLE {t} UNSET TBLPROPERTIES ('nope');
        ALTER TABLE {t} ADD COLUMNS (d INT COMMENT 'x' FIRST, s.y DECIMAL(5, 2) AFTER x);
        ALTER TABLE {t} ADD COLUMN e INT DEFAULT 1;
        ALTER TABLE {t} ADD COLUMN v VARIANT;
        ALTER TABLE {t} ALTER COLUMN d COMMENT 'm2', c COMMENT 'm1';
        ALTER TABLE {t} CHANGE COLUMN c c INT AFTER a;
        ALTER TABLE {t} CHANGE COLUMN c other INT;
        ALTER TABLE {t} ALTER COLUMN c;
        ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
        ALTER TABLE {t} ALTER COLUMN c SET DEFAULT 4 + 1;
        ALTER TABLE {t} ALTER COLUMN c SET DEFAULT nope;
        ALTER TABLE {t} ALTER COLUMN c SET DEFAULT 'text';
        ALTER TABLE {t} ALTER COLUMN c DROP DEFAULT;
        ALTER TABLE {t} ADD CONSTRAINT pos CHECK (a > 0);
        ALTER TABLE {t} DROP CONSTRAINT IF EXISTS pos;
        ALTER TABLE {t} CLUSTER BY (a, s.x);
        ALTER TABLE {t} CLUSTER BY NONE;
        ALTER TABLE {t} DROP FEATURE 'checkConstraints'""",
    "rows": """
        CREATE TABLE {t} (a INT, p INT, q STRING, b INT) USING delta PARTITIONED BY (p, q);
        INSERT INTO {t} PARTITION (p = 1, q = 'x') VALUES (1, 2);
        INSERT INTO {t} PARTITION (p = 1, q) SELECT 3, 'y', 4;
        INSERT INTO {t} (b, a) SELECT 5, 6;
        INSERT INTO {t} BY NAME SELECT 7 AS q, 8 AS p;
        INSERT OVERWRITE {t} PARTITION (p = 1, q = 'x') VALUES (10, 20);
        INSERT INTO {t} REPLACE WHERE p = 1 AND q = 'y' VALUES (9, 1, 'y', 9);
        INSERT INTO {t} REPLACE WHERE p = 1 VALUES (9, 2, 'y', 9);
        INSERT WITH SCHEMA EVOLUTION INTO {t} REPLACE WHERE p = 9
            SELECT 1 AS a, 9 AS p, 'z' AS q, 2 AS b, 3 AS c;
        INSERT INTO {t} PARTITION (a = 1) VALUES (1, 2, 3);
        INSERT INTO {t} VALUES (1);
        INSERT OVERWRITE {t} VALUES (1, DEFAULT, 'z', DEFAULT, DEFAULT)""",
}
SHOWN = (
    "SHOW TBLPROPERTIES {t}",
    "SHOW TBLPROPERTIES {t} (mine)",
    "SHOW COLUMNS IN {t}",
    "DESCRIBE {t}",
    "DESC EXTENDED {t}",
    "DESC {t} a",
    "SHOW PARTITIONS {t}",
    "SHOW PARTITIONS {t} PARTITION (p = '2024-01-31')",
    "SHOW PARTITIONS {t} PARTITION (p = 1)",
    "SHOW PARTITIONS {t} PARTITION (a = 1)",
)
SAME_MEANING = {
    ("INVALID_DEFAULT_VALUE.NOT_CONSTANT", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
    ("DELTA_INSERT_COLUMN_ARITY_MISMATCH", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"),
}
"""Error classes of the reference and of puredelta for the same."""


def said(commits: list[list[str]] | str) -> Any:
    """What commits say of a statement and of the table; files and the values of metrics not."""
    if isinstance(commits, str):
        return commits
    return [[_said(json.loads(line)) for line in commit if _is_kept(line)] for commit in commits]


def _is_kept(line: str) -> bool:
    return not line.startswith(('{"add"', '{"remove"', '{"txn"'))


def _said(action: dict[str, Any]) -> dict[str, Any]:
    metrics = action.get("commitInfo", {}).get("operationMetrics")
    if metrics:
        action["commitInfo"]["operationMetrics"] = sorted(metrics)
    return action


def test_statements_leave_the_same_history(spark: SparkSession, tmp_path: Path) -> None:
    found = []
    for name, block in STATEMENTS.items():
        theirs, mine = tmp_path / f"reference {name}", tmp_path / f"puredelta {name}"
        for text in map(str.strip, block.split(";")):
            expected = said(outcome(theirs, partial(spark.sql, text.format(t=f"delta.`{theirs}`"))))
            tried = said(outcome(mine, partial(sql, spark, text.format(t=f"delta.`{mine}`"))))
            if expected != tried and (str(expected), str(tried)) not in SAME_MEANING:
                found.append(f"{text}\n  reference: {expected}\n  puredelta: {tried}")
        rows = spark.read.format("delta").load(str(mine)).collect()
        assert rows == spark.read.format("delta").load(str(theirs)).collect()
    assert not found, "\n".join(found)


def test_what_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    path = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"CREATE TABLE {path} (a INT NOT NULL COMMENT 'first', s STRUCT<x: INT>, v VARCHAR(3), "
        "p DATE) USING delta PARTITIONED BY (p) COMMENT 'it''s' TBLPROPERTIES ('mine' = 1)"
    )
    spark.sql(f"INSERT INTO {path} SELECT 1, NULL, 'x', DATE'2024-01-31'")
    refused = {}
    for text in SHOWN:
        statement = text.format(t=path)
        expected = shown(spark.sql, statement)
        assert shown(partial(sql, spark), statement) == expected, text
        if isinstance(expected, str):
            refused[text] = expected
    assert list(refused) == list(SHOWN[-2:])


def shown(run: Callable[[str], DataFrame], statement: str) -> Any:
    """Return the columns and rows that a statement shows, or the class of its error."""
    try:
        found = run(statement)
        return found.schema.simpleString(), found.collect()
    except (DeltaError, PySparkException) as error:
        return error.getCondition()
