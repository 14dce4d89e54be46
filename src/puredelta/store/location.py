"""Locations in object stores, and the access to one bucket.

``s3``, ``s3a`` and ``s3n`` are three names of one thing, and so are the schemes of Azure.

Nothing here connects, reads the environment or imports obstore. What a setting does not say
is left to obstore, which asks the environment of the process and the machine it runs on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Any

from puredelta.errors import InvalidRequestError, Message


class Cloud(Enum):
    """Whose interface a store speaks."""

    S3 = "s3"
    AZURE = "az"
    GCS = "gs"


CLOUDS = {
    "s3": Cloud.S3,
    "s3a": Cloud.S3,
    "s3n": Cloud.S3,
    "gs": Cloud.GCS,
    "gcs": Cloud.GCS,
    "az": Cloud.AZURE,
    "abfs": Cloud.AZURE,
    "abfss": Cloud.AZURE,
    "wasb": Cloud.AZURE,
    "wasbs": Cloud.AZURE,
}
"""By scheme, in lower case."""

_S3_SCHEMES = ("s3a", "s3", "s3n")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectLocation:
    """A directory in an object store, taken apart; everything is decoded."""

    cloud: Cloud
    scheme: str
    bucket: str
    """The bucket or container."""
    host: str
    """Azure: ``account.dfs.core.windows.net`` as the location names it, else empty."""
    path: str
    """The directory in the bucket, without slashes at its ends; empty for the bucket itself."""

    @property
    def root_uri(self) -> str:
        """The location as Hadoop takes it, without a slash at its end."""
        authority = f"{self.bucket}@{self.host}" if self.host else self.bucket
        return f"{self.scheme}://{authority}/{self.path}".rstrip("/")

    def named_for(self, has_scheme: Callable[[str], bool]) -> ObjectLocation:
        """Return the location under a scheme that a session can read, as given if none is."""
        if self.cloud is not Cloud.S3 or has_scheme(self.scheme):
            return self
        known = next((scheme for scheme in _S3_SCHEMES if has_scheme(scheme)), self.scheme)
        return replace(self, scheme=known)

    @property
    def bucket_uri(self) -> str:
        """The bucket or container itself, as a location."""
        return replace(self, path="").root_uri

    @property
    def account(self) -> str:
        """Azure: the name of the account; empty where the location does not name it."""
        return self.host.partition(".")[0]


def parse_object_location(location: str) -> ObjectLocation | None:
    """Take a location apart; ``None`` if its scheme is not that of an object store.

    Slashes and dots are read as Hadoop's ``Path`` reads them.

    Raises:
        InvalidRequestError: it names no bucket, or an object cannot have such a name.

    >>> parse_object_location("s3a://lake//events/").root_uri
    's3a://lake/events'
    """
    scheme, colon, _ = location.partition(":")
    cloud = CLOUDS.get(scheme.lower()) if colon else None
    if cloud is None:
        return None
    match = _URI.fullmatch(location)
    authority = "" if match is None else match[2]
    bucket, at, host = authority.rpartition("@") if cloud is Cloud.AZURE else (authority, "", "")
    if not at:
        bucket, host = authority, ""
    if match is None or not bucket or (at and not host):
        raise InvalidRequestError(
            Message.PATH_DOES_NOT_EXIST_BUCKET,
            missing="container" if cloud is Cloud.AZURE else "bucket",
            example=_example(cloud),
            path=location,
        )
    return ObjectLocation(
        cloud=cloud,
        scheme=scheme.lower(),
        bucket=bucket,
        host=host.lower(),
        path=_normal(match[3], location),
    )


def _normal(path: str, location: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not segments:
                raise _not_a_name(location)
            segments.pop()
        elif segment not in {"", "."}:
            segments.append(segment)
    if any(ord(character) < 32 or ord(character) == 127 for character in path):  # noqa: PLR2004
        raise _not_a_name(location)
    return "/".join(segments)


def _not_a_name(location: str) -> InvalidRequestError:
    return InvalidRequestError(Message.PATH_DOES_NOT_EXIST_CHARACTER, path=location)


def _example(cloud: Cloud) -> str:
    if cloud is Cloud.AZURE:
        return "abfss://container@account.dfs.core.windows.net/path"
    return f"{cloud.value}://bucket/path"


REQUEST_SECONDS = 60
"""How long one request may take, its body included."""
CONNECT_SECONDS = 5
RETRIES_MAX = 8
RETRY_SECONDS = 120
"""How long a request that fails is repeated; the time between is random and grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAccess:
    """The way to one bucket or container; it may be pickled, and shows no secret as text."""

    url: str
    """``s3://bucket``, ``gs://bucket`` or ``az://container``, without a path."""
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of obstore's store, by its names; some are secrets."""
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of its HTTP client."""
    expires_ms: int | None = field(default=None, compare=False, repr=False)
    """When the keys among the options expire (ms since 1970); ``None``: not known, or never."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `obstore.store.from_url`: values of Python's own types.

        They may go to a worker that has no puredelta.
        """
        backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5)}
        return {
            "url": self.url,
            "config": dict(self.config),
            "client_options": {
                "timeout": f"{REQUEST_SECONDS}s",
                "connect_timeout": f"{CONNECT_SECONDS}s",
                **self.client_options,
            },
            "retry_config": {
                "max_retries": RETRIES_MAX,
                "retry_timeout": timedelta(seconds=RETRY_SECONDS),
                "backoff": backoff,
            },
        }

    def identity(self) -> tuple[object, ...]:
        """Return what is equal for equal accesses, as a key of a dictionary."""
        return (
            self.url,
            tuple(sorted(self.config.items())),
            tuple(sorted(self.client_options.items())),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may show."""
        hidden = [value for key, value in self.config.items() if is_secret(key)]
        hidden += [value for value in self.client_options.values() if "@" in value]
        return tuple(value for value in hidden if value)


@dataclass(frozen=True, slots=True)
class VendedOptions:
    """Options of a store that a catalog hands out for one location."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Untranslated:
    """The settings name a way to the bucket that obstore does not know."""

    reason: str


_SECRETS = ("key", "secret", "token", "password", "credential")
_NO_SECRETS = frozenset({"sse_bucket_key_enabled", "sse_kms_key_id", "credential_type"})


def is_secret(option: str) -> bool:
    """Return whether the value of an option is to be kept out of every text.

    >>> [is_secret(option) for option in ("secret_access_key", "region")]
    [True, False]
    """
    return option not in _NO_SECRETS and any(part in option for part in _SECRETS)
