"""``docs/configuration.md`` says what the code does: no setting is read that it does not name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from puredelta.commands.dml.resolve.settings import MergeSettings
from puredelta.protocol.schema.types import LONG, STRING, StructField, StructType
from puredelta.protocol.table.stats import indexed_leaves, without_statistics
from puredelta.spark.session import delta_conf
from puredelta.spark.session.delta_conf import HONOURED, OWN, PREFIX, WITHOUT_EFFECT, DeltaConf
from tests.protocol.table.test_table_config import config_of

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "puredelta"
REGISTRY = Path(delta_conf.__file__)
NAMES = {conf.name for conf in (*HONOURED, *WITHOUT_EFFECT)}


def test_the_page_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate_configuration.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_configuration.py"


def test_the_code_knows_no_other_setting() -> None:
    used = {
        name.rstrip(".")
        for path in SOURCES.rglob("*.py")
        for name in re.findall(
            re.escape(PREFIX) + r"([A-Za-z.]+[A-Za-z])(?![A-Za-z.])", path.read_text()
        )
    }
    known = {name.rstrip(".") for name in NAMES}
    assert {n for n in used if not n.startswith("properties.defaults")} <= known


def test_what_is_honoured_is_read() -> None:
    others = "".join(p.read_text() for p in SOURCES.rglob("*.py") if p != REGISTRY)
    rows = {name: conf for name, conf in vars(delta_conf).items() if isinstance(conf, DeltaConf)}
    assert set(rows.values()) == {*HONOURED, *OWN}
    unread = {
        name
        for name, conf in rows.items()
        if not re.search(rf"\b{name}\b", others) and f'"{conf.key}"' not in others
    }
    # `puredelta.log.tracking.allowed_changes` puts their names together from those of options.
    assert unread == {"ALLOW_RENAME", "ALLOW_DROP", "ALLOW_RENAME_AND_DROP", "ALLOW_TYPE_CHANGE"}


def test_names_are_unique() -> None:
    assert len(NAMES) == len(HONOURED) + len(WITHOUT_EFFECT)
    assert all(conf.is_honoured for conf in HONOURED)
    assert not any(conf.is_honoured for conf in WITHOUT_EFFECT)


# S-01, S-02: every setting of delta-spark's MERGE and CONVERT is in one of the two lists.
EVERY_KEY = """
schema.autoMerge.enabled merge.optimizeInsertOnlyMerge.enabled
merge.optimizeMatchedOnlyMerge.enabled merge.repartitionBeforeWrite.enabled
merge.materializeSource merge.materializeSource.rddStorageLevel
merge.materializeSource.rddStorageLevelFirstRetry merge.materializeSource.rddStorageLevelRetry
merge.materializeSource.maxAttempts merge.forceSourceMaterializationWithUnreadableFilesConfig
merge.materializeCachedSource merge.failSourceCachedAfterMaterialization
merge.failIfSourceChanged merge.skipOssResolutionWithStar
merge.analysis.batchActionResolution.enabled merge.emptySchemaTargetCheck.enabled
merge.insert.fixCaseSensitiveDuplicateColumns merge.deletionVectors.persistent
merge.preserveNullSourceStructs merge.preserveNullSourceStructs.updateStar
schemaEvolution.merge.fixNestedStructAlignment resolveMergeUpdateStructsByName.enabled
updateAndMergeCastingFollowsAnsiEnabledFlag typeWidening.allowAutomaticWidening
numRecordsValidation.enabled commandInvariantChecksUseUnreliable
commandInvariantChecksUseUnreliableThrow write.txnAppId write.txnVersion
write.txnVersion.autoReset.enabled commitInfo.userMetadata skipRecordingEmptyCommits
history.metricsEnabled checkLatestSchemaOnRead createDataFrame.dropNullColumns optimizeWrite.enabled
autoCompact.enabled stats.collect stats.skipping convertEmptyToNullForStringPartitionCol
write.utcTimestampPartitionValues convert.useMetadataLog convert.useCatalogPartitions
convert.useCatalogSchema convert.partitionValues.ignoreCastFailure convert.metadataCheck.enabled
import.batchSize.statsCollection import.batchSize.schemaInference convert.iceberg.enabled
convert.iceberg.useNativePartitionValues convert.iceberg.partitionEvolution.enabled
convert.iceberg.bucketPartition.enabled collectStats.convertIceberg
collectStats.convertIceberg.decimal collectStats.convertIceberg.date
collectStats.convertIceberg.timestamp properties.defaults.
"""


def test_no_key_of_the_reference_is_left_out() -> None:
    assert set(EVERY_KEY.split()) <= NAMES


def test_void_columns_are_refused_on_spark_4_0_unless_the_session_minds() -> None:
    """M-56."""
    key = delta_conf.DROP_NULL_COLUMNS.key
    assert MergeSettings.parse({}, spark_version="4.0.1").refuses_void
    assert not MergeSettings.parse({}, spark_version="4.2.0").refuses_void
    assert not MergeSettings.parse({key: "false"}, spark_version="4.0.1").refuses_void
    assert MergeSettings.parse({key: "true"}, spark_version="4.2.0").refuses_void


def test_null_structs_of_a_star_follow_both_settings() -> None:
    """M-45."""
    off = {delta_conf.PRESERVE_NULL_STRUCTS.key: "false"}
    assert not MergeSettings.parse(off).keeps_null_structs_in_star
    star_off = MergeSettings.parse({delta_conf.PRESERVE_NULL_STRUCTS_STAR.key: "false"})
    assert (star_off.keeps_null_structs, star_off.keeps_null_structs_in_star) == (True, False)


def test_files_without_statistics_are_those_of_a_table_that_indexes_nothing() -> None:
    """`stats.collect`: the table itself stays what it is."""
    schema = StructType((StructField("a", LONG), StructField("b", STRING)))
    config = config_of(schema, (), dataSkippingStatsColumns="a")
    assert indexed_leaves(config) == (("a",),)
    assert indexed_leaves(without_statistics(config)) == ()
    assert without_statistics(config).metadata == config.metadata
