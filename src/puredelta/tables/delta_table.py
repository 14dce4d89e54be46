"""``DeltaTable``, as in ``delta.tables``.

The methods only check their arguments, with delta-spark's class and words (``ValueError``), and
call the commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import add_feature_support, upgrade_protocol_versions
from puredelta.commands.convert.convert_to_delta import prepare_convert
from puredelta.commands.create.clone import CloneRequest, clone_table, require_absolute
from puredelta.commands.create.create_table import CreateMode
from puredelta.commands.described import detail_rows
from puredelta.commands.dml.spec import (
    DeleteSpec,
    MergeSpec,
    UpdateSpec,
    assignments,
    optional_condition,
    require_merge_condition,
    require_source,
)
from puredelta.commands.generate import generate
from puredelta.commands.optimize import OptimizeSpec
from puredelta.commands.read_table import history_rows, resolve_timestamp
from puredelta.commands.restore import RestoreOutcome, prepare_restore
from puredelta.commands.statement.report import last_report, with_report
from puredelta.commands.vacuum import prepare_vacuum
from puredelta.errors import InvalidRequestError, Message, TableNotFoundError
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.resolve.table_attributes import table_identity
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.spark.session.session import no_rows
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.names import (
    find_catalog_name,
    find_location,
    is_known,
    qualifier_of,
    require_table,
)
from puredelta.statements.parse.table_name import TableName, parse_table_name
from puredelta.tables.builders import (
    ColumnMapping,
    DeltaMergeBuilder,
    DeltaOptimizeBuilder,
    ExpressionOrColumn,
    PreparedChange,
    PreparedMaintenance,
)
from puredelta.tables.open_table import OpenTable, require_storage_options
from puredelta.tables.table_builder import DeltaTableBuilder

N = TypeVar("N", int, float)


@methods_like_pyspark
class TableMaintenance:
    """Maintenance methods of ``DeltaTable``: files, older versions and the protocol."""

    def __init__(self, spark: SparkSession, log: TableLog) -> None:
        self._spark = spark
        self._log = log

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete files that no version within the retention time needs; return no rows.

        Without ``retentionHours`` the property ``delta.deletedFileRetentionDuration`` decides,
        a week unless it was set.

        Raises:
            InvalidRequestError: the time is negative, or shorter than the table's while
                ``spark.databricks.delta.retentionDurationCheck.enabled`` is on.
        """
        hours = _number(retentionHours, "retentionHours", float)
        prepare_vacuum(self._spark, self._log, retention_hours=hours).execute()
        return no_rows(self._spark)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore an older version; return one row of counts, with its ``report``.

        Raises:
            InvalidRequestError: the version, or a file of it, does not exist.
            ConflictError: another writer changed the table meanwhile.
        """
        require_integer(version, "version")
        return self._restored(prepare_restore(self._spark, self._log, version=version).execute())

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """As `restoreToVersion`, to the version that was current at a time."""
        require_string(timestamp, "timestamp")
        return self._restored(
            prepare_restore(self._spark, self._log, timestamp=timestamp).execute()
        )

    def prepareVacuum(self, retentionHours: float | None = None) -> PreparedMaintenance:
        """Return a `vacuum` that has not run yet, for `explain` and `dry_run`."""
        hours = _number(retentionHours, "retentionHours", float)
        prepared = prepare_vacuum(self._spark, self._log, retention_hours=hours)
        return PreparedMaintenance(prepared)

    def prepareRestore(
        self, version: int | None = None, timestamp: str | None = None
    ) -> PreparedMaintenance:
        """Return a RESTORE (version or time) that has not run yet, for `explain` and `dry_run`.

        Raises:
            ValueError: not exactly one of both is given, or it is of the wrong type.
        """
        if (version is None) == (timestamp is None):
            raise ValueError("prepareRestore takes a version or a timestamp, one of both.")
        if version is not None:
            require_integer(version, "version")
        if timestamp is not None:
            require_string(timestamp, "timestamp")
        prepared = prepare_restore(self._spark, self._log, version=version, timestamp=timestamp)
        return PreparedMaintenance(prepared)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Add the features of a pair of protocol versions to the table."""
        _require_version(readerVersion, "readerVersion")
        _require_version(writerVersion, "writerVersion")
        upgrade_protocol_versions(
            self._spark, self._log, reader=readerVersion, writer=writerVersion
        )

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature to the table; all readers and writers must know it from then on.

        Raises:
            InvalidRequestError, UnsupportedError: there is no such feature, here or at all.
        """
        require_string(featureName, "featureName")
        add_feature_support(self._spark, self._log, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature from the table, with its uses as far as no file is rewritten.

        Raises:
            InvalidRequestError: the table lacks the feature, or it cannot be dropped.
            UnsupportedError: files would have to be rewritten or history truncated.
        """
        require_string(featureName, "featureName")
        if truncateHistory is not None:
            require_boolean(truncateHistory, "truncateHistory")
        truncates = bool(truncateHistory)
        drop_feature_support(self._spark, self._log, featureName, truncate_history=truncates)

    def _restored(self, outcome: RestoreOutcome | None) -> DataFrame:
        if outcome is None:
            return no_rows(self._spark)
        return with_report(outcome.row(self._spark), last_report())


