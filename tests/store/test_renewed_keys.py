"""Tables that live longer than the token they were opened with."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from puredelta.log.replay.table_log import TableLog
from puredelta.spark.session.data_access import DataPaths
from puredelta.store.registry import Storage

_COMMIT = "\n".join(
    json.dumps(action)
    for action in (
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": '{"type":"struct","fields":[]}',
                "partitionColumns": [],
                "configuration": {},
            }
        },
    )
).encode()
_LISTED = """<?xml version="1.0"?><ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>
<Contents><Key>t/_delta_log/00000000000000000000.json</Key>
<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>"1"</ETag><Size>{size}</Size></Contents>
</ListBucketResult>"""
_EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>"


@dataclass
class Server:
    """A bucket with one table, which takes one token at a time."""

    token: str = "first"
    endpoint: str = ""
    num_refused: int = 0


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("x-amz-security-token") != state.token:
                state.num_refused += 1
                self.send(400, _EXPIRED)
            elif "list-type" in self.path:
                self.send(200, _LISTED.format(size=len(_COMMIT)).encode())
            elif self.path.endswith("0.json"):
                self.send(206 if "Range" in self.headers else 200, _COMMIT)
            else:
                self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")

        def send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.send_header("ETag", '"1"')
            if status == 206:
                self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    for method in ("GET", "PUT", "HEAD", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    state.endpoint = f"http://127.0.0.1:{listener.server_port}"
    yield state
    listener.shutdown()


def session(settings: dict[str, str]) -> Storage:
    """Storage of a session whose settings may change while it runs."""
    return Storage(settings=dict(settings), read_again=lambda: session(settings))


def settings_of(server: Server) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": server.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.session.token": "first",
    }


def test_a_table_takes_the_token_that_the_session_has_by_now(server: Server) -> None:
    settings = settings_of(server)
    log = TableLog.open("s3a://b/t", storage=session(settings))
    assert log.snapshot().version == 0
    server.token = "second"
    with pytest.raises(PermissionError, match=r"has expired \(ExpiredToken\)"):
        log.snapshot()
    settings["fs.s3a.session.token"] = "second"
    assert log.snapshot().version == 0
    assert [f.name for f in log.store.walk("")] == ["00000000000000000000.json"]
    refused = server.num_refused
    assert log.store.read("_delta_log/00000000000000000000.json") == _COMMIT
    assert server.num_refused == refused, "the new client stays"


@pytest.mark.parametrize("request_of", ["walk", "read", "open", "exists", "put"])
def test_every_request_is_made_again(server: Server, request_of: str) -> None:
    settings, path = settings_of(server), "_delta_log/00000000000000000000.json"
    store = session(settings).open("s3a://b/t")
    server.token = settings["fs.s3a.session.token"] = "second"
    match request_of:
        case "walk":
            assert len(list(store.walk(""))) == 1
        case "read":
            assert store.read(path) == _COMMIT
        case "open":
            assert store.open(path).read() == _COMMIT
        case "exists":
            assert store.exists(path)
        case _:
            store.put(path, b"x")
    assert server.num_refused == 1


def test_options_of_one_call_stay(server: Server) -> None:
    settings = settings_of(server)
    token = settings.pop("fs.s3a.session.token")
    storage = session(settings).with_options({"fs.s3a.session.token": token})
    log = TableLog.open("s3a://b/t", storage=storage)
    server.token = "second"
    settings["fs.s3a.session.token"] = "second"
    with pytest.raises(PermissionError):
        log.snapshot()


def test_keys_of_the_environment_are_read_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "first")
    log = TableLog.open("s3://b/t")
    assert log.snapshot().version == 0
    server.token = "second"
    monkeypatch.setenv("AWS_SESSION_TOKEN", "second")
    assert TableLog.open("s3://b/t").snapshot().version == 0
    assert log.snapshot().version == 0


def test_workers_get_the_token_of_the_job(server: Server) -> None:
    settings = settings_of(server)
    paths = DataPaths(session(settings).open)
    for token in ("first", "second"):
        settings["fs.s3a.session.token"] = token
        found = paths.find_all("s3a://b/t", ["a.parquet"], [1])
        assert found is not None
        fields = found[0]
        assert isinstance(fields, tuple)
        assert token.encode() in fields[0][1]
