"""Values from the answers of a Unity Catalog server, checked as input from outside.

Locations name a known kind of storage, no ``..`` and no control characters. File names are those
of their version. Numbers are numbers. What does not fit is a `CatalogRequestError`, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from puredelta.catalogs.catalog import (
    CatalogEntry,
    DescribedSchema,
    LoadedTable,
    RatifiedCommit,
    StagedTable,
    TableIdentifier,
    TableKind,
    VendedKeys,
)
from puredelta.catalogs.failures import wrong_answer

_SCHEMES = frozenset({"s3", "s3a", "abfs", "abfss", "gs", "gcs"})
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_BUCKET = re.compile(r"[\w.-]+(@[\w.-]+)?", re.ASCII)
_VERSION_MAX = 2**63 - 2
_OPTIONS = {
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "azure.sas-token": "sas_key",
    "gcs.oauth-token": "bearer_token",
}
"""Names of keys in an answer, and obstore's names for them."""


def member(value: Mapping[str, Any], key: str, kind: type, source: str) -> Any:
    """Return a value of an answer that must be there and of a type."""
    found = value.get(key)
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise wrong_answer(source, f"{key} is {type(found).__name__}, not {kind.__name__}")
    return found


def mapping(value: object, what: str, source: str) -> Mapping[str, Any]:
    """Return a part of an answer that must be an object."""
    if not isinstance(value, Mapping):
        raise wrong_answer(source, f"{what} is no object")
    return value


def texts(value: object, what: str, source: str) -> Mapping[str, str]:
    """Return an object whose values are texts; values of null are left out."""
    found = mapping({} if value is None else value, what, source)
    if any(isinstance(text, Mapping | list) for text in found.values()):
        raise wrong_answer(source, f"{what} has a value that is no text")
    return {str(key): str(text) for key, text in found.items() if text is not None}


def rows(value: object, what: str, source: str) -> Sequence[Any]:
    """Return a part of an answer that must be a list; null is an empty one."""
    found = () if value is None else value
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise wrong_answer(source, f"{what} is no list")
    return found


def _shown(location: str) -> str:
    """Return a location as messages show it: without a query and a user, which can be secrets.

    >>> _shown("s3://id:secret@lake/t?X-Amz-Signature=secret")
    "'s3://***@lake/t?***'"
    """
    path, mark, _ = location.partition("?")
    return repr(re.sub("//[^/]*:[^/]*@", "//***@", path) + (f"{mark}***" if mark else ""))


