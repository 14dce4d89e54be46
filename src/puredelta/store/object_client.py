"""One client per bucket and process, and the meaning of its errors.

Every request has a time limit and is repeated with random, growing waits: see `ObjectAccess`.

A failure is one sentence: bucket, endpoint and the setting to change. The store's own answer is
never shown: it names requests and may repeat a token.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import from_url

from puredelta.errors import InvalidRequestError, Message
from puredelta.store import location
from puredelta.store.base import StorageError, StoredFile, UnknownOutcomeError
from puredelta.store.location import CONNECT_SECONDS, ObjectAccess

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


_CODE = re.compile(r"<Code>\s*(\w+)\s*</Code>|\"(?:reason|error|code)\"\s*:\s*\"(\w+)\"")
_STATUS = re.compile(r"status code: (\d{3})|\bstatus: (\d{3})\b")
_REGION = re.compile(
    r"<Region>([a-z0-9-]{3,30})</Region>|expecting '([a-z0-9-]{3,30})'", re.IGNORECASE
)
_URL = re.compile(r"\b(https?://)(?:[^\s/?\",@]*@)?([^\s/?\",@]+)")
_ENDPOINT_KEYS = (
    "endpoint",
    "aws_endpoint",
    "azure_storage_endpoint",
    "azure_endpoint",
    "base_url",
)
_ENDPOINT_VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT",),
    "gs": (),
}
_PROXIES = ("https_proxy", "http_proxy", "all_proxy")

_NO_BUCKET = frozenset(
    {"NoSuchBucket", "ContainerNotFound", "ResourceNotFound", "InvalidBucketName"}
)
_UNKNOWN_KEY = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "AuthenticationFailed",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
        "InvalidSecurity",
        "InvalidToken",
        "authError",
        "invalid_grant",
        "invalid_client",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_OTHER_REGION = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)
_BUSY = frozenset({"SlowDown", "ServerBusy", "TooManyRequests", "ServiceUnavailable"})


class Reason(Enum):
    """Why a request was not answered as it should be."""

    NO_BUCKET = "no bucket"
    NOT_ALLOWED = "not allowed"
    ELSEWHERE = "elsewhere"
    NOT_REACHED = "not reached"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failure:
    """A refusal, in words for a person."""

    reason: Reason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names of one cloud's settings."""

    bucket: str
    endpoint: str
    key: str
    token: str
    region: str = "the endpoint"


_NAMES = {
    "s3": _Names(
        bucket="bucket",
        endpoint="fs.s3a.endpoint (or AWS_ENDPOINT_URL)",
        key="fs.s3a.access.key and fs.s3a.secret.key (or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY)",
        token="fs.s3a.session.token (or AWS_SESSION_TOKEN) and its keys",  # noqa: S106 - a name
        region="fs.s3a.endpoint.region (or AWS_REGION)",
    ),
    "az": _Names(
        bucket="container",
        endpoint="the account in the location (or spark.puredelta.storage.azure_endpoint)",
        key="fs.azure.account.key.<host of the account> (or AZURE_STORAGE_ACCOUNT_KEY)",
        token="fs.azure.sas.fixed.token, or the account's key",  # noqa: S106 - a name
    ),
    "gs": _Names(
        bucket="bucket",
        endpoint="fs.gs.storage.root.url",
        key="fs.gs.auth.service.account.json.keyfile (or GOOGLE_APPLICATION_CREDENTIALS)",
        token="fs.gs.auth.service.account.json.keyfile",  # noqa: S106 - a name
    ),
}


