"""The Python data source on tables in object stores: its process knows no session."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import InputPartition

from puredelta.activation.data_source import STORAGE_OPTION, DeltaSource
from puredelta.errors import DeltaError
from puredelta.store.base import StorageError
from puredelta.store.registry import Storage
from tests.log.log_files import METADATA, PROTOCOL
from tests.servers import s3

ROOT = f"s3a://{s3.BUCKET}/t"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not s3.is_installed("moto"):
        pytest.skip("moto[server] is not installed")
    with s3.s3_server("moto", tmp_path_factory.mktemp("s3")) as started:
        _make_table(s3.storage(started))
        yield started


def _make_table(storage: Storage) -> None:
    store, content = storage.open(ROOT), io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3]}), content)
    store.put("p=x/a.parquet", content.getvalue())
    file = {
        "path": "p=x/a.parquet",
        "partitionValues": {"p": "x"},
        "size": len(content.getvalue()),
        "modificationTime": 1,
        "dataChange": True,
    }
    actions = [PROTOCOL, METADATA, {"add": file}]
    text = "\n".join(json.dumps(action) for action in actions)
    store.put("_delta_log/00000000000000000000.json", text.encode())


def _rows(options: dict[str, Any]) -> list[dict[str, Any]]:
    source = DeltaSource(options)
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))  # type: ignore[arg-type]
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    assert all(isinstance(p, InputPartition) for p in partitions)
    assert s3.SECRET.encode() not in pickle.dumps(partitions), "once, not per file"
    return [row for p in partitions for batch in reader.read(p) for row in batch.to_pylist()]


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_rows_are_read_with_the_options_of_the_reader(endpoint: str, scheme: str) -> None:
    path = ROOT.replace("s3a", scheme)
    rows = [{"id": n, "p": "x"} for n in (1, 2, 3)]
    assert _rows({"path": path, **s3.settings(endpoint)}) == rows
    packed = s3.storage(endpoint).packed()
    assert _rows({"path": path, STORAGE_OPTION: packed}) == rows


def test_without_options_the_environment_counts(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("puredelta.store.location.RETRIES_MAX", 0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with pytest.raises((StorageError, DeltaError), match="tables"):
        _rows({"path": ROOT})
