"""Locations in object stores: which cloud, which bucket, which path in it.

``s3``, ``s3a`` and ``s3n`` are three names of one thing, and so are the schemes of Azure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from puredelta.errors import ErrorCode, InvalidRequestError


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
            f"{location} names no {'container' if cloud is Cloud.AZURE else 'bucket'}. "
            f"Write {_example(cloud)}.",
            code=ErrorCode.PATH_DOES_NOT_EXIST,
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
    return InvalidRequestError(
        f"{location!r} is not the location of a table: object names have no control characters, "
        "and nothing lies above a bucket.",
        code=ErrorCode.PATH_DOES_NOT_EXIST,
        path=location,
    )


def _example(cloud: Cloud) -> str:
    if cloud is Cloud.AZURE:
        return "abfss://container@account.dfs.core.windows.net/path"
    return f"{cloud.value}://bucket/path"
