"""The settings by which a session, Hadoop's configuration or a write says how files are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from puredelta.errors import UnsupportedError
from puredelta.spark.session.data_access import DataIo
from puredelta.spark.write import staging
from puredelta.spark.write.writer_settings import WriterSettings
from puredelta.store.registry import open_store

FACTORY = "parquet.crypto.factory.class"
CODEC = "spark.sql.parquet.compression.codec"


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
@pytest.mark.parametrize(
    "key",
    [
        FACTORY,
        "parquet.encryption.footer.key",
        "parquet.block.size",
        "parquet.page.size",
        "parquet.writer.version",
        "parquet.bloom.filter.enabled#id",
        "parquet.page.write-checksum.enabled",
        "parquet.compression",
    ],
)
def test_what_only_sparks_writer_knows(prefix: str, key: str) -> None:
    """Neither copies nor new rows are Arrow's then; the value is named nowhere."""
    found = WriterSettings.parse({f"{prefix}{key}": "a value"})
    assert found.only_spark == key
    assert found.codec is None
    assert found.encrypts == (key == FACTORY)
    assert "a value" not in repr(found)


def test_settings_that_leave_files_as_they_are() -> None:
    """Readers' settings, and a factory that is empty, cost no copy by Arrow."""
    assert WriterSettings.parse({}) == WriterSettings()
    for key in ("parquet.read.bad.record.threshold", "parquet.filter.stats.enabled"):
        found = WriterSettings.parse({key: "1"})
        assert found == WriterSettings()
    committer = WriterSettings.parse({"spark.hadoop.mapreduce.outputcommitter.x": "1"})
    assert committer.only_spark is None
    assert committer.codec is None  # they look at the files of a job


def test_codecs() -> None:
    """A codec that the session names holds for copies, too; else they keep their files'."""
    assert WriterSettings.parse({}).copy_codec is None
    assert WriterSettings.parse({CODEC: "ZSTD"}).codec == "zstd"
    assert WriterSettings.parse({CODEC: "ZSTD"}).copy_codec == "ZSTD"
    assert WriterSettings.parse({CODEC: "lz4"}).codec is None


def test_staged_files_have_no_keys_by_column() -> None:
    """Parquet refuses a file without a column that a key is for."""
    by_column = {
        "parquet.encryption.footer.key": "f",
        "parquet.encryption.column.keys": "c:s",
    }
    for prefix in ("", "spark.hadoop."):
        found = WriterSettings.parse({f"{prefix}{key}": text for key, text in by_column.items()})
        assert found.staged == {
            "parquet.encryption.footer.key": "",
            "parquet.encryption.column.keys": "",
            "parquet.encryption.uniform.key": "f",
        }
    uniform = {"parquet.encryption.uniform.key": "u"}
    assert WriterSettings.parse(uniform).staged == uniform


def test_hadoops_configuration_is_asked(spark: SparkSession) -> None:
    """Settings of the context are in no list of the session's settings."""
    hadoop = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    assert not WriterSettings.of(spark).encrypts
    hadoop.set(FACTORY, "some.Factory")
    try:
        assert WriterSettings.of(spark).encrypts
        assert WriterSettings.of(spark, {}).only_spark == FACTORY
    finally:
        hadoop.unset(FACTORY)
    assert WriterSettings.of(spark, {}).only_spark is None


def test_keys_in_options_hold_for_staged_rows_that_arrow_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were plain in the bucket until the write itself was refused."""
    monkeypatch.setattr(staging, "data_io", lambda *_: DataIo.ARROW)
    keys = {"parquet.encryption.footer.key": "a secret"}
    with pytest.raises(UnsupportedError, match=r"parquet\.encryption\.footer\.key") as refused:
        staging.stage_rows(spark.range(3), store=open_store(str(tmp_path)), options=keys)
    assert "a secret" not in str(refused.value)
    assert not list(tmp_path.rglob("*.parquet"))
