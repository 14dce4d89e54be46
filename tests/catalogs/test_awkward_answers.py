"""Answers that no catalog should give: one error each, without a secret, and in time."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from puredelta.catalogs.catalog import KeyUse, LoadedTable, RatifiedCommit, TableKind
from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.catalogs.tokens import (
    OAuthTokens,
    TokenSource,
    fixed_token,
    token_from_environment,
    token_from_file,
)
from puredelta.catalogs.transport import Answer, HttpRequest, HttpTransport
from puredelta.catalogs.unity import UnityCatalog
from tests.catalogs.managed import ORDERS, no_wait

TOKEN, KEY = "dapi-token-1a2b", "vended-key-3c4d"
TABLE = LoadedTable(name=ORDERS, table_id="u", kind=TableKind.MANAGED, location="s3://b/t")
METADATA = {
    "table-type": "MANAGED",
    "table-uuid": "u",
    "location": "s3://b/t",
    "properties": {"delta.feature.catalogManaged": "supported"},
}
COMMIT = {"version": 1, "timestamp": 1, "file-size": 1, "file-modification-timestamp": 1}


def answer(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {**METADATA, **metadata}, "commits": [], "latest-table-version": 0}


def catalog(*answers: Any, tokens: TokenSource | None = None, **rest: Any) -> UnityCatalog:
    """Return a catalog that gives the answers in turn, the last one again and again."""
    left = [one if isinstance(one, Answer) else Answer(status=200, json=one) for one in answers]

    def send(request: HttpRequest) -> Answer:
        assert request.headers.get("Authorization") != "Bearer "
        return left.pop(0) if len(left) > 1 else left[0]

    known = fixed_token(TOKEN) if tokens is None else tokens
    return UnityCatalog(
        name="main", url="http://127.0.0.1:1", tokens=known, send=send, **{"sleep": no_wait, **rest}
    )


def refused(call: Callable[[], Any]) -> CatalogRequestError:
    with pytest.raises(CatalogRequestError) as failure:
        call()
    error = failure.value
    shown = f"{error} {error!r} {error.details} {traceback.format_exc()}"
    shown += "".join(traceback.format_exception_only(error))
    assert TOKEN not in shown
    assert KEY not in shown
    return error


WRONG: list[Any] = [
    answer(location=f"s3://b/{TOKEN}/../x"),
    answer(location=f"s3://b/t?X-Amz-Signature={KEY}"),
    answer(location=f"s3://AKIA:{KEY}@b/t"),
    answer(location="s3://b:80/t"),
    answer(location="s3://[b/t"),
    answer(location="s3://b/\ud800"),
    answer(location="file:///etc/../t"),
    answer(location="ftp://b/t"),
    answer(**{"table-type": TOKEN}),
    answer(etag={"x": 1}),
    answer(properties={"a": {"b": 1}}),
    {**answer(), "latest-table-version": f"Bearer {TOKEN}"},
    {**answer(), "latest-table-version": float("nan")},
    {**answer(), "commits": 5},
    {**answer(), "commits": "abc"},
    {**answer(), "commits": {"a": 1}},
    {**answer(), "commits": [{**COMMIT, "file-name": TOKEN}]},
    {**answer(), "commits": [{**COMMIT, "file-name": "../00000000000000000001.a.json"}]},
    [],
    "text",
    None,
]


@pytest.mark.parametrize("given", WRONG, ids=range(len(WRONG)))
def test_an_answer_that_cannot_be_used(given: Any) -> None:
    assert refused(lambda: catalog(given).load(ORDERS)).refusal is Refusal.INVALID
    commit = RatifiedCommit(version=1, timestamp_ms=1, file_name="x", size_bytes=1, modified_ms=1)
    written = refused(lambda: catalog(given).ratify(TABLE, commit))
    assert written.refusal is Refusal.NO_ANSWER, "it may be committed"
    assert "Nothing was changed" not in str(written)


def key(**rest: Any) -> dict[str, Any]:
    config = {"s3.access-key-id": "id", "s3.secret-access-key": KEY}
    row = {"prefix": "s3://b/t", "config": config, "expiration-time-ms": None, **rest}
    return {"storage-credentials": [row]}


@pytest.mark.parametrize(
    "given",
    [
        key(**{"expiration-time-ms": KEY}),
        key(**{"expiration-time-ms": 1.5}),
        key(config=[KEY]),
        key(config={"s3.secret-access-key": {"a": KEY}}),
        key(prefix="s3://[x"),
        key(prefix=5),
        {"storage-credentials": 3},
        {"storage-credentials": {KEY: 1}},
    ],
)
def test_keys_that_cannot_be_used(given: Any) -> None:
    refused(lambda: catalog(given).keys(TABLE, KeyUse.READ))


def test_pages_that_cannot_be_used() -> None:
    for given in (
        {"tables": 5},
        {"tables": ["x"]},
        {"tables": [], "next_page_token": {"a": 1}},
        {"tables": [{"name": 5}]},
    ):
        refused(lambda given=given: list(catalog(given).tables("sales")))
    again = {"tables": [{"name": "t"}], "next_page_token": "same"}
    assert len(list(catalog(again).tables("sales"))) == 2, "a token that comes again is the end"


@pytest.mark.parametrize(
    "token", [f"{TOKEN}\nx", f"{TOKEN}\r\nX-Other: 1", f"{TOKEN}ä", f"Bearer {TOKEN}", f"{TOKEN}\0"]
)
def test_a_token_with_other_characters_is_not_sent(token: str, tmp_path: Path) -> None:
    error = refused(lambda: catalog(answer(), tokens=fixed_token(token)).load(ORDERS))
    assert error.refusal is Refusal.NOT_ALLOWED
    path = tmp_path / "token"
    path.write_text(token)
    refused(lambda: catalog(answer(), tokens=token_from_file(str(path))).load(ORDERS))


def test_a_file_with_a_mark_and_a_line_break_has_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"\xef\xbb\xbf" + TOKEN.encode() + b"\r\n")
    assert token_from_file(str(path)).token() == TOKEN


def test_a_token_that_is_missing_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("\n")
    monkeypatch.setenv("PUREDELTA_TEST_TOKEN", " ")
    for tokens in (token_from_file(str(path)), token_from_environment("PUREDELTA_TEST_TOKEN")):
        error = refused(lambda tokens=tokens: catalog(answer(), tokens=tokens).load(ORDERS))
        assert "empty" in str(error)
        assert tokens.secrets() == ()


def test_a_server_says_when_to_ask_again() -> None:
    waits: list[float] = []
    busy = Answer(status=429, json={}, retry_after_s=7.0)
    far = Answer(status=503, json={}, retry_after_s=86_400.0)
    assert catalog(busy, far, answer(), sleep=waits.append).load(ORDERS).table_id == "u"
    assert waits == [7.0, 30.0]


def test_a_token_server_that_is_down_is_asked_again() -> None:
    answers = [
        Answer(status=503, json=None),
        Answer(status=429, json=None),
        Answer(status=200, json={"access_token": TOKEN, "expires_in": "600"}),
    ]
    tokens = OAuthTokens(
        lambda _: answers.pop(0), url="http://127.0.0.1:1", client_id="id", client_secret=KEY
    )
    assert catalog(answer(), tokens=tokens).load(ORDERS).table_id == "u"
    assert not answers
    wrong = OAuthTokens(
        lambda _: Answer(status=200, json={"access_token": f"{KEY}\nx"}),
        url="http://127.0.0.1:1",
        client_id="id",
        client_secret=KEY,
    )
    refused(lambda: catalog(answer(), tokens=wrong).load(ORDERS))


# --- bytes ---------------------------------------------------------------------------------


@contextmanager
def bytes_server(reply: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve every request with bytes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                try:
                    reply(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def load_from(url: str, *, timeout_s: float = 5.0) -> LoadedTable:
    sender = HttpTransport(timeout_s=timeout_s)
    found = UnityCatalog(
        name="main", url=url, tokens=fixed_token(TOKEN), send=sender.send, sleep=no_wait
    )
    return found.load(ORDERS)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    "content",
    [
        HEAD % 100 + b"{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEAD % 200_000 + b"[" * 200_000,
        HEAD % 5002 + b'{"' + b"9" * 5000,
        HEAD % 2 + b"\xff\xfe",
        f"HTTP/9 Bearer {TOKEN}\r\n\r\n".encode(),
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(300)) + b"\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"",
    ],
    ids=range(10),
)
def test_bytes_that_are_no_answer(content: bytes) -> None:
    with bytes_server(lambda connection: connection.sendall(content)) as url:
        refused(lambda: load_from(url))


@pytest.mark.parametrize("head", [HEAD % 1000, b"HTTP/1.1 200 OK\r\nX:", b"HTTP/1.1 500"])
def test_an_answer_byte_by_byte_ends_in_time(head: bytes) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(100):
            connection.sendall(b" ")
            time.sleep(0.02)

    with bytes_server(drip) as url:
        sender, began = HttpTransport(timeout_s=0.3), time.monotonic()
        error = refused(lambda: sender.send(HttpRequest(method="GET", url=url)))
        assert time.monotonic() - began < 1.5
    assert error.refusal is Refusal.NO_ANSWER
    assert "timeout_s" in str(error) or "timed out" in str(error)


def test_an_answer_of_hundred_megabytes_is_not_read() -> None:
    sent = [0]

    def flood(connection: socket.socket) -> None:
        connection.sendall(HEAD % (100 << 20))
        for _ in range(100):
            connection.sendall(b" " * (1 << 20))
            sent[0] += 1

    with bytes_server(flood) as url:
        sender = HttpTransport(timeout_s=30)
        error = refused(lambda: sender.send(HttpRequest(method="GET", url=url)))
    assert "more than" in str(error)
    assert sent[0] < 100


def test_a_whole_answer() -> None:
    content = json.dumps(answer()).encode()
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    to_the_end = b"HTTP/1.1 200 OK\r\n\r\n" + content
    for whole in (HEAD % len(content) + content, chunked % (len(content), content), to_the_end):
        with bytes_server(lambda connection, whole=whole: connection.sendall(whole)) as url:
            assert load_from(url).table_id == "u"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a PEM file with a key and a certificate for ``localhost``, signed by itself."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    path, key = tmp_path / "server.pem", tmp_path / "server.key"
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(key.read_text() + path.read_text())
    return path


def test_a_secure_server(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    content = json.dumps({"tables": ["x" * 100_000]}).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            self.wfile.write(HEAD % len(content) + content)

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Print nothing about a handshake that a client has ended."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    port = server.server_address[1]
    try:
        trusting = HttpTransport(timeout_s=10, ca_file=str(certificate))
        found = trusting.send(HttpRequest(method="GET", url=f"https://localhost:{port}/"))
        assert found.json == json.loads(content)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for sender, host in ((HttpTransport(timeout_s=10), "localhost"), (trusting, "127.0.0.1")):
            wrong = HttpRequest(method="GET", url=f"https://{host}:{port}/", headers=headers)
            assert "certificate" in str(refused(lambda s=sender, w=wrong: s.send(w))).lower()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_a_request_that_was_not_sent_cannot_be_done() -> None:
    """A commit whose requests all ended so is no commit; any other one may be."""
    send = HttpTransport(timeout_s=0.3).send
    here = catalog(answer())
    nowhere = UnityCatalog(
        name="main", url="http://127.0.0.1:1", tokens=fixed_token(TOKEN), send=send
    )
    tokens = OAuthTokens(send, url="http://127.0.0.1:1", client_id="me", client_secret=KEY)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for asked, may_be_done in (
            (nowhere, False),
            (replace(here, tokens=tokens), False),
            (catalog(Answer(status=429, json=None)), False),
            (catalog(Answer(status=503, json=None)), True),
            (replace(nowhere, url=address), True),
        ):
            failure = refused(lambda asked=asked: asked.rename(ORDERS, "new"))
            assert failure.refusal is Refusal.NO_ANSWER
            assert failure.may_be_done is may_be_done
