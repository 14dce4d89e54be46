"""The settings and table properties that decided how a statement runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from puredelta.commands.dml.resolve.statement import StatementKind
from puredelta.commands.dml.source.context import StatementContext
from puredelta.commands.report.maintenance import setting_values
from puredelta.commands.report.parts import SettingValue
from puredelta.spark.offload.worker_settings import ENABLED, LOOKUP_BYTES
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import DeltaConf

_VECTORS = {
    StatementKind.MERGE: delta_conf.MERGE_DELETION_VECTORS,
    StatementKind.UPDATE: delta_conf.UPDATE_DELETION_VECTORS,
    StatementKind.DELETE: delta_conf.DELETE_DELETION_VECTORS,
    StatementKind.REPLACE_WHERE: delta_conf.DELETE_DELETION_VECTORS,
}
_BROADCAST = DeltaConf(
    name="autoBroadcastJoinThreshold",
    default="10MB",
    effect="a source up to this size is sent to every task of a join",
    prefix="spark.sql.",
)
_PROPERTIES = {
    "delta.enableDeletionVectors": "whether rows may be hidden instead of files copied",
    "delta.enableChangeDataFeed": "whether every change is also written to change files",
    "delta.enableRowTracking": "whether updated rows keep their ids",
    "delta.isolationLevel": "which commits of others are conflicts",
}


def deciding_settings(context: StatementContext) -> tuple[SettingValue, ...]:
    """Return them with their values and where these come from."""
    return (*_of_session(context), *_of_table(context))


def _of_session(context: StatementContext) -> tuple[SettingValue, ...]:
    kind = context.statement.kind
    confs = [delta_conf.STATS_SKIPPING, _VECTORS[kind], ENABLED, delta_conf.IO]
    if kind in (StatementKind.MERGE, StatementKind.REPLACE_WHERE):
        confs += [delta_conf.MATERIALIZE_SOURCE, LOOKUP_BYTES, _BROADCAST]
        confs += [delta_conf.AUTO_MERGE, delta_conf.REPARTITION_BEFORE_WRITE]
    confs += [delta_conf.RETRIES, delta_conf.SKIP_EMPTY_COMMITS]
    return setting_values(confs, context.command.session.settings)


def _of_table(context: StatementContext) -> Iterator[SettingValue]:
    configuration = context.statement.config.metadata.configuration
    for key, effect in _PROPERTIES.items():
        if key in configuration:
            yield SettingValue(key=key, value=configuration[key], origin="table", effect=effect)
