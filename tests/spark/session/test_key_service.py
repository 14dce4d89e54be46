"""Newer storage keys for the workers of a running job."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator

import pytest

from puredelta.spark.session import key_service
from puredelta.spark.session.key_service import KeyService
from puredelta.store.location import VendedOptions
from puredelta.store.object_store import ObjectStore
from puredelta.store.registry import Storage
from puredelta.worker import files
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
    found = b""
    with socket.create_connection(grant[:2], timeout=10) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        try:
            while part := connection.recv(65_536):
                found += part
        except ConnectionResetError:
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