def clone_request(
    target: str, shallow: object, replacing: object, properties: object
) -> CloneRequest:
    """Return the request for the arguments of ``clone``.

    Raises:
        ValueError: an argument is of the wrong type, or the target is no absolute path.
    """
    require_string(target, "target")
    require_boolean(shallow, "isShallow")
    require_boolean(replacing, "replace")
    if properties is not None:
        require_properties(properties)
    require_absolute(target)
    wanted = properties if isinstance(properties, dict) else {}
    return CloneRequest(shallow=bool(shallow), replace=bool(replacing), properties=wanted)


def _require_version(value: object, name: str) -> None:
    if not isinstance(value, int):
        raise ValueError(  # noqa: TRY004 - as in delta-spark
            f"The {name} needs to be an integer but got '{type(value)}'."
        )


def require_string(value: object, name: str) -> None:
    """Raise ValueError unless the value is text."""
    _require(value, name, str, "a string")


def _number(value: object, name: str, kind: Callable[[Any], N]) -> N | None:
    """Return a number that may be given as text, as delta-spark takes it.

    Raises:
        InvalidRequestError: it is no number (DELTA_INVALID_ARGUMENT).
    """
    if value is None:
        return None
    try:
        number = kind(value)
        int(number)  # neither NaN nor infinite
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequestError(
            Message.INVALID_ARGUMENT_NUMBER, argument=name, value=value
        ) from error
    return number


def require_integer(value: object, name: str) -> None:
    """Raise ValueError unless the value is an int; like delta-spark, accept a bool."""
    _require(value, name, int, "an int")


def require_boolean(value: object, name: str) -> None:
    """Raise ValueError unless the value is a bool."""
    _require(value, name, bool, "a boolean")


def require_properties(value: object) -> None:
    """Raise ValueError unless the value is a dict from text to text."""
    _require(value, "properties", dict, "a dict")
    assert isinstance(value, Mapping)  # noqa: S101 - a dict is one
    for key, text in value.items():
        require_string(key, f"All property keys including {key}")
        require_string(text, f"All property values including {text}")


def _require(value: object, name: str, kind: type, words: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} needs to be {words} but got '{type(value)}'.")  # noqa: TRY004


