"""The opened table of a ``DeltaTable``, and its columns for statements."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from puredelta.commands.dml.execute import PreparedChange
from puredelta.commands.dml.spec import RowSpec
from puredelta.errors import InvalidRequestError, Message
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.resolve.bound_columns import bind_to
from puredelta.spark.resolve.table_attributes import (
    qualified,
    renewed_identity,
    table_identity,
    with_identity,
)
from puredelta.spark.scan.table_rows import table_rows
from puredelta.spark.session.storage import open_log
from puredelta.statements.names.names import missing_table


class OpenTable:
    """A table's log, and its columns under the user's alias.

    A column taken from the table keeps its identity over later versions, so that later statements
    resolve it.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: TableLog,
        columns: DataFrame,
        *,
        version: int | None = None,
        name: tuple[str, ...] = (),
    ) -> None:
        self.version = version
        """The newest version when the table was opened, as far as it was read then."""
        self.spark = spark
        self.log = log
        self._columns = self._latest = columns
        self._alias: str | None = None
        self._name = name
        """By which it was opened; empty for a path."""

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        path: str,
        *,
        storage_options: Mapping[str, object] | None = None,
        name: tuple[str, ...] = (),
    ) -> OpenTable:
        """Open the table at a path; ``storage_options`` are those of `open_log`.

        ``name`` is that of the table in a catalog, if it was opened by it.

        Raises:
            TableNotFoundError: there is no Delta table (DELTA_MISSING_DELTA_TABLE).
        """
        log = open_log(spark, path, storage_options=storage_options) if path else None
        # One listing tells whether there is a table, and its newest version.
        snapshot = None if log is None else log.find_snapshot()
        if log is None or snapshot is None:
            raise missing_table(log, f"`{path}`")
        columns = table_identity(spark, snapshot.config.schema)
        return cls(spark, log, columns, version=snapshot.version, name=name)

    def under(self, alias: str) -> OpenTable:
        """Return the same table under an alias."""
        other = OpenTable(self.spark, self.log, self._columns, version=self.version)
        other._alias = alias
        return other

    def columns(self) -> DataFrame:
        """Return an empty frame with the columns that the table had when it was opened."""
        return self._named(self._columns)

    def latest_columns(self) -> DataFrame:
        """Return an empty frame with the columns of the latest version."""
        return self._named(self._renewed())

    def rows(self) -> DataFrame:
        """Return the rows of the latest version."""
        rows = table_rows(self.spark, self.log.snapshot(), time_travel=False)
        shown = self._aliased(with_identity(rows, self._renewed()))
        bind_to(self._columns, shown)
        return shown

    def prepare(self, spec: RowSpec) -> PreparedChange:
        """Prepare an UPDATE or a DELETE of the table, as it was opened."""
        return PreparedChange(
            spark=self.spark,
            log=self.log,
            spec=spec,
            target_rows=self.latest_columns(),
            since=self.version,
        )

    def _renewed(self) -> DataFrame:
        self._latest = renewed_identity(self._latest, self.log.snapshot().config.schema)
        return self._latest

    def _named(self, rows: DataFrame) -> DataFrame:
        if self._name and self._alias is None:
            return qualified(rows, self._name)
        return self._aliased(rows)

    def _aliased(self, rows: DataFrame) -> DataFrame:
        return rows if self._alias is None else rows.alias(self._alias)


def require_storage_options(options: Mapping[str, str]) -> None:
    """Refuse options of a file system that delta-spark refuses.

    Raises:
        InvalidRequestError: a key begins neither with ``fs.`` nor with ``dfs.``.
    """
    odd = [key for key in options if not key.startswith(("fs.", "dfs."))]
    if odd:
        raise InvalidRequestError(
            Message.TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF,
            odd=sorted(odd),
            unsupported_options=tuple(sorted(odd)),
        )
