"""S3 servers on loopback: moto from pip, versitygw and MinIO where they are installed."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from puredelta.store.registry import Storage
from tests.servers.process import LOOPBACK, Server, answers, free_port, program

BUCKET = "tables"
KEY = SECRET = "minioadmin"
UNTIL = "until-"
"""The session token of a key that moto refuses later: milliseconds since 1970 follow."""
WRONG = "wrong"
"""The session token of a key that moto refuses."""
SERVERS = ("moto", "versitygw", "minio")

_MOTO = """
import sys, logging, time
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple, WSGIRequestHandler
WSGIRequestHandler.protocol_version = "HTTP/1.1"
app = DomainDispatcherApplication(create_backend_app)

def with_keys_that_expire(environ, start):
    kind, _, until = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "").partition("-")
    if kind == "wrong" or (kind == "until" and time.time() * 1000 > int(until)):
        start("403 Forbidden", [("Content-Type", "application/xml")])
        return [b"<Error><Code>ExpiredToken</Code><Message>expired</Message></Error>"]
    return app(environ, start)

run_simple(sys.argv[1], int(sys.argv[2]), with_keys_that_expire, threaded=True)
"""


def is_installed(name: str) -> bool:
    if name == "moto":
        return all(importlib.util.find_spec(m) is not None for m in ("moto", "flask_cors"))
    return program(name) is not None


@contextlib.contextmanager
def s3_server(name: str, folder: Path) -> Iterator[str]:
    """Start a server with an empty bucket and yield its endpoint."""
    port = free_port()
    endpoint = f"http://{LOOPBACK}:{port}"
    data, log = folder / "data", folder / f"{name}.log"
    (data / BUCKET).mkdir(parents=True)  # a bucket is a folder
    env: dict[str, str] = {}
    ready = endpoint
    command: list[object]
    if name == "moto":
        command = [sys.executable, "-c", _MOTO, LOOPBACK, port]
        ready += "/moto-api/"
    elif name == "versitygw":
        options = ["--access", KEY, "--secret", SECRET, "--port", f"{LOOPBACK}:{port}", "--quiet"]
        command = [program(name), *options, "posix", data]
    else:
        env = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_BROWSER": "off"}
        env |= {"MINIO_UPDATE": "off", "MINIO_CALLHOME_ENABLE": "off", "CI": "1"}
        addresses = ["--address", f"{LOOPBACK}:{port}"]
        addresses += ["--console-address", f"{LOOPBACK}:{free_port()}"]
        command = [program(name), "server", "--quiet", *addresses, data]
        ready += "/minio/health/ready"
    server = Server(command, log, env)
    try:
        server.wait_until(answers(ready))
        if name == "moto":
            _make_bucket(endpoint)
        yield endpoint
    finally:
        server.stop()


def settings(endpoint: str) -> dict[str, str]:
    """Return Hadoop's settings for a server."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
    }


def storage(endpoint: str) -> Storage:
    return Storage(settings=settings(endpoint))


def _make_bucket(endpoint: str) -> None:
    credential = f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request"
    request = urllib.request.Request(
        f"{endpoint}/{BUCKET}", method="PUT", headers={"Authorization": credential}
    )
    urllib.request.urlopen(request).close()
