"""Storage keys of one table: asked for when they are needed, and again before they expire.

A key belongs to the bucket of its prefix and goes to no other one. Readers have keys that can only
read; the first write asks for others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from puredelta.catalogs.catalog import KeyUse, VendedKeys

_FRESH_MS = 5_000
"""Keys of this age are not asked for again, unless they have expired."""
_JUST_ASKED_MS = 1_000
"""Keys of this age are not asked for again at all: the clocks of two machines differ."""
_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "gcs": "gs"}
_NO_OPTIONS: Mapping[str, str] = {}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class TableKeys:
    """The keys of a table, by prefix and use.

    Examples:
        >>> def ask(use: KeyUse) -> list[VendedKeys]:
        ...     return [VendedKeys(prefix="s3://b/t", options={"token": "x"}, expires_ms=None)]
        >>> keys = TableKeys(ask)
        >>> sorted(keys.options("s3://b/t/part-1.parquet")), sorted(keys.options("s3://other/t"))
        (['token'], [])
    """

    ask: Callable[[KeyUse], Sequence[VendedKeys]] = field(repr=False)
    """Asks the catalog; no keys for a local path."""
    clock: Callable[[], int] = field(default=_now_ms, repr=False)
    use: KeyUse = KeyUse.READ
    _known: Sequence[VendedKeys] = field(default=(), repr=False)
    _asked_ms: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def allow_writes(self) -> None:
        """Ask for keys that can write from now on."""
        with self._lock:
            if self.use is KeyUse.READ:
                self.use, self._asked_ms = KeyUse.READ_WRITE, None

    def options(self, location: str) -> Mapping[str, str]:
        """Return options of the object store for a location; none in another bucket."""
        keys = self.find(location)
        return _NO_OPTIONS if keys is None else keys.options

    def find(self, location: str) -> VendedKeys | None:
        """Return the keys for a location, asking the catalog where needed.

        ``None`` for a location in another bucket. Call it again after a request was refused.
        """
        with self._lock:
            now_ms = self.clock()
            if self._asked_ms is None or self._is_old(now_ms):
                self._known, self._asked_ms = self.ask(self.use), now_ms
            known = self._known
        same = [keys for keys in known if _bucket(keys.prefix) == _bucket(location)]
        return max(
            same,
            key=lambda keys: (_covers(keys.prefix, location), len(keys.prefix)),
            default=None,
        )

    def _is_old(self, now_ms: int) -> bool:
        asked_ms = self._asked_ms or 0
        expires = [keys.expires_ms for keys in self._known if keys.expires_ms is not None]
        has_expired = any(now_ms >= at for at in expires) and now_ms - asked_ms > _JUST_ASKED_MS
        return now_ms - asked_ms > _FRESH_MS or has_expired


def _bucket(location: str) -> tuple[str, str]:
    parts = urlsplit(location)
    return _SCHEMES.get(parts.scheme, parts.scheme), parts.netloc


def _covers(prefix: str, location: str) -> bool:
    """Return whether a location is the prefix, or is below it.

    >>> _covers("s3://b/t", "s3a://b/t/x"), _covers("s3://b/t", "s3://b/table")
    (True, False)
    """
    whole = urlsplit(prefix).path.rstrip("/")
    path = urlsplit(location).path
    return path == whole or path.startswith(f"{whole}/")
