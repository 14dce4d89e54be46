"""What `test_connect_matrix` asks: each step of `matrix_rows` in both kinds of sessions.

One process is server, Connect client and classic session, so that all three share one catalog.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import puredelta
import puredelta.tables
from tests.reference.everyday import Shop, Statement, rows_shown
from tests.reference.recorded import answer, news
from tests.spark.catalog.connect_entry_checks import kept_entry, session_of
from tests.statements.connect_faults import broken_connections
from tests.statements.matrix_rows import BLOCKS

_MODE = "SPARK_CONNECT_MODE_ENABLED"
DATABASES = ("matrix", "db2")


def main(root: Path, kind: str, names: list[str]) -> None:
    spark = session_of(root, kind)
    classic: Any = SparkSession._instantiatedSession
    classic.sparkContext.setLogLevel("OFF")
    answers: dict[str, Any] = {}
    for session in (spark, classic):
        with _mode_of(session is spark):
            session.conf.set("spark.sql.session.timeZone", "UTC")
            session.conf.set("spark.sql.shuffle.partitions", "1")
            assert puredelta.activate(session)
            side = "connect" if session is spark else "classic"
            answers[side] = {
                name: _block(session, classic, name, root / side / name.replace(" ", "_"))
                for name in names or BLOCKS
            }
            if session is spark:
                with _databases(spark, classic, root / "faults"):
                    answers["faults"] = broken_connections(spark, root)
    puredelta.deactivate()
    os.environ[_MODE] = "1"
    spark.stop()
    print(json.dumps(answers))  # noqa: T201 - the answer


@contextmanager
def _mode_of(is_connect: bool) -> Iterator[None]:
    """Let PySpark's functions make columns for one kind of session."""
    kept = {name: os.environ.pop(name) for name in (_MODE, "SPARK_REMOTE") if name in os.environ}
    if is_connect:
        os.environ.update(kept)
    try:
        yield
    finally:
        os.environ.update(kept)


@contextmanager
def _databases(spark: SparkSession, classic: Any, root: Path) -> Iterator[None]:
    """Make two empty databases below a directory, one of them the current one."""
    root.mkdir(parents=True)
    for database in DATABASES:
        spark.sql(f"CREATE DATABASE {database} LOCATION '{root / database}.db'")
    spark.catalog.setCurrentDatabase(DATABASES[0])
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    spark.catalog.setCurrentDatabase("default")
    for database in DATABASES:
        classic._jsparkSession.sql(f"DROP DATABASE {database} CASCADE")


def _block(spark: SparkSession, classic: SparkSession, name: str, root: Path) -> Any:
    """Run the steps of a block: answers, commits, and the entries left."""
    known: set[Path] = set()
    found = []
    with _databases(spark, classic, root):
        shop = Shop(spark=spark, tables=puredelta.tables, root=str(root))
        for label, statement in BLOCKS[name]:
            lines = [*_answer(statement, shop), *news(root, known)]
            found.append([label, [line.replace(str(root), "ROOT") for line in lines]])
        entries = {database: _entries(classic, database, root) for database in DATABASES}
    return {"steps": found, "entries": entries}


def _answer(statement: Statement, shop: Shop) -> list[str]:
    """Run a step and compute its rows: what it returned, or the class of its error."""

    def run(shop: Shop) -> Any:
        given = statement(shop)
        return rows_shown(given) if isinstance(given, DataFrame) else given

    return answer(run, shop)


def _entries(classic: Any, database: str, root: Path) -> dict[str, Any]:
    catalog = classic._jsparkSession.sessionState().catalog()
    tables = catalog.listTables(database)
    names = sorted(tables.apply(n).table() for n in range(tables.size()))
    local = {view for view in names if not _is_entry(catalog, database, view)}
    return {
        name: json.loads(json.dumps(kept_entry(classic, database, name)).replace(str(root), "ROOT"))
        for name in names
        if name not in local
    }


def _is_entry(catalog: Any, database: str, name: str) -> bool:
    return bool(catalog.externalCatalog().tableExists(database, name))


def differences(answers: Any) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield what differs: block, step, and what the Connect and the classic session did."""
    for name, theirs in answers["classic"].items():
        ours = answers["connect"][name]
        for (label, one), (_, other) in zip(ours["steps"], theirs["steps"], strict=True):
            if one != other:
                yield name, label, one, other
        for database in theirs["entries"]:
            one, other = ours["entries"][database], theirs["entries"][database]
            for table in sorted({*one, *other}):
                if one.get(table) != other.get(table):
                    first, second = one.get(table) or {}, other.get(table) or {}
                    keys = sorted(k for k in {*first, *second} if first.get(k) != second.get(k))
                    yield (
                        name,
                        f"entry {database}.{table}",
                        [f"{k}: {first.get(k)}" for k in keys],
                        [f"{k}: {second.get(k)}" for k in keys],
                    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
