"""Tables whose files hold partition columns, and tables that keep the rules of IcebergCompat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import puredelta
from puredelta import iceberg
from puredelta.errors import DeltaError, ErrorCode
from puredelta.log.files.parquet_footer import read_end_of
from puredelta.log.replay.table_log import TableLog
from puredelta.protocol.actions.actions import AddChangeFile
from puredelta.protocol.actions.paths import decode_path

MATERIALIZED = "'delta.enableMaterializePartitionColumnsFeature' = 'true'"
V1, V2 = ("'delta.enableIcebergCompatV1' = 'true'", "'delta.enableIcebergCompatV2' = 'true'")
UPGRADE = "APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {}))"


class Table:
    """A table at a path, by SQL."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.name = spark, root, f"delta.`{root}`"
        self.log = TableLog.open(str(root))

    def sql(self, text: str) -> Any:
        return puredelta.sql(self.spark, text.replace("TABLE_", self.name))

    def rows(self, columns: str = "*") -> list[Any]:
        return sorted(map(tuple, self.sql(f"SELECT {columns} FROM TABLE_").collect()), key=str)

    def schemas(self) -> list[pa.Schema]:
        adds = self.log.snapshot().files.adds()
        return [pq.read_schema(self.root / decode_path(add.path)) for add in adds]

    def refused(self, text: str) -> DeltaError:
        version = self.log.latest_version()
        with pytest.raises(DeltaError) as refused:
            self.sql(text)
        assert self.log.latest_version() == version
        return refused.value


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "t")


def test_every_statement_writes_partition_columns(table: Table) -> None:
    """Inserts, copies, updates, compactions and change files hold them, and readers see no more."""
    table.sql(
        "CREATE TABLE TABLE_ (id BIGINT, p STRING, v STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({MATERIALIZED}, 'delta.enableChangeDataFeed' = 'true')"
    )
    assert table.log.snapshot().config.supports("materializePartitionColumns")
    table.sql("INSERT INTO TABLE_ VALUES (1, 'x', 'a'), (2, 'y', 'b'), (3, NULL, 'c')")
    table.sql("INSERT INTO TABLE_ VALUES (4, '', 'd'), (5, 'x', 'e'), (6, 'x', 'f')")
    table.sql("UPDATE TABLE_ SET v = 'new' WHERE id = 1")
    table.sql(
        "MERGE INTO TABLE_ t USING (SELECT 2L id, 'y' p, 'b2' v UNION ALL SELECT 9L, 'z/%', 'n') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    table.sql("DELETE FROM TABLE_ WHERE id = 5")
    table.sql("OPTIMIZE TABLE_")
    expected = [
        (1, "x", "new"),
        (2, "y", "b2"),
        (3, None, "c"),
        (4, None, "d"),
        (6, "x", "f"),
        (9, "z/%", "n"),
    ]
    assert table.rows() == expected
    assert table.sql("SELECT count(*) FROM TABLE_ WHERE p = 'x'").collect()[0][0] == len("ab")
    for add, schema in zip(table.log.snapshot().files.adds(), table.schemas(), strict=True):
        assert schema.names[:3] == ["id", "v", "p"]
        stored = pq.ParquetFile(table.root / decode_path(add.path)).read()["p"].unique()
        assert stored.to_pylist() == [add.partition_values["p"]]
        assert '"p"' not in str(add.stats)
    changes = [
        action
        for commit in table.log.commits_after(0)
        for action in commit.actions
        if isinstance(action, AddChangeFile)
    ]
    assert changes
    for change in changes:
        assert "p" in pq.read_schema(table.root / decode_path(change.path)).names


def test_files_from_before_are_not_copied(table: Table) -> None:
    """A file that a worker could copy, but without the column, is written by Spark."""
    table.sql("CREATE TABLE TABLE_ (id BIGINT, p INT) USING delta PARTITIONED BY (p)")
    table.sql("INSERT INTO TABLE_ SELECT id, 1 FROM range(4)")
    table.sql(f"ALTER TABLE TABLE_ SET TBLPROPERTIES ({MATERIALIZED})")
    table.sql("UPDATE TABLE_ SET id = 10 WHERE id = 2")
    table.sql("DELETE FROM TABLE_ WHERE id = 1")
    assert all(schema.names == ["id", "p"] for schema in table.schemas())
    assert table.rows() == [(0, 1), (10, 1), (3, 1)]
    table.sql("ALTER TABLE TABLE_ DROP FEATURE materializePartitionColumns")
    table.sql("INSERT INTO TABLE_ VALUES (7, 2)")
    assert min(schema.names for schema in table.schemas()) == ["id"]


NESTED = "a ARRAY<STRUCT<x: INT>>, m MAP<STRING, ARRAY<INT>>"
VALUES = "array(named_struct('x', 1)), map('k', array(1, 2))"


def ids(schema: pa.Schema) -> list[int]:
    found: list[int] = []

    def add(field: pa.Field) -> None:
        found.append(int(field.metadata[b"PARQUET:field_id"]))
        kind = field.type
        if pa.types.is_map(kind):
            parts = [kind.key_field, kind.item_field]
        else:
            parts = [kind.field(n) for n in range(kind.num_fields)]
        for part in parts:
            add(part)

    for field in schema:
        add(field)
    return sorted(found)


@pytest.mark.thorough
def test_version_two_gives_ids_to_elements(table: Table) -> None:
    table.sql(
        f"CREATE TABLE TABLE_ (id BIGINT, {NESTED}, at TIMESTAMP) USING delta TBLPROPERTIES ({V2})"
    )
    config = table.log.snapshot().config
    assert config.supports("icebergCompatV2")
    assert config.metadata.configuration["delta.columnMapping.mode"] == "name"
    table.sql(f"INSERT INTO TABLE_ SELECT id, {VALUES}, timestamp'2024-01-01' FROM range(4)")
    assert ids(table.schemas()[0]) == list(range(1, 10))
    table.sql("UPDATE TABLE_ SET id = 10 WHERE id = 2")
    table.sql("DELETE FROM TABLE_ WHERE id = 1")
    table.sql("ALTER TABLE TABLE_ ADD COLUMN b ARRAY<INT>")
    table.sql(f"INSERT INTO TABLE_ SELECT 20, {VALUES}, NULL, array(1)")
    assert max(map(ids, table.schemas())) == list(range(1, 12))
    assert [row[0] for row in table.rows()] == [0, 10, 20, 3]
    violations = {
        "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')": (
            ErrorCode.ICEBERG_COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED
        ),
        f"SET TBLPROPERTIES ({V1})": ErrorCode.ICEBERG_COMPAT_VERSION_MUTUAL_EXCLUSIVE,
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')": (
            ErrorCode.ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY
        ),
        "ADD COLUMN n VOID": ErrorCode.ICEBERG_COMPAT_UNSUPPORTED_DATA_TYPE,
    }
    for change, code in violations.items():
        assert table.refused(f"ALTER TABLE TABLE_ {change}").code is code
    table.sql("ALTER TABLE TABLE_ SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'false')")
    table.sql("ALTER TABLE TABLE_ SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')")