@methods_like_pyspark
class DeltaTable(TableMaintenance):
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

    def __init__(self, target: OpenTable, *, catalog_name: str | None = None) -> None:
        super().__init__(target.spark, target.log)
        self._target = target
        self._catalog_name = catalog_name

    @classmethod
    def forPath(
        cls,
        sparkSession: SparkSession,
        path: str | os.PathLike[str],
        hadoopConf: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Return the table at a path or URI.

        Raises:
            TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
            UnsupportedError: reading the table needs a feature that is not implemented.
            InvalidRequestError: ``hadoopConf`` has keys that do not begin with ``fs.`` or
                ``dfs.``. Its keys override the session's settings for access to the log.
        """
        require_storage_options(hadoopConf or {})
        return cls(OpenTable.open(sparkSession, os.fspath(path), storage_options=hadoopConf))

    @classmethod
    def _at(cls, spark: SparkSession, path: str, name: TableName | None = None) -> DeltaTable:
        if name is None:
            return cls(OpenTable.open(spark, path))
        parts = () if name.path is not None else qualifier_of(spark, name)
        catalog_name = find_catalog_name(spark, name)
        return cls(OpenTable.open(spark, path, name=parts), catalog_name=catalog_name)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return the table of a name in the session catalog, or at ``delta.`/path` ``.

        Raises:
            TableNotFoundError: there is no such Delta table (DELTA_MISSING_DELTA_TABLE).
            SqlSyntaxError: it is no name.
        """
        name = parse_table_name(tableOrViewName)
        location = find_location(sparkSession, name)
        if location is None and not is_known(sparkSession, name):
            raise TableNotFoundError(Message.MISSING_DELTA_TABLE_FOR_NAME, table=tableOrViewName)
        address = require_table(sparkSession, location, tableOrViewName).address
        return cls._at(sparkSession, address, name)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Tell whether there is a Delta table at a path."""
        return open_log(sparkSession, identifier).exists()

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        *,
        collect_stats: bool = True,
        verify: bool = False,
    ) -> DeltaTable:
        """Convert Parquet files into a Delta table, in place, and return it.

        ``identifier`` is ``parquet.`/path` `` or the name of a table in the catalog;
        ``partitionSchema`` names and types the partition directories, outermost first; a catalog
        table needs none; ``"infer"`` derives them from the directory names.
        ``collect_stats=False`` leaves the statistics out; ``verify=True`` compares every one with
        the rows.

        Raises:
            InvalidRequestError: the directory, a file or the partitioning does not fit the
                arguments; nothing was changed.
        """
        prepared = prepare_convert(
            sparkSession,
            identifier,
            partitionSchema,
            collect_stats=collect_stats,
            verify=verify,
        )
        result = prepared.execute()
        if result.name is not None:
            return cls.forName(sparkSession, result.name)
        if result.schema is None:
            return cls.forPath(sparkSession, result.location)
        # The new version is known: nothing of it is read again.
        columns = table_identity(sparkSession, result.schema)
        return cls(OpenTable(sparkSession, open_log(sparkSession, result.location), columns))

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; `execute` fails if it exists."""
        return cls._builder(sparkSession, CreateMode.CREATE)

    @classmethod
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; an existing one is left unchanged."""
        return cls._builder(sparkSession, CreateMode.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder that replaces a table, its definition and all its rows."""
        return cls._builder(sparkSession, CreateMode.REPLACE)

    @classmethod
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None
    ) -> DeltaTableBuilder[DeltaTable]:
        """Return a builder of a new table; an existing one must already be the same.

        delta-spark does so for tables at a path. To replace one, use `replace`.
        """
        return cls._builder(sparkSession, CreateMode.CREATE_OR_REPLACE)

    @classmethod
    def _builder(
        cls, spark: SparkSession | None, mode: CreateMode
    ) -> DeltaTableBuilder[DeltaTable]:
        session = SparkSession.getActiveSession() if spark is None else spark
        assert session is not None  # noqa: S101 - as in delta-spark
        return DeltaTableBuilder(session, mode, partial(cls._at, session))

    def toDF(self) -> DataFrame:
        """Return the rows of the latest version.

        Columns taken from it (``table.toDF()["id"]``) may be used in `merge` and `update`.
        """
        return self._target.rows()

    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table under an alias for the expressions of a merge."""
        return DeltaTable(self._target.under(aliasName), catalog_name=self._catalog_name)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Start a MERGE of ``source`` into this table.

        The table must have the same columns as when this object was made (M-34). An argument
        that is None is a ValueError, one of the wrong type a TypeError.
        """
        require_source(source)
        spec = MergeSpec(on=require_merge_condition(condition), clauses=())
        return DeltaMergeBuilder(
            self._spark,
            self._log,
            spec,
            target_rows=self._target.columns(),
            source_rows=source,
            since=self._target.version,
        )

    def update(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> None:
        """Update rows for which ``condition`` is true, all rows without one.

        ``set`` maps columns, or fields inside them, to SQL text or Columns over the old row;
        all other columns keep their values. If no row matches nothing is committed.

        Raises:
            ValueError, TypeError: ``set`` is None; an argument is of the wrong type.
            InvalidRequestError: the statement is wrong, or a new row breaks a rule of the
                table, which is unchanged.
            pyspark.errors.AnalysisException: a name or type is wrong, in Spark's own words.
            UnsupportedError: the table needs a feature that is not implemented.
            ConflictError: another writer changed data that this statement read.

        Examples:
            >>> events = DeltaTable.forPath(spark, "/data/events")  # doctest: +SKIP
            >>> events.update("kind = 'clck'", {"kind": "'click'"})  # doctest: +SKIP
        """
        values = assignments(set, argument="'set'")
        spec = UpdateSpec(assignments=values, condition=optional_condition(condition))
        self._target.prepare(spec).execute()

    def delete(self, condition: ExpressionOrColumn | None = None) -> None:
        """Delete rows for which ``condition`` is true, all rows without one.

        Without a condition, or with one on partition columns alone, whole files are removed without
        being read. If no row matches nothing is committed.

        Raises the errors of `update`.

        Examples:
            >>> events = DeltaTable.forPath(spark, "/data/events")  # doctest: +SKIP
            >>> events.delete("day < date'2024-01-01'")  # doctest: +SKIP
        """
        self._target.prepare(DeleteSpec(condition=optional_condition(condition))).execute()

    def prepareUpdate(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> PreparedChange:
        """Return an `update` that has not run yet, for `explain`, `dry_run` and `preview`.

        Examples:
            >>> change = events.prepareUpdate("id = 7", {"kind": "'click'"})  # doctest: +SKIP
            >>> change.dry_run().rows.updated  # doctest: +SKIP
            17
        """
        values = assignments(set, argument="'set'")
        spec = UpdateSpec(assignments=values, condition=optional_condition(condition))
        return self._target.prepare(spec)

    def prepareDelete(self, condition: ExpressionOrColumn | None = None) -> PreparedChange:
        """Return a `delete` that has not run yet, for `explain`, `dry_run` and `preview`."""
        spec = DeleteSpec(condition=optional_condition(condition))
        return self._target.prepare(spec)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Make a table at ``target`` that shares the data files of this one, and return it.

        Raises:
            UnsupportedError: ``isShallow`` is false; deep clones are not supported.
            InvalidRequestError: the target is not empty.
        """
        return self._cloned(target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, for an older version."""
        require_integer(version, "version")
        return self._cloned(target, isShallow, replace, properties, at=version)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """As `clone`, for the version that was current at a time."""
        require_string(timestamp, "timestamp")
        return self._cloned(target, isShallow, replace, properties, at=timestamp)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start an OPTIMIZE of this table's files; the rows do not change."""
        return DeltaOptimizeBuilder(self._spark, self._log, OptimizeSpec())

    def generate(self, mode: str) -> None:
        """Write manifests for engines without Delta support: ``symlink_format_manifest``.

        Raises:
            InvalidRequestError: there is no such mode, or files have deletion vectors.
            UnsupportedError: the table has column mapping.
        """
        generate(self._log.store, self._log.snapshot(), mode)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits of this table, newest first, in the columns of DESCRIBE HISTORY."""
        return history_rows(self._spark, self._log, limit=_number(limit, "limit", int))

    def detail(self) -> DataFrame:
        """Return one row about this table, in the columns of DESCRIBE DETAIL."""
        return detail_rows(self._spark, self._log.snapshot(), catalog_name=self._catalog_name)

    def _cloned(self, target: str, *options: object, at: int | str | None = None) -> DeltaTable:
        request = clone_request(target, *options)
        version = at if isinstance(at, int) else None
        time_ms = resolve_timestamp(self._spark, at) if isinstance(at, str) else None
        source = self._log.snapshot(version=version, timestamp_ms=time_ms)
        clone_table(self._spark, source, open_log(self._spark, target), request)
        return DeltaTable.forPath(self._spark, target)
