"""What a store's refusal becomes: one sentence with bucket, endpoint and setting, no raw answer."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pytest

from puredelta.store import object_client as failures
from puredelta.store.base import StorageError, Store, UnknownOutcomeError
from puredelta.store.registry import Storage

TOKEN = "a-token-that-nobody-may-see"


@dataclass
class Answer:
    """What the server says to every request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Stub:
    endpoint: str
    answer: Answer

    def storage(self, cloud: str) -> tuple[Storage, str]:
        """Settings and a location in this server, as a cloud of that kind."""
        match cloud:
            case "s3a":
                keys = {"access.key": "an-access-key", "secret.key": "a-secret-key"}
                settings = {f"fs.s3a.{name}": value for name, value in keys.items()}
                settings |= {"fs.s3a.endpoint": self.endpoint, "fs.s3a.session.token": TOKEN}
                settings |= {"fs.s3a.path.style.access": "true"}
                return Storage(settings=settings), "s3a://tables/x"
            case "abfss":
                options: dict[str, object] = {"azure_endpoint": f"{self.endpoint}/account"}
                options |= {"account_key": "YS1zZWNyZXQta2V5", "allow_http": "true"}
                return Storage(options=options), "abfss://tables@account.dfs.core.windows.net/x"
            case _:
                settings = {"fs.gs.storage.root.url": self.endpoint}
                account = {"disable_oauth": True, "gcs_base_url": self.endpoint}
                account |= {"client_email": "", "private_key": "", "private_key_id": ""}
                options = {"service_account_key": json.dumps(account)}
                return Storage(settings=settings, options=options), "gs://tables/x"

    def store(self, cloud: str) -> Store:
        storage, location = self.storage(cloud)
        return storage.open(location)


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    answer = Answer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    for method in ("GET", "PUT", "HEAD", "DELETE", "POST"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Stub(f"http://127.0.0.1:{server.server_port}", answer)
    server.shutdown()


def xml(code: str, message: str = "A long story.", more: str = "") -> bytes:
    ids = "<RequestId>REQUEST-1</RequestId><HostId>HOST-1</HostId>"
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{more}{ids}</Error>".encode()


def json_error(reason: str, status: int) -> bytes:
    return f'{{"error": {{"code": {status}, "errors": [{{"reason": "{reason}"}}]}}}}'.encode()


EXPECTING = "the region 'us-east-1' is wrong; expecting 'eu-west-1'"
CASES = [
    ("s3a", 404, xml("NoSuchBucket"), OSError, "no bucket s3://tables", "fs.s3a.endpoint"),
    ("s3a", 403, xml("InvalidAccessKeyId"), PermissionError, "not accept the key", "access.key"),
    ("s3a", 403, xml("SignatureDoesNotMatch"), PermissionError, "not accept the key", "secret.key"),
    ("s3a", 403, xml("AccessDenied"), PermissionError, "does not let the key", "fs.s3a.access.key"),
    ("s3a", 403, b"", PermissionError, "does not let the key", "fs.s3a.access.key"),
    (
        "s3a",
        400,
        xml("ExpiredToken", more=f"<Token-0>{TOKEN}</Token-0>"),
        PermissionError,
        "token for the bucket s3://tables has expired",
        "fs.s3a.session.token",
    ),
    ("s3a", 403, xml("RequestTimeTooSkewed"), PermissionError, "clock of this machine", "clock"),
    ("s3a", 301, xml("PermanentRedirect"), OSError, "another region", "endpoint.region"),
    (
        "s3a",
        400,
        xml("AuthorizationHeaderMalformed", EXPECTING),
        OSError,
        "was asked for, eu-west-1",
        "endpoint.region",
    ),
    ("s3a", 404, b"<html>REQUEST-1</html>", OSError, "answered 404", "fs.s3a.endpoint"),
    ("abfss", 404, xml("ContainerNotFound"), OSError, "no container az://tables", "account"),
    ("abfss", 403, xml("AuthenticationFailed"), PermissionError, "not accept", "fs.azure.account"),
    ("abfss", 403, xml("AuthorizationFailure"), PermissionError, "does not let", "fs.azure"),
    ("gs", 404, b"The specified bucket does not exist.", OSError, "no bucket gs://", "fs.gs"),
    ("gs", 401, json_error("authError", 401), PermissionError, "not accept", "fs.gs.auth"),
    ("gs", 403, json_error("forbidden", 403), PermissionError, "does not let", "fs.gs.auth"),
]


@pytest.mark.parametrize("writes", [False, True], ids=["list", "put"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[4]}")
def test_a_refusal_is_one_sentence(
    stub: Stub, case: tuple[str, int, bytes, type[OSError], str, str], *, writes: bool
) -> None:
    cloud, status, body, kind, said, setting = case
    stub.answer.status, stub.answer.body = status, body
    store = stub.store(cloud)
    request: Callable[[], object] = partial(list, store.list_from("_delta_log"))
    if writes:
        request = partial(store.put_if_absent, "_delta_log/0.json", b"x")
    with pytest.raises(kind) as caught:
        request()
    text = str(caught.value)
    assert not isinstance(caught.value, UnknownOutcomeError | FileNotFoundError)
    assert said in text
    assert setting in text
    assert stub.endpoint in text
    for secret in (TOKEN, "a-secret-key", "REQUEST-1", "HOST-1", "<", "{"):
        assert secret not in text.replace("<host of the account>", "")


def test_an_object_that_is_not_there_is_no_raw_answer(stub: Stub) -> None:
    stub.answer.status, stub.answer.body = 404, xml("NoSuchKey")
    with pytest.raises(FileNotFoundError, match=r"^s3a://tables/x/a is not there$"):
        stub.store("s3a").read("a")


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("http://127.0.0.1:9", "no server answers at http://127.0.0.1:9"),
        ("http://no-such-host.invalid", "the host of http://no-such-host.invalid is not known"),
        ("http://" + "a" * 70 + ".invalid", "is not known"),
    ],
)
def test_a_host_that_is_not_there_is_found_soon(endpoint: str, said: str) -> None:
    """Nothing was sent, so that a write is known not to have happened."""
    store = Stub(endpoint, Answer()).store("s3a")
    started = time.monotonic()
    for write in (False, True):
        with pytest.raises(StorageError, match=f"{said}.*fs.s3a.endpoint") as caught:
            store.put_if_absent("a", b"") if write else store.read("a")
        assert not isinstance(caught.value, UnknownOutcomeError)
    assert time.monotonic() - started < 15


