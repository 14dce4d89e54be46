"""WebHDFS against a server that answers as a name node and a data node do."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from puredelta.errors import ErrorCode, InvalidRequestError, UnsupportedError
from puredelta.store.base import StorageError, Store
from puredelta.store.registry import Storage
from puredelta.store.web_hdfs import WebHdfs, WebHdfsClient, current_user
from tests.servers.process import LOOPBACK

FILES = {
    "/lake/t 1%20/_delta_log/00000000000000000000.json": b"{}",
    "/lake/t 1%20/_delta_log/.tmp": b"",
    "/lake/t 1%20/p=a%2Fb/x#1?.parquet": b"0123456789",
    "/lake/t 1%20/empty": b"",
}


class _Handler(BaseHTTPRequestHandler):
    """A name node at /webhdfs/v1, and a data node at /data."""

    protocol_version = "HTTP/1.1"
    standby_answers = 0
    users: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        path = unquote(parts.path.removeprefix("/webhdfs/v1").removeprefix("/data"))
        type(self).users.add(query["user.name"])
        if parts.path.startswith("/data"):
            start = int(query.get("offset", 0))
            content = FILES[path][start:]
            self._answer(200, content[: int(query.get("length", len(content)))])
        elif type(self).standby_answers > 0:
            type(self).standby_answers -= 1
            self._refuse(403, "StandbyException", "not the active one")
        elif path == "/secret":
            self._refuse(403, "AccessControlException", "Permission denied")
        elif path == "/kerberos":
            self._answer(401, b"<html>", {"WWW-Authenticate": "Negotiate"})
        elif not any(name == path or name.startswith(f"{path}/") for name in FILES):
            self._refuse(404, "FileNotFoundException", f"{path} does not exist")
        elif query["op"] == "OPEN":
            host = self.headers["Host"]
            target = self.path.replace("/webhdfs/v1", f"http://{host}/data", 1)
            self._answer(307, b"", {"Location": target})
        elif query["op"] == "GETFILESTATUS":
            self._answer(200, json.dumps({"FileStatus": _status(path, "")}).encode())
        else:
            names = {
                n.removeprefix(path).lstrip("/").partition("/")[0]
                for n in FILES
                if n.startswith(path)
            }
            found = [_status(f"{path}/{name}".rstrip("/"), name) for name in sorted(names)]
            self._answer(200, json.dumps({"FileStatuses": {"FileStatus": found}}).encode())

    def _refuse(self, status: int, name: str, message: str) -> None:
        remote = {"exception": name, "message": message}
        self._answer(status, json.dumps({"RemoteException": remote}).encode())

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _status(path: str, name: str) -> dict[str, object]:
    is_file = path in FILES
    return {
        "pathSuffix": name,
        "type": "FILE" if is_file else "DIRECTORY",
        "length": len(FILES.get(path, b"")),
        "modificationTime": 5,
    }


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{LOOPBACK}:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def opened(address: str, location: str = "hdfs://name-node:8020/lake/t 1%20", **more: str) -> Store:
    settings = {"dfs.namenode.http-address": address, **more}
    systems = WebHdfs(settings=settings, user="somebody")
    return Storage(file_systems=pickle.loads(pickle.dumps(systems))).open(location)


def test_a_table_is_read(address: str) -> None:
    store = opened(address)
    assert store.root_uri == "hdfs://name-node:8020/lake/t 1%20"
    commit = "_delta_log/00000000000000000000.json"
    assert [f.path for f in store.list_from("_delta_log", "0")] == [commit]
    assert list(store.list_from("_delta_log", "1")) == list(store.list_from("absent")) == []
    assert list(store.list_from("empty")) == []
    assert {f"/lake/t 1%20/{f.path}" for f in store.walk("")} == set(FILES)
    data = "p=a%2Fb/x#1?.parquet"
    wanted = store.inventory("", is_wanted=lambda path: not path.startswith("_"))
    assert [f.path for f in wanted] == ["empty", data]
    assert (store.read(data), store.read("empty")) == (b"0123456789", b"")
    assert store.read_end(data, 3) == (b"789", 10)
    assert store.read_end("empty", 3) == (b"", 0)
    with store.open(data) as file:
        file.seek(4)
        assert file.read(2) == b"45"
    ahead = store.read_ahead(list(store.walk("")))
    assert ahead.read(data) == b"0123456789"
    assert (store.exists("p=a%2Fb"), store.exists("x")) == (True, False)
    assert _Handler.users == {"somebody"}


def test_what_cannot_be_read_is_told_apart(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puredelta.store.web_hdfs._WAIT_SECONDS", 0)
    with pytest.raises(FileNotFoundError, match="absent"):
        opened(address).read("absent")
    with pytest.raises(PermissionError, match="Permission denied"):
        opened(address, "hdfs://n/").read("secret")
    with pytest.raises(PermissionError, match="Kerberos"):
        opened(address, "hdfs://n/").read("kerberos")
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1"):
        opened("127.0.0.1:1").read("empty")
    with pytest.raises(ValueError, match="below the root"):
        opened(address).read("../x")


def test_of_several_name_nodes_the_active_one_answers(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("puredelta.store.web_hdfs._WAIT_SECONDS", 0)
    monkeypatch.setattr(_Handler, "standby_answers", 2)
    several = {
        "dfs.ha.namenodes.lake": "A,b",
        "dfs.namenode.http-address.lake.a": "127.0.0.1:1",
        "dfs.namenode.http-address.lake.b": address,
    }
    assert opened(address, "hdfs://lake/lake/t 1%20", **several).read("empty") == b""


def test_nothing_is_written(address: str) -> None:
    store = opened(address)
    writes = (
        store.name_rule,
        lambda: store.put_if_absent("a", b""),
        lambda: store.put("a", b""),
        lambda: store.delete("empty"),
        lambda: store.delete_tree("p"),
    )
    for write in writes:
        with pytest.raises(UnsupportedError, match="only be read") as caught:
            write()
        assert caught.value.code is ErrorCode.UNSUPPORTED_STORAGE


def test_a_location_names_its_name_node() -> None:
    with pytest.raises(InvalidRequestError, match="name node"):
        WebHdfs(user="u").open("hdfs:///t", open_at=lambda _: pytest.fail("opened"))
    assert not WebHdfs(user="u").has_scheme("viewfs")


def test_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_USER", "b")
    assert current_user() == "b"
    monkeypatch.setenv("HADOOP_USER_NAME", "a")
    assert current_user() == "a"


def test_fewer_bytes_than_asked_for_are_an_error(address: str) -> None:
    client = WebHdfsClient(addresses=(f"http://{address}",), user="somebody")
    with pytest.raises(StorageError, match="10 bytes came instead of 11"):
        client.read("/lake/t 1%20/p=a%2Fb/x#1?.parquet", 0, 11)
