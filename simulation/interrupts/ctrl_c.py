"""One SIGINT for the main thread, some time after a call has begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable


class _Sender(threading.Thread):
    """Sends the signal once, unless it is called off."""

    def __init__(self, delay_s: float) -> None:
        super().__init__(name="ctrl-c", daemon=True)
        self._delay_s = delay_s
        self._off, self._lock = threading.Event(), threading.Lock()
        self.sent = False

    def run(self) -> None:
        if not self._off.wait(self._delay_s):
            with self._lock:
                if not self._off.is_set():
                    self.sent = True
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def call_off(self) -> None:
        with self._lock:
            self._off.set()


def interrupted(call: Callable[[], object], delay_s: float) -> tuple[bool, BaseException | None]:
    """Run a call in the main thread; return whether the signal was sent, and what was raised."""
    sender, raised = _Sender(delay_s), list[BaseException]()
    sender.start()
    _noting(call, raised)
    _noting(sender.call_off, raised)
    while sender.is_alive():  # a join that is interrupted counts as ended in Python 3.11
        _noting(lambda: sender.join(0.01), raised)
    return sender.sent, raised[0] if raised else None


def _noting(call: Callable[[], object], raised: list[BaseException]) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - whatever comes of it
        raised.append(error)
