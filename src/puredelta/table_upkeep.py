"""What keeps a table in order, and what it says of itself: the methods of ``DeltaTable`` for that.

Nothing is decided here: arguments are checked and calls are forwarded to the commands.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import add_feature_support, upgrade_protocol_versions
from puredelta.commands.arguments import require_boolean, require_integer, require_string
from puredelta.commands.generate import generate
from puredelta.commands.optimize.spec import OptimizeSpec
from puredelta.commands.read.detail import detail_rows
from puredelta.commands.read.history import history_rows
from puredelta.commands.restore import RestoreOutcome, restore_table
from puredelta.commands.vacuum.vacuum import vacuum
from puredelta.log.replay.table_log import TableLog
from puredelta.optimize_builder import DeltaOptimizeBuilder
from puredelta.spark.session.pyspark_errors import methods_like_pyspark


@methods_like_pyspark
class TableUpkeep:
    """The part of ``DeltaTable`` that leaves the rows as they are, or as they were once."""

    def __init__(self, spark: SparkSession, log: TableLog, *, catalog_name: str | None) -> None:
        self._spark = spark
        self._log = log
        self._catalog_name = catalog_name

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803
        """Delete files that no version within the retention time needs; return no rows.

        Without ``retentionHours`` the table's ``delta.deletedFileRetentionDuration`` decides,
        a week unless it was set.

        Raises:
            InvalidRequestError: the time is negative, or shorter than the table's while
                ``spark.databricks.delta.retentionDurationCheck.enabled`` is on.
        """
        vacuum(self._spark, self._log, retention_hours=retentionHours)
        return self._spark.createDataFrame([], StructType([]))

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start an OPTIMIZE of this table's files; the rows stay what they are."""
        return DeltaOptimizeBuilder(self._spark, self._log, OptimizeSpec())

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802
        """Make the table what it was at a version; return one row of counts.

        Raises:
            InvalidRequestError: there is no such version, or files of it are gone.
            ConflictError: somebody else changed the table meanwhile.
        """
        require_integer(version, "version")
        return self._restored(restore_table(self._spark, self._log, version=version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802
        """Make the table what it was at a time; return one row of counts.

        Raises:
            InvalidRequestError: the time is none or outside of the history, or files are gone.
            ConflictError: somebody else changed the table meanwhile.
        """
        require_string(timestamp, "timestamp")
        return self._restored(restore_table(self._spark, self._log, timestamp=timestamp))

    def _restored(self, outcome: RestoreOutcome | None) -> DataFrame:
        if outcome is None:
            return self._spark.createDataFrame([], StructType([]))
        return outcome.row(self._spark)

    def generate(self, mode: str) -> None:
        """Write manifests for engines without Delta support: ``symlink_format_manifest``.

        Raises:
            InvalidRequestError: there is no such mode, or files have deletion vectors.
            UnsupportedError: the table has column mapping.
        """
        generate(self._log.store, self._log.snapshot(), mode)

    def upgradeTableProtocol(  # noqa: N802
        self,
        readerVersion: int,  # noqa: N803
        writerVersion: int,  # noqa: N803
    ) -> None:
        """Let the table have the features that a pair of protocol versions stands for.

        Raises:
            InvalidRequestError: a version does not exist.
        """
        _require_version(readerVersion, "readerVersion")
        _require_version(writerVersion, "writerVersion")
        upgrade_protocol_versions(
            self._spark, self._log, reader=readerVersion, writer=writerVersion
        )

    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803
        """Let the table have a feature; readers and writers have to know it from then on.

        Raises:
            InvalidRequestError: there is no such feature.
            UnsupportedError: this library could not write the table any more.
        """
        require_string(featureName, "featureName")
        add_feature_support(self._spark, self._log, featureName)

    def dropFeatureSupport(  # noqa: N802
        self,
        featureName: str,  # noqa: N803
        truncateHistory: bool | None = None,  # noqa: FBT001, N803
    ) -> None:
        """Take a feature from the table, and what uses it as far as no file is rewritten.

        Raises:
            InvalidRequestError: the feature is not there, or cannot be dropped.
            UnsupportedError: files would have to be rewritten or history truncated.
        """
        require_string(featureName, "featureName")
        if truncateHistory is not None:
            require_boolean(truncateHistory, "truncateHistory")
        drop_feature_support(
            self._spark, self._log, featureName, truncate_history=bool(truncateHistory)
        )

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits of this table, newest first, in the columns of DESCRIBE HISTORY."""
        return history_rows(self._spark, self._log, limit=limit)

    def detail(self) -> DataFrame:
        """Return one row about this table, in the columns of DESCRIBE DETAIL."""
        return detail_rows(self._spark, self._log.snapshot(), catalog_name=self._catalog_name)


def _require_version(value: object, name: str) -> None:
    if not isinstance(value, int):
        raise ValueError(  # noqa: TRY004 - as in the reference
            f"The {name} needs to be an integer but got '{type(value)}'."
        )