@pytest.mark.thorough
def test_an_endpoint_without_tls_is_named(stub: Stub) -> None:
    secure = Stub(stub.endpoint.replace("http:", "https:"), stub.answer)
    with pytest.raises(StorageError, match=r"https://127.* does not speak TLS .*begins with http"):
        secure.store("s3a").read("a")


def test_an_endpoint_is_connected_once(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.answer.status, stub.answer.body = 200, b"content"
    stub.store("s3a").read("a")
    monkeypatch.setattr(failures.socket, "create_connection", None)
    assert stub.store("s3a").read("a") == b"content"


def test_nothing_is_connected_beside_a_proxy(stub: Stub) -> None:
    storage, location = Stub("http://no-such-host.invalid", stub.answer).storage("s3a")
    host, port = stub.endpoint.removeprefix("http://").split(":")
    proxied = storage.with_options({"fs.s3a.proxy.host": host, "fs.s3a.proxy.port": port})
    stub.answer.status, stub.answer.body = 200, b"by a proxy"
    assert proxied.open(location).read("a") == b"by a proxy"


def azure_blob(name: str, kind: str, size: int) -> str:
    times = "".join(
        f"<{tag}>Fri, 20 Nov 2026 10:00:00 GMT</{tag}>"
        for tag in ("Creation-Time", "Last-Modified")
    )
    more = f"<Etag>0x1</Etag><ResourceType>{kind}</ResourceType><Content-Length>{size}"
    more += "</Content-Length><Content-Type>application/octet-stream</Content-Type>"
    return f"<Blob><Name>x/{name}</Name><Properties>{times}{more}</Properties></Blob>"


def test_a_directory_of_a_hierarchical_namespace_is_no_empty_file(stub: Stub) -> None:
    """Azure lists directories as blobs without bytes, also those with a dot in their name."""
    blobs = [("v=1.5", "directory", 0), ("v=1.5/a.parquet", "file", 9), ("gone.d", "directory", 0)]
    listed = "".join(azure_blob(*blob) for blob in blobs)
    answer = f"<EnumerationResults><Blobs>{listed}</Blobs><NextMarker/></EnumerationResults>"
    stub.answer.status, stub.answer.body = 200, answer.encode()
    assert [file.path for file in stub.store("abfss").walk("")] == ["v=1.5/a.parquet"]
