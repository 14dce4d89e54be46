"""Symlink manifests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta.commands.generate import generate, update_manifests
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
from puredelta.protocol.actions.paths import absolute_uri
from puredelta.protocol.features.properties import TableProperties
from puredelta.tables import DeltaTable
from tests.faults import MemoryStore
from tests.log.tables import WRITE, Client, add, create_table, feature_protocol, remove


def test_each_partition_has_a_manifest_while_it_has_files() -> None:
    store = MemoryStore()
    log = create_table(
        store,
        add("a%20b.parquet", {"part": "1", "sub": None}),
        add("c.parquet", {"part": "x/y", "sub": "2"}),
        partitioned_by=("part", "sub"),
    )
    assert generate(store, log.snapshot(), "Symlink_Format_Manifest") == 2
    first = "_symlink_format_manifest/part=1/sub=__HIVE_DEFAULT_PARTITION__/manifest"
    second = "_symlink_format_manifest/part=x%2Fy/sub=2/manifest"
    assert store.files[first] == b"memory:/table/a b.parquet\n"
    transaction = Client(log, log.snapshot())
    transaction.commit([remove("c.parquet")], WRITE)
    generate(store, log.snapshot(), "symlink_format_manifest")
    assert first in store.files
    assert second not in store.files


def test_an_empty_table_has_an_empty_manifest() -> None:
    store = MemoryStore()
    generate(store, create_table(store).snapshot(), "symlink_format_manifest")
    assert store.files["_symlink_format_manifest/manifest"] == b""


def test_what_other_engines_could_not_read_is_refused() -> None:
    store = MemoryStore()
    vector = DeletionVectorDescriptor(
        storage_type="i", path_or_inline="x", offset=None, size_bytes=3, cardinality=1
    )
    hidden = replace(
        add("a.parquet"),
        deletion_vector=vector,
        stats='{"numRecords":10,"tightBounds":false}',
    )
    log = create_table(
        store,
        hidden,
        protocol=feature_protocol(readers=("deletionVectors",)),
        delta__enableDeletionVectors="true",
    )
    with pytest.raises(DeltaError) as error:
        generate(store, log.snapshot(), "symlink_format_manifest")
    assert error.value.code is ErrorCode.MANIFEST_WITH_DELETION_VECTORS
    with pytest.raises(DeltaError) as error:
        generate(store, log.snapshot(), "x")
    assert error.value.code is ErrorCode.UNSUPPORTED_GENERATE_MODE


FOLLOWED = {"delta__compatibility__symlinkFormatManifest__enabled": "true"}


def test_the_manifests_of_changed_partitions_follow_a_commit() -> None:
    store = MemoryStore()
    log = create_table(
        store,
        *(add(f"{n}.parquet", {"part": part}) for n, part in enumerate(["a", "b", None, "c d"])),
        partitioned_by=("part",),
        **FOLLOWED,
    )
    actions = log.snapshot().files.adds()
    assert update_manifests(store, log.snapshot(), actions) == 4
    store.files["_symlink_format_manifest/part=b/manifest"] = b"untouched"
    removed = replace(remove("2.parquet"), partition_values={"part": None})
    gone = [removed, replace(remove("3.parquet"), partition_values={"part": "c d"})]
    changes = [*gone, add("4.parquet", {"part": "a"}), add("5.parquet", {"part": "\u00e9"})]
    Client(log, log.snapshot()).commit(changes, WRITE)
    assert update_manifests(store, log.snapshot(), changes) == 2
    manifests = {k.split("/", 1)[1]: v for k, v in store.files.items() if k.startswith("_sym")}
    assert manifests == {
        "part=a/manifest": b"memory:/table/0.parquet\nmemory:/table/4.parquet\n",
        "part=b/manifest": b"untouched",
        "part=\u00e9/manifest": b"memory:/table/5.parquet\n",
    }


def test_all_manifests_are_written_where_a_change_does_not_say_its_partition() -> None:
    store = MemoryStore()
    log = create_table(
        store, add("a", {"part": "1"}), add("b", {"part": "2"}), partitioned_by=("part",)
    )
    generate(store, log.snapshot(), "symlink_format_manifest")
    change = replace(remove("a"), partition_values=None)
    Client(log, log.snapshot()).commit([change], WRITE)
    assert update_manifests(store, log.snapshot(), [change]) == 1
    assert "_symlink_format_manifest/part=1/manifest" not in store.files


def test_manifests_and_deletion_vectors_exclude_each_other() -> None:
    properties = {
        "delta.compatibility.symlinkFormatManifest.enabled": "true",
        "delta.enableDeletionVectors": "true",
    }
    with pytest.raises(DeltaError, match="mutually exclusive") as error:
        TableProperties.of(properties).validate()
    assert error.value.code is ErrorCode.INVALID_TABLE_PROPERTY


@pytest.mark.spark
def test_manifests_follow_every_statement(spark: SparkSession, tmp_path: Path) -> None:
    path, key = str(tmp_path / "t"), "delta.compatibility.symlinkFormatManifest.enabled"
    table = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "BIGINT")
        .addColumn("part", "STRING")
        .partitionedBy("part")
        .property(key, "true")
        .execute()
    )

    def listed() -> set[str]:
        root = tmp_path / "t" / "_symlink_format_manifest"
        return {line for file in root.rglob("manifest") for line in file.read_text().split()}

    def active() -> set[str]:
        snapshot = TableLog.open(path).snapshot()
        return {absolute_uri(snapshot.root_uri, add.path) for add in snapshot.files.adds()}

    rows = spark.range(6).selectExpr("id", "if(id < 2, 'a', if(id < 4, 'b', null)) AS part")
    statements = (
        lambda: puredelta.write(rows, path, mode="append"),
        lambda: table.delete("part = 'a'"),
        lambda: table.update("id = 2", {"part": "'a'"}),
        lambda: (
            table.alias("t")
            .merge(rows.alias("s"), "t.id = s.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
        lambda: table.optimize().executeCompaction(),
        lambda: table.restoreToVersion(1),
        lambda: puredelta.write(rows.limit(1), path, mode="overwrite"),
    )
    for run in statements:
        run()
        assert listed() == active() != set()
    table.delete()
    assert listed() == active() == set()
