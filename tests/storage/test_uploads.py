"""Uploads in parts: whatever fails, no part and no object is left."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import pytest

from puredelta.worker.files import UNKNOWN_SIZE, NewFile
from tests.servers import s3
from tests.servers.proxy import Fault, Proxy, Request

_SIZE = 40 << 20
"""Of three parts."""
_names = (f"upload-{number}" for number in itertools.count())


def _begins(request: Request) -> bool:
    return request.verb == "POST" and "uploads" in request.path


def _is_second_part(request: Request) -> bool:
    return "partNumber=2" in request.path


def _ends(request: Request) -> bool:
    return request.verb == "POST" and "uploadId=" in request.path


def _uploads_and_objects(endpoint: str, name: str) -> tuple[int, int]:
    boto3: Any = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": s3.KEY, "aws_secret_access_key": s3.SECRET}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    uploads = client.list_multipart_uploads(Bucket=s3.BUCKET).get("Uploads", [])
    objects = client.list_objects_v2(Bucket=s3.BUCKET, Prefix=name).get("Contents", [])
    return len([one for one in uploads if one["Key"] == name]), len(objects)


@pytest.mark.parametrize(
    ("struck", "fault"),
    [
        (_begins, Fault.REFUSED),
        (_begins, Fault.BUSY),
        *((_is_second_part, fault) for fault in Fault if fault is not Fault.SILENT),
        (_ends, Fault.REFUSED),
        (_ends, Fault.BUSY),
    ],
)
def test_a_failed_upload_leaves_nothing(s3_endpoint: str, struck: Any, fault: Fault) -> None:
    name = next(_names)
    with Proxy(s3_endpoint, lambda request: fault if struck(request) else None) as proxy:
        file = NewFile((_store(proxy.endpoint), name, UNKNOWN_SIZE))
        sink = file.sink()
        assert not isinstance(sink, str)
        sink.write(bytes(_SIZE))
        with pytest.raises(OSError, match=name):
            file.finish()
        file.discard()
        assert any(map(struck, proxy.requests))
    assert _uploads_and_objects(s3_endpoint, name) == (0, 0)


def test_an_upload_in_parts(s3_endpoint: str) -> None:
    name = next(_names)
    file = NewFile((_store(s3_endpoint), name, UNKNOWN_SIZE))
    sink = file.sink()
    assert not isinstance(sink, str)
    sink.write(bytes(_SIZE))
    assert file.finish()[0] == _SIZE
    assert _uploads_and_objects(s3_endpoint, name) == (0, 1)


def _store(endpoint: str) -> tuple[str, bytes]:
    access = s3.storage(endpoint).open(f"s3a://{s3.BUCKET}/x").access  # type: ignore[attr-defined]
    arguments = access.arguments()
    arguments["retry_config"]["max_retries"] = 1
    return arguments.pop("url"), pickle.dumps(arguments)
