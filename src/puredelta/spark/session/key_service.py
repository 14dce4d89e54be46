"""A port of the driver that hands newer storage keys to the workers of a running job.

The token of the user stays in the driver: a worker names a grant, which has keys of one table
only. Without the port, or where it cannot be reached, tasks have the keys of their job's start.
"""

from __future__ import annotations

import errno
import logging
import queue
import secrets
import selectors
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from puredelta.spark.session.delta_conf import KEY_PORT, PORT_OFF
from puredelta.spark.session.session import is_connect, runs_here, setting_of, settings_of
from puredelta.store.object_store import ObjectStore
from puredelta.worker.renewed_keys import (
    ANSWER_SECONDS,
    QUESTION_BYTES_MAX,
    Grant,
    Keys,
    asked,
    can_encrypt,
    is_proof,
    sealed,
)

_GRANTS_MAX = 256
_QUESTION_SECONDS = 5
"""From a connection to the end of its question."""
_WAITING_MAX = 256
"""Connections without a proven question; one more closes the oldest of them."""
_PROVEN_MAX = 256
"""Proven questions that wait for a thread."""
_THREADS = 4
_TICK_SECONDS = 0.5
_LOOPBACK = "127.0.0.1"
_PORT_MAX = 65_535
_NOT_OF_THIS_MACHINE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Granted:
    secret: bytes = field(repr=False)
    store: ObjectStore = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question whose proof is right, and where its answer goes."""

    connection: socket.socket
    granted: _Granted
    nonce: str


@dataclass(slots=True)
class _Waiting:
    """A connection before its question is whole."""

    until: float
    received: bytes = b""


class KeyService:
    """Answers workers on one port; `grant` says how they ask.

    One thread reads from all connections. Only a proven question takes one of a few threads more,
    so that connections of strangers cost memory of a fixed size, for seconds.
    """

    def __init__(self, host: str, bind: str, port: int, *, encrypts: bool, tries: int = 1) -> None:
        """``host`` is the driver's name for workers, ``port`` 0 any free one.

        Raises:
            OSError: neither the port nor one of the ``tries`` - 1 ports after it is free.
        """
        self._host, self._encrypts = host, encrypts
        self._lock = threading.Lock()
        self._grants: OrderedDict[str, _Granted] = OrderedDict()
        self._names: dict[tuple[object, ...], str] = {}
        self._proven: queue.Queue[_Question | None] = queue.Queue(_PROVEN_MAX)
        self._waiting: OrderedDict[socket.socket, _Waiting] = OrderedDict()
        self._closing = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._listening = _listening(bind, port, tries)
        self.port = int(self._listening[0].getsockname()[1])
        self._selector = selectors.DefaultSelector()
        for readable in (*self._listening, self._woken):
            self._selector.register(readable, selectors.EVENT_READ)
        self._reader = threading.Thread(target=self._read, name="puredelta-keys", daemon=True)
        self._reader.start()
        for _ in range(_THREADS):
            threading.Thread(target=self._answer, name="puredelta-keys", daemon=True).start()

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
            return self._host, self.port, name, self._grants[name].secret, self._encrypts

    def close(self) -> None:
        """Stop to answer."""
        self._closing.set()
        self._wake.close()
        self._reader.join()

    def _read(self) -> None:
        """Read from every connection until the service is closed."""
        while not self._closing.is_set():
            for key, _ in self._selector.select(_TICK_SECONDS if self._waiting else None):
                found = cast("socket.socket", key.fileobj)
                if found in self._listening:
                    self._accept(found)
                elif found in self._waiting:
                    self._receive(found)
            now = time.monotonic()
            for connection in [c for c, waiting in self._waiting.items() if waiting.until < now]:
                self._forget(connection).close()
        for connection in [*self._waiting]:
            self._forget(connection).close()
        self._selector.close()
        for readable in (*self._listening, self._woken):
            readable.close()
        for _ in range(_THREADS):
            self._proven.put(None)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # it is gone, or this process has too many files
            self._forget_oldest()
            time.sleep(_TICK_SECONDS / 10)
            return
        connection.settimeout(0)
        self._waiting[connection] = _Waiting(time.monotonic() + _QUESTION_SECONDS)
        self._selector.register(connection, selectors.EVENT_READ)
        if len(self._waiting) > _WAITING_MAX:
            self._forget_oldest()

    def _receive(self, connection: socket.socket) -> None:
        waiting = self._waiting[connection]
        try:
            part = connection.recv(QUESTION_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        waiting.received += part
        line, end, _ = waiting.received.partition(b"\n")
        if part and not end and len(line) < QUESTION_BYTES_MAX:
            return
        proven = self._proven_of(line) if end else None
        self._forget(connection)
        if proven is None:
            connection.close()  # nothing is said to a stranger
            return
        try:
            self._proven.put_nowait(_Question(connection, *proven))
        except queue.Full:
            connection.close()

    def _proven_of(self, line: bytes) -> tuple[_Granted, str] | None:
        """Return the grant and the nonce of a question; ``None``: it was not asked by a worker."""
        try:
            name, nonce, proof = asked(line)
        except ValueError:
            return None
        with self._lock:
            granted = self._grants.get(name)
        if granted is None or not is_proof(proof, granted.secret, nonce):
            return None
        return granted, nonce

    def _forget(self, connection: socket.socket) -> socket.socket:
        """Read no more from a connection."""
        self._selector.unregister(connection)
        del self._waiting[connection]
        return connection

    def _forget_oldest(self) -> None:
        for connection in [*self._waiting][:1]:
            self._forget(connection).close()

    def _answer(self) -> None:
        """Answer proven questions, one after the other."""
        while (question := self._proven.get()) is not None:
            with question.connection as connection:
                try:
                    connection.settimeout(ANSWER_SECONDS)
                    connection.sendall(self._sealed(question))
                except Exception as failure:  # noqa: BLE001 - the worker keeps its keys
                    # The text of a failure may repeat what a server said.
                    logger.debug("A worker got no newer keys (%s)", type(failure).__name__)

    def _sealed(self, question: _Question) -> bytes:
        granted = question.granted
        granted.store.renew()
        access = granted.store.access
        keys: Keys = (access.arguments(), access.expires_ms)
        return sealed(keys, granted.secret, question.nonce, encrypts=self._encrypts)


def _listening(bind: str, port: int, tries: int) -> Sequence[socket.socket]:
    """Return sockets that listen on all addresses of a host, on the same port.

    Raises:
        OSError: there is no free port.
    """
    try:
        return _listening_at(bind, port)
    except OSError as failure:
        if failure.errno != errno.EADDRINUSE or tries <= 1 or port >= _PORT_MAX:
            raise
    return _listening(bind, port + 1, tries - 1)


def _listening_at(bind: str, port: int) -> Sequence[socket.socket]:
    opened: list[socket.socket] = []
    unreachable: OSError | None = None
    found = socket.getaddrinfo(bind, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, host in dict.fromkeys((info[0], str(info[4][0])) for info in found):
        try:
            opened.append(socket.create_server((host, port), family=family))
        except OSError as failure:
            if failure.errno in _NOT_OF_THIS_MACHINE:
                unreachable = failure
                continue
            for listener in opened:
                listener.close()
            raise
        port = int(opened[-1].getsockname()[1])
    if not opened:
        raise unreachable or OSError(errno.EADDRNOTAVAIL, "the name has no address")
    for listener in opened:
        listener.settimeout(0)
    return tuple(opened)


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
    is_local = runs_here(spark.sparkContext.master)
    if not is_local and not can_encrypt():
        logger.warning(
            "Workers get no newer storage keys during a job: the driver lacks the package "
            "cryptography, which encrypts them. Install it on the driver and on the workers "
            "(pip install cryptography), or set %s=%s",
            KEY_PORT.key,
            PORT_OFF,
        )
        return None
    host = _LOOPBACK if is_local else _address(setting_of(spark, "spark.driver.host", ""))
    bind = host if is_local else _address(setting_of(spark, "spark.driver.bindAddress", host))
    tries = 1 + int(setting_of(spark, "spark.port.maxRetries", "16")) if port else 1
    try:
        service = KeyService(host, bind, port, encrypts=not is_local, tries=tries)
    except OSError as failure:
        logger.warning(
            "Workers get no newer storage keys during a job: no port can be opened at %s "
            "(%s=%s: %s). Set a free port, or %s",
            bind,
            KEY_PORT.key,
            port,
            failure,
            PORT_OFF,
        )
        return None
    if port not in (0, service.port):
        logger.warning(
            "%s=%s is in use at %s: workers ask for newer storage keys on port %s",
            KEY_PORT.key,
            port,
            bind,
            service.port,
        )
    return service


def _address(host: str) -> str:
    """Return a host without the brackets that Spark's settings have around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")
