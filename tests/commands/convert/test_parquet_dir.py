"""C-20, C-21, C-23, C-24: which files are data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from puredelta.commands.convert.listing import is_visible, list_data_files
from puredelta.errors import CorruptTableError, InvalidRequestError, TableNotFoundError
from puredelta.store.local import LocalStore
from tests.faults import MemoryStore

ROOT = "file:/t"


def store_with(*paths: str) -> MemoryStore:
    store = MemoryStore(ROOT)
    for path in paths:
        store.put(path, b"x")
    return store


def names(store: MemoryStore, **options: bool) -> list[str]:
    return [f.path for f in list_data_files(store, **options)]


@pytest.mark.parametrize(
    ("path", "visible"),
    [
        ("part-0.parquet", True),
        ("part-0", True),
        ("a/b/part-0.parq", True),
        ("_SUCCESS", False),
        (".part-0.parquet.crc", False),
        ("_k=1", False),
        ("_k=1/part-0", True),
        (".k=1/_j=2/part-0", True),
        ("k=1/_hidden/part-0", False),
        ("k=1/_hidden/j=2/part-0", False),
        ("_temporary/0/part-0", False),
        ("_delta_log/0.json", False),
        ("_change_data/cdc-0.parquet", False),
        ("k=1/_part-0.parquet", False),
    ],
)
def test_c_23_hidden_names(path: str, visible: bool) -> None:
    assert is_visible(path) is visible


def test_w_28a_files_come_in_the_order_of_their_paths() -> None:
    assert names(store_with("b", "a/z", "_SUCCESS", "a/y", "c.x/1")) == ["a/y", "a/z", "b", "c.x/1"]


def test_no_data_file(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(InvalidRequestError) as refused:
        list_data_files(LocalStore(tmp_path))
    assert refused.value.getErrorClass() == "DELTA_EMPTY_DIRECTORY"
    assert f"No file found in the directory: file:{tmp_path}" in refused.value.message


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=r"absent doesn't exist"):
        list_data_files(LocalStore(tmp_path / "absent"))


# --- the log of a streaming sink --------------------------------------------------------------


def sink_entry(path: str, *, size: int = 1, action: str = "add") -> str:
    return json.dumps(
        {
            "path": f"file:///t/{path}",
            "size": size,
            "isDir": False,
            "modificationTime": 5,
            "blockReplication": 1,
            "blockSize": 1,
            "action": action,
        }
    )


def sink_batch(store: MemoryStore, name: str, *entries: str, version: str = "v1") -> None:
    store.put(f"_spark_metadata/{name}", "\n".join([version, *entries]).encode())


def test_c_21_only_committed_files_of_a_sink_are_data() -> None:
    store = store_with("a", "b%20c", "uncommitted")
    sink_batch(store, "0", sink_entry("a", size=7))
    sink_batch(store, "1", sink_entry("b%2520c"))
    found = list_data_files(store)
    assert [(f.path, f.size_bytes, f.modified_ms) for f in found] == [("a", 7, 5), ("b%20c", 1, 5)]


def test_c_20_the_sink_log_can_be_ignored() -> None:
    store = store_with("a", "uncommitted")
    sink_batch(store, "0", sink_entry("a"))
    assert names(store, use_metadata_log=False) == ["a", "uncommitted"]


def test_the_newest_compacted_batch_replaces_those_before() -> None:
    store = store_with("a", "b", "c", "d")
    sink_batch(store, "8", sink_entry("gone"))
    sink_batch(store, "9.compact", sink_entry("a"), sink_entry("b"))
    sink_batch(store, "10", sink_entry("b", action="delete"), sink_entry("c"))
    assert names(store) == ["a", "c"]


@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        ({"0": "v1", "2": "v1"}, "batch 1 of 0 to 2 is missing"),
        ({"1": "v1"}, "batch 0 of 0 to 1 is missing"),
        ({"0": "v9"}, "batch 0 has version 'v9'"),
        ({"0": "v1\n{"}, "batch 0 is not JSON"),
        ({"0": "v1\n{}"}, "an entry lacks 'path'"),
        ({"0": "v1\n" + sink_entry("../other/a")}, "lies outside of it"),
    ],
)
def test_a_broken_sink_log_is_refused_with_the_way_out(
    batches: dict[str, str], problem: str
) -> None:
    store = store_with("a")
    for name, text in batches.items():
        store.put(f"_spark_metadata/{name}", text.encode())
    with pytest.raises(CorruptTableError) as refused:
        list_data_files(store)
    assert problem in refused.value.message
    assert "spark.databricks.delta.convert.useMetadataLog" in refused.value.message
