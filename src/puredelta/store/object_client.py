"""One client per bucket and process, and the meaning of its errors.

Every request has a time limit and is repeated with random, growing waits: see `ObjectAccess`.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import obstore
from obstore import exceptions
from obstore.store import from_url

from puredelta.errors import InvalidRequestError, Message
from puredelta.store import location
from puredelta.store.base import StorageError, StoredFile, UnknownOutcomeError
from puredelta.store.failures import Reason, explained, require_connection
from puredelta.store.location import ObjectAccess

_clients: dict[tuple[object, ...], Any] = {}
_lock = threading.Lock()
_CLIENTS_MAX = 64
"""Stores keep their own: a renewed token makes another client, and the oldest one is forgotten."""
_READ_BY_OBSTORE = ("AWS_", "AZURE_", "GOOGLE_")
_DEBUG_PART = "\n\nDebug source"
_SIGNED_QUERY = re.compile(
    r"(\w+://[^\s?\"]+)\?[^\s\"]*(?:sig|signature|token|credential)=[^\s\"]*", re.IGNORECASE
)
_ANSWER = ": <"
"""Where the XML or HTML of an answer begins."""
_TEXT_MAX = 1_000
_NOT_IMPLEMENTED = re.compile(r"status code: 501|NotImplemented")
# What a server answers when it has looked at a request and not done it.
_REFUSED = re.compile(r"status code: 4(?!08|09|29)\d\d")


def client_of(access: ObjectAccess) -> Any:
    """Return the client of a bucket; its connections are shared by all tables in it.

    Raises:
        InvalidRequestError: the options do not fit, or one that is needed is missing.
    """
    identity = (access.identity(), *_of_environment())
    with _lock:
        if identity not in _clients:
            while len(_clients) >= _CLIENTS_MAX:
                del _clients[next(iter(_clients))]
            try:
                _clients[identity] = from_url(**access.arguments())
            except (exceptions.BaseError, OSError, ValueError) as error:
                raise InvalidRequestError(
                    Message.UNSUPPORTED_STORAGE_CLIENT, error=shown(error, access), path=access.url
                ) from None
        return _clients[identity]


def _of_environment() -> Iterator[tuple[str, str]]:
    """Yield what obstore reads of the environment when a client is made: keys may be renewed."""
    return ((k, v) for k, v in sorted(os.environ.items()) if k.upper().startswith(_READ_BY_OBSTORE))


_ASKS_THE_INSTANCE = re.compile(r"//(169\.254\.169\.254|metadata\.google\.internal|metadata)/")
"""Where a machine of a cloud gets its credentials; asked if there are no others."""
_NO_CREDENTIALS = (
    "There are no credentials, and this machine gets none from its cloud. Set those of the store "
    "in Hadoop's settings (fs.s3a.access.key, fs.azure.account.key.ACCOUNT, ...), in the "
    "environment, or as spark.puredelta.storage.* (docs/storage.md). PySpark 4.3 and newer do not "
    "tell a Spark Connect client the secrets of its session: put them into the environment of the "
    "client, or into storage_options (docs/guides/connect.md)"
)


_NOT_ALLOWED = (
    PermissionError,
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
)


class UnsupportedRequestError(StorageError):
    """The store does not have what was asked for, and has done nothing."""


class translated:  # noqa: N801 - as context managers of contextlib are named
    """Raise what a `Store` raises instead of obstore's errors, and keep secrets out of texts.

    With ``writes`` an error that leaves it open whether the object was written is an
    `UnknownOutcomeError`.
    """

    def __init__(self, access: ObjectAccess, what: str, *, writes: bool = False) -> None:
        self._access, self._what, self._writes = access, what, writes

    def __enter__(self) -> None:
        try:
            require_connection(self._access)
        except StorageError as error:
            raise StorageError(f"{self._what}: {error}") from None

    def __exit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        if isinstance(error, exceptions.BaseError | OSError | ValueError):
            raise self._meant(error) from None

    def _meant(self, error: Exception) -> Exception:
        if isinstance(error, StorageError):
            return error
        whole = str(error)
        if _ASKS_THE_INSTANCE.search(whole):
            return PermissionError(f"{self._what}: {shown(error, self._access)}. {_NO_CREDENTIALS}")
        failure = explained(whole, self._access)
        is_missing = isinstance(error, FileNotFoundError)
        has_bucket = failure is None or failure.reason is not Reason.NO_BUCKET
        if is_missing and not self._writes and has_bucket:
            return FileNotFoundError(f"{self._what} is not there")
        said = shown(error, self._access) if failure is None else failure.text
        text = f"{self._what}: {said}"
        if isinstance(error, _NOT_ALLOWED) or (
            failure is not None and failure.reason is Reason.NOT_ALLOWED
        ):
            return PermissionError(text)
        if isinstance(error, exceptions.NotSupportedError) or _NOT_IMPLEMENTED.search(whole):
            return UnsupportedRequestError(text)
        is_refused = is_missing or isinstance(error, ValueError) or _REFUSED.search(whole)
        is_elsewhere = failure is not None and failure.reason is Reason.ELSEWHERE
        if self._writes and not is_refused and not is_elsewhere:
            return UnknownOutcomeError(text)
        return StorageError(text)


def shown(error: Exception, access: ObjectAccess) -> str:
    """Return what an error says, in short and without a secret."""
    text = " ".join(str(error).partition(_DEBUG_PART)[0].partition(_ANSWER)[0].split())
    text = _SIGNED_QUERY.sub(r"\1", text)
    for secret in access.secrets:
        text = text.replace(secret, "***")
    return f"{type(error).__name__}: {text}"[:_TEXT_MAX]


PAGE = 1_000
PAGES_ALONE = 4
"""Pages that are listed one after the other before a listing is parted."""
_LISTERS = 16
_BROKEN_OFF = "list response"
"""What obstore calls the answer to a listing, where it could not read it to its end."""
_WAIT_SECONDS = 0.05
_WAIT_SECONDS_MAX = 5.0
_LEVELS = 3
"""How deep directories are looked for."""

Entry: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


def list_below(
    client: Any, prefix: str, made: Callable[[Entry], T], *, parted: bool
) -> Iterator[T]:
    """Yield what is made of the objects below a prefix, in the order of their keys.

    An object that is called as the prefix is, is left out: it stands for the directory.

    ``parted`` says that a listing may begin at any key; where it may not, each part would read all
    that lies before it.
    """
    last = ""
    for number, page in enumerate(pages_below(client, prefix, None)):
        yield from (made(entry) for entry in page if entry["path"] != prefix)
        last = page[-1]["path"] if page else last
        if parted and number + 1 == PAGES_ALONE:
            starts = _directories_after(client, prefix, last)
            if starts:
                yield from _parts(client, prefix, made, [last, *starts])
                return


def _parts(
    client: Any, prefix: str, made: Callable[[Entry], T], starts: Sequence[str]
) -> Iterator[T]:
    ends = [*starts[1:], None]
    with ThreadPoolExecutor(_LISTERS, "puredelta-list") as listers:
        parts = zip(starts, ends, strict=True)
        listed = listers.map(lambda part: list(map(made, _range(client, prefix, *part))), parts)
        yield from itertools.chain.from_iterable(listed)


def _range(client: Any, prefix: str, after: str, last: str | None) -> Iterator[Entry]:
    """Yield the objects after one key, and up to another."""
    for page in pages_below(client, prefix, after):
        wanted = [entry for entry in page if last is None or entry["path"] <= last]
        yield from wanted
        if len(wanted) < len(page):
            return


def _directories_after(client: Any, prefix: str, key: str) -> list[str]:
    """Return some directories after a key, spread over all of them; none where there are few."""
    level = [prefix]
    for _ in range(_LEVELS):
        listed = (directory_of(client, path) for path in level)
        names = [name.rstrip("/") for found in listed for name in found["common_prefixes"]]
        level = sorted(name for name in names if name > key or key.startswith(f"{name}/"))
        if len(level) >= _LISTERS or not level:
            break
    later = [name for name in level if name > key]
    return later[:: -(-len(later) // _LISTERS) or 1]


def pages_below(client: Any, prefix: str, after: str | None) -> Iterator[Sequence[Entry]]:
    """Yield what lies below a prefix after a key, page by page; goes on where an answer broke off.

    Some stores ignore where a listing is to begin, so the first one may yield earlier keys, too.
    """
    seen, num_failures = "", 0
    while True:
        try:
            start = seen or after
            for page in obstore.list(client, prefix or None, offset=start, chunk_size=PAGE):
                yield [entry for entry in page if entry["path"] > seen] if seen else page
                seen, num_failures = max([seen, *(entry["path"] for entry in page[-1:])]), 0
        except exceptions.BaseError as error:  # noqa: PERF203 - a request takes longer
            num_failures += 1
            _wait_or_raise(error, num_failures)
        else:
            return


def _wait_or_raise(error: exceptions.BaseError, num_failures: int) -> None:
    """Wait before a listing is repeated; obstore repeats requests, but no answer that broke off."""
    if _BROKEN_OFF not in str(error) or num_failures > location.RETRIES_MAX:
        raise error
    longest = min(_WAIT_SECONDS * 2**num_failures, _WAIT_SECONDS_MAX)
    time.sleep(random.uniform(0, longest))  # noqa: S311 - no secret


def directory_of(client: Any, prefix: str) -> Any:
    """Return the objects and the common prefixes right below a prefix; asks again as above."""
    num_failures = 0
    while True:
        try:
            return obstore.list_with_delimiter(client, prefix or None)
        except exceptions.BaseError as error:  # noqa: PERF203 - a request takes longer
            num_failures += 1
            _wait_or_raise(error, num_failures)


def marked(files: Iterator[StoredFile]) -> Iterator[tuple[StoredFile, bool]]:
    """Yield files, and whether each stands for a directory, by the name that follows it."""
    before: StoredFile | None = None
    for file in files:
        if before is not None:
            is_marker = before.size_bytes == 0 and file.path.startswith(f"{before.path}/")
            yield before, is_marker
        before = file
    if before is not None:
        yield before, False
