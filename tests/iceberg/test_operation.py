"""Exports beside other programs: rivals, VACUUM, catalogs, the command line, refused tables."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from puredelta import iceberg
from puredelta.cli.run import run_command_line
from puredelta.errors import CorruptTableError, ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.iceberg.entry import export_log
from puredelta.log.maintenance.garbage import find_garbage, referenced_files, visible_to_vacuum
from puredelta.protocol.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
)
from tests.filled_table import SmallTable, column
from tests.iceberg.rest_catalog import RestCatalog, serving
from tests.iceberg.tables import StaticTable, delta_rows, exported_versions, iceberg_rows
from tests.iceberg.test_export import widened

IDS = StructType((column("id", LONG),))
_HOUR_MS = 3_600_000


def test_rivals_lose_no_version(tmp_path: Path) -> None:
    """Threads commit and export at once: the newest version is exported, no file is left over."""
    table = SmallTable(tmp_path, IDS)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(6):
                iceberg.export(tmp_path)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(12):
        table.append([{"id": number}])
    for thread in threads:
        thread.join()
    assert not failures
    exported = iceberg.export(tmp_path)
    assert exported.version == 12
    for version, snapshot_id in exported_versions(exported.metadata_location).items():
        assert iceberg_rows(exported.metadata_location, snapshot_id) == delta_rows(table, version)
    metadata = tmp_path / "_iceberg/metadata"
    found = StaticTable.from_metadata(exported.metadata_location)
    named = {one.manifest_list for one in found.snapshots()}
    for one in found.snapshots():
        named |= {m.manifest_path for m in one.manifests(found.io)}
    assert {f"file://{path}" for path in metadata.glob("*.avro")} == named


def test_hint_of_a_slow_exporter(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS)
    for number in range(3):
        table.append([{"id": number}])
        iceberg.export(tmp_path)
    hint = tmp_path / "_iceberg/metadata/version-hint.text"
    hint.write_text("1")
    table.append([{"id": 9}])
    iceberg.export(tmp_path)
    assert hint.read_text() == "4"
    hint.unlink()
    table.append([{"id": 10}])
    iceberg.export(tmp_path)
    assert hint.read_text() == "5"
    hint.write_text("\x00garbage")
    assert not iceberg.export(tmp_path).is_new
    assert iceberg_rows(str(tmp_path / "_iceberg/metadata/v5.metadata.json")) == delta_rows(table)


def test_vacuum_does_not_see_the_folder(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS)
    table.append([{"id": 1}])
    iceberg.export(tmp_path)
    inventory = table.log.store.inventory("", is_wanted=visible_to_vacuum(()))
    needed = referenced_files(table.log.snapshot(), removed_since_ms=0)
    assert not find_garbage(inventory, referenced=needed, modified_before_ms=1 << 60).paths


def test_snapshots_expire(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS)
    for number in range(4):
        table.append([{"id": number}])
        if number == 2:
            table.commit(*table.removes()[:2])
        iceberg.export(tmp_path)
    location = str(tmp_path / "_iceberg")
    assert list(exported_versions(location)) == [1, 2, 4, 5]
    # Version 5 follows version 4, whose files are kept as long as those of a younger version.
    kept_from = table.log.snapshot(version=5).timestamp_ms
    export_log(table.log, expire_before_ms=kept_from)
    assert list(exported_versions(location)) == [4, 5]
    export_log(table.log, expire_before_ms=kept_from + _HOUR_MS)
    assert list(exported_versions(location)) == [5]
    assert iceberg_rows(location) == delta_rows(table)
    assert len(list((tmp_path / "_iceberg/metadata").glob("snap-*.avro"))) == 1


def test_expiry_deletes_nothing_outside_of_the_folder(tmp_path: Path) -> None:
    """Metadata that names other files does not make an export delete these."""
    table = SmallTable(tmp_path / "t", IDS)
    for number in range(2):
        table.append([{"id": number}])
        iceberg.export(table.root)
    precious = tmp_path / "precious.avro"
    metadata = table.root / "_iceberg/metadata/v2.metadata.json"
    content = json.loads(metadata.read_text())
    genuine = Path(content["snapshots"][0]["manifest-list"].removeprefix("file://"))
    precious.write_bytes(genuine.read_bytes())
    content["snapshots"][0]["manifest-list"] = f"file://{precious}"
    metadata.write_text(json.dumps(content))
    export_log(table.log, expire_before_ms=1 << 60)
    assert len(exported_versions(str(table.root / "_iceberg"))) == 1
    assert precious.exists()


def test_old_metadata_files_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puredelta.iceberg.exporting._METADATA_FILES_MAX", 3)
    table = SmallTable(tmp_path, IDS)
    for number in range(8):
        table.append([{"id": number}])
        iceberg.export(tmp_path)
    names = sorted(f.name for f in (tmp_path / "_iceberg/metadata").glob("v*.json"))
    assert names == [f"v{n}.metadata.json" for n in (5, 6, 7, 8)]
    found = StaticTable.from_metadata(str(tmp_path / "_iceberg"))
    assert len(found.metadata.metadata_log) == 3
    assert len(found.snapshots()) == 8


def test_lost_and_foreign_files(tmp_path: Path) -> None:
    """What others removed or wrote in the folder does not change what is exported next."""
    table = SmallTable(tmp_path, IDS)
    table.append([{"id": 1}])
    iceberg.export(tmp_path)
    for file in (tmp_path / "_iceberg/metadata").glob("*.avro"):
        file.unlink()
    table.append([{"id": 2}])
    exported = iceberg.export(tmp_path)
    assert iceberg_rows(exported.metadata_location) == delta_rows(table)
    metadata = tmp_path / "_iceberg/metadata/v2.metadata.json"
    content = json.loads(metadata.read_text())
    del content["snapshots"][-1]["summary"]["delta-version"]
    metadata.write_text(json.dumps(content))
    exported = iceberg.export(tmp_path)
    assert exported.is_new
    assert iceberg_rows(exported.metadata_location) == delta_rows(table)


def test_damaged_metadata_is_named(tmp_path: Path) -> None:
    table = SmallTable(tmp_path, IDS)
    iceberg.export(tmp_path)
    path = tmp_path / "_iceberg/metadata/v1.metadata.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    names = {**content["properties"], "schema.name-mapping.default": '[{"field-id": 1}]'}
    others = [json.dumps({**content, "properties": one}) for one in ([], names)]
    for text in ("", "{", "[]", '{"format-version": 2}', "\udcff", *others):
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(CorruptTableError, match=r"v1\.metadata\.json") as caught:
            iceberg.export(table.root)
        assert caught.value.code is ErrorCode.UNIVERSAL_FORMAT_CONVERSION_FAILED


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (StructType((column("v", PrimitiveType("void")),)), "v has the type void"),
        (
            StructType((column("x", STRING, __COLLATIONS={"x": "ICU.UNICODE_CI"}),)),
            "x has a collation",
        ),
        (StructType((widened("x", INTEGER, DOUBLE),)), "x was widened from integer to double"),
        (StructType((widened("x", DATE, TIMESTAMP_NTZ),)), "x was widened from date"),
    ],
)
def test_refused_columns(tmp_path: Path, schema: StructType, text: str) -> None:
    SmallTable(tmp_path, schema)
    refuse(tmp_path, text)


def refuse(root: Path, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text) as caught:
        iceberg.export(root)
    assert caught.value.code is ErrorCode.UNIVERSAL_FORMAT_VIOLATION
    assert not (root / "_iceberg").exists()


@pytest.mark.parametrize(
    "kind", [ArrayType(LONG), MapType(STRING, LONG), StructType((column("a", ArrayType(LONG), 2),))]
)
def test_refused_elements_without_ids(tmp_path: Path, kind: Any) -> None:
    SmallTable(tmp_path, StructType((column("x", kind, 1),)), delta__columnMapping__mode="name")
    refuse(tmp_path, "under column mapping")


def test_refused_partition_values(tmp_path: Path) -> None:
    table = SmallTable(
        tmp_path, StructType((column("id", LONG), column("p", TIMESTAMP))), partitioned_by=("p",)
    )
    added = table.file([{"id": 1}])
    table.commit(replace(added, partition_values={"p": "2024-01-01 00:00:00"}))
    refuse(tmp_path, "2024-01-01 00:00:00")


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SmallTable(tmp_path, IDS)
    monkeypatch.delitem(sys.modules, "puredelta.iceberg.exporting", raising=False)
    monkeypatch.setitem(sys.modules, "pyiceberg.manifest", None)
    with pytest.raises(UnsupportedError, match=r"puredelta\[iceberg\]") as caught:
        iceberg.export(tmp_path)
    assert caught.value.code is ErrorCode.MISSING_ICEBERG_CLASS


def test_import_needs_no_pyiceberg_and_no_spark() -> None:
    code = (
        "import sys, puredelta.iceberg; "
        "assert not {m.partition('.')[0] for m in sys.modules} & {'pyiceberg', 'pyspark'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_catalog(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", IDS)
    other = SmallTable(tmp_path / "other", IDS)
    table.append([{"id": 1}])
    catalog = pytest.importorskip("pyiceberg.catalog.sql").SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    catalog.create_namespace("ns")
    for number in range(3):
        iceberg.register(table.root, catalog, "ns.t")
        found = catalog.load_table("ns.t").scan().to_arrow()
        assert found.num_rows == number + 1
        table.append([{"id": number}])
    with pytest.raises(InvalidRequestError, match="Choose another name"):
        iceberg.register(other.root, catalog, "ns.t")
    assert catalog.load_table("ns.t").scan().to_arrow().num_rows == 3
    catalog.engine.dispose()


def rest_iceberg(uri: str) -> Any:
    return pytest.importorskip("pyiceberg.catalog").load_catalog("c", type="rest", uri=uri)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("knows_overwrite", [True, False])
def test_rest_catalog(tmp_path: Path, knows_overwrite: bool) -> None:
    """A server that moves a name in one step is never without it."""
    table = SmallTable(tmp_path / "t", IDS)
    other = SmallTable(tmp_path / "other", IDS)
    with serving(RestCatalog(knows_overwrite=knows_overwrite)) as server:
        catalog = rest_iceberg(server.uri)
        for number in range(3):
            table.append([{"id": number}])
            iceberg.register(table.root, catalog, "ns.t")
            assert catalog.load_table("ns.t").scan().to_arrow().num_rows == number + 1
        with pytest.raises(InvalidRequestError, match="Choose another name"):
            iceberg.register(other.root, catalog, "ns.t")
    drops = [one for one in server.requests if one.startswith("DELETE")]
    assert len(drops) == (0 if knows_overwrite else 2)


@pytest.mark.thorough
def test_a_name_that_a_catalog_cannot_move_stays(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", IDS)
    table.append([{"id": 1}])
    with serving(RestCatalog(knows_overwrite=False)) as server:
        catalog = rest_iceberg(server.uri)
        before = iceberg.register(table.root, catalog, "ns.t").metadata_location
        table.append([{"id": 2}])
        server.fails_to_register = iceberg.export(table.root).metadata_location
        with pytest.raises(Exception, match="no") as caught:
            iceberg.register(table.root, catalog, "ns.t")
        assert type(caught.value).__name__ == "BadRequestError"
        assert server.tables == {"t": before}


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = SmallTable(tmp_path, IDS)
    table.append([{"id": 1}])
    assert run_command_line(["iceberg", "export", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["version"], answer["isNew"]) == (1, True)
    assert iceberg_rows(answer["metadataLocation"]) == delta_rows(table)
    assert run_command_line(["iceberg", "register", str(tmp_path), "--json"]) == 2
    assert "--catalog" in capsys.readouterr().err
    assert run_command_line(["iceberg", "export", str(tmp_path), "--name", "x", "--json"]) == 2
