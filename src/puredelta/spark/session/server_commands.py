"""Statements of this library that a Spark Connect server runs as they are.

They do not pass the activated ``spark.sql``. A command (SHOW, DESCRIBE, CREATE, ALTER, DROP) is
one request, and its answer has the rows in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

_own: ContextVar[bool] = ContextVar("puredelta_own_request", default=False)


def is_own_request() -> bool:
    """Return whether a request that leaves now is one of this library about the catalog.

    Its text names entries as they are, so nothing in it may be replaced.
    """
    return _own.get()


@contextmanager
def own_requests() -> Iterator[None]:
    """Mark the requests that leave inside the context (`is_own_request`)."""
    token = _own.set(True)
    try:
        yield
    finally:
        _own.reset(token)


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
    with own_requests():
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


def _local_rows(relation: Any) -> Sequence[Mapping[str, Any]]:
    """Return the rows that a message has as a stream of Arrow."""
    if not relation.data:
        return []
    with pa.ipc.open_stream(relation.data) as stream:
        found: list[dict[str, Any]] = stream.read_all().to_pylist()
    return found
