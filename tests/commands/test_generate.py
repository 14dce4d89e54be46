"""Symlink manifests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from puredelta.commands.generate import generate
from puredelta.errors import DeltaError, ErrorCode
from puredelta.protocol.actions.actions import DeletionVectorDescriptor
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
