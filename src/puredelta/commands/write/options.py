"""Save modes, and write options by Spark's names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache

from pyspark.sql import SparkSession

from puredelta.commands.dml.spec import ReplaceBy
from puredelta.commands.file_options import (
    CODEC,
    FILE_ROWS,
    CommitSettings,
    parse_rows,
    set_transaction_of,
)
from puredelta.commands.schema_change import SchemaChange
from puredelta.errors import InvalidRequestError, Message, UnsupportedError
from puredelta.protocol.features.property_checks import checked_properties
from puredelta.protocol.schema.sql_lexer import is_identifier, tokenize, unquoted
from puredelta.spark.session.delta_conf import (
    ALLOW_ARBITRARY_PROPERTIES,
    AUTO_MERGE,
    DYNAMIC_OVERWRITE,
    OPTIMIZE_WRITE,
    REPLACE_ON,
    REPLACE_USING,
    REPLACE_WHERE_CHECK,
    REPLACE_WHERE_DATA_COLUMNS,
)
from puredelta.spark.session.session import settings_of
from puredelta.spark.session.storage import file_system_options
from puredelta.spark.write.writer_settings import PARQUET_PREFIX

logger = logging.getLogger(__name__)

WRITE_OPTIONS = (
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "replaceUsing",
    "replaceOn",
    "targetAlias",
    "partitionOverwriteMode",
    "useNullIntolerantEqualityWithDPO",
    "userMetadata",
    "txnAppId",
    "txnVersion",
    "dataChange",
    "optimizeWrite",
    "maxRecordsPerFile",
    "compression",
)
"""By delta-spark's names."""

REFUSED_OPTIONS = {
    "targettable": "name the table in saveAsTable",
}
"""Unsupported options that would change the written rows, with the alternative."""

_KNOWN = frozenset(name.lower() for name in WRITE_OPTIONS)
_OTHERS = frozenset({"path", "checkpointlocation", "queryname", "format"})
"""Options for other parts of a writer."""
_PROPERTY_PREFIX = "delta."
_PARTITION_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"