def location_from(text: str, source: str, *, allow_local: bool) -> str:
    """Return a location of an answer, decoded.

    Raises:
        CatalogRequestError: it is relative, leaves its place, or names storage that is not allowed.

    >>> location_from("s3://lake/t%20x/", "a.b.c", allow_local=False)
    's3://lake/t x'
    """
    shown = _shown(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise wrong_answer(source, f"the location {shown} is no plain path") from None
    path = unquote(parts.path)
    is_local = parts.scheme in {"", "file"}
    if _CONTROL.search(unquote(text)) or any(part in {".", ".."} for part in path.split("/")):
        raise wrong_answer(source, f"the location {shown} is no plain path")
    if "?" in text or "#" in text or ("@" in parts.netloc and not parts.scheme.startswith("abfs")):
        raise wrong_answer(source, f"the location {shown} has more than a path")
    if is_local:
        if not allow_local:
            raise wrong_answer(
                source,
                f"the location {shown} is on a local disk, and the catalog is on another machine. "
                "If both see the same disk, set spark.puredelta.catalog.NAME.local_files to true",
            )
        if (
            not path.startswith("/")
            or parts.netloc not in {"", "localhost"}
            or path.strip("/") == ""
        ):
            raise wrong_answer(source, f"the location {shown} is no absolute path")
        return f"file:{path}".rstrip("/")
    is_known = parts.scheme in _SCHEMES and _BUCKET.fullmatch(parts.netloc)
    if not is_known or not path.strip("/"):
        raise wrong_answer(source, f"the location {shown} names no directory of known storage")
    return f"{parts.scheme}://{parts.netloc}{path}".rstrip("/")


def described_schema(answer: object, name: str) -> DescribedSchema:
    """Return a schema from ``{name, comment, properties}``."""
    whole = mapping(answer, "the answer", name)
    return DescribedSchema(
        name=name,
        comment=str(whole.get("comment") or ""),
        location=str(whole.get("storage_location") or whole.get("storage_root") or ""),
        properties=texts(whole.get("properties"), "properties", name),
    )


def described_table(
    answer: object, name: TableIdentifier, *, allow_local: bool = True
) -> CatalogEntry:
    """Return a table of any format from its entry in the older API."""
    source = str(name)
    whole = mapping(answer, "the answer", source)
    location = whole.get("storage_location")
    columns = [
        mapping(row, "a column", source) for row in rows(whole.get("columns"), "columns", source)
    ]
    return CatalogEntry(
        name=name,
        format=str(whole.get("data_source_format") or "").lower(),
        kind=str(whole.get("table_type") or ""),
        comment=str(whole.get("comment") or ""),
        location=location_from(str(location), source, allow_local=allow_local)
        if location
        else None,
        columns=tuple(
            (member(row, "name", str, source), member(row, "type_text", str, source))
            for row in columns
        ),
    )


def loaded_table(answer: object, name: TableIdentifier, *, allow_local: bool = True) -> LoadedTable:
    """Return a table from ``{metadata, commits, latest-table-version}``."""
    source = str(name)
    whole = mapping(answer, "the answer", source)
    metadata = mapping(whole.get("metadata"), "metadata", source)
    kind = member(metadata, "table-type", str, source)
    if kind not in TableKind.__members__:
        raise wrong_answer(source, f"table-type is {kind!r}")
    commits = tuple(_commits(rows(whole.get("commits"), "commits", source), source))
    latest = whole.get("latest-table-version")
    table = LoadedTable(
        name=name,
        table_id=member(metadata, "table-uuid", str, source),
        kind=TableKind[kind],
        location=location_from(
            member(metadata, "location", str, source), source, allow_local=allow_local
        ),
        etag=None if metadata.get("etag") is None else member(metadata, "etag", str, source),
        properties=texts(metadata.get("properties"), "properties", source),
        commits=commits,
        latest_version=None if latest is None else _number(latest, "latest-table-version", source),
    )
    _require_consistent(table)
    return table


def _commits(values: Sequence[Any], source: str) -> Iterator[RatifiedCommit]:
    found = [mapping(value, "a commit", source) for value in values]
    for row in sorted(found, key=lambda row: _number(row.get("version"), "version", source)):
        commit = RatifiedCommit(
            version=row["version"],
            timestamp_ms=_number(row.get("timestamp"), "timestamp", source),
            file_name=member(row, "file-name", str, source),
            size_bytes=_number(row.get("file-size"), "file-size", source),
            modified_ms=_number(
                row.get("file-modification-timestamp"), "file-modification-timestamp", source
            ),
        )
        if not commit.is_well_named:
            raise wrong_answer(
                source, f"commit {commit.version} has the file name {commit.file_name!r}"
            )
        yield commit


def _number(value: object, what: str, source: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_answer(source, f"{what} is {type(value).__name__}, not int")
    if not 0 <= value <= _VERSION_MAX:
        raise wrong_answer(source, f"{what} is {value}")
    return value


def _require_consistent(table: LoadedTable) -> None:
    source, latest = str(table.name), table.latest_version
    for older, newer in pairwise(table.commits):
        if newer.version != older.version + 1:
            raise wrong_answer(
                source, f"no commit is between versions {older.version} and {newer.version}"
            )
    if not table.is_catalog_managed:
        return
    if latest is None:
        raise wrong_answer(source, "the table is catalog-managed, and its version is missing")
    if table.commits and table.commits[-1].version != latest:
        raise wrong_answer(
            source, f"the newest version is {latest}, its commit {table.commits[-1].version}"
        )


def staged_table(answer: object, name: TableIdentifier, *, allow_local: bool) -> StagedTable:
    """Return the place and the demands of a new table."""
    source = str(name)
    whole = mapping(answer, "the answer", source)
    stated = member(whole, "location", str, source)
    return StagedTable(
        table_id=member(whole, "table-id", str, source),
        location=location_from(stated, source, allow_local=allow_local),
        stated_location=stated,
        required_features=_features(whole.get("required-protocol"), source),
        suggested_features=_features(whole.get("suggested-protocol"), source),
        required_properties=texts(whole.get("required-properties"), "properties", source),
        suggested_properties=texts(whole.get("suggested-properties"), "properties", source),
    )


def _features(value: object, source: str) -> tuple[str, ...]:
    protocol = mapping({} if value is None else value, "the protocol", source)
    names = [
        name
        for key in ("reader-features", "writer-features")
        for name in rows(protocol.get(key), key, source)
    ]
    return tuple(dict.fromkeys(str(name) for name in names))


def vended_keys(answer: object, source: str) -> tuple[VendedKeys, ...]:
    """Return the keys of ``{storage-credentials: [...]}``."""
    whole = mapping(answer, "the answer", source)
    found = []
    for value in rows(whole.get("storage-credentials"), "storage-credentials", source):
        row = mapping(value, "a key", source)
        config = texts(row.get("config"), "config", source)
        expires = row.get("expiration-time-ms")
        found.append(
            VendedKeys(
                prefix=_prefix(member(row, "prefix", str, source), source),
                options={_OPTIONS[key]: text for key, text in config.items() if key in _OPTIONS},
                expires_ms=None if expires is None else _number(expires, "expiration", source),
            )
        )
    return tuple(found)


def _prefix(text: str, source: str) -> str:
    try:
        urlsplit(text)
    except ValueError:
        raise wrong_answer(source, f"the prefix {_shown(text)} is no location") from None
    return unquote(text)


_OLDER = {
    "aws_temp_credentials": {
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "session_token": "session_token",
    },
    "azure_user_delegation_sas": {"sas_token": "sas_key"},
    "gcp_oauth_token": {"oauth_token": "bearer_token"},
}
"""Keys in answers of the older paths, and obstore's names for them."""


def older_keys(answer: object, source: str, location: str) -> tuple[VendedKeys, ...]:
    """Return the keys of ``/temporary-path-credentials``."""
    whole = mapping(answer, "the answer", source)
    options: dict[str, str] = {}
    for group, names in _OLDER.items():
        given = texts(whole.get(group), group, source)
        options |= {names[key]: text for key, text in given.items() if key in names}
    expires = whole.get("expiration_time")
    return (
        VendedKeys(
            prefix=location,
            options=options,
            expires_ms=None if expires is None else _number(expires, "expiration", source),
        ),
    )
