"""Tokens for requests: fixed, from a file or the environment, from a function, or by OAuth.

A token is asked for at each request, so that a file or a variable that changes is followed. No
token and no secret is part of any text that this module makes.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from puredelta.catalogs.failures import CatalogRequestError, Refusal, refusal_of
from puredelta.catalogs.transport import HttpRequest, Send

_RENEWED_BEFORE_S = 60.0
_LIFETIME_S = 3600.0
"""Of a token whose server does not say how long it lives."""


class TokenSource(Protocol):
    """The origin of tokens."""

    def token(self) -> str | None:
        """Return the token of now; None where requests go without one."""

    def renew(self) -> bool:
        """Forget a token that was refused; return whether another one may follow."""

    def secrets(self) -> Sequence[str]:
        """Return the texts that no message may show, as far as they are known without a request."""


def _whole(text: str) -> str:
    """Return a token without the line break of a file.

    Raises:
        CatalogRequestError: it has a character that no token has, such as a space.
    """
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CatalogRequestError(
            "The token of the catalog has a character that no token has, such as a space or a line "
            "break, and was not sent. Let the setting, file or variable have the token alone, "
            "without the word Bearer.",
            refusal=Refusal.NOT_ALLOWED,
        )
    return token


@dataclass(frozen=True, slots=True)
class TokenFunction:
    """Tokens from a function: of a fixed text, a file, a variable, or the user's own."""

    read: Callable[[], str | None] = field(repr=False)

    def token(self) -> str | None:
        """Return what the function says now, without the line break of a file."""
        text = self.read()
        return None if text is None else _whole(text) or None

    def renew(self) -> bool:
        """Return whether asking again may help: never, because each request asks."""
        return False

    def secrets(self) -> Sequence[str]:
        """Return the token of now."""
        try:
            return tuple(filter(None, (self.token(),)))
        except CatalogRequestError:
            return ()


def fixed_token(text: str | None) -> TokenFunction:
    """Return the source of a token that is known.

    >>> fixed_token("secret")
    TokenFunction()
    """
    return TokenFunction(lambda: text)


def token_from_file(path: str) -> TokenFunction:
    """Return the source of a token in a file, which is read at each request."""

    def read() -> str:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogRequestError(
                f"The token file {path} cannot be read: {type(error).__name__}. Check the setting "
                "token_file and the permissions of the file.",
                refusal=Refusal.NOT_ALLOWED,
                path=path,
            ) from None
        if not text.strip():
            raise CatalogRequestError(
                f"The token file {path} is empty. Put the token into it, or remove the setting "
                "token_file.",
                refusal=Refusal.NOT_ALLOWED,
                path=path,
            )
        return text

    return TokenFunction(read)


def variable_of(catalog: str) -> str:
    """Return the environment variable with the token of a catalog that no setting names.

    >>> variable_of("main-2")
    'PUREDELTA_CATALOG_MAIN_2_TOKEN'
    """
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in catalog)
    return f"PUREDELTA_CATALOG_{name.upper()}_TOKEN"


def token_of_process(catalog: str) -> TokenFunction:
    """Return the source of a token for a catalog without a setting for it; there may be none."""
    variable = variable_of(catalog)
    return TokenFunction(lambda: os.environ.get(variable))


def token_from_environment(variable: str) -> TokenFunction:
    """Return the source of a token in an environment variable, which is read at each request."""

    def read() -> str:
        text = os.environ.get(variable, "")
        if not text.strip():
            raise CatalogRequestError(
                f"The environment variable {variable} is not set or empty, and the setting "
                "token_env says that it has the token of the catalog. Set it before the session "
                "needs it.",
                refusal=Refusal.NOT_ALLOWED,
                variable=variable,
            )
        return text

    return TokenFunction(read)


class OAuthTokens:
    """Tokens for client credentials (RFC 6749, section 4.4), renewed before they expire."""

    def __init__(
        self,
        send: Send,
        *,
        url: str,
        client_id: str,
        client_secret: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send, self._url, self._clock = send, url, clock
        pair = f"{client_id}:{client_secret}".encode()
        self._basic = base64.b64encode(pair).decode()
        self._secrets = (client_secret, self._basic)
        self._lock = threading.Lock()
        self._known: str | None = None
        self._renew_at = 0.0

    def __repr__(self) -> str:
        return f"OAuthTokens(url={self._url!r})"

    def token(self) -> str | None:
        """Return a token that lives for another minute, or longer."""
        with self._lock:
            if self._known is None or self._clock() >= self._renew_at:
                self._fetch()
            return self._known

    def renew(self) -> bool:
        """Forget the token, so that the next call asks for another one."""
        with self._lock:
            self._known = None
        return True

    def secrets(self) -> Sequence[str]:
        """Return the secret of the client, and the token of now."""
        known = self._known
        return self._secrets if known is None else (*self._secrets, known)

    def _fetch(self) -> None:
        body = urlencode({"grant_type": "client_credentials", "scope": "all-apis"}).encode()
        request = HttpRequest(
            method="POST",
            url=self._url,
            body=body,
            headers={
                "Authorization": f"Basic {self._basic}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
            secrets=self._secrets,
        )
        answer = self._send(request)
        found = answer.json if isinstance(answer.json, Mapping) else {}
        token, lives_s = found.get("access_token"), _lifetime(found.get("expires_in"))
        if refusal_of(answer.status, None) is Refusal.NO_ANSWER:
            raise CatalogRequestError(
                f"The token server {self._url} has no answer now (status {answer.status}). Try "
                "again later.",
                refusal=Refusal.NO_ANSWER,
                url=self._url,
                status=answer.status,
            )
        if not answer.is_success or not isinstance(token, str) or not token:
            raise CatalogRequestError(
                f"The token server {self._url} gave no token for the client credentials (status "
                f"{answer.status}). Check auth.oauth.uri, auth.oauth.clientId and "
                "auth.oauth.clientSecret.",
                refusal=Refusal.NOT_ALLOWED,
                url=self._url,
                status=answer.status,
            )
        self._known = _whole(token)
        self._renew_at = self._clock() + max(lives_s - _RENEWED_BEFORE_S, lives_s / 2)


def _lifetime(stated: object) -> float:
    """Return the seconds that a token lives, by what its server says.

    >>> _lifetime(60), _lifetime("60"), _lifetime(None)
    (60.0, 60.0, 3600.0)
    """
    try:
        seconds = float(stated) if isinstance(stated, int | float | str) else _LIFETIME_S
    except (ValueError, OverflowError):
        return _LIFETIME_S
    return seconds if 0 <= seconds < float("inf") else _LIFETIME_S
