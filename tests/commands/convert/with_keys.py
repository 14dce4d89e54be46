"""Encrypted files in a session with keys: ``python -m tests.commands.convert.with_keys DIR``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import puredelta

_CLIENT = """
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;

public class PlainKeys implements org.apache.parquet.crypto.keytools.KmsClient {
  public void initialize(Configuration conf, String instance, String url, String token) {}
  public String wrapKey(byte[] key, String name) {
    return Base64.getEncoder().encodeToString(key);
  }
  public byte[] unwrapKey(String wrapped, String name) {
    return Base64.getDecoder().decode(wrapped);
  }
}
"""
"""A client of no key management: it hides nothing."""


def session(directory: Path) -> SparkSession:
    """Return a session whose JVM has the client of keys."""
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    (directory / "PlainKeys.java").write_text(_CLIENT)
    subprocess.run(["javac", "-cp", jars, "PlainKeys.java"], cwd=directory, check=True)
    subprocess.run(["jar", "cf", "keys.jar", "PlainKeys.class"], cwd=directory, check=True)
    factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", str(directory / "keys.jar"))
        .config("spark.hadoop.parquet.crypto.factory.class", factory)
        .config("spark.hadoop.parquet.encryption.kms.client.class", "PlainKeys")
        .getOrCreate()
    )


def converted_with_keys(spark: SparkSession, directory: Path) -> None:
    """Encrypt files, convert them, and let every statement read them."""
    puredelta.activate(spark)
    frame = spark.range(20).selectExpr("id", "concat('secret', id) s").coalesce(1)
    for plain_footer in ("false", "true"):
        files, target = directory / f"files-{plain_footer}", directory / f"target-{plain_footer}"
        (
            frame.write.option("parquet.encryption.footer.key", "f")
            .option("parquet.encryption.column.keys", "c:s")
            .option("parquet.encryption.plaintext.footer", plain_footer)
            .parquet(str(files))
        )
        frame.where("id < 5").write.format("delta").save(str(target))
        spark.sql(
            f"MERGE INTO delta.`{target}` t USING parquet.`{files}` s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        _require(spark, target, set(range(20)))
        spark.sql(f"CONVERT TO DELTA parquet.`{files}`")
        _require(spark, files, set(range(20)))
        spark.sql(f"DELETE FROM delta.`{files}` WHERE s = 'secret4'")
        _require(spark, files, set(range(20)) - {4})
        spark.sql(f"OPTIMIZE delta.`{files}`")
        _require(spark, files, set(range(20)) - {4})
        shutil.rmtree(files)


def _require(spark: SparkSession, table: Path, ids: set[int]) -> None:
    found = {(row.id, row.s) for row in spark.read.format("delta").load(str(table)).collect()}
    assert found == {(n, f"secret{n}") for n in ids}, found


if __name__ == "__main__":
    scratch = Path(sys.argv[1])
    active = session(scratch)
    converted_with_keys(active, scratch)
    active.stop()
