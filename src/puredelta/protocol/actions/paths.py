"""Paths of files: their percent-encoded form in the log, and when two spellings mean one file.

``add.path`` is an RFC 2396 URI reference, percent-encoded, relative to the table root or
absolute (X-80). Writers encode differently, so files are compared after decoding (X-81).
URIs that functions return are *decoded* and in Hadoop's short form (``file:/data/x``).
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from typing import NewType
from urllib.parse import quote, unquote

CanonicalPath = NewType("CanonicalPath", str)
"""The one spelling of a path in which files are compared; `canonical_path` makes it."""

# "scheme:/": the slash keeps a raw colon in a relative name from looking like a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_PLAIN = re.compile(r"[A-Za-z0-9_.~/=-]*")
_FILE_AUTHORITY = re.compile(r"file:/{2}(?:localhost)?(?=/)", re.IGNORECASE)
_S3 = re.compile(r"^s3[an]?(?=://)")
_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?)")

# Bytes that are not UTF-8 must survive encoding and decoding, or two files become one.
_ERRORS = "surrogateescape"


def encode_path(path: str) -> str:
    """Percent-encode a real path, relative to the table root, for the log.

    Only unreserved characters, ``/`` and ``=`` stay. ``:`` is encoded, because it would make the
    first segment look like a scheme. So is ``%``: the directory ``t=10%3A00`` of an escaped
    partition value becomes ``t=10%253A00`` (C-50).

    >>> encode_path("p=a b/part-0.parquet")
    'p=a%20b/part-0.parquet'
    """
    if _PLAIN.fullmatch(path):
        return path  # most paths, and a tenth of the time
    return quote(path, safe="/=", errors=_ERRORS)


def decode_path(encoded: str) -> str:
    """Return the real path for a percent-encoded path of the log; ``+`` is no space in a path."""
    return unquote(encoded, errors=_ERRORS)


def encode_uri(uri: str) -> str:
    """Percent-encode an absolute URI for the log: the path of a file outside the table.

    >>> encode_uri("file:/data/my table/x.parquet")
    'file:/data/my%20table/x.parquet'
    """
    authority = _authority(uri)
    return authority + encode_path(uri[len(authority) :])


def is_absolute_path(encoded: str) -> bool:
    """Return whether a path of the log is absolute, so that it needs no table root."""
    return encoded.startswith("/") or _SCHEME.match(encoded) is not None


def canonical_path(encoded: str) -> CanonicalPath:
    """Return the spelling that all spellings of one path have in common (X-81).

    Percent-encoding, ``file:`` spellings, doubled slashes and ``.`` segments do not matter, and
    ``s3``, ``s3a`` and ``s3n`` are one scheme.
    A relative path and the absolute path of the same file stay different, as in delta-spark:
    the log does not say where the table is.

    >>> canonical_path("file:///a/b%20c") == canonical_path("/a//b c")
    True
    """
    if _is_plain(encoded):
        return CanonicalPath(encoded)
    decoded = decode_path(encoded)
    if _SCHEME.match(encoded) is None:
        return CanonicalPath(_normal(decoded))
    short = short_uri(decoded)
    if short.startswith("file:"):
        return CanonicalPath(_normal(short.removeprefix("file:")))
    return CanonicalPath(_S3.sub("s3", _normal_uri(short), count=1))


_NOT_PLAIN = ("%", ":", "//", "/.", "\n/", "\n.", "/\n", "\n\n")
"""What is not in a text of plain paths, one a line: see `_is_plain`."""


def _is_plain(encoded: str) -> bool:
    """Return whether a path is obviously canonical: relative, nothing encoded or dotted."""
    return not (
        "%" in encoded
        or ":" in encoded
        or "//" in encoded
        or "/." in encoded
        or encoded.startswith(("/", "."))
        or encoded.endswith("/")
        or not encoded
    )


def absolute_uri(root_uri: str, encoded_path: str) -> str:
    """Return the decoded absolute URI of a file of the table at ``root_uri`` (decoded).

    A table under ``s3a`` has all its files under ``s3a``: the session that reads it knows that.

    >>> absolute_uri("file:/data/my table", "p=a%20b/x.parquet")
    'file:/data/my table/p=a b/x.parquet'
    """
    if _is_plain(encoded_path):
        return f"{_directory(root_uri)}/{encoded_path}"
    decoded = decode_path(encoded_path)
    if _SCHEME.match(encoded_path):
        return _as_root(root_uri, _normal_uri(short_uri(decoded)))
    if encoded_path.startswith("/"):
        return _authority(root_uri) + _normal(decoded)
    return f"{_directory(root_uri)}/{_normal(decoded)}"


def absolute_uris(root_uri: str, encoded_paths: Sequence[str]) -> list[str]:
    """Return the `absolute_uri` of many files; fast for plain paths, which most tables have.

    >>> absolute_uris("file:/data/t", ["x.parquet", "p=a%20b/y.parquet"])
    ['file:/data/t/x.parquet', 'file:/data/t/p=a b/y.parquet']
    """
    whole = "\n".join(["", *encoded_paths, ""])
    if whole.count("\n") != len(encoded_paths) + 1 or any(sign in whole for sign in _NOT_PLAIN):
        return [absolute_uri(root_uri, path) for path in encoded_paths]
    directory = _directory(root_uri)
    return [f"{directory}/{path}" for path in encoded_paths]


@functools.lru_cache(maxsize=64)
def _directory(root_uri: str) -> str:
    return short_uri(root_uri).rstrip("/")


def path_below_root(root_uri: str, encoded_path: str) -> str | None:
    """Return the decoded path of a file of the log below the table root; ``None`` if outside.

    >>> path_below_root("file:/data/t", "file:///data/t/p=a%20b/x.parquet")
    'p=a b/x.parquet'
    """
    if _is_plain(encoded_path):
        return encoded_path
    return relative_path(root_uri, absolute_uri(root_uri, encoded_path))


def relative_path(root_uri: str, uri: str) -> str | None:
    """Return the path of a file below the table root, both URIs decoded; ``None`` if outside.

    >>> relative_path("file:/data/t", "file:///data/t/p=1/x.parquet")
    'p=1/x.parquet'
    """
    root = _normal_uri(short_uri(root_uri)).rstrip("/") + "/"
    path = _as_root(root_uri, _normal_uri(short_uri(uri)))
    return path.removeprefix(root) if path.startswith(root) and path != root else None


def _as_root(root_uri: str, uri: str) -> str:
    """Return a URI of S3 under the scheme of the root, if that is one of S3, too."""
    scheme = _S3.match(short_uri(root_uri))
    return uri if scheme is None else _S3.sub(scheme[0], uri, count=1)


def short_uri(uri: str) -> str:
    """Write ``file:///x`` and ``file://localhost/x`` as ``file:/x``, and a scheme in lower case."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return uri
    lowered = scheme[1].lower() + uri[scheme.end(1) :]
    return _FILE_AUTHORITY.sub("file:", lowered, count=1)


def _authority(uri: str) -> str:
    """Return scheme and host, which an absolute path without them takes from the root."""
    match = _AUTHORITY.match(short_uri(uri)) if _SCHEME.match(uri) else None
    return "" if match is None else match[1]


def _normal_uri(uri: str) -> str:
    authority = _authority(uri)
    return authority + _normal(uri[len(authority) :])


def _normal(path: str) -> str:
    """Collapse slashes and dots as Hadoop's ``Path`` does."""
    normal = posixpath.normpath(path)
    # In POSIX exactly two leading slashes have a meaning of their own; here they have none.
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


def folded_path(path: str) -> str:
    """Return what is the same for all spellings that some file system takes for one name.

    macOS and Windows ignore case, macOS the form of Unicode, too.

    >>> folded_path("p=\u00c9t\u00e9/A.parquet") == folded_path("p=e\u0301te\u0301/a.parquet")
    True
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
