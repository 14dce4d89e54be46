"""What an Iceberg table may have and no Delta table can have is refused by name, untouched."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg", reason="needs the extra iceberg")

from puredelta.commands.convert import iceberg_plan, iceberg_table
from puredelta.commands.convert.convert_to_delta import convert_to_delta
from puredelta.commands.convert.preview import preview_convert
from puredelta.commands.convert.undo import undo_convert
from puredelta.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    DeltaError,
    InvalidRequestError,
    UnsupportedError,
)
from puredelta.log.commit.commit_request import Phase
from tests.commands.convert.directories import adds, contents
from tests.commands.convert.iceberg_tables import (
    delete_rows,
    identifier,
    new_catalog,
    rewrite_metadata,
    root_of,
)
from tests.commands.sessions import FakeSession

from pyiceberg import types as I  # isort: skip
from pyiceberg.manifest import DataFileContent, FileFormat  # isort: skip
from pyiceberg.schema import Schema  # isort: skip
from pyiceberg.table import Table  # isort: skip

IDS = pa.schema([("id", pa.int64())])


def some_table(root: Path, *, rows: int = 4) -> Table:
    table = new_catalog(root).create_table("db.t", IDS)
    table.append(pa.table({"id": range(rows)}, IDS))
    return table


def file_of(table: Table) -> str:
    [task] = table.scan().plan_files()
    return task.file.file_path


def refused(table: Table, kind: type[DeltaError], *texts: str, name: str | None = None) -> None:
    before = contents(root_of(table))
    with pytest.raises(kind) as error:
        convert_to_delta(FakeSession(), name or identifier(table))
    assert all(text in str(error.value) for text in texts), error.value
    assert contents(root_of(table)) == before
    assert not (root_of(table) / "_delta_log").exists()


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (I.UUIDType(), "uuid"),
        (I.TimeType(), "time"),
        (I.ListType(9, I.UUIDType(), element_required=False), "uuid"),
        (I.StructType(I.NestedField(9, "in", I.TimeType())), "time"),
    ],
)
def test_types(tmp_path: Path, kind: I.IcebergType, shown: str) -> None:
    schema = Schema(I.NestedField(1, "id", I.LongType()), I.NestedField(2, "bad", kind))
    table = new_catalog(tmp_path).create_table("db.t", schema)
    refused(table, UnsupportedError, "DELTA_UNSUPPORTED_DATA_TYPES", "bad", f"has the type {shown}")


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    table = new_catalog(tmp_path).create_table("db.t", schema)
    refused(table, InvalidRequestError, "DELTA_DUPLICATE_COLUMNS_FOUND")


def test_defaults_of_rows_that_were_there_before(tmp_path: Path) -> None:
    table = some_table(tmp_path)

    def change(metadata: dict) -> None:
        metadata["schemas"][0]["fields"][0]["initial-default"] = 7

    path = rewrite_metadata(table, change)
    refused(table, UnsupportedError, "id has the default 7", name=f"iceberg.`{path}`")


def test_columns_that_are_found_by_name(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", IDS)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"id": [1]}, IDS), other)
    table.add_files([f"file://{other}"])
    refused(table, UnsupportedError, "column id of the file", str(other), "has no id")


@pytest.mark.parametrize(
    ("content", "file_format", "text"),
    [
        (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET, "deletes rows by their values"),
        (DataFileContent.POSITION_DELETES, FileFormat.AVRO, "is not Parquet but AVRO"),
        (DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, "is not Parquet but PUFFIN"),
    ],
)
def test_deleted_rows(
    tmp_path: Path, content: DataFileContent, file_format: FileFormat, text: str
) -> None:
    table = some_table(tmp_path)
    rows = [(file_of(table), 1)]
    table = delete_rows(table, rows, content=content, file_format=file_format)
    refused(table, UnsupportedError, "DELTA_UNSUPPORTED_ICEBERG_TABLE", text, "data/deletes-")


def test_a_row_is_deleted_that_is_not_there(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    table = delete_rows(table, [(file_of(table), 4)])
    refused(table, CorruptTableError, "it has 4, and row 4 is deleted")


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (Path.unlink, "is missing"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "DELTA_FAILED_READ_FILE_FOOTER"),
        (
            lambda path: pq.write_table(pa.table({"id": [1]}, IDS), path),
            "and 1 rows, and the manifest says",
        ),
    ],
)
def test_data_files_are_not_those_of_the_manifest(
    tmp_path: Path, harm: Callable[[Path], object], text: str
) -> None:
    table = some_table(tmp_path)
    harm(Path(file_of(table).removeprefix("file://")))
    refused(table, CorruptTableError, file_of(table).removeprefix("file://"), text)


@pytest.mark.filterwarnings("ignore:Encountered invalid snapshot summary")
@pytest.mark.parametrize("kind", ["snap-*.avro", "*-m0.avro", "*.metadata.json"])
def test_damaged_metadata_is_named(tmp_path: Path, kind: str) -> None:
    """A length that is not checked ended the process by a signal."""
    table = some_table(tmp_path)
    path = max((root_of(table) / "metadata").glob(kind))
    content, chosen, refusals = path.read_bytes(), random.Random(1), 0
    for _ in range(60):
        damaged = bytearray(content)
        place = chosen.randrange(len(damaged))
        match chosen.randrange(3):
            case 0:
                del damaged[place:]
            case 1:
                damaged[place] ^= 1 << chosen.randrange(8)
            case _:
                damaged[place : place + 8] = chosen.randbytes(8)
        path.write_bytes(damaged)
        try:
            refusals += bool(preview_convert(FakeSession(), identifier(table)).problems)
        except DeltaError:
            refusals += 1
    assert refusals


def test_no_metadata_and_no_hint(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    root = root_of(table)
    name = Path(table.metadata_location).name
    refused(
        table,
        InvalidRequestError,
        "only its catalog knows",
        f"iceberg.`file:{root}/metadata/{name}`",
        name=f"iceberg.`{root}`",
    )
    refused(table, InvalidRequestError, "no Iceberg table", name=f"iceberg.`{root}/data`")
    refused(
        table,
        InvalidRequestError,
        "no Iceberg table",
        name=f"iceberg.`{root}/metadata/v9.metadata.json`",
    )
    other = rewrite_metadata(table, lambda metadata: metadata.pop("current-schema-id"))
    content = json.loads(Path(other).read_text(encoding="utf-8"))
    for text in ("{", json.dumps({**content, "properties": []})):
        Path(other).write_text(text, encoding="utf-8")
        refused(table, CorruptTableError, "is no metadata", name=f"iceberg.`{other}`")
    content["snapshots"][0]["manifest-list"] += "\0"
    Path(other).write_text(json.dumps(content), encoding="utf-8")
    refused(table, CorruptTableError, "is no metadata", name=f"iceberg.`{other}`")
    (root / "metadata/version-hint.text").write_bytes(b"\xff")
    refused(table, InvalidRequestError, "no Iceberg table", name=f"iceberg.`{root}`")


def test_partitions_are_known(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    with pytest.raises(InvalidRequestError, match="PARTITION_SCHEMA_IN_ICEBERG_TABLES"):
        convert_to_delta(FakeSession(), identifier(table), "infer")


def test_another_writer_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(tmp_path)
    old = identifier(table)
    convert = convert_to_delta

    def commits(_: object) -> None:
        table.append(pa.table({"id": [9]}, IDS))

    whole = iceberg_table.read_content
    monkeypatch.setattr(
        iceberg_table, "read_content", lambda *given: (whole(*given), commits(given))[0]
    )
    with pytest.raises(ConcurrentWriteException, match="written while it was converted"):
        convert(FakeSession(), old)
    assert not (root_of(table) / "_delta_log").exists()


def test_without_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = some_table(tmp_path)
    for name in [n for n in sys.modules if n.startswith("puredelta.commands.convert.iceberg_")]:
        if name != iceberg_plan.__name__:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    monkeypatch.setitem(sys.modules, "pyiceberg.io", None)
    refused(
        table, UnsupportedError, "DELTA_MISSING_ICEBERG_CLASS", "pip install 'puredelta[iceberg]'"
    )


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    table = delete_rows(table, [(file_of(table), 1)])
    before = contents(root_of(table))
    found = preview_convert(FakeSession(), identifier(table))
    assert (found.num_files, found.num_rows, found.problems) == (1, 3, ())
    assert contents(root_of(table)) == before


def test_a_conversion_is_undone_with_its_vectors(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    table = delete_rows(table, [(file_of(table), 1)])
    before = contents(root_of(table))
    convert_to_delta(FakeSession(), identifier(table))
    assert [a["deletionVector"]["cardinality"] for a in adds(root_of(table)).values()] == [1]
    undo_convert(FakeSession(), f"delta.`{root_of(table)}`")
    assert contents(root_of(table)) == before
    convert_to_delta(FakeSession(), identifier(table))


def test_a_failed_commit_leaves_nothing(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    table = delete_rows(table, [(file_of(table), 1)])
    before = contents(root_of(table))

    def fails(phase: Phase) -> None:
        if phase is Phase.STAGED:
            raise OSError(28, "no space left")

    with pytest.raises(OSError, match="no space"):
        convert_to_delta(FakeSession(), identifier(table), on_phase=fails)
    assert contents(root_of(table)) == before


def test_what_is_delta_already_is_left_alone(tmp_path: Path) -> None:
    table = some_table(tmp_path)
    convert_to_delta(FakeSession(), identifier(table))
    assert convert_to_delta(FakeSession(), identifier(table)).already_delta
