"""Session settings and write options of commits and of data files.

A write option replaces the session setting of its key among the settings of a command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.log.files.clock import wall_clock
from puredelta.protocol.actions.actions import SetTransaction
from puredelta.protocol.features.properties import TableProperties
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import OPTIMIZE_WRITE, OPTIMIZE_WRITE_BIN_SIZE
from puredelta.spark.write.parquet_job import FileOptions
from puredelta.spark.write.writer_settings import WriterSettings

_SIZE = re.compile(r"(-?\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_S3 = frozenset({"s3", "s3a", "s3n"})
_LOG_STORE = re.compile(r"(?:spark\.)?delta\.logStore\.(class|.+\.impl)")
_DYNAMO_STORE = "S3DynamoDBLogStore"
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """Additions to every commit of one command."""

    user_metadata: str | None = None
    """``commitInfo.userMetadata``, or the option ``userMetadata`` of a write."""
    records_metrics: bool = True
    """``history.metricsEnabled``."""
    set_transaction: SetTransaction | None = None
    """``write.txnAppId`` and ``write.txnVersion``: the command is executed once (M-92)."""
    flushes_files: bool = True
    """``spark.puredelta.flushDataFiles``."""
    resets_set_transaction: bool = False
    """``write.txnVersion.autoReset.enabled``: the next command needs a new version."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> CommitSettings:
        """Parse the settings of a command without an application id.

        >>> CommitSettings.parse({}).records_metrics
        True
        """
        return cls(
            user_metadata=delta_conf.USER_METADATA.text(settings),
            records_metrics=delta_conf.HISTORY_METRICS.flag(settings),
            flushes_files=delta_conf.FLUSH_FILES.read(settings),
        )

    @classmethod
    def parse_idempotent(cls, settings: Mapping[str, str]) -> CommitSettings:
        """Parse the settings of a command that an application may execute only once."""
        return replace(
            cls.parse(settings),
            set_transaction=set_transaction_of(
                delta_conf.TXN_APP_ID.text(settings), delta_conf.TXN_VERSION.text(settings)
            ),
            resets_set_transaction=delta_conf.TXN_AUTO_RESET.flag(settings),
        )

    def reset_set_transaction(self, spark: SparkSession) -> None:
        """Unset the session's ``txnVersion`` if the session wants that after each command."""
        if self.set_transaction is not None and self.resets_set_transaction:
            spark.conf.unset(delta_conf.TXN_VERSION.key)


def set_transaction_of(app_id: str | None, version: str | None) -> SetTransaction | None:
    """Return the action with an application and its version, None if neither is given.

    Raises:
        InvalidRequestError: only one of them is given, or the version is no whole number.
    """
    if app_id is None and version is None:
        return None
    if app_id is None or version is None or re.fullmatch(r"\s*-?\d+\s*", version) is None:
        raise InvalidRequestError(
            Message.INVALID_IDEMPOTENT_WRITES_OPTIONS,
            app_id=app_id,
            version=version,
            txn_app_id_key=delta_conf.TXN_APP_ID.key,
            txn_version_key=delta_conf.TXN_VERSION.key,
        )
    return SetTransaction(app_id=app_id, version=int(version), last_updated_ms=wall_clock())


def require_no_arbiter(root_uri: str, settings: Mapping[str, str]) -> None:
    """Refuse to write where a DynamoDB table arbitrates between other writers.

    delta-spark's `S3DynamoDBLogStore` overwrites existing commit files, so a commit of this
    library would be lost.

    Raises:
        UnsupportedError: the session names it for this storage (UNSUPPORTED_STORAGE).

    >>> require_no_arbiter("s3a://b/t", {"spark.delta.logStore.gs.impl": "a.S3DynamoDBLogStore"})
    """
    if root_uri.partition(":")[0].lower() not in _S3:
        return
    for key, value in settings.items():
        found = _LOG_STORE.fullmatch(key)
        if found is None or not value.strip().endswith(_DYNAMO_STORE):
            continue
        if found[1] == "class" or found[1].removesuffix(".impl").lower() in _S3:
            raise UnsupportedError(
                Message.UNSUPPORTED_STORAGE_ARBITER,
                arbiter=value.strip(),
                path=root_uri,
                setting=key,
            )


def parse_bytes(text: str) -> int:
    """Parse a size in Spark's spelling; -1 for any other text.

    >>> parse_bytes("10MB"), parse_bytes("10485760b"), parse_bytes("-1")
    (10485760, 10485760, -1)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return -1
    unit: int = 1024 ** _UNITS[match[2].lower()]
    return int(match[1]) * unit


FILE_ROWS = "spark.sql.files.maxRecordsPerFile"
"""Spark's setting; the write option ``maxRecordsPerFile`` replaces it."""
CODEC = "option compression"
"""Key of the write option ``compression``, which overrides the table's codec and Spark's."""


def file_options(settings: Mapping[str, str], properties: TableProperties) -> FileOptions:
    """Return the size limits and compression of a table's files (M-141, M-143).

    >>> file_options({FILE_ROWS: "10"}, TableProperties.of({})).rows_max
    10
    """
    optimizes = OPTIMIZE_WRITE.text(settings)
    wanted = properties.optimize_write if optimizes is None else _flag(optimizes)
    return FileOptions(
        rows_max=parse_rows(FILE_ROWS, settings.get(FILE_ROWS, "0")),
        codec=settings.get(CODEC, properties.compression_codec),
        parquet=WriterSettings.parse(settings).options,
        bin_bytes=_bin_bytes(settings) if wanted else None,
    )


def parse_rows(key: str, text: str) -> int:
    """Parse the row limit of a file; 0, which means no limit, for a number that is not positive.

    Raises:
        InvalidRequestError: the text is no whole number.

    >>> parse_rows("maxRecordsPerFile", "-5")
    0
    """
    try:
        return max(0, int(text))
    except ValueError:
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_NUMBER_OF_ROWS, option=key, value=text
        ) from None


def _flag(text: str) -> bool:
    if text.strip().lower() in {"true", "false"}:
        return text.strip().lower() == "true"
    raise _invalid_conf(OPTIMIZE_WRITE.key, text, "true or false")


def _bin_bytes(settings: Mapping[str, str]) -> int:
    text = OPTIMIZE_WRITE_BIN_SIZE.text(settings) or ""
    size_bytes = parse_bytes(text)
    if size_bytes <= 0:
        raise _invalid_conf(OPTIMIZE_WRITE_BIN_SIZE.key, text, "a size such as 512MB")
    return size_bytes


def _invalid_conf(key: str, text: str, wanted: str) -> InvalidRequestError:
    return InvalidRequestError(
        Message.INVALID_CONF_VALUE_FILE_OPTION, wanted=wanted, key=key, value=text
    )