class SaveMode(Enum):
    """Treatment of an existing table, in Spark's words."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"

    @classmethod
    def parse(cls, text: str) -> SaveMode:
        """Parse a mode, also under Spark's other names for ``error``.

        Raises:
            InvalidRequestError: no such mode.
        """
        name = {"errorifexists": "error", "default": "error"}.get(text.lower(), text.lower())
        try:
            return cls(name)
        except ValueError:
            raise InvalidRequestError(
                Message.INVALID_WRITE_OPTION_MODE,
                modes=", ".join(mode.value for mode in cls),
                mode=text,
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write."""

    change: SchemaChange
    replace_where: str | None
    """The condition of the rows that an overwrite replaces."""
    target_alias: str | None = None
    """The name of the table in ``replace_where``."""
    replace_by: ReplaceBy | None = None
    """The comparison of new rows with the rows that an overwrite replaces."""
    checks_replaced: bool
    """``replaceWhere.constraintCheck.enabled``: the new rows must satisfy it, too."""
    replaces_partitions: bool
    """Whether an overwrite replaces only the partitions for which it has rows."""
    may_replace_partitions: bool = True
    """``dynamicPartitionOverwrite.enabled``; false: such a write to partitions is an error."""
    keeps_null_partitions: bool = False
    """``useNullIntolerantEqualityWithDPO``: a partition with NULL is not replaced."""
    settings: CommitSettings
    """Commit settings of the session, overridden by options (user metadata, application id)."""
    data_change: bool = True
    """``dataChange``; false: the rows were in the table before, and streams skip the commit."""
    file_settings: Mapping[str, str] = field(default_factory=dict)
    """Options for the layout of files, under the keys of the settings that they replace."""
    properties: Mapping[str, str]
    """``delta.*`` options: properties of the table if this write creates it."""

    @classmethod
    def of(cls, spark: SparkSession, options: Mapping[str, object]) -> WriteOptions:
        """Parse the options of a write through ``spark``; errors as `parse`."""
        return cls.parse(settings_of(spark), options)

    @classmethod
    def parse(cls, conf: Mapping[str, str], options: Mapping[str, object]) -> WriteOptions:
        """Parse options (names in any case), with the session's settings as their defaults.

        Table properties are checked even if the write creates no table, as in delta-spark.
        """
        given, properties = _split_options(options)
        arbitrary = ALLOW_ARBITRARY_PROPERTIES.flag(conf)
        properties = checked_properties(properties, allow_arbitrary=arbitrary)
        settings = CommitSettings.parse_idempotent(conf)
        if "txnAppId" in given or "txnVersion" in given:
            settings = replace(
                settings,
                set_transaction=set_transaction_of(given.get("txnAppId"), given.get("txnVersion")),
                resets_set_transaction=False,
            )
        if "userMetadata" in given:
            settings = replace(settings, user_metadata=given["userMetadata"])
        merges = given.get("mergeSchema") or AUTO_MERGE.text(conf)
        options_of_write = cls(
            change=SchemaChange(
                merge=_flag("mergeSchema", merges),
                overwrite=_flag("overwriteSchema", given.get("overwriteSchema", "false")),
            ),
            replace_where=given.get("replaceWhere"),
            target_alias=given.get("targetAlias"),
            replace_by=_replace_by(conf, given),
            checks_replaced=REPLACE_WHERE_CHECK.flag(conf)
            or not REPLACE_WHERE_DATA_COLUMNS.flag(conf),
            replaces_partitions=_is_dynamic(conf, given),
            may_replace_partitions=DYNAMIC_OVERWRITE.flag(conf),
            keeps_null_partitions=_keeps_null_partitions(conf, given),
            settings=settings,
            data_change=_flag("dataChange", given.get("dataChange", "true")),
            file_settings=_file_settings(given),
            properties=properties,
        )
        options_of_write._require_possible(given)
        return options_of_write

    def require_allowed(self, partition_columns: Sequence[str], *, overwrites: bool) -> None:
        """Refuse a write to a partitioned table that the session forbids, in every mode, and an
        overwrite of some rows that changes the columns of all.

        Raises:
            InvalidRequestError: see `may_replace_partitions`
                (DYNAMIC_PARTITION_OVERWRITE_DISABLED), or ``overwriteSchema`` beside
                ``replaceUsing`` or ``replaceOn`` (INCOMPATIBLE_DATAFRAME_OPTIONS).
        """
        if self.replace_by is not None and self.change.overwrite and overwrites:
            raise _excluded("overwriteSchema", self.replace_by.option)
        if self.replaces_partitions and partition_columns and not self.may_replace_partitions:
            raise InvalidRequestError(
                Message.DYNAMIC_PARTITION_OVERWRITE_DISABLED, setting=DYNAMIC_OVERWRITE.key
            )

    @property
    def replaces_rows(self) -> bool:
        """Whether an overwrite replaces chosen rows, and keeps the table's definition."""
        return self.replace_where is not None or self.replace_by is not None

    @property
    def replaced(self) -> dict[str, str]:
        """The rows that an overwrite replaces, as the history says it."""
        by = self.replace_by
        if by is None:
            return {} if self.replace_where is None else {"predicate": self.replace_where}
        if by.condition is not None:
            return {"replaceOnCond": by.given}
        return {"replaceUsingCols": f"({by.given})"}

    def _require_possible(self, given: Mapping[str, str]) -> None:
        if self.replace_by is not None:
            if self.replace_where is not None:
                raise InvalidRequestError(Message.OVERWRITE_BY_FILTER_WITH_REPLACE_BY)
            if "partitionOverwriteMode" in given:
                raise InvalidRequestError(Message.DYNAMIC_OVERWRITE_WITH_REPLACE_BY)
            if not self.data_change:
                raise _excluded("dataChange", self.replace_by.option)
        if not self.replaces_partitions:
            return
        if self.replace_where is not None and "partitionOverwriteMode" in given:
            raise InvalidRequestError(Message.REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE)
        if self.change.overwrite and "partitionOverwriteMode" in given:
            raise InvalidRequestError(Message.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE)


