"""The session settings of OPTIMIZE and of auto compaction; read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from puredelta.commands.settings import parse_bytes
from puredelta.errors import ErrorCode, InvalidRequestError
from puredelta.log.maintenance.clustering_plan import ClusterLimits
from puredelta.log.maintenance.file_bins import BinLimits
from puredelta.protocol.features.properties import TableProperties
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import DeltaConf


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSettings:
    """How an OPTIMIZE that a user asks for runs."""

    limits: BinLimits
    cubes: ClusterLimits
    checks_statistics: bool
    """``optimize.zorder.checkStatsCollection.enabled``."""

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> OptimizeSettings:
        """Read them from text by key; a setting that is not made may be missing.

        Raises:
            InvalidRequestError: one is no size, count or share.
        """
        max_file_size = _size(delta_conf.OPTIMIZE_MAX_FILE_SIZE, settings)
        return cls(
            cubes=ClusterLimits(
                min_cube_size=_size(delta_conf.CLUSTERING_MIN_CUBE_SIZE, settings, least=0),
                target_cube_size=_size(delta_conf.CLUSTERING_TARGET_CUBE_SIZE, settings, least=0),
                max_file_size=max_file_size,
            ),
            limits=BinLimits(
                min_file_size=_size(delta_conf.OPTIMIZE_MIN_FILE_SIZE, settings),
                max_file_size=max_file_size,
                max_deleted_rows_ratio=_share(delta_conf.OPTIMIZE_MAX_DELETED_RATIO, settings),
            ),
            checks_statistics=delta_conf.Z_ORDER_STATS_CHECK.flag(settings),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoCompactSettings:
    """When a commit is followed by a compaction, and how that runs."""

    limits: BinLimits
    min_num_files: int
    """``autoCompact.minNumFiles``: a partition with fewer small files is left alone."""
    changed_partitions_only: bool
    """``autoCompact.modifiedPartitionsOnly.enabled``."""
    skips_blind_appends: bool
    """``autoCompact.nonBlindAppend.enabled``."""

    @classmethod
    def parse(
        cls, settings: Mapping[str, str], properties: TableProperties
    ) -> AutoCompactSettings | None:
        """Read the settings; ``None`` where neither session nor table asks for compaction.

        Raises:
            InvalidRequestError: a setting has no such value.
        """
        if not _is_enabled(settings, properties):
            return None
        max_file_size = _size(delta_conf.AUTO_COMPACT_MAX_FILE_SIZE, settings)
        smallest = delta_conf.AUTO_COMPACT_MIN_FILE_SIZE
        given = smallest.text(settings)
        return cls(
            limits=BinLimits(
                min_file_size=max_file_size // 2 if given is None else _size(smallest, settings),
                max_file_size=max_file_size,
                max_deleted_rows_ratio=_share(delta_conf.OPTIMIZE_MAX_DELETED_RATIO, settings),
            ),
            min_num_files=_size(delta_conf.AUTO_COMPACT_MIN_FILES, settings),
            changed_partitions_only=delta_conf.AUTO_COMPACT_CHANGED_ONLY.flag(settings),
            skips_blind_appends=delta_conf.AUTO_COMPACT_NOT_BLIND.flag(settings),
        )


def _is_enabled(settings: Mapping[str, str], properties: TableProperties) -> bool:
    """Ask the session first, then the table by its old property, then by its new one."""
    legacy = properties.configuration.get("delta.autoOptimize", "")
    wish = delta_conf.AUTO_COMPACT.text(settings)
    if wish is None and legacy.strip().lower() == "true":
        return True
    return (wish or properties.auto_compact or "").strip().lower() == "true"


def _size(conf: DeltaConf, settings: Mapping[str, str], *, least: int = 1) -> int:
    value = parse_bytes(conf.text(settings) or "")
    if value < least:
        need = f"needs to be a whole number of bytes, at least {least}, such as 128mb"
        raise _invalid(conf, settings, need)
    return value


def _share(conf: DeltaConf, settings: Mapping[str, str]) -> float:
    try:
        value = float(conf.text(settings) or "")
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise _invalid(conf, settings, "needs to be a number from 0 to 1")
    return value


def _invalid(conf: DeltaConf, settings: Mapping[str, str], need: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"The setting {conf.key} cannot be {conf.text(settings)!r}: it {need}.",
        code=ErrorCode.INVALID_WRITE_OPTION,
        setting=conf.key,
    )
