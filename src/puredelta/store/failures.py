"""Failures of an object store in one sentence: bucket, endpoint and the setting to change.

The store's own answer is never shown: it names requests and may repeat a token.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from puredelta.store.base import StorageError
from puredelta.store.location import CONNECT_SECONDS, ObjectAccess

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
