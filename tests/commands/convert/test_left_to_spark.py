"""Files that Arrow does not read are converted as Spark reads them, or refused by name."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from puredelta.api import read, sql
from puredelta.errors import CorruptTableError
from tests.commands.convert import with_keys
from tests.fuzz.parquet_files import rows, valid_files
from tests.fuzz.parquet_mutations import footer_place, with_footer

ROOT = Path(__file__).parent.parent.parent.parent


def unsound() -> bytes:
    """A file whose footer has a histogram that is too short, which Arrow's process would end of."""
    sink = io.BytesIO()
    pq.write_table(rows().select(["id", "i"]), sink)
    content = sink.getvalue()
    footer = content[footer_place(content) : -8]
    sizes = b"\x19\x26\x12\x66"  # levels of column i: 9 rows are NULL, 51 are not
    assert sizes in footer
    return with_footer(content, footer.replace(sizes, b"\x19\x16\x12", 1))


@pytest.mark.thorough
def test_an_unsound_footer_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """delta-spark converts such a file, and merges from it; here its process died."""
    directory = tmp_path / "files"
    directory.mkdir()
    (directory / "f.parquet").write_bytes(unsound())
    assert spark.read.parquet(str(directory)).count() == 60
    target = tmp_path / "target"
    spark.range(5).selectExpr("id", "0 i").write.parquet(str(target))
    sql(spark, f"CONVERT TO DELTA parquet.`{target}`")
    source = f"parquet.`{directory}`"
    sql(
        spark,
        f"MERGE INTO delta.`{target}` t USING {source} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET i = 7 WHEN NOT MATCHED THEN INSERT *",
    )
    merged = read(spark, str(target))
    assert (merged.count(), merged.where("i = 7 and id < 5").count()) == (60, 5)
    sql(spark, f"CONVERT TO DELTA {source}")
    sql(spark, f"DELETE FROM delta.`{directory}` WHERE id = 3")
    left = read(spark, str(directory))
    assert (left.count(), left.where("id = 3").count()) == (59, 0)


@pytest.mark.parametrize("kind", ["footer", "column"])
def test_encrypted_files_are_refused_by_name_where_keys_are_missing(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "secret.parquet").write_bytes(valid_files()[f"spark encrypted-{kind}"])
    with pytest.raises(CorruptTableError, match=r"secret\.parquet.*encrypted.*crypto") as refused:
        sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path}`")
    assert refused.value.code.name == "FAILED_READ_FILE_FOOTER"
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.thorough
def test_encrypted_files_are_converted_and_changed_where_spark_has_the_keys(tmp_path: Path) -> None:
    """In a process of its own, whose JVM has a client for keys."""
    done = subprocess.run(
        [sys.executable, "-m", with_keys.__name__, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
