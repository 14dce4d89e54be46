"""A connection that breaks between the steps of a statement: what is left, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from puredelta.commands.create import registered
from puredelta.errors import DeltaError
from puredelta.spark.catalog import connect_entries


class _GoneError(PySparkException):
    """The server cannot be reached."""


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except DeltaError as error:
        return error.code.error_class
    except Exception as error:  # noqa: BLE001 - the test shows which
        return type(error).__name__
    return "done"


def broken_connections(spark: SparkSession, root: Path) -> Any:
    """Break CREATE TABLE after its first step, with a server that answers again or does not."""
    location = root / "external"

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("lost")

    def lost(*_: Any, **__: Any) -> Any:
        raise _GoneError("gone")

    def sql(text: str) -> str:
        return _outcome(lambda: spark.sql(text).collect())

    def exists(name: str) -> bool:
        return spark.catalog.tableExists(name)

    found: list[Any] = []
    with _replaced(registered, "define_table_at", fails):
        found += [sql("CREATE TABLE m (a INT) USING delta"), exists("m")]
        found += [sql("CREATE TABLE m USING delta AS SELECT 1 AS a"), exists("m")]
    with (
        _replaced(registered, "define_table_at", fails),
        _replaced(registered, "unregister", lost),
    ):
        found += [sql("CREATE TABLE m (a INT) USING delta"), exists("m")]
    found += [sql("SELECT * FROM m"), sql("INSERT INTO m VALUES (1)")]
    found += [sql("CREATE TABLE m (a INT) USING delta")]
    found += [sql("CREATE OR REPLACE TABLE m (a INT) USING delta"), sql("SELECT * FROM m")]
    text = f"CREATE TABLE e USING delta LOCATION '{location}'"
    with _replaced(connect_entries, "run_command", lost):
        found += [sql(f"{text} AS SELECT 1 AS a")]
    log = location / "_delta_log"
    found += [exists("e"), sorted(path.name for path in log.glob("*.json"))]
    found += [sql(text), [list(row) for row in spark.sql("SELECT * FROM e").collect()]]
    return found
