"""``delta.tables`` for a stock PySpark: the same classes, methods and argument names.

Nothing is decided here: arguments are checked and calls are forwarded to the commands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.arguments import (
    require_boolean,
    require_integer,
    require_properties,
    require_string,
)
from puredelta.commands.clone import CloneRequest, clone_table, require_absolute
from puredelta.commands.convert.run import convert_to_delta
from puredelta.commands.create.run import CreateMode
from puredelta.commands.merge.arguments import (
    assignments,
    optional_condition,
    require_merge_condition,
    require_source,
)
from puredelta.commands.merge.clauses import MergeSpec
from puredelta.commands.read import resolve_instant
from puredelta.commands.update_delete.run import run_rows
from puredelta.commands.update_delete.spec import DeleteSpec, RowSpec, UpdateSpec
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.replay.snapshot import Snapshot
from puredelta.log.replay.table_log import TableLog
from puredelta.merge_builder import ColumnMapping, DeltaMergeBuilder, ExpressionOrColumn
from puredelta.optimize_builder import DeltaOptimizeBuilder
from puredelta.spark.resolve.table_attributes import renewed_identity, table_identity, with_identity
from puredelta.spark.scan.table_rows import table_rows
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.sql.relations.names import find_catalog_name, find_location
from puredelta.sql.relations.table_argument import require_table
from puredelta.sql.text.table_name import parse_table_name
from puredelta.table_builder import DeltaTableBuilder, IdentityGenerator
from puredelta.table_upkeep import TableUpkeep

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]


@methods_like_pyspark
class DeltaTable(TableUpkeep):
    """A Delta table at a path.

    Get one with `forPath`, `forName`, `create` and its kin, or `convertToDelta`.

    Examples:
        >>> events = DeltaTable.forPath(spark, "/data/events").alias("t")  # doctest: +SKIP
        >>> (
        ...     events.merge(updates.alias("s"), "t.id = s.id")
        ...     .whenMatchedUpdateAll()
        ...     .whenNotMatchedInsertAll()
        ...     .execute()
        ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        spark: SparkSession,
        log: TableLog,
        identity: DataFrame,
        alias: str | None = None,
        *,
        catalog_name: str | None = None,
    ) -> None:
        super().__init__(spark, log, catalog_name=catalog_name)
        self._identity = self._latest = identity
        self._alias = alias

    @classmethod
    def forPath(  # noqa: N802 - the reference's name
        cls,
        sparkSession: SparkSession,  # noqa: N803
        path: str | os.PathLike[str],
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
    ) -> DeltaTable:
        """Return the table at a path: an absolute or relative path, or a ``file:`` URI.

        Raises:
            TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
            UnsupportedError: reading the table needs a feature that is not implemented.
            InvalidRequestError: ``hadoopConf`` has keys that do not begin with ``fs.`` or
                ``dfs.``. Others have no effect on the file systems that are reached here.
        """
        _require_storage_options(hadoopConf or {})
        return cls._at(sparkSession, os.fspath(path))

    @classmethod
    def _at(cls, spark: SparkSession, path: str, catalog_name: str | None = None) -> DeltaTable:
        log = require_table(path, f"`{path}`")
        columns = table_identity(spark, log.snapshot().config.schema)
        return cls(spark, log, columns, catalog_name=catalog_name)

    @classmethod
    def forName(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        tableOrViewName: str,  # noqa: N803
    ) -> DeltaTable:
        """Return the table of a name in the session catalog, or at ``delta.`/path` ``.

        Over Connect only the path form is known.

        Raises:
            TableNotFoundError: there is no Delta table of the name
                (DELTA_MISSING_DELTA_TABLE).
            SqlSyntaxError: it is no name.
        """
        name = parse_table_name(tableOrViewName)
        location = find_location(sparkSession, name)
        root_uri = require_table(location, tableOrViewName).root_uri
        return cls._at(sparkSession, root_uri, find_catalog_name(sparkSession, name))

    @classmethod
    def isDeltaTable(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: ARG003, N803 - the reference's signature
        identifier: str,
    ) -> bool:
        """Tell whether there is a Delta table at a path."""
        return TableLog.open(identifier).exists()

    @classmethod
    def convertToDelta(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        identifier: str,
        partitionSchema: str | StructType | None = None,  # noqa: N803
        *,
        collect_stats: bool = True,
    ) -> DeltaTable:
        """Make a Delta table of Parquet files where they are, and return it.

        ``identifier`` is ``parquet.`/path` ``; ``partitionSchema`` names and types the partition
        directories, outermost first. ``collect_stats=False`` leaves the columns' statistics out.

        Raises:
            InvalidRequestError: the directory, a file or the partitioning is not as promised;
                nothing was changed.
        """
        result = convert_to_delta(
            sparkSession, identifier, partitionSchema, collect_stats=collect_stats
        )
        if result.schema is None:
            return cls.forPath(sparkSession, result.location)
        # Known already: nothing of what was just written is read again.
        columns = table_identity(sparkSession, result.schema)
        return cls(sparkSession, TableLog.open(result.location), columns)

    @classmethod
    def create(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; where one is, `execute` fails."""
        return cls._builder(sparkSession, CreateMode.CREATE)

    @classmethod
    def createIfNotExists(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; one that is there stays as it is."""
        return cls._builder(sparkSession, CreateMode.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of what replaces a table, its definition and all its rows."""
        return cls._builder(sparkSession, CreateMode.REPLACE)

    @classmethod
    def createOrReplace(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; one that is there must be the same already.

        So it is in the reference for tables at a path. To replace one, use `replace`.
        """
        return cls._builder(sparkSession, CreateMode.CREATE_OR_REPLACE)

    @classmethod
    def _builder(
        cls, spark: SparkSession | None, mode: CreateMode
    ) -> DeltaTableBuilder[DeltaTable]:
        session = SparkSession.getActiveSession() if spark is None else spark
        assert session is not None  # noqa: S101 - as in the reference
        return DeltaTableBuilder(session, mode, partial(cls._at, session))

    def toDF(self) -> DataFrame:  # noqa: N802
        """Return the rows of the latest version.

        Columns taken from it (``table.toDF()["id"]``) may be used in `merge` on classic
        sessions.
        """
        snapshot = self._log.snapshot()
        rows = table_rows(self._spark, snapshot, time_travel=False)
        rows = with_identity(rows, self._latest_identity())
        return rows if self._alias is None else rows.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:  # noqa: N803
        """Return the same table under an alias for the expressions of a merge."""
        name = self._catalog_name
        return DeltaTable(self._spark, self._log, self._identity, aliasName, catalog_name=name)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Start a MERGE of ``source`` into this table.

        The table's columns must be those it had when this object was made (M-34).

        Raises:
            ValueError: an argument is None.
            TypeError: an argument is of the wrong type.
        """
        require_source(source)
        spec = MergeSpec(on=require_merge_condition(condition), clauses=())
        return DeltaMergeBuilder(
            self._spark,
            self._log,
            spec,
            target_rows=self._aliased(self._identity),
            source_rows=source,
        )

    def update(
        self,
        condition: ExpressionOrColumn | None = None,
        set: ColumnMapping | None = None,  # noqa: A002 - the reference's name
    ) -> None:
        """Update rows for which ``condition`` is true, all rows without one.

        ``set`` maps columns, or fields inside them, to SQL text or Columns over the old row;
        what it does not name keeps its value. If no row matches nothing is committed.

        Raises:
            ValueError: ``set`` is None.
            TypeError: an argument is of the wrong type.
            InvalidRequestError: the statement is wrong, or a new row breaks a rule of the
                table, which is unchanged.
            pyspark.errors.AnalysisException: a name or type is wrong, in Spark's own words.
            UnsupportedError: the table needs what is not implemented.
            ConflictError: another writer changed what this statement read.

        Examples:
            >>> events = DeltaTable.forPath(spark, "/data/events")  # doctest: +SKIP
            >>> events.update("kind = 'clck'", {"kind": "'click'"})  # doctest: +SKIP
        """
        values = assignments(set, argument="'set'")
        self._change(UpdateSpec(assignments=values, condition=optional_condition(condition)))

    def delete(self, condition: ExpressionOrColumn | None = None) -> None:
        """Delete rows for which ``condition`` is true, all rows without one.

        Whole files go without being read where no condition, or one on partition columns
        alone, decides. If no row matches nothing is committed.

        Raises:
            TypeError: the condition is neither text nor a Column.
            InvalidRequestError: the statement is wrong; the table is unchanged.
            pyspark.errors.AnalysisException: a name or type is wrong, in Spark's own words.
            UnsupportedError: the table needs what is not implemented.
            ConflictError: another writer changed what this statement read.

        Examples:
            >>> events = DeltaTable.forPath(spark, "/data/events")  # doctest: +SKIP
            >>> events.delete("day < date'2024-01-01'")  # doctest: +SKIP
        """
        self._change(DeleteSpec(condition=optional_condition(condition)))

    def clone(
        self,
        target: str,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803 - the reference's signature
        replace: bool = False,  # noqa: FBT001, FBT002
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Make a table at ``target`` that shares the data files of this one, and return it.

        Raises:
            UnsupportedError: ``isShallow`` is false; deep clones are not supported.
            InvalidRequestError: something is at the target.
        """
        request = _clone_request(target, isShallow, replace, properties)
        return self._cloned(self._log.snapshot(), target, request)

    def cloneAtVersion(  # noqa: N802 - the reference's signature
        self,
        version: int,
        target: str,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803
        replace: bool = False,  # noqa: FBT001, FBT002
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of a version."""
        require_integer(version, "version")
        request = _clone_request(target, isShallow, replace, properties)
        return self._cloned(self._log.snapshot(version=version), target, request)

    def cloneAtTimestamp(  # noqa: N802 - the reference's signature
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,  # noqa: FBT001, FBT002, N803
        replace: bool = False,  # noqa: FBT001, FBT002
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, of what was current at a time."""
        require_string(timestamp, "timestamp")
        request = _clone_request(target, isShallow, replace, properties)
        time_ms = resolve_instant(self._spark, timestamp)
        return self._cloned(self._log.snapshot(timestamp_ms=time_ms), target, request)

    def _cloned(self, source: Snapshot, target: str, request: CloneRequest) -> DeltaTable:
        clone_table(self._spark, source, TableLog.open(target), request)
        return DeltaTable.forPath(self._spark, target)

    def _change(self, spec: RowSpec) -> None:
        run_rows(self._spark, self._log, spec, target_rows=self._known_rows())

    def _known_rows(self) -> DataFrame:
        """Return no rows with the columns of the latest version, under the user's alias."""
        return self._aliased(self._latest_identity())

    def _latest_identity(self) -> DataFrame:
        """Return the columns of the latest version, those of before with their identity."""
        self._latest = renewed_identity(self._latest, self._log.snapshot().config.schema)
        return self._latest

    def _aliased(self, identity: DataFrame) -> DataFrame:
        return identity if self._alias is None else identity.alias(self._alias)


def _require_storage_options(options: Mapping[str, str]) -> None:
    odd = {key: value for key, value in options.items() if not key.startswith(("fs.", "dfs."))}
    if odd:
        raise InvalidRequestError(
            "Currently DeltaTable.forPath only supports hadoop configuration keys starting with "
            f"[fs.,dfs.] but got {odd}. Leave them out.",
            code=ErrorCode.TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF,
            unsupported_options=odd,
        )


def _clone_request(
    target: str, shallow: object, replacing: object, properties: dict[str, str] | None
) -> CloneRequest:
    require_string(target, "target")
    require_boolean(shallow, "isShallow")
    require_boolean(replacing, "replace")
    if properties is not None:
        require_properties(properties)
    require_absolute(target)
    return CloneRequest(shallow=bool(shallow), replace=bool(replacing), properties=properties or {})
