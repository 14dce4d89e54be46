"""Newer storage keys for the workers of a running job."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from pyspark.sql import SparkSession

from puredelta.spark.session import key_service
from puredelta.spark.session.delta_conf import KEY_PORT
from puredelta.spark.session.key_service import KeyService
from puredelta.spark.write.parquet_job import temporary_settings
from puredelta.store.location import VendedOptions
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage
from puredelta.worker import files, renewed_keys
from puredelta.worker.files import RENEWAL, client_of
from puredelta.worker.renewed_keys import (
    QUESTION_BYTES_MAX,
    Grant,
    ask,
    now_ms,
    opened,
    question,
)

HOST = "127.0.0.1"


class Vended:
    """A store whose keys are other ones at each renewal."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        found = Storage(options={"region": "r"}, keys_of=self._keys).open("s3://bucket/t")
        assert isinstance(found, ObjectStore)
        self.store = found

    def _keys(self, _: str) -> VendedOptions:
        self.number += 1
        keys = {"access_key_id": "id", "secret_access_key": f"secret-{self.number}"}
        return VendedOptions(keys, now_ms() + 60_000)


@pytest.fixture(params=[False, True], ids=["loopback", "encrypted"])
def service(request: pytest.FixtureRequest) -> Iterator[KeyService]:
    if request.param:
        pytest.importorskip("cryptography")
    running = KeyService(HOST, HOST, 0, encrypts=request.param)
    yield running
    running.close()


def _sent(grant: Grant, line: bytes) -> bytes:
    """Return the answer to a line; the service may end the connection while it is sent."""
    found = b""
    with socket.create_connection(grant[:2], timeout=10) as connection:
        try:
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                found += part
        except TimeoutError:
            raise
        except OSError:  # ended, in whichever of these calls
            pass
    return found


def test_a_worker_gets_the_keys_of_now(service: KeyService) -> None:
    vended = Vended()
    grant = service.grant(vended.store)
    assert service.grant(vended.store) == grant, "equal keys are one client of a worker"
    for number in (2, 3):
        found = ask(grant)
        assert found is not None
        arguments, expires_ms = found
        assert arguments["config"]["secret_access_key"] == f"secret-{number}"
        assert expires_ms is not None
        assert expires_ms > now_ms()


def test_a_stranger_gets_nothing(service: KeyService) -> None:
    vended = Vended()
    grant = service.grant(vended.store)
    host, port, name, secret, encrypts = grant
    assert ask((host, port, name, b"x" * 32, encrypts)) is None
    assert ask((host, port, "other", secret, encrypts)) is None
    for line in (b"", b"\n", b"\xff\xfe\n", b"a b\n", b"x" * (2 * QUESTION_BYTES_MAX)):
        assert _sent(grant, line) == b""
    assert vended.number == 1, "no question reached the catalog"
    assert ask(grant) is not None, "it still answers"


def test_an_answer_is_of_one_question(service: KeyService) -> None:
    grant = service.grant(Vended().store)
    _, _, name, secret, encrypts = grant
    answer = _sent(grant, question(name, secret, "one"))
    assert (b"secret-2" in answer) is not encrypts
    assert opened(answer[4:], secret, "one", encrypts=encrypts)
    with pytest.raises(ValueError, match="not of this grant"):
        opened(answer[4:], secret, "two", encrypts=encrypts)


