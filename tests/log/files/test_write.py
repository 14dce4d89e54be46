"""M-131 to M-137: deletion vectors a command writes, and the files that bear them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from puredelta.log.files.deletion_vectors import (
    DeletionVectorUpdate,
    discard_vectors,
    packed,
    read_positions,
    write_vectors,
)
from puredelta.log.files.file_table import FileTable
from puredelta.protocol.actions.actions import Add, Metadata, Protocol
from puredelta.protocol.actions.deletion_vector import RowIndexes
from puredelta.protocol.schema.schema_json import encode_schema
from puredelta.protocol.schema.types import LONG, StructField, StructType
from puredelta.protocol.table.table_config import TableConfig
from puredelta.store.base import StorageError
from puredelta.store.local import LocalStore
from tests.faults import FailAt

FILE = Add(
    path="a.parquet",
    partition_values={},
    size_bytes=1,
    modified_ms=7,
    data_change=False,
    stats='{"numRecords":10}',
    tags={"k": "v"},
    base_row_id=100,
    default_row_commit_version=3,
)


def config_of(**properties: str) -> TableConfig:
    schema = encode_schema(StructType((StructField("id", LONG),)))
    features = frozenset({"deletionVectors"})
    return TableConfig.of(
        Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features,
            writer_features=features,
        ),
        Metadata(id="x", schema_string=schema, partition_columns=(), configuration=properties),
    )


def rows(*positions: int) -> RowIndexes:
    return np.array(positions, np.uint64)


def test_a_file_keeps_everything_but_its_vector_and_tight_bounds(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    written = write_vectors(
        [DeletionVectorUpdate(file=FILE, rows=rows(1, 4))], store=store, config=config_of()
    )
    (add,) = written.adds
    vector = add.deletion_vector
    assert vector is not None
    assert (vector.storage_type, vector.offset, vector.cardinality) == ("u", 1, 2)
    expected = replace(
        FILE,
        data_change=True,
        deletion_vector=vector,
        stats='{"numRecords":10,"tightBounds":false}',
    )
    assert add == expected
    (path,) = written.paths
    assert path.startswith("deletion_vector_")
    assert path.endswith(".bin")
    found = read_positions(FileTable.of([add]), store.root_uri)
    assert found[0].tolist() == [1, 4]


def test_vectors_share_files_up_to_a_limit(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    files = [replace(FILE, path=f"{n}.parquet") for n in range(5)]
    updates = [DeletionVectorUpdate(file=f, rows=rows(n, 9)) for n, f in enumerate(files)]
    written = write_vectors(updates, store=store, config=config_of(), file_bytes=80)
    assert len(written.paths) == 3
    found = read_positions(FileTable.of(written.adds), store.root_uri)
    assert [found[n].tolist() for n in range(5)] == [[n, 9] for n in range(5)]
    discard_vectors(written, store)
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_rows_gets_no_vector(tmp_path: Path) -> None:  # M-133
    updates = [DeletionVectorUpdate(file=FILE, rows=np.arange(10, dtype=np.uint64))]
    written = write_vectors(updates, store=LocalStore(tmp_path), config=config_of())
    assert written.adds == written.paths == ()


def test_a_missing_row_count_is_read_from_the_footer(tmp_path: Path) -> None:  # M-134
    pq.write_table(pa.table({"id": [1, 2, None]}), tmp_path / "a.parquet")
    for stats in (None, '{"minValues":{}}'):
        updates = [DeletionVectorUpdate(file=replace(FILE, stats=stats), rows=rows(0))]
        (add,) = write_vectors(updates, store=LocalStore(tmp_path), config=config_of()).adds
        found = json.loads(str(add.stats))
        assert (found["numRecords"], found["nullCount"]) == (3, {"id": 1})
        assert found["tightBounds"] is False


def test_a_table_with_random_prefixes_gets_them_for_vectors(tmp_path: Path) -> None:  # M-135
    config = config_of(**{"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"})
    store = LocalStore(tmp_path)
    written = write_vectors(
        [DeletionVectorUpdate(file=FILE, rows=rows(1))], store=store, config=config
    )
    directory, _, name = written.paths[0].partition("/")
    assert len(directory) == 3
    assert name.startswith("deletion_vector_")
    assert read_positions(FileTable.of(written.adds), store.root_uri)[0].tolist() == [1]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    store = FailAt(LocalStore(tmp_path), 2, only=frozenset({"put"}))
    files = [replace(FILE, path=str(n)) for n in range(3)]
    updates = [DeletionVectorUpdate(file=file, rows=rows(1)) for file in files]
    with pytest.raises(StorageError):
        write_vectors(updates, store=store, config=config_of(), file_bytes=1)
    assert list(tmp_path.iterdir()) == []


def test_packing_keeps_the_order() -> None:
    assert list(packed([], 8)) == []
    assert list(packed([8, 1], 8)) == [range(1), range(1, 2)]
    assert list(packed([3, 4, 1, 9, 2], 8)) == [range(3), range(3, 4), range(4, 5)]
