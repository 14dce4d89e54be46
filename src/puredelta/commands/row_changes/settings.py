"""The session settings that decide how a statement runs, not what it means; read once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.clock import wall_clock
from puredelta.protocol.actions import SetTransaction

_PREFIX = "spark.databricks.delta."
_SIZE = re.compile(r"(-?\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """How the user wants merges of this session to run (requirements 1.14)."""

    broadcast_bytes_max: int
    """``spark.sql.autoBroadcastJoinThreshold``; negative: never broadcast."""
    rebalance: bool
    """``merge.repartitionBeforeWrite.enabled`` (M-140)."""
    marker: SetTransaction | None
    """``write.txnAppId`` and ``write.txnVersion``: execute this statement once (M-92)."""
    user_metadata: str | None
    """``commitInfo.userMetadata``."""

    @classmethod
    def of(cls, spark: SparkSession) -> ExecutionSettings:
        """Read the settings of ``spark``; runs no job.

        Raises:
            InvalidRequestError: only half of an application's version is set.
        """
        threshold = spark.conf.get("spark.sql.autoBroadcastJoinThreshold", "-1")
        rebalance = _get(spark, "merge.repartitionBeforeWrite.enabled")
        return cls(
            broadcast_bytes_max=parse_bytes(threshold or "-1"),
            rebalance=rebalance is None or rebalance.lower() == "true",
            marker=_marker(_get(spark, "write.txnAppId"), _get(spark, "write.txnVersion")),
            user_metadata=_get(spark, "commitInfo.userMetadata"),
        )


def persistent_vectors(spark: SparkSession, command: str) -> bool:
    """Tell whether the session lets a command write deletion vectors (M-130).

    ``command`` is ``merge``, ``update`` or ``delete``; by default it may.
    """
    value = _get(spark, f"{command}.deletionVectors.persistent")
    return value is None or value.lower() == "true"


def parse_bytes(text: str) -> int:
    """Read a size as Spark spells it; what is no size is -1.

    >>> parse_bytes("10MB"), parse_bytes("10485760b"), parse_bytes("-1")
    (10485760, 10485760, -1)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return -1
    unit: int = 1024 ** _UNITS[match[2].lower()]
    return int(match[1]) * unit


def _get(spark: SparkSession, key: str) -> str | None:
    return spark.conf.get(_PREFIX + key, None)


def _marker(app_id: str | None, version: str | None) -> SetTransaction | None:
    if app_id is None and version is None:
        return None
    if app_id is None or version is None or re.fullmatch(r"\s*-?\d+\s*", version) is None:
        raise InvalidRequestError(
            f"{_PREFIX}write.txnAppId is {app_id!r} and {_PREFIX}write.txnVersion is {version!r}: "
            "set both, the version to a whole number, or neither.",
            code=ErrorCode.INVALID_IDEMPOTENT_WRITES_OPTIONS,
        )
    return SetTransaction(app_id=app_id, version=int(version), last_updated_ms=wall_clock())
