"""Azurite on loopback: Azure's own emulator of its blobs, where it is installed (npm)."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import hashlib
import hmac
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from puredelta.store.registry import Storage
from tests.servers.process import LOOPBACK, Server, answers, free_port, program

CONTAINER = "tables"
ACCOUNT = "devstoreaccount1"
# The emulator's account and key are the same everywhere, and published.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
HOST = f"{ACCOUNT}.dfs.core.windows.net"
ROOT = f"abfss://{CONTAINER}@{HOST}"
_PROGRAM = "azurite-blob"
_VERSION = "2021-12-02"


def is_installed() -> bool:
    return program(_PROGRAM) is not None


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Start a server with an empty container and yield its endpoint."""
    port = free_port()
    command = [program(_PROGRAM), "--blobHost", LOOPBACK, "--blobPort", port, "--silent"]
    command += ["--location", folder / "data", "--skipApiVersionCheck", "--disableTelemetry"]
    server = Server(command, folder / "azurite.log")
    endpoint = f"http://{LOOPBACK}:{port}/{ACCOUNT}"
    try:
        server.wait_until(answers(f"http://{LOOPBACK}:{port}/"))
        _make_container(endpoint)
        yield endpoint
    finally:
        server.stop()


def settings(endpoint: str) -> dict[str, str]:
    """Return the settings of a session: Hadoop's for the key, our own for the address."""
    return {
        f"fs.azure.account.key.{HOST}": KEY,
        "spark.puredelta.storage.azure_endpoint": endpoint,
        "spark.puredelta.storage.allow_http": "true",
    }


def storage(endpoint: str) -> Storage:
    return Storage().with_options(
        {
            f"fs.azure.account.key.{HOST}": KEY,
            "azure_endpoint": endpoint,
            "allow_http": "true",
        }
    )


def _make_container(endpoint: str) -> None:
    """Ask for it in a request that is signed with the shared key."""
    date = email.utils.formatdate(usegmt=True)
    resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n{resource}"
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": _VERSION,
        "Content-Type": "",
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    url = f"{endpoint}/{CONTAINER}?restype=container"
    request = urllib.request.Request(url, method="PUT", data=b"", headers=headers)
    urllib.request.urlopen(request).close()
