"""Maintenance of a table, its clones, and what it says of itself: a part of ``DeltaTable``.

Nothing is decided here: arguments are checked, with delta-spark's class and words (``ValueError``),
and calls are forwarded to the commands.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from puredelta.commands.alter.drop_feature import drop_feature_support
from puredelta.commands.alter.properties import add_feature_support, upgrade_protocol_versions
from puredelta.commands.clone.clone_table import CloneRequest, require_absolute
from puredelta.commands.report.latest import last_report, with_report
from puredelta.commands.restore.plan import RestoreOutcome
from puredelta.commands.restore.request import RestoreRequest
from puredelta.commands.restore.restore import restore_table
from puredelta.commands.vacuum.request import VacuumRequest
from puredelta.commands.vacuum.vacuum import vacuum
from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.pyspark_errors import methods_like_pyspark
from puredelta.tables.prepared import PreparedMaintenance


@methods_like_pyspark
class TableMaintenance:
    """The part of ``DeltaTable`` that leaves the rows as they are, or as they were once."""

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
        vacuum(self._spark, self._log, retention_hours=retentionHours)
        return self._spark.createDataFrame([], StructType([]))

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table what it was at a version; return one row of counts, with its ``report``.

        Raises:
            InvalidRequestError: the version, or a file of it, is not there.
            ConflictError: another writer changed the table meanwhile.
        """
        require_integer(version, "version")
        return self._restored(restore_table(self._spark, self._log, version=version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """As `restoreToVersion`, to what was current at a time."""
        require_string(timestamp, "timestamp")
        return self._restored(restore_table(self._spark, self._log, timestamp=timestamp))

    def prepareVacuum(self, retentionHours: float | None = None) -> PreparedMaintenance:
        """Return a `vacuum` that has not run yet, to be explained and tried."""
        request = VacuumRequest(spark=self._spark, log=self._log, retention_hours=retentionHours)
        return PreparedMaintenance(request)

    def prepareRestore(
        self, version: int | None = None, timestamp: str | None = None
    ) -> PreparedMaintenance:
        """Return a RESTORE to a version or a time that has not run yet, to be explained and tried.

        Raises:
            ValueError: not exactly one of both is given, or it is of the wrong type.
        """
        if (version is None) == (timestamp is None):
            raise ValueError("prepareRestore takes a version or a timestamp, one of both.")
        if version is not None:
            require_integer(version, "version")
        if timestamp is not None:
            require_string(timestamp, "timestamp")
        request = RestoreRequest(
            spark=self._spark, log=self._log, version=version, timestamp=timestamp
        )
        return PreparedMaintenance(request)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Let the table have the features that a pair of protocol versions stands for."""
        _require_version(readerVersion, "readerVersion")
        _require_version(writerVersion, "writerVersion")
        upgrade_protocol_versions(
            self._spark, self._log, reader=readerVersion, writer=writerVersion
        )

    def addFeatureSupport(self, featureName: str) -> None:
        """Let the table have a feature; readers and writers have to know it from then on.

        Raises:
            InvalidRequestError, UnsupportedError: there is no such feature, here or at all.
        """
        require_string(featureName, "featureName")
        add_feature_support(self._spark, self._log, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a feature from the table, and what uses it as far as no file is rewritten.

        Raises:
            InvalidRequestError: the feature is not there, or cannot be dropped.
            UnsupportedError: files would have to be rewritten or history truncated.
        """
        require_string(featureName, "featureName")
        if truncateHistory is not None:
            require_boolean(truncateHistory, "truncateHistory")
        truncates = bool(truncateHistory)
        drop_feature_support(self._spark, self._log, featureName, truncate_history=truncates)

    def _restored(self, outcome: RestoreOutcome | None) -> DataFrame:
        if outcome is None:
            return self._spark.createDataFrame([], StructType([]))
        return with_report(outcome.row(self._spark), last_report())


def clone_request(
    target: str, shallow: object, replacing: object, properties: object
) -> CloneRequest:
    """Return what the arguments of ``clone`` ask for.

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


def require_integer(value: object, name: str) -> None:
    """Raise ValueError unless the value is an int; like delta-spark, take a bool for one."""
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
