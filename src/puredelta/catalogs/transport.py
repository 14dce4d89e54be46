"""HTTP requests of catalogs, by the standard library.

A token goes to the address that the user has named and nowhere else: redirects are not followed,
plain HTTP is for this machine alone unless a setting allows it, and no proxy sees what goes to
this machine.
"""

from __future__ import annotations

import email.message
import http.client
import io
import ipaddress
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias
from urllib.parse import urlsplit

from puredelta.catalogs.failures import CatalogRequestError, Refusal
from puredelta.errors import InvalidRequestError, Message

TIMEOUT_S = 60.0
_ANSWER_BYTES_MAX = 64 << 20
_READ_BYTES = 1 << 16
_SUCCESS = range(200, 300)
_REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request; as text it shows neither headers nor body."""

    method: str
    url: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    """Texts that no error may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of any status."""

    status: int
    json: Any = field(repr=False)
    """None if there is no body, or none that is JSON."""
    text: str = field(default="", repr=False)
    """The body, if it is no JSON."""
    retry_after_s: float | None = None
    """For how long the server wants no other request; None if it does not say."""

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return self.status in _SUCCESS


Send: TypeAlias = Callable[[HttpRequest], Answer]
"""Sends a request once.

Raises:
    CatalogRequestError: no answer came (NO_ANSWER), or a redirect did.
"""


def is_loopback(url: str) -> bool:
    """Return whether a URL is that of this machine.

    >>> [is_loopback(f"http://{host}/") for host in ("localhost:80", "[::1]", "10.0.0.1")]
    [True, True, False]
    """
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_safe_url(url: str, *, setting: str, allow_http: bool) -> str:
    """Return the URL of a server without a slash at its end.

    Raises:
        InvalidRequestError: it is no URL of HTTP, has a user in it, or a token would be readable
            on its way (INVALID_CONF_VALUE).
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    is_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
    if not is_url or "@" in parts.netloc or parts.query or parts.fragment:
        raise _unsafe(setting, "is no address such as https://host:port, without user and query")
    if parts.scheme == "http" and not (allow_http or is_loopback(url)):
        raise _unsafe(
            setting,
            f"is {parts.hostname!r} by plain HTTP, where others could read the token and storage "
            "keys. Use https, or set spark.puredelta.catalog.NAME.allow_http to true",
        )
    return url.strip().rstrip("/")


def _unsafe(setting: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(Message.INVALID_CONF_VALUE_CATALOG, problem=problem, key=setting)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Lets a redirect be the answer: it may lead to another server."""

    def redirect_request(  # noqa: PLR0917 - the signature of the standard library
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: email.message.Message,
        newurl: str,
    ) -> None:
        """Follow no redirect."""


class _InTime(io.RawIOBase):
    """The bytes of an answer, which has a time limit as a whole, even if it comes byte by byte."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._limit_s = sock, sock.gettimeout()
        self._bytes: Any = sock.makefile("rb", buffering=0)
        self._until = time.monotonic() + (self._limit_s or 0.0)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there, or wait for it until the time is over."""
        if self._limit_s is not None:
            left_s = self._until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("the answer took longer than timeout_s")
            self._sock.settimeout(left_s)
        found: int | None = self._bytes.readinto(buffer)
        return found

    def close(self) -> None:
        """Give the socket back."""
        self._bytes.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **rest: Any) -> None:
        super().__init__(sock, *args, **rest)
        self.fp.close()
        self.fp = io.BufferedReader(_InTime(sock))


class _Connection(http.client.HTTPConnection):
    response_class = _Response


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Response


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._trusted = context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req, context=self._trusted)


class HttpTransport:
    """Sends requests with a time limit; connections are not kept."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S, ca_file: str | None = None) -> None:
        self._timeout_s = timeout_s
        try:
            context = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequestError(
                Message.INVALID_CONF_VALUE_CERTIFICATES, error=error, path=ca_file
            ) from None
        handlers = (_NoRedirects, _Http, _Https(context))
        self._remote = urllib.request.build_opener(*handlers)
        direct = urllib.request.ProxyHandler({})
        self._local = urllib.request.build_opener(direct, *handlers)

    def send(self, request: HttpRequest) -> Answer:
        """Send a request once; raises as `Send` says."""
        opener = self._local if is_loopback(request.url) else self._remote
        sent = urllib.request.Request(  # noqa: S310 - `require_safe_url` has looked at the scheme
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
        try:
            with opener.open(sent, timeout=self._timeout_s) as response:
                return _answer(request, response, _body(request, response))
        except urllib.error.HTTPError as refused:
            with refused:
                return _refused(request, refused)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unanswered(request, error) from None


def _refused(request: HttpRequest, refused: urllib.error.HTTPError) -> Answer:
    try:
        return _answer(request, refused, _body(request, refused))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(request, error) from None


def _body(request: HttpRequest, response: Any) -> bytes:
    """Read a body that has a limit in size."""
    parts, size = [], 0
    while part := response.read1(_READ_BYTES):
        parts.append(part)
        size += len(part)
        if size > _ANSWER_BYTES_MAX:
            raise CatalogRequestError(
                f"{_place(request)} answered with more than {_ANSWER_BYTES_MAX} bytes. Check that "
                "the setting uri names a catalog.",
                refusal=Refusal.NO_ANSWER,
            )
    if response.length:  # `read1` does not say that the connection was closed too early
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)


def _answer(request: HttpRequest, response: Any, content: bytes) -> Answer:
    status, waits = response.status, _seconds_of(response.headers.get("Retry-After"))
    if status in _REDIRECTS:
        raise CatalogRequestError(
            f"{_place(request)} answered with a redirect (status {status}), which is not followed: "
            "the token would go to another address. Name the final address in the setting uri.",
            refusal=Refusal.INVALID,
            status=status,
        ) from None
    try:
        value = json.loads(content) if content else None
    except (ValueError, RecursionError):
        text = content[:1000].decode(errors="replace")
        return Answer(status=status, json=None, text=text, retry_after_s=waits)
    return Answer(status=status, json=value, retry_after_s=waits)


def _seconds_of(text: str | None) -> float | None:
    """Return the seconds of a header Retry-After; None for a date, which clocks may see otherwise.

    >>> _seconds_of("2"), _seconds_of("Wed, 21 Oct 2026 07:28:00 GMT"), _seconds_of(None)
    (2.0, None, None)
    """
    return float(text) if text is not None and text.isascii() and text.isdecimal() else None


_BEFORE_SENDING = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
"""Failures of a connection that is not there yet."""


def _unanswered(request: HttpRequest, error: Exception) -> CatalogRequestError:
    reason = getattr(error, "reason", None) or error
    may_be_done = not isinstance(reason, _BEFORE_SENDING)
    outcome = "the request may have been carried out" if may_be_done else "nothing was sent"
    failure = CatalogRequestError(
        f"{_place(request)} did not answer: {without_secrets(str(reason), request.secrets)}. Check "
        f"the setting uri and the network; {outcome}.",
        refusal=Refusal.NO_ANSWER,
    )
    failure.may_be_done = may_be_done
    return failure


def _place(request: HttpRequest) -> str:
    parts = urlsplit(request.url)
    return f"{request.method} {parts.scheme}://{parts.netloc}{parts.path}"


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return a text in which secrets are stars.

    >>> without_secrets("bad token abc", ["abc"])
    'bad token ***'
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text