@pytest.mark.thorough
def test_upgrade_writes_old_files_again(table: Table) -> None:
    """Deleted rows leave the files, partition columns and ids come in, and Iceberg reads them."""
    static = pytest.importorskip("pyiceberg.table").StaticTable
    table.sql(
        f"CREATE TABLE TABLE_ (id BIGINT, {NESTED}, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.columnMapping.mode' = 'name')"
    )
    table.sql(f"INSERT INTO TABLE_ SELECT /*+ COALESCE(1) */ id, {VALUES}, 1 FROM range(4)")
    enable = "ALTER TABLE TABLE_ SET TBLPROPERTIES ({}, 'delta.enableDeletionVectors' = 'false')"
    assert (
        table.refused(enable.format(V2)).code
        is ErrorCode.ICEBERG_COMPAT_CHANGE_VERSION_NEED_REWRITE
    )
    table.sql("DELETE FROM TABLE_ WHERE id = 2")
    version = table.log.latest_version()
    unknown = table.refused(f"REORG TABLE TABLE_ {UPGRADE.format(3)}")
    assert unknown.code is ErrorCode.ICEBERG_COMPAT_VERSION_NOT_SUPPORTED
    (row,) = table.sql(f"REORG TABLE TABLE_ {UPGRADE.format(2)}").collect()
    assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved) == (1, 1)
    assert table.log.latest_version() == version + 1
    assert ids(table.schemas()[0]) == list(range(1, 10))
    assert [row[0] for row in table.rows()] == [0, 1, 3]
    metadata = max((table.root / "_iceberg" / "metadata").glob("v*.metadata.json"))
    rows = static.from_metadata(str(metadata)).scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == [0, 1, 3]
    assert rows[0]["m"] == [("k", [1, 2])]
    table.sql(f"REORG TABLE TABLE_ {UPGRADE.format(2)}")
    assert table.log.latest_version() == version + 1
    table.sql(f"INSERT INTO TABLE_ SELECT 9, {VALUES}, 2")
    assert len(list((table.root / "_iceberg" / "metadata").glob("v*.metadata.json"))) > 1
    with pytest.raises(DeltaError) as replaced:
        puredelta.write(
            table.spark.range(1),
            str(table.root),
            mode="overwrite",
            options={"overwriteSchema": True},
        )
    code = ErrorCode.ICEBERG_COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES
    assert replaced.value.code is code
    table.sql(f"RESTORE TABLE TABLE_ TO VERSION AS OF {version}")
    assert table.log.snapshot().config.iceberg_compat is None
    assert [row[0] for row in table.rows()] == [0, 1, 3]