def explained(whole: str, access: ObjectAccess) -> Failure | None:
    """Return what the text of an error means; None if it is none that a setting mends.

    ``whole`` is all that obstore says, with what it calls its debug source.
    """
    names = _NAMES[_cloud(access)]
    bucket = f"the {names.bucket} {access.url}"
    endpoint = _endpoint(access) or _of_cloud(access) or _named_in(whole) or "its cloud"
    code = next((a or b for a, b in _CODE.findall(whole)), "")
    status = next((a or b for a, b in _STATUS.findall(whole)), "")
    if code in _NO_BUCKET or "bucket does not exist" in whole:
        return Failure(
            Reason.NO_BUCKET,
            f"there is no {names.bucket} {access.url} at {endpoint} ({code or 'not found'}): check "
            f"its name, and {names.endpoint}",
        )
    is_silent = status == "400" and "performing HEAD" in whole  # an answer without a body
    if code in _EXPIRED or is_silent:
        may = "may have" if is_silent else "has"
        said = f"{endpoint} says that the token for {bucket} {may} expired ({code or status})"
        return Failure(Reason.NOT_ALLOWED, f"{said}: set a new {names.token}")
    if code == "RequestTimeTooSkewed":
        said = f"{endpoint} refuses {bucket}, since the clock of this machine is wrong ({code})"
        return Failure(Reason.NOT_ALLOWED, f"{said}: set the clock")
    if code in _UNKNOWN_KEY:
        said = f"{endpoint} does not accept the key for {bucket} ({code})"
        return Failure(Reason.NOT_ALLOWED, f"{said}: set {names.key}")
    if code in _OTHER_REGION or "incorrectly configured region" in whole:
        region = next((a or b for a, b in _REGION.findall(whole)), "")
        where = f", {region}" if region else ""
        said = f"{bucket} is in another region than {endpoint} was asked for{where}"
        return Failure(Reason.ELSEWHERE, f"{said}: set {names.region}")
    if status in {"401", "403"}:
        said = f"{endpoint} does not let the key read or write {bucket} ({code or status})"
        return Failure(
            Reason.NOT_ALLOWED, f"{said}: give it the permission, or set another {names.key}"
        )
    if code in _BUSY or status in {"429", "500", "502", "503", "504"}:
        said = f"{endpoint} did not serve {bucket} ({code or status}) although it was asked again"
        return Failure(Reason.OTHER, f"{said}: try again later, or check {names.endpoint}")
    reason = _no_connection(whole, endpoint)
    if reason is not None:
        return Failure(Reason.NOT_REACHED, f"{reason}, for {bucket}: check {names.endpoint}")
    if status:
        said = f"{endpoint} answered {status}{f' ({code})' if code else ''} for {bucket}"
        return Failure(Reason.OTHER, f"{said}: check {names.endpoint}")
    return None


def _no_connection(whole: str, endpoint: str) -> str | None:
    if "dns error" in whole or "failed to lookup address" in whole:
        return f"the host of {endpoint} is not known"
    if "ConnectionRefused" in whole:
        return f"no server answers at {endpoint}"
    if "certificate" in whole.lower():
        return f"the certificate of {endpoint} is not trusted"
    if re.search(r"InvalidContentType|InvalidMessage|HandshakeFailure|UnexpectedEof", whole):
        return f"{endpoint} does not speak TLS (an endpoint without begins with http://)"
    if "kind: Connect" in whole or "TimedOut" in whole or "kind: Timeout" in whole:
        return f"{endpoint} cannot be connected, or did not answer in time"
    return None


def _cloud(access: ObjectAccess) -> str:
    scheme = access.url.partition(":")[0]
    return scheme if scheme in _NAMES else "s3"


def _named_in(whole: str) -> str | None:
    found = _URL.search(whole)
    return None if found is None else found[1] + found[2]


def _endpoint(access: ObjectAccess) -> str | None:
    """Return scheme and host of the endpoint that settings or the environment name."""
    lower = {key.lower(): value for key, value in access.config.items()}
    named = [lower.get(key, "") for key in _ENDPOINT_KEYS]
    named += [os.environ.get(name, "") for name in _ENDPOINT_VARIABLES[_cloud(access)]]
    parts = urlsplit(next((value for value in named if value), ""))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if parts.scheme and host else None


def _of_cloud(access: ObjectAccess) -> str | None:
    """Return the endpoint that obstore takes where none is named, as far as it is certain."""
    config = access.config
    match _cloud(access):
        case "az":
            account = config.get("account_name")
            certain = account is not None and not {"use_emulator", "use_fabric_endpoint"} & set(
                config
            )
            return f"https://{account}.blob.core.windows.net" if certain else None
        case "gs":
            return "https://storage.googleapis.com"
        case _:
            region = config.get("region")
            certain = region is not None and not region.startswith("cn-")
            is_usual = not access.url.endswith("--x-s3") and "s3_express" not in config
            return f"https://s3.{region}.amazonaws.com" if certain and is_usual else None


# --- the first request --------------------------------------------------------------------------

_connected: set[str] = set()
_TRIES = 2


def require_connection(access: ObjectAccess) -> None:
    """Connect once in a process to an endpoint that was named, before the first request.

    obstore repeats requests for minutes, also where no server is: that is for servers that fail
    for a while, not for a host that is misspelt. Behind a proxy nothing is tried.

    Raises:
        StorageError: the host is not known, or nothing answers there.
    """
    endpoint = _endpoint(access)
    if endpoint is None or endpoint in _connected or _has_proxy(access):
        return
    parts = urlsplit(endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    for number in range(1, _TRIES + 1):
        try:
            socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:
            if number < _TRIES:
                continue
            is_unknown = isinstance(error, socket.gaierror | UnicodeError)
            why = "the host of {} is not known" if is_unknown else "no server answers at {}"
            names = _NAMES[_cloud(access)]
            raise StorageError(
                f"{why.format(endpoint)}, for the {names.bucket} {access.url}: check "
                f"{names.endpoint}"
            ) from None
        _connected.add(endpoint)
        return


def _has_proxy(access: ObjectAccess) -> bool:
    named = any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES)
    return named or "proxy_url" in access.client_options
