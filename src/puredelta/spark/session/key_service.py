"""A port of the driver that hands newer storage keys to the workers of a running job.

The token of the user stays in the driver: a worker names a grant, which has keys of one table
only. Without the port, or where it cannot be reached, tasks have the keys of their job's start.
"""

from __future__ import annotations

import secrets
import socketserver
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from puredelta.spark.session.delta_conf import KEY_PORT, PORT_OFF
from puredelta.spark.session.session import is_connect, runs_here, setting_of, settings_of
from puredelta.store.object_store import ObjectStore
from puredelta.worker.renewed_keys import (
    QUESTION_BYTES_MAX,
    Grant,
    Keys,
    asked,
    can_encrypt,
    is_proof,
    sealed,
)

_GRANTS_MAX = 256
_SECONDS = 20
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _Granted:
    secret: bytes = field(repr=False)
    store: ObjectStore = field(repr=False)


class KeyService:
    """Answers workers on one address; `grant` says how they ask."""

    def __init__(self, host: str, bind: str, port: int, *, encrypts: bool) -> None:
        """``host`` is the driver's name for workers, ``port`` 0 any free one."""
        self._host, self._encrypts = host, encrypts
        self._lock = threading.Lock()
        self._grants: OrderedDict[str, _Granted] = OrderedDict()
        self._names: dict[tuple[object, ...], str] = {}
        self._server = _Server((bind, port), self)
        threading.Thread(
            target=self._server.serve_forever, name="puredelta-keys", daemon=True
        ).start()

    def grant(self, store: ObjectStore) -> Grant:
        """Return how workers ask for the keys of a store; the same for the same keys."""
        identity = store.access.identity()
        with self._lock:
            name = self._names.get(identity)
            if name is None or name not in self._grants:
                name = self._names[identity] = secrets.token_hex(16)
                self._grants[name] = _Granted(secrets.token_bytes(32), store)
            self._grants.move_to_end(name)
            while len(self._grants) > _GRANTS_MAX:
                self._grants.popitem(last=False)
                self._names = {i: n for i, n in self._names.items() if n in self._grants}
            port = int(self._server.server_address[1])
            return self._host, port, name, self._grants[name].secret, self._encrypts

    def answer(self, line: bytes) -> bytes:
        """Return the answer to a question; empty: nothing is said to a stranger."""
        try:
            name, nonce, proof = asked(line)
        except ValueError:
            return b""
        with self._lock:
            granted = self._grants.get(name)
        if granted is None or not is_proof(proof, granted.secret, nonce):
            return b""
        granted.store.renew()
        keys: Keys = (granted.store.access.arguments(), granted.store.access.expires_ms)
        return sealed(keys, granted.secret, nonce, encrypts=self._encrypts)

    def close(self) -> None:
        """Stop to answer."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], service: KeyService) -> None:
        self.service = service
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a worker that gets no answer keeps its keys."""


class _Handler(socketserver.StreamRequestHandler):
    timeout = _SECONDS

    def handle(self) -> None:
        """Answer one question."""
        line = self.rfile.readline(QUESTION_BYTES_MAX)
        self.wfile.write(cast("_Server", self.server).service.answer(line))


@dataclass(frozen=True, slots=True)
class _Served:
    context: SparkContext
    service: KeyService | None


_served: _Served | None = None
_lock = threading.Lock()


def serve_keys(spark: SparkSession) -> None:
    """Open the port of this driver, once per application; the port of an older one is closed."""
    global _served  # noqa: PLW0603 - a process has one driver
    if is_connect(spark):
        return
    context = spark.sparkContext
    with _lock:
        if _served is not None and _served.context is context:
            return
        if _served is not None and _served.service is not None:
            _served.service.close()
        _served = _Served(context, _opened(spark))


def grant_of(store: ObjectStore) -> Grant | None:
    """Return how workers ask for newer keys of a store; ``None``: they cannot."""
    with _lock:
        service = None if _served is None else _served.service
    if service is None or store.access.expires_ms is None:
        return None
    return service.grant(store)


def _opened(spark: SparkSession) -> KeyService | None:
    port = KEY_PORT.read(settings_of(spark))
    if port == PORT_OFF:
        return None
    try:
        if runs_here(spark.sparkContext.master):
            return KeyService(_LOOPBACK, _LOOPBACK, port, encrypts=False)
        if not can_encrypt():
            return None
        host = setting_of(spark, "spark.driver.host", "")
        bind = setting_of(spark, "spark.driver.bindAddress", host)
        return KeyService(host, bind, port, encrypts=True) if host else None
    except OSError:  # the port is taken, or may not be opened
        return None
