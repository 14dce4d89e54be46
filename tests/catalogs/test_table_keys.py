"""Storage keys over time, and the CLI on tables of a catalog."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from puredelta.catalogs.answers import vended_keys
from puredelta.catalogs.catalog import KeyUse, VendedKeys
from puredelta.catalogs.table_keys import TableKeys
from puredelta.cli.run import run_command_line
from puredelta.store.location import VendedOptions
from puredelta.store.registry import Storage
from tests.catalogs.managed import Orders, unity
from tests.servers.unity import unity_server

SECRET = "very-secret"


def test_keys_are_asked_for_when_needed_and_again_when_old() -> None:
    now, asked = [0], list[KeyUse]()

    def ask(use: KeyUse) -> Sequence[VendedKeys]:
        asked.append(use)
        options = {"token": f"{use.value}-{len(asked)}"}
        return [VendedKeys(prefix="s3://b/t", options=options, expires_ms=now[0] + 2_000)]

    keys = TableKeys(ask, clock=lambda: now[0])
    assert not asked
    assert keys.options("s3a://b/t/x") == {"token": "READ-1"}
    assert keys.options("s3://b/t") == {"token": "READ-1"}
    now[0] = 2_000
    assert keys.options("s3://b/t") == {"token": "READ-2"}, "it has expired"
    keys.allow_writes()
    assert keys.options("s3://b/t") == {"token": "READ_WRITE-3"}
    keys.allow_writes()
    assert keys.options("s3://b/t") == {"token": "READ_WRITE-3"}
    assert keys.options("s3://other/t") == {}
    assert "READ_WRITE-3" not in repr(keys)


@pytest.mark.parametrize(
    ("key", "location", "more", "path", "authorization"),
    [
        (
            {"azure.sas-token": "sv=2024-11-04&sig=abc%3D"},
            "abfss://c@account.dfs.core.windows.net/t",
            {"endpoint": "{url}/account", "allow_http": "true"},
            "/account/c/t/_delta_log/x.json?sv=2024-11-04&sig=abc%3D",
            None,
        ),
        (
            {"gcs.oauth-token": "ya29.x"},
            "gs://b/t",
            {"base_url": "{url}"},
            "/b/t/_delta_log/x.json",
            "Bearer ya29.x",
        ),
    ],
    ids=["azure", "google"],
)
def test_keys_of_azure_and_google_go_with_the_requests(
    key: dict[str, str],
    location: str,
    more: dict[str, str],
    path: str,
    authorization: str | None,
) -> None:
    row = {"prefix": location, "operation": "READ", "config": key}
    (keys,) = vended_keys({"storage-credentials": [row]}, "t")
    assert not any(text in repr(keys) for text in key.values())
    with recording_server() as (url, asked):
        settings = {name: text.format(url=url) for name, text in more.items()}
        store = Storage().with_options({**keys.options, **settings}).open(location)
        assert store.read("_delta_log/x.json") == b"{}"
    assert asked == [(path, authorization)]


@contextmanager
def recording_server() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """Yield the address of a store that has one object, and what was asked of it."""
    asked: list[tuple[str, str | None]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, question, query = self.path.partition("?")
            asked.append((unquote(path) + question + query, self.headers.get("Authorization")))
            self.send_response(200)
            for name, text in (
                ("Content-Length", "2"),
                ("Last-Modified", "Sun, 29 Nov 2026 08:00:00 GMT"),
                ("ETag", '"1"'),
            ):
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_keys_without_an_expiry_are_renewed_after_a_refusal() -> None:
    now, asked = [0], list[KeyUse]()

    def ask(use: KeyUse) -> Sequence[VendedKeys]:
        asked.append(use)
        return [VendedKeys(prefix="s3://b/t", options={"token": "x"}, expires_ms=None)]

    keys = TableKeys(ask, clock=lambda: now[0])
    keys.options("s3://b/t")
    now[0] = 6_000
    keys.options("s3://b/t")
    assert len(asked) == 2


def test_keys_of_a_clock_that_is_behind_are_not_asked_for_at_each_use() -> None:
    now, asked = [0], list[KeyUse]()

    def ask(use: KeyUse) -> Sequence[VendedKeys]:
        asked.append(use)
        options = {"token": "x"}
        return [VendedKeys(prefix="s3://b/t", options=options, expires_ms=now[0] - 3_600_000)]

    keys = TableKeys(ask, clock=lambda: now[0])
    for _ in range(300):
        assert keys.options("s3://b/t/x") == {"token": "x"}
        now[0] += 10
    assert len(asked) == 3


def test_the_longest_prefix_wins() -> None:
    rows = [
        VendedKeys(prefix=prefix, options={"token": prefix}, expires_ms=None)
        for prefix in ("s3://b/t", "s3://b", "s3://b/t/part", "s3://b/table")
    ]
    keys = TableKeys(lambda _: rows)
    for location, prefix in (
        ("s3://b/t/part/x", "s3://b/t/part"),
        ("s3://b/t/partly", "s3://b/t"),
        ("s3://b/tab", "s3://b"),
    ):
        assert keys.options(location) == {"token": prefix}


def test_keys_go_to_their_bucket_alone() -> None:
    keys = TableKeys(
        lambda _: [
            VendedKeys(
                prefix="s3://b/t",
                options={"access_key_id": "id", "secret_access_key": SECRET},
                expires_ms=None,
            )
        ]
    )
    storage = Storage(
        options={"region": "us-east-1"}, keys_of=lambda at: VendedOptions(keys.options(at))
    )
    inside, elsewhere = storage.open("s3://b/t"), storage.open("s3://other/t")
    assert inside.access.config["secret_access_key"] == SECRET  # type: ignore[attr-defined]
    assert "secret_access_key" not in elsewhere.access.config  # type: ignore[attr-defined]
    bucket = inside.at("s3://b/")
    assert bucket.access.config["secret_access_key"] == SECRET  # type: ignore[attr-defined]
    other = inside.at("s3://other/x")
    assert "secret_access_key" not in other.access.config  # type: ignore[attr-defined]
    assert SECRET not in repr(storage) + repr(keys) + repr(inside.access)  # type: ignore[attr-defined]


def test_the_command_line_takes_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with unity_server(f"file:{tmp_path}", tokens={SECRET}) as server:
        orders = Orders.create(unity(server, SECRET))
        orders.append("a")
        conf = [
            "--conf",
            f"spark.puredelta.catalog.main.uri={server.url}",
            "--conf",
            f"spark.puredelta.catalog.main.token_file={tmp_path / 'token'}",
        ]
        (tmp_path / "token").write_text(SECRET)
        assert run_command_line(["history", "main.sales.orders", "--json", *conf]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert [row["version"] for row in printed] == [1, 0]
        assert run_command_line(["detail", "main.sales.orders", *conf]) == 0
        assert "catalogManaged" in capsys.readouterr().out
        assert run_command_line(["history", "main.sales.missing", *conf]) != 0
        failed = capsys.readouterr()
        assert "Verify the spelling" in failed.err
        (tmp_path / "token").write_text("wrong-token")
        assert run_command_line(["history", "main.sales.orders", *conf]) != 0
        failed = capsys.readouterr()
        assert "wrong-token" not in failed.err + failed.out
