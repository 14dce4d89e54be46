"""A proxy before a gRPC server that counts the frames of calls, and disturbs one of them."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass

REQUEST, ANSWER = "request", "answer"
CUT, CUT_AFTER, GONE, SLOW = "cut", "cut after", "gone", "slow"
_PREFACE_BYTES = 24
_HEAD_BYTES = 9
_CALL_FRAMES = frozenset({0, 1})
"""DATA and HEADERS of HTTP/2. The other frames keep a connection alive and count no call."""
_ARRIVED_SECONDS = 0.02
_EVERY_SECONDS = 0.005
_ONCE_SECONDS = 2.0
_QUIET_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one frame.

    CUT closes all connections instead of passing it on, CUT_AFTER once it has arrived. GONE does as
    CUT, and accepts no new ones. SLOW holds every frame for a moment, and this one for seconds.
    """

    kind: str
    direction: str
    at: int


class FrameProxy:
    """A port that passes on to another one; new connections are accepted after most faults."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._fault: Fault | None = None
        self._is_gone = False
        self._last = time.monotonic()
        self.frames: Counter[str] = Counter()
        """The frames of calls in each direction since `arm`."""
        self.num_faults = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, fault: Fault | None) -> None:
        """Count from here, and disturb a frame; first wait for what earlier calls still send."""
        while time.monotonic() - self._last < _QUIET_SECONDS:
            time.sleep(_QUIET_SECONDS / 3)
        with self._lock:
            self.frames.clear()
            self.num_faults = 0
            self._fault = fault

    def disarm(self) -> None:
        """Disturb nothing from now on; the counts stay."""
        with self._lock:
            self._fault, self._is_gone = None, False

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                if self._is_gone:
                    raise ConnectionRefusedError
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open += [client, server]
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for ends in ((REQUEST, client, server), (ANSWER, server, client)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        try:
            with source.makefile("rb") as stream:
                if direction == REQUEST:
                    sink.sendall(stream.read(_PREFACE_BYTES))
                while head := stream.read(_HEAD_BYTES):
                    frame = head + stream.read(int.from_bytes(head[:3], "big"))
                    self._carry(direction, frame, sink)
        except OSError:
            pass  # one side is gone
        finally:
            _close(source, sink)

    def _carry(self, direction: str, frame: bytes, sink: socket.socket) -> None:
        fault, is_met = self._counted(direction) if frame[3] in _CALL_FRAMES else (None, False)
        if fault is not None and fault.kind == SLOW:
            time.sleep(_ONCE_SECONDS if is_met else _EVERY_SECONDS)
        kind = fault.kind if fault is not None and is_met else None
        if kind in {CUT, GONE}:
            self._is_gone = kind == GONE
            self._cut()
            return
        sink.sendall(frame)
        if kind == CUT_AFTER:
            time.sleep(_ARRIVED_SECONDS)
            self._cut()

    def _counted(self, direction: str) -> tuple[Fault | None, bool]:
        """Count a frame; return the fault, and whether this is its frame."""
        with self._lock:
            self._last = time.monotonic()
            self.frames[direction] += 1
            fault = self._fault
            if fault is None:
                return None, False
            is_met = fault.direction == direction and self.frames[direction] == fault.at
            self.num_faults += is_met
            return fault, is_met

    def _cut(self) -> None:
        with self._lock:
            ends, self._open = self._open, []
        _close(*ends)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):  # closed before
            end.shutdown(socket.SHUT_RDWR)
        end.close()