def effective_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a writer that have an effect; for others, which have none in
    delta-spark either, warn once.

    Raises:
        UnsupportedError: one that is not implemented and must not be ignored.
    """
    chosen: dict[str, str] = {}
    for name, value in options.items():
        reason = REFUSED_OPTIONS.get(name.lower())
        if reason is not None:
            raise UnsupportedError(
                Message.INVALID_WRITE_OPTION_NOT_SUPPORTED, value=value, reason=reason, option=name
            )
        is_property = name.lower().startswith(_PROPERTY_PREFIX)
        if is_property or name.lower() in _KNOWN or name.startswith(PARQUET_PREFIX):
            chosen[name] = value
        elif not (
            name.lower() in _OTHERS or _is_of_spark(name) or file_system_options({name: value})
        ):
            _say_unknown(name)
    return chosen


def _is_of_spark(name: str) -> bool:
    """Return whether Spark has added an option for itself: ``__required_write_privileges__``."""
    return name.startswith("__") and name.endswith("__")


@cache
def _say_unknown(name: str) -> None:
    """Warn of an option, once per process."""
    logger.warning(
        "The write option %s has no effect on a Delta table. Options are %s and table properties "
        "(delta.*).",
        name,
        ", ".join(WRITE_OPTIONS),
    )


def _split_options(options: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of the write, by their own names, and the table properties."""
    known = {name.lower(): name for name in WRITE_OPTIONS}
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in options.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key.lower() in known:
            given[known[key.lower()]] = text
        elif key.lower().startswith(_PROPERTY_PREFIX):
            properties[key] = text
        elif key.startswith(PARQUET_PREFIX):
            given[key] = text
        else:
            raise InvalidRequestError(
                Message.INVALID_WRITE_OPTION_UNKNOWN,
                write_options=", ".join(WRITE_OPTIONS),
                option=key,
            )
    return given, properties


def _file_settings(given: Mapping[str, str]) -> dict[str, str]:
    found = {key: text for key, text in given.items() if key.startswith(PARQUET_PREFIX)}
    if "maxRecordsPerFile" in given:
        found[FILE_ROWS] = str(parse_rows("maxRecordsPerFile", given["maxRecordsPerFile"]))
    if "compression" in given:
        found[CODEC] = given["compression"]
    if "optimizeWrite" in given:
        found[OPTIMIZE_WRITE.key] = str(_flag("optimizeWrite", given["optimizeWrite"])).lower()
    return found


_REPLACES = frozenset({"replaceWhere", "replaceUsing", "replaceOn"})


def _replace_by(conf: Mapping[str, str], given: Mapping[str, str]) -> ReplaceBy | None:
    """Return the comparison of ``replaceUsing`` or ``replaceOn``."""
    for option, allowed in (("replaceUsing", REPLACE_USING), ("replaceOn", REPLACE_ON)):
        if option in given and not allowed.flag(conf):
            raise UnsupportedError(
                Message.INVALID_WRITE_OPTION_NOT_SUPPORTED,
                option=option,
                value=given[option],
                reason=f"{allowed.key} is false",
            )
    using, on = given.get("replaceUsing"), given.get("replaceOn")
    if using is not None and on is not None:
        raise _excluded("replaceOn", "replaceUsing")
    if on is not None:
        by, alias = ReplaceBy(condition=on, given=on), given.get("targetAlias")
        return by if alias is None else replace(by, target_alias=alias)
    if using is None:
        return None
    tokens = tokenize(using)
    names, between = tokens[::2], tokens[1::2]
    is_list = len(names) == len(between) + 1 and all(token.means(",") for token in between)
    if not is_list or not all(map(is_identifier, names)):
        raise InvalidRequestError(Message.INVALID_WRITE_OPTION_REPLACE_USING, value=using)
    return ReplaceBy(columns=tuple(map(unquoted, names)), given=using)


def _excluded(first: str, second: str) -> InvalidRequestError:
    return InvalidRequestError(Message.INCOMPATIBLE_DATAFRAME_OPTIONS, first=first, second=second)


def _is_dynamic(conf: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Return whether partitions are replaced; other options override the session's mode."""
    mode = given.get("partitionOverwriteMode")
    if mode is None:
        mode = conf.get(_PARTITION_OVERWRITE) or "static"
        if _REPLACES & given.keys() or given.get("overwriteSchema", "").lower() == "true":
            return False
    if mode.lower() not in {"static", "dynamic"}:
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_PARTITION_OVERWRITE_MODE,
            mode=mode,
            option="partitionOverwriteMode",
        )
    return mode.lower() == "dynamic"


def _keeps_null_partitions(conf: Mapping[str, str], given: Mapping[str, str]) -> bool:
    option = "useNullIntolerantEqualityWithDPO"
    if option not in given:
        return False
    keeps = _flag(option, given[option])
    if not _is_dynamic(conf, given):
        raise InvalidRequestError(
            Message.INVALID_WRITE_OPTION_NULL_PARTITIONS, given=given[option], option=option
        )
    return keeps


def _flag(option: str, text: str | None) -> bool:
    if text is not None and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    raise InvalidRequestError(Message.INVALID_WRITE_OPTION_FLAG, text=text, option=option)