def test_the_client_of_a_worker_is_made_again(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [now_ms()]
    monkeypatch.setattr(files, "now_ms", lambda: clock[0])
    vended = Vended()
    access = vended.store.access
    arguments = access.arguments()
    url = arguments.pop("url")
    grant = service.grant(vended.store)
    fields = (url, pickle.dumps({**arguments, RENEWAL: (access.expires_ms, grant)}))
    client = client_of(fields)
    assert client_of(fields) is client
    assert client.config["secret_access_key"] == "secret-1"
    clock[0] += 41_000
    assert client_of(fields).config["secret_access_key"] == "secret-2"
    service.close()
    clock[0] += 61_000
    newest = client_of(fields)
    assert newest.config["secret_access_key"] == "secret-2", "without an answer it keeps its keys"


def test_keys_of_the_session_have_no_grant() -> None:
    store = Storage(options={"region": "r"}).open("s3://bucket/t")
    assert isinstance(store, ObjectStore)
    assert store.access.expires_ms is None


def test_grants_are_bounded(service: KeyService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_service, "_GRANTS_MAX", 3)
    first = service.grant(Vended().store)
    for number in range(3):
        service.grant(Vended(1_000 + number).store)
    assert ask(first) is None
    assert "secret" not in repr(service)


def test_connections_of_strangers_take_no_thread_and_end(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_service, "_QUESTION_SECONDS", 0.5)
    monkeypatch.setattr(key_service, "_WAITING_MAX", 8)
    grant = service.grant(Vended().store)
    threads = threading.active_count()
    slow = [socket.create_connection(grant[:2], timeout=10) for _ in range(40)]
    try:
        slow[-1].sendall(grant[2].encode())
        assert ask(grant) is not None, "workers are answered beside them"
        assert threading.active_count() <= threads
        for connection in slow:
            assert _rest(connection) == b""
    finally:
        for connection in slow:
            connection.close()


def _rest(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except ConnectionResetError:
        return b""


def test_a_question_that_trickles_in_ends(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_service, "_QUESTION_SECONDS", 0.3)
    _, _, name, secret, _ = grant = service.grant(Vended().store)
    with socket.create_connection(grant[:2], timeout=10) as connection:
        sent = 0
        with suppress(ConnectionError):
            for number in question(name, secret, "one"):
                connection.sendall(bytes([number]))
                sent += 1
                time.sleep(0.05)
    assert sent < 20


def test_a_question_in_parts_is_answered(service: KeyService) -> None:
    _, _, name, secret, encrypts = grant = service.grant(Vended().store)
    line = question(name, secret, "one")
    with socket.create_connection(grant[:2], timeout=10) as connection:
        for part in (line[:9], line[9:-1], line[-1:]):
            connection.sendall(part)
            time.sleep(0.02)
        answer = connection.makefile("rb").read()
    assert opened(answer[4:], secret, "one", encrypts=encrypts)


def test_questions_wait_for_a_catalog_that_hangs_without_more_threads(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    vended = Vended()
    grant = service.grant(vended.store)
    monkeypatch.setattr(ObjectStore, "renew", lambda _: release.wait(10))
    threads = threading.active_count()
    _, _, name, secret, encrypts = grant
    asking = [socket.create_connection(grant[:2], timeout=10) for _ in range(12)]
    for number, connection in enumerate(asking):
        connection.sendall(question(name, secret, str(number)))
    assert _sent(grant, b"garbage\n") == b"", "strangers are still sent away"
    assert threading.active_count() <= threads
    release.set()
    for number, connection in enumerate(asking):
        with connection:
            answer = connection.makefile("rb").read()
        assert opened(answer[4:], secret, str(number), encrypts=encrypts)


def test_a_failure_of_the_catalog_ends_the_question(
    service: KeyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: ObjectStore) -> bool:
        raise RuntimeError("secret-1")

    grant = service.grant(Vended().store)
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "renew", fail)
        for _ in range(10):
            assert ask(grant) is None
    assert ask(grant) is not None


def test_the_next_port_is_taken_as_for_ports_of_spark() -> None:
    first = KeyService(HOST, HOST, 0, encrypts=False)
    try:
        with pytest.raises(OSError, match="in use"):
            KeyService(HOST, HOST, first.port, encrypts=False)
        second = KeyService(HOST, HOST, first.port, encrypts=False, tries=17)
        try:
            assert first.port < second.port <= first.port + 16
            assert ask(second.grant(Vended().store)) is not None
        finally:
            second.close()
    finally:
        first.close()


def test_every_address_of_a_name_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def addresses(*_: object, **__: object) -> list[tuple[object, ...]]:
        kinds = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        found = ("127.0.0.1", "192.0.2.1", "127.0.0.2", "127.0.0.1")
        return [(*kinds, (address, 0)) for address in found]

    with monkeypatch.context() as patch:
        patch.setattr(key_service.socket, "getaddrinfo", addresses)
        running = KeyService("driver", "driver", 0, encrypts=False)
    try:
        _, port, *rest = running.grant(Vended().store)
        for address in ("127.0.0.1", "127.0.0.2"):
            assert ask((address, port, *rest)) is not None  # type: ignore[arg-type]
    finally:
        running.close()


def test_a_port_that_cannot_be_opened_is_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocker = KeyService(HOST, HOST, 0, encrypts=False)
    try:
        with temporary_settings(spark, {KEY_PORT.key: str(blocker.port)}):
            service = key_service._opened(spark)
            assert service is not None
            service.close()
            assert f"{KEY_PORT.key}={blocker.port} is in use" in caplog.text
            assert f"on port {service.port}" in caplog.text
            monkeypatch.setattr(key_service, "_PORT_MAX", blocker.port)
            assert key_service._opened(spark) is None
            assert "no port can be opened at 127.0.0.1" in caplog.text
    finally:
        blocker.close()


def test_a_cluster_without_encryption_is_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(key_service, "runs_here", lambda _: False)
    monkeypatch.setattr(key_service, "can_encrypt", lambda: False)
    assert key_service._opened(spark) is None
    assert "pip install cryptography" in caplog.text


def test_a_driver_that_is_silent_costs_a_worker_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewed_keys, "ANSWER_SECONDS", 0.4)
    with socket.create_server((HOST, 0)) as silent:
        began = time.monotonic()

        def trickle() -> None:
            connection, _ = silent.accept()
            with connection, suppress(OSError):
                connection.sendall((1000).to_bytes(4, "big"))
                while time.monotonic() < began + 5:
                    connection.sendall(b"x")
                    time.sleep(0.05)

        threading.Thread(target=trickle, daemon=True).start()
        assert ask((*silent.getsockname(), "name", b"secret", False)) is None
        assert time.monotonic() - began < 3
