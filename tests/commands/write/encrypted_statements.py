"""Statements of a session that asks for encryption, and what is readable in their files.

``python -m tests.commands.write.encrypted_statements DIR HOW sample|every``; ``HOW`` is
where it asks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import puredelta
from puredelta.spark.write.staging import StagedRows
from puredelta.store.base import Store
from tests.commands.convert.with_keys import _CLIENT

SECRET = "plainsecret"
FACTORY = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
ASKED: Mapping[str, str] = {
    "parquet.crypto.factory.class": FACTORY,
    "parquet.encryption.kms.client.class": "PlainKeys",
    "parquet.encryption.footer.key": "f",
    "parquet.encryption.column.keys": "c:s",
}
PLAIN = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}
"""Options of a write that is plain although its session asks for encryption."""
PLAIN_FOOTER = {**ASKED, "parquet.encryption.plaintext.footer": "true"}
SAMPLE = (("cdf", "merge"),)
WAYS = ("session", "hadoop", "context", "xml", "plain-footer")


def session(directory: Path, how: str) -> SparkSession:
    """Return a session whose JVM has the client of keys, and whose settings ask ``how`` says."""
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    (directory / "PlainKeys.java").write_text(_CLIENT)
    subprocess.run(["javac", "-cp", jars, "PlainKeys.java"], cwd=directory, check=True)
    subprocess.run(["jar", "cf", "keys.jar", "PlainKeys.class"], cwd=directory, check=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jvm, _, place = how.rpartition("-") if how.startswith("connect") else ("", "", how)
    new = SparkSession.builder
    builder = (
        (new.remote("local[2]") if jvm else new.master("local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.jars", str(directory / "keys.jar"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    )
    if place == "hadoop":
        for key, value in ASKED.items():
            builder = builder.config(f"spark.hadoop.{key}", value)
    if place == "xml":
        entries = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in ASKED.items()
        )
        (directory / "conf").mkdir()
        (directory / "conf" / "core-site.xml").write_text(
            f"<configuration>{entries}</configuration>"
        )
        builder = builder.config("spark.driver.extraClassPath", str(directory / "conf"))
    return builder.getOrCreate()


def ask(spark: SparkSession, how: str) -> None:
    """Ask for encryption in a session that runs."""
    if how in {"session", "plain-footer"}:
        for key, value in (ASKED if how == "session" else PLAIN_FOOTER).items():
            spark.conf.set(key, value)
    if how == "context":
        for key, value in ASKED.items():
            spark._jsc.hadoopConfiguration().set(key, value)  # type: ignore[attr-defined]


def statements(spark: SparkSession, directory: Path, how: str, *, amount: str) -> None:
    """Run each kind of statement on a table of its own, and look for the text after each."""
    ask(spark, how)
    frame = spark.range(40).selectExpr("id", f"concat('{SECRET}', id) s", "id % 2 p").coalesce(2)
    source = spark.range(3, 6).union(spark.range(100, 103))
    source = source.selectExpr("id", f"concat('{SECRET}new', id) s", "id % 2 p")
    source.createOrReplaceTempView("news")
    spark.sql("CREATE OR REPLACE TEMP VIEW mixed AS SELECT *, rand() < 2 r FROM news")
    properties = {
        "plain": {},
        "cdf": {"delta.enableChangeDataFeed": "true"},
        # A file that gets a vector keeps its statistics, which its plain rows would show.
        "vectors": {
            "delta.enableDeletionVectors": "true",
            "delta.dataSkippingStatsColumns": "id",
        },
    }

    def made(name: str, kind: str = "plain") -> Path:
        path = directory / how / f"{name}-{kind}"
        frame.write.format("delta").options(**properties[kind], **PLAIN).save(str(path))
        return path

    on = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT *"
    runs: Mapping[str, str] = {
        "delete": "DELETE FROM {t} WHERE id = 4",
        "update": "UPDATE {t} SET s = concat(s, 'x') WHERE id = 4",
        "merge": f"MERGE INTO {{t}} t USING (SELECT id, s, p FROM mixed WHERE r) s {on}",
        "merge-stars": "MERGE INTO {t} t USING (SELECT id, s, p FROM mixed WHERE r) s ON t.id = "
        "s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "merge-join": "MERGE INTO {t} t USING news s ON t.id + 0 = s.id + 0 WHEN MATCHED THEN "
        "DELETE WHEN NOT MATCHED THEN INSERT *",
        "merge-by-source": "MERGE INTO {t} t USING news s ON t.id = s.id WHEN NOT MATCHED BY "
        "SOURCE AND t.id > 30 THEN DELETE",
        "insert": "INSERT INTO {t} SELECT * FROM news",
        "overwrite": "INSERT INTO {t} REPLACE WHERE id < 5 SELECT * FROM news WHERE id < 5",
        "optimize": "OPTIMIZE {t}",
        "zorder": "OPTIMIZE {t} ZORDER BY (id)",
    }
    wanted = [(kind, name) for kind in properties for name in runs]
    for kind, name in SAMPLE if amount == "sample" else wanted:
        text = runs[name]
        path = made(name, kind)
        old = files_of(path)
        spark.sql(text.format(t=f"delta.`{path}`"))
        after = spark.read.format("delta").load(str(path)).collect()
        require_hidden(path, old, f"{name} {kind}", wrote=True)
        # Later statements read what only Spark reads.
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 5")
        spark.sql(
            f"MERGE INTO delta.`{path}` t USING news s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET *"
        )
        left = spark.read.format("delta").load(str(path))
        assert left.where("id = 5").count() == 0
        assert len(after) - left.count() <= 2, name  # an INSERT makes two
        require_hidden(path, old, f"{name} {kind}, later")
        _require_counts(spark, path)


def keep_staged(directory: Path) -> Callable[[], None]:
    """Move staged files aside instead of deleting them, so that they can be looked at."""

    def remove(self: StagedRows, store: Store) -> None:
        if self.directory is not None:
            root = store.root_uri.removeprefix("file://").removeprefix("file:")
            kept = directory / f"staged-{len(list(directory.glob('staged-*')))}"
            Path(f"{root}/{self.directory}").rename(kept)

    StagedRows.remove = remove  # type: ignore[method-assign]

    def check() -> None:
        trees = list(directory.glob("staged-*"))
        assert trees, "nothing was staged"
        for tree in trees:
            require_hidden(tree, set(), "staged")

    return check


def files_of(path: Path) -> set[Path]:
    """Return the Parquet files of a directory."""
    return {file for file in path.rglob("*") if file.is_file() and file.suffix == ".parquet"}


def require_hidden(path: Path, old: set[Path], what: str, *, wrote: bool = False) -> None:
    """Look for the text in all files that are new, the log's included."""
    new = {file for file in path.rglob("*") if file.is_file()} - old
    assert not wrote or any(file.suffix == ".parquet" for file in new) or "vectors" in what, what
    for file in new:
        if old and file.parent.name == "_delta_log" and file.name.startswith(f"{0:020}."):
            continue  # made before the session asked
        content = file.read_bytes()
        assert SECRET.encode() not in content, f"{what}: {file} shows the text"


def _require_counts(spark: SparkSession, path: Path) -> None:
    """Compare the number of rows that the log says with those that are there."""
    by_log = spark.read.format("delta").load(str(path)).count()
    assert by_log == len(spark.read.format("delta").load(str(path)).collect())


if __name__ == "__main__":
    scratch, asked, some = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    active = session(scratch, asked)
    puredelta.activate(active)
    staged_are_hidden = keep_staged(scratch)
    statements(active, scratch, asked, amount=some)
    staged_are_hidden()
    active.stop()
