"""Requests of WebHDFS: three operations that read, of a name node or of several that stand by.

The name node answers a reading of bytes with the address of a data node, which is followed.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from puredelta.store.base import StorageError

_SECONDS_MAX = 60
_TRIES_MAX = 4
_WAIT_SECONDS = 0.2
_TEXT_MAX = 1_000
_NOT_THE_ACTIVE_ONE = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_REFUSED = frozenset({401, 403})
_KERBEROS = "Kerberos is not spoken here"


class _BusyError(StorageError):
    """Another name node may answer, or this one a little later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebHdfsClient:
    """Asks one of the name nodes of a file system; a plain value, which may be pickled."""

    addresses: Sequence[str]
    """``http://host:port`` of each name node; one of them is active."""
    user: str

    def status(self, path: str) -> Mapping[str, Any]:
        """Return what the name node says of a file or directory."""
        found: Mapping[str, Any] = json.loads(self._ask(path, "GETFILESTATUS"))["FileStatus"]
        return found

    def list(self, path: str) -> Sequence[Mapping[str, Any]]:
        """Return the entries of a directory; a file is one entry without a name."""
        answer = json.loads(self._ask(path, "LISTSTATUS"))
        found: Sequence[Mapping[str, Any]] = answer["FileStatuses"]["FileStatus"]
        return found

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file, all of them by default."""
        if length is None:
            return self._ask(path, "OPEN")
        content = self._ask(path, "OPEN", offset=start, length=length)
        if len(content) != length:
            raise StorageError(f"{path}: {len(content)} bytes came instead of {length}")
        return content

    def _ask(self, path: str, operation: str, **parameters: int) -> bytes:
        """Ask the name nodes in turn, and wait a little after each round."""
        query = urllib.parse.urlencode({"op": operation, "user.name": self.user, **parameters})
        at = f"/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        failed: StorageError | None = None
        for tried in range(_TRIES_MAX):
            for address in self.addresses:
                try:
                    return _answer(f"{address}{at}", f"{address}{path}")
                except _BusyError as busy:  # noqa: PERF203 - a request takes longer
                    failed = busy
            time.sleep(_WAIT_SECONDS * 2**tried)
        raise StorageError(str(failed)) from failed


# A cluster's own machines are not behind the proxy of a company, and Hadoop asks none either.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _answer(url: str, what: str) -> bytes:
    try:
        with _opener.open(url, timeout=_SECONDS_MAX) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        raise _meant(error, what) from None
    except (OSError, http.client.HTTPException) as error:
        raise _BusyError(f"{what}: {type(error).__name__}: {error}"[:_TEXT_MAX]) from error


def _meant(error: urllib.error.HTTPError, what: str) -> OSError:
    """Return what a `puredelta.store.base.Store` raises instead of an answer of HTTP."""
    with error:
        content = error.read(1 << 16)
    try:
        remote = json.loads(content)["RemoteException"]
        name, said = str(remote["exception"]), str(remote["message"]).partition("\n")[0]
    except (ValueError, LookupError, TypeError):
        name, said = f"HTTP {error.code}", str(error.reason)
    text = f"{what}: {name}: {said}"[:_TEXT_MAX]
    if name == "FileNotFoundException":
        return FileNotFoundError(text)
    if name in _NOT_THE_ACTIVE_ONE:
        return _BusyError(text)
    if error.code in _REFUSED:
        negotiates = "Negotiate" in (error.headers.get("WWW-Authenticate") or "")
        return PermissionError(f"{text}. {_KERBEROS}" if negotiates else text)
    return StorageError(text)
