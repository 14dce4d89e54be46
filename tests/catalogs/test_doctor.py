"""``puredelta doctor --catalog``: one finding with the next step for each thing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from puredelta.cli.run import run_command_line
from tests.catalogs.managed import Orders, unity
from tests.servers.process import free_port
from tests.servers.unity import Table, UnityServer, unity_server

SECRET = "dapi-0123456789abcdef"
PREFIX = "spark.sql.catalog.main"
CLASS = {PREFIX: "io.unitycatalog.spark.UCSingleCatalog"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with unity_server(f"file:{tmp_path}", tokens={SECRET}) as running:
        yield running


def findings(capsys: pytest.CaptureFixture[str], **settings: str) -> tuple[int, list[Any]]:
    conf = [
        part
        for key, text in {**CLASS, **{k.replace("__", "."): v for k, v in settings.items()}}.items()
        for part in ("--conf", f"{key if key.startswith('spark') else f'{PREFIX}.{key}'}={text}")
    ]
    code = run_command_line(["doctor", "--catalog", "main", "--json", *conf])
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    return code, json.loads(printed.out)


def test_a_catalog_in_order(server: UnityServer, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = findings(capsys, uri=server.url, token=SECRET)
    assert (code, found[-1]["check"], found[-1]["severity"]) == (0, "catalog-tables", "info")
    Orders.create(unity(server, SECRET))
    code, found = findings(capsys, uri=server.url, token=SECRET)
    assert code == 0
    assert found[0]["check"] == "catalog-server"
    assert all(row["severity"] in {"ok", "info"} for row in found)


@pytest.mark.parametrize(
    ("settings", "check", "words"),
    [
        ({}, "catalog-settings", "uri"),
        ({"uri": "http://10.0.0.1:8080"}, "catalog-settings", "allow_http"),
        ({"uri": f"http://127.0.0.1:{free_port()}"}, "catalog-server", "did not answer"),
        ({"uri": "SERVER", "token": "wrong"}, "catalog-server", "token"),
        ({"uri": "SERVER/elsewhere", "token": SECRET}, "catalog-server", r"version 0\.5"),
        (
            {"uri": "SERVER", "spark__puredelta__catalog__main__token_env": "PUREDELTA_NO_TOKEN"},
            "catalog-server",
            "PUREDELTA_NO_TOKEN",
        ),
    ],
)
def test_one_finding_for_what_is_wrong(
    server: UnityServer,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    check: str,
    words: str,
) -> None:
    given = {key: text.replace("SERVER", server.url) for key, text in settings.items()}
    code, [found] = findings(capsys, **given)
    assert (code, found["check"], found["severity"]) == (5, check, "error")
    assert words.replace("\\", "") in found["message"]
    assert found["mend"]


def test_a_catalog_without_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["doctor", "--catalog", "main", "--json"]) == 5
    [found] = json.loads(capsys.readouterr().out)
    assert "UCSingleCatalog" in found["mend"]


def test_a_table_in_s3_without_an_endpoint(
    server: UnityServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.tables["main", "sales", "t"] = Table(
        id="1", kind="EXTERNAL", location="s3://b/t", fields=[], properties={}
    )
    server.keys = lambda _: {"s3.access-key-id": "id", "s3.secret-access-key": SECRET}
    server.fail("GET", ".*/credentials", "403", times=9)
    code, found = findings(capsys, uri=server.url, token=SECRET)
    assert code == 5
    assert found[-1]["check"] == "catalog-tables"
