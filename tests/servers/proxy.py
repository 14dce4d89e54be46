"""A TCP proxy that counts HTTP requests and breaks those that a test chooses."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from typing_extensions import Self

from tests.servers.process import LOOPBACK

_HEAD = re.compile(rb"^(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP/1\.[01]\r\n")
_SLOW_DOWN = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Request(NamedTuple):
    verb: str
    path: str


class Fault(Enum):
    """What happens to one request."""

    REFUSED = "the server never sees it"
    LOST = "the server does it, and the client never learns"
    BUSY = "it is answered with 503 and not done"
    HALF = "it breaks off in the middle"
    CUT = "the server does it, and the answer breaks off in the middle"
    SILENT = "the server does it, and no answer comes while the client waits"


QUICK = tuple(fault for fault in Fault if fault is not Fault.SILENT)
"""Those that a client notices before its patience ends."""


class Proxy:
    """Passes bytes on; ``fault`` is asked for each request. TLS hides everything."""

    def __init__(
        self,
        endpoint: str,
        fault: Callable[[Request], Fault | None] = lambda _: None,
        *,
        delay_seconds: float = 0.0,
    ) -> None:
        """Each answer is held back for ``delay_seconds``; what follows its beginning is not."""
        host, _, port = endpoint.rpartition("//")[2].partition(":")
        self._target = host, int(port)
        self.fault, self._delay_seconds = fault, delay_seconds
        self.requests: list[Request] = []
        self.answered_bytes = 0
        """Of all answers, with their headers."""
        self._started = threading.Event()
        self.endpoint = ""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, LOOPBACK, 0)
        port = server.sockets[0].getsockname()[1]
        self.endpoint = f"http://{LOOPBACK}:{port}"
        self._started.set()
        await self._stop.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        state = _Connection()
        pumps = [
            asyncio.create_task(self._requests(reader, writer, far_writer, state)),
            asyncio.create_task(self._answers(far_reader, writer, state)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            writer.close()
            far_writer.close()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_writer: asyncio.StreamWriter,
        state: _Connection,
    ) -> None:
        while data := await reader.read(1 << 16):
            head = _HEAD.match(data)
            if head is not None:
                request = Request(head[1].decode(), head[2].decode())
                self.requests.append(request)
                state.fault, state.is_asked = self.fault(request), True
                if state.fault is Fault.REFUSED:
                    return
                if state.fault is Fault.BUSY:
                    writer.write(_SLOW_DOWN)
                    await writer.drain()
                    return
                if state.fault is Fault.HALF:
                    far_writer.write(data[: len(data) // 2])
                    await far_writer.drain()
                    return
            far_writer.write(data)
            await far_writer.drain()

    async def _answers(
        self,
        far_reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        state: _Connection,
    ) -> None:
        while data := await far_reader.read(1 << 16):
            self.answered_bytes += len(data)
            if state.fault is Fault.LOST:
                return
            if state.fault is Fault.SILENT:
                continue
            if state.fault is Fault.CUT:
                writer.write(data[: len(data) // 2])
                await writer.drain()
                return
            if state.is_asked and self._delay_seconds:
                await asyncio.sleep(self._delay_seconds)
            state.is_asked = False
            writer.write(data)
            await writer.drain()


class _Connection:
    fault: Fault | None = None
    is_asked: bool = False
    """Whether no part of the answer has come."""
