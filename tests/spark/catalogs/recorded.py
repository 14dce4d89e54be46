"""Recorded statements on managed tables of a Unity catalog, which have a name and no path."""

from __future__ import annotations

import itertools
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from puredelta.tables import DeltaTable
from tests.corpus.run import Engine
from tests.servers.unity import Table, UnityServer

DEMANDED = {"'delta.enableDeletionVectors' = 'false'": "'delta.enableDeletionVectors' = 'true'"}
"""Properties of recorded tables that contradict the catalog's demands, and what replaces them."""
SCHEMA = ("main", "sales")


@dataclass(frozen=True)
class ManagedPlace:
    """Managed tables of a stand-in; bases are made by statements, and copied in the stand-in."""

    server: UnityServer
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new(self, directory: Path) -> str:
        """Return the name of a base that is to be made."""
        del directory
        return _full_name(f"base_{next(self._numbers)}")

    def named(self, text: str, location: str) -> str:
        """Return a statement with the name of a table in the place of {table}."""
        for stated, demanded in DEMANDED.items():
            text = text.replace(stated, demanded)
        return text.replace("{table}", location)

    def copy(self, base: str, name: str) -> str:
        """Return the name of a copy of a base: its files and its log with an id of its own."""
        table, copied = self._table(base), str(uuid.uuid4())
        source, target = _folder(table), _folder(table).with_name(copied)
        shutil.copytree(source, target)
        log = target / "_delta_log"
        for path in [*log.rglob("*.json"), *log.rglob("*.crc")]:
            path.write_bytes(path.read_bytes().replace(table.id.encode(), copied.encode()))
        for path in [*log.glob("*.checkpoint*"), *log.glob("_last_checkpoint")]:
            path.unlink()  # a checkpoint names the id of its table, too
        self.server.tables[(*SCHEMA, f"copy-{name}")] = replace(
            table,
            id=copied,
            location=table.location.replace(table.id, copied),
            properties={**table.properties, "io.unitycatalog.tableId": copied},
            commits=list(table.commits),
        )
        return _full_name(f"copy-{name}")

    def last_commit(self, location: str) -> tuple[int, str]:
        """Return the newest version and the content of its commit file."""
        table = self._table(location)
        path = _folder(table) / "_delta_log" / f"{table.latest:020}.json"
        return table.latest, path.read_text()

    def remove(self, location: str) -> None:
        """Remove a table."""
        table = self.server.tables.pop(_parts(location))
        shutil.rmtree(_folder(table))

    def _table(self, location: str) -> Table:
        return self.server.tables[_parts(location)]


def _full_name(table: str) -> str:
    return ".".join((*SCHEMA, f"`{table}`"))


def _parts(name: str) -> tuple[str, str, str]:
    return (*SCHEMA, name.removeprefix(f"{'.'.join(SCHEMA)}.").strip("`"))


def _folder(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def by_name(spark: SparkSession, engine: Engine) -> Engine:
    """Return an engine for tables that are named: the calls of an activated session."""
    feed = spark.read.option("readChangeFeed", "true")
    return replace(
        engine,
        open=lambda name: DeltaTable.forName(spark, name),
        read=spark.table,
        append=lambda rows, name: rows.write.format("delta").mode("append").saveAsTable(name),
        changes=lambda name, version: feed.option("startingVersion", version).table(name),
    )


@dataclass
class ManagedTarget:
    """A managed table, whose rows are appended file by file."""

    spark: SparkSession
    server: UnityServer
    name: str = "main.sales.target"
    _first: int = 0

    def create(
        self,
        schema: T.StructType,
        files: Sequence[Sequence[tuple]],
        *,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        """Create the table with the rows of each element of ``files`` in files of their own."""
        builder = DeltaTable.create(self.spark).tableName(self.name).addColumns(schema)
        for key, text in properties.items():
            builder = builder.property(key, text)
        builder.partitionedBy(*partition_by).execute()
        for rows in files:
            if rows:
                frame = self.spark.createDataFrame(list(rows), schema).coalesce(1)
                frame.write.format("delta").mode("append").saveAsTable(self.name)
        self._first = self._table.latest

    @property
    def _table(self) -> Table:
        return self.server.tables[_parts(self.name)]

    def table(self) -> DeltaTable:
        """Return the table."""
        return DeltaTable.forName(self.spark, self.name)

    def num_commits(self) -> int:
        """Return the number of commits since the table has its rows."""
        return self._table.latest - self._first

    def changes(self) -> DataFrame:
        """Return the changes of these commits."""
        feed = self.spark.read.option("readChangeFeed", "true")
        return feed.option("startingVersion", self._first + 1).table(self.name)
