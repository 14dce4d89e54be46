"""Statements that a Spark Connect client lets its server execute as they are.

They do not pass the activated ``spark.sql``. A command (SHOW, DESCRIBE, CREATE, ALTER, DROP) is one
request, and its answer has the rows in it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from puredelta.spark.jvm import catalog
from puredelta.spark.session.names import quote_name
from puredelta.spark.session.session import asked_names, is_connect
from puredelta.spark.session.types import quoted_text


def has_temporary_view(spark: SparkSession, name: str) -> bool:
    """Return whether the session has a temporary view of the name.

    A call of this package asks a Connect server once for each name.
    """
    if not is_connect(spark):
        return catalog.has_temporary_view(spark, name)
    asked, key = asked_names(spark), (_TEMPORARY_VIEW, name)
    if key not in asked:
        rows = run_on_server(spark, f"SHOW VIEWS LIKE {quoted_text(name_pattern(name))}")
        views = {str(row["viewName"]) for row in rows if row["isTemporary"]}
        asked[key] = name in views or (
            name.lower() in map(str.lower, views) and not is_case_sensitive(spark)
        )
    return bool(asked[key])


_TEMPORARY_VIEW = " temporary view"
"""The first part of a key that is no name of a relation."""


def current_namespace(spark: SparkSession) -> tuple[str, str]:
    """Return the server's current catalog and database."""
    [row] = run_on_server(spark, "SHOW CURRENT NAMESPACE")
    return row["catalog"], row["namespace"]


def database_location(spark: SparkSession, database: str) -> str:
    """Return where tables of a database of the session catalog belong, without a slash at the end.

    Raises:
        pyspark.errors.AnalysisException: there is no such database.
    """
    place = quote_name((catalog.SESSION_CATALOG, database))
    rows = run_on_server(spark, f"DESCRIBE DATABASE {place}")
    found = next(row["info_value"] for row in rows if row["info_name"] == "Location")
    return str(found).rstrip("/")


def name_pattern(name: str) -> str:
    """Return a pattern of SHOW that a name matches; some signs have a meaning there.

    >>> name_pattern("a-b*")
    'a.b.'
    """
    return re.sub(r"\W", ".", name, flags=re.ASCII)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names of a Connect session differ by upper and lower case."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def run_on_server(spark: SparkSession, text: str) -> Sequence[Mapping[str, Any]]:
    """Run a statement on the server and return its rows, by column. Connect sessions only.

    Raises:
        pyspark.errors.PySparkException: the server's error.

    Examples:
        >>> run_on_server(spark, "SHOW CURRENT NAMESPACE")  # doctest: +SKIP
        [{'catalog': 'spark_catalog', 'namespace': 'default'}]
    """
    client: Any = spark
    plans: Any = importlib.import_module("pyspark.sql.connect.plan")  # Connect clients only
    if text.split(maxsplit=1)[0] not in _QUESTIONS:
        asked_names(spark).clear()
    command = plans.SQL(text).command(client.client)
    _, properties, *_ = client.client.execute_command(command)
    answer = properties.get("sql_command_result")
    if answer is None:
        return []
    if answer.WhichOneof("rel_type") == "local_relation":
        return _local_rows(answer.local_relation)
    frames: Any = importlib.import_module("pyspark.sql.connect.dataframe")
    rows = frames.DataFrame(plans.CachedRelation(answer), spark).collect()
    return [row.asDict() for row in rows]


_QUESTIONS = frozenset({"SHOW", "DESCRIBE"})


def _local_rows(relation: Any) -> Sequence[Mapping[str, Any]]:
    """Return the rows that a message has as a stream of Arrow."""
    if not relation.data:
        return []
    with pa.ipc.open_stream(relation.data) as stream:
        found: list[dict[str, Any]] = stream.read_all().to_pylist()
    return found