def test_iceberg_metadata_needs_the_rules(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.sql("CREATE TABLE TABLE_ (id BIGINT) USING delta")
    asked = "ALTER TABLE TABLE_ SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = '{}')"
    code = ErrorCode.UNIVERSAL_FORMAT_VIOLATION
    assert table.refused(asked.format("iceberg")).code is code
    assert table.refused(asked.format("hudi")).code is ErrorCode.OPERATION_NOT_ALLOWED
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    missing = table.refused(f"REORG TABLE TABLE_ {UPGRADE.format(1)}")
    assert missing.code is ErrorCode.MISSING_ICEBERG_CLASS


NO_V2 = "'delta.enableIcebergCompatV2' = 'false'"


def tags(table: Table) -> list[Any]:
    return [add.tags for add in table.log.snapshot().files.adds()]


@pytest.mark.thorough
def test_tags_say_which_files_keep_the_rules(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of delta-spark, and a file that has one is not opened by an upgrade."""
    table.sql(
        f"CREATE TABLE TABLE_ (id BIGINT, {NESTED}, p INT) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({V2})"
    )
    table.sql(f"INSERT INTO TABLE_ SELECT id, {VALUES}, id % 2 FROM range(8)")
    table.sql("UPDATE TABLE_ SET id = 10 WHERE id = 2")
    table.sql("DELETE FROM TABLE_ WHERE id = 3")
    table.sql("OPTIMIZE TABLE_")
    assert tags(table) == [{"ICEBERG_COMPAT_VERSION": "2"}] * 2
    table.sql(f"ALTER TABLE TABLE_ SET TBLPROPERTIES ({NO_V2})")
    table.sql("UPDATE TABLE_ SET id = 11 WHERE id = 10")
    assert sorted(map(str, tags(table))) == ["None", "{'ICEBERG_COMPAT_VERSION': '2'}"]
    opened = []

    def seen(file: Any, *rest: Any) -> Any:
        opened.append(file.tags)
        return read_end_of(file, *rest)

    monkeypatch.setattr("puredelta.commands.iceberg_files.read_end_of", seen)
    table.sql(f"REORG TABLE TABLE_ {UPGRADE.format(2)}")
    assert set(map(str, opened)) == {"None"}
    assert table.log.snapshot().config.iceberg_compat == 2
    assert [row[0] for row in table.rows()] == [0, 1, 11, 4, 5, 6, 7]


@pytest.mark.thorough
def test_change_files_of_version_two(table: Table) -> None:
    """Columns of the table have their ids, and the kind of change has none, as in delta-spark."""
    table.sql(
        f"CREATE TABLE TABLE_ (id BIGINT, {NESTED}, p STRING) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({V2}, 'delta.enableChangeDataFeed' = 'true')"
    )
    table.sql(f"INSERT INTO TABLE_ SELECT id, {VALUES}, 'x' FROM range(4)")
    (data, *_) = table.schemas()
    table.sql("UPDATE TABLE_ SET id = 10 WHERE id = 2")
    table.sql("DELETE FROM TABLE_ WHERE id = 1")
    paths = [
        action.path
        for commit in table.log.commits_after(0)
        for action in commit.actions
        if isinstance(action, AddChangeFile)
    ]
    assert paths
    for path in paths:
        schema = pq.read_schema(table.root / decode_path(path))
        place = schema.get_field_index("_change_type")
        assert b"PARQUET:field_id" not in (schema.field(place).metadata or {})
        assert ids(schema.remove(place)) == ids(data)
    static = pytest.importorskip("pyiceberg.table").StaticTable
    found = static.from_metadata(iceberg.export(table.root).metadata_location).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [0, 3, 10]
    changes = table.sql("SELECT id, _change_type FROM table_changes('TABLE_', 2)".replace(
        "'TABLE_'", f"'{table.name}'"
    ))  # fmt: skip
    assert sorted(map(tuple, changes.collect())) == [
        (1, "delete"),
        (2, "update_preimage"),
        (10, "update_postimage"),
    ]


@pytest.mark.thorough
def test_clones_of_version_two(table: Table, tmp_path: Path) -> None:
    """A shallow clone keeps the rules with the files of its source; there is no deep one."""
    table.sql(
        f"CREATE TABLE TABLE_ (id BIGINT, {NESTED}, p INT) USING delta PARTITIONED BY (p) "
        f"TBLPROPERTIES ({V2})"
    )
    table.sql(f"INSERT INTO TABLE_ SELECT id, {VALUES}, id % 2 FROM range(4)")
    clone = Table(table.spark, tmp_path / "clone")
    clone.sql(f"CREATE TABLE TABLE_ SHALLOW CLONE {table.name}")
    config = clone.log.snapshot().config
    assert (config.iceberg_compat, config.supports("icebergCompatV2")) == (2, True)
    assert tags(clone) == tags(table)
    assert {str(one) for one in tags(clone)} == {"{'ICEBERG_COMPAT_VERSION': '2'}"}
    clone.sql(f"INSERT INTO TABLE_ SELECT 9L, {VALUES}, 3")
    clone.sql("UPDATE TABLE_ SET id = 10 WHERE id = 2")
    assert [row[0] for row in clone.rows("id")] == [0, 1, 10, 3, 9]
    assert len({str(ids(pq.read_schema(path))) for path in tmp_path.rglob("*.parquet")}) == 1
    off = Table(table.spark, tmp_path / "off")
    off.sql(f"CREATE TABLE TABLE_ SHALLOW CLONE {table.name} TBLPROPERTIES ({NO_V2})")
    assert off.log.snapshot().config.iceberg_compat is None
    plain = Table(table.spark, tmp_path / "plain")
    plain.sql("CREATE TABLE TABLE_ (id BIGINT) USING delta")
    for text, code in (
        (f"SHALLOW CLONE {plain.name} TBLPROPERTIES ({V2})",
         ErrorCode.ICEBERG_COMPAT_WRONG_REQUIRED_TABLE_PROPERTY),
        (f"CLONE {table.name}", ErrorCode.UNSUPPORTED_DEEP_CLONE),
    ):  # fmt: skip
        with pytest.raises(DeltaError) as refused:
            Table(table.spark, tmp_path / "none").sql(f"CREATE TABLE TABLE_ {text}")
        assert refused.value.code is code
    static = pytest.importorskip("pyiceberg.table").StaticTable
    exported = iceberg.export(clone.root)
    found = static.from_metadata(exported.metadata_location).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [0, 1, 3, 9, 10]


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_vectors_of_every_statement_are_exported(table: Table, mapping: str) -> None:
    """Iceberg's readers see the rows of every version, whatever came to its vectors."""
    static = pytest.importorskip("pyiceberg.table").StaticTable
    table.sql(
        "CREATE TABLE TABLE_ (id BIGINT, p STRING, v STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'puredelta.iceberg.export' = "
        f"'true', 'delta.columnMapping.mode' = '{mapping}')"
    )
    table.sql("INSERT INTO TABLE_ SELECT id, concat('p', id % 2), 'a' FROM range(40)")
    table.sql("DELETE FROM TABLE_ WHERE id IN (3, 8)")
    deleted = table.log.latest_version()
    table.sql("UPDATE TABLE_ SET v = 'b' WHERE id IN (4, 9)")
    table.sql(
        "MERGE INTO TABLE_ t USING (SELECT id + 10 AS id FROM range(3)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 10 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm'"
    )
    table.sql(f"RESTORE TABLE TABLE_ TO VERSION AS OF {deleted}")
    table.sql("DELETE FROM TABLE_ WHERE id = 5")
    table.sql("OPTIMIZE TABLE_")
    table.sql("DELETE FROM TABLE_ WHERE id = 20")
    table.sql("REORG TABLE TABLE_ APPLY (PURGE)")
    table.sql("RESTORE TABLE TABLE_ TO VERSION AS OF 1")
    found = static.from_metadata(str(table.root / "_iceberg"))
    versions = {int(one.summary["delta-version"]): one.snapshot_id for one in found.snapshots()}
    assert sorted(versions) == list(range(table.log.latest_version() + 1))
    for version, snapshot_id in versions.items():
        rows = found.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
        wanted = table.sql(f"SELECT * FROM TABLE_ VERSION AS OF {version}").collect()
        assert sorted(map(str, rows)) == sorted(str(row.asDict()) for row in wanted), version
    assert found.metadata.format_version == 3
