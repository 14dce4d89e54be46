"""The catalog of a Unity Catalog server: its Delta API of version 1, and two older paths.

Reads are repeated when no answer came. Writes are sent once: the caller decides whether a write may
be sent again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from puredelta.catalogs.answers import (
    described_schema,
    described_table,
    loaded_table,
    mapping,
    member,
    older_keys,
    rows,
    staged_table,
    vended_keys,
)
from puredelta.catalogs.catalog import (
    NO_UPDATE,
    CatalogEntry,
    CommittedVersion,
    DescribedSchema,
    KeyUse,
    ListedTable,
    LoadedTable,
    RatifiedCommit,
    StagedTable,
    TableCreation,
    TableIdentifier,
    TableUpdate,
    VendedKeys,
    is_same_place,
)
from puredelta.catalogs.failures import (
    NOTHING_CHANGED,
    CatalogRequestError,
    Refusal,
    refusal_of,
    wrong_answer,
)
from puredelta.catalogs.tokens import TokenSource
from puredelta.catalogs.transport import Answer, HttpRequest, Send, without_secrets

_Name = TypeVar("_Name", str, TableIdentifier)
_Value = TypeVar("_Value")

DERIVED_PROPERTIES = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
    "delta.rowTracking.rowIdHighWaterMark",
    "clusteringColumns",
)
"""Properties that the server makes of other parts of a request, beside ``delta.feature.*``."""
FEATURE_PROPERTIES = "delta.feature."
_HYPHENATED = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def is_derived(key: str) -> bool:
    """Return whether the server makes a property itself: no request and no log may hold it.

    >>> is_derived("delta.feature.catalogManaged"), is_derived("io.unitycatalog.tableId")
    (True, False)
    """
    return key in DERIVED_PROPERTIES or key.startswith(FEATURE_PROPERTIES)


def type_json(value: Any) -> Any:
    """Return a type of a log's schema with the names that the server has inside of types.

    Metadata of fields stays as it is.

    >>> type_json({"type": "array", "elementType": "long", "containsNull": True})
    {'type': 'array', 'element-type': 'long', 'contains-null': True}
    """
    if isinstance(value, list):
        return [type_json(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _HYPHENATED.get(key, key): part if key == "metadata" else type_json(part)
        for key, part in value.items()
    }


def protocol_json(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return a protocol action of a log as the server takes it."""
    return {
        "min-reader-version": protocol.get("minReaderVersion"),
        "min-writer-version": protocol.get("minWriterVersion"),
        "reader-features": list(protocol.get("readerFeatures") or ()),
        "writer-features": list(protocol.get("writerFeatures") or ()),
    }


def update_json(update: TableUpdate) -> Iterator[dict[str, Any]]:
    """Yield one action for each kind of change."""
    if update.columns is not None:
        yield {"action": "set-columns", "columns": type_json(update.columns)}
    if update.partition_columns is not None:
        columns = list(update.partition_columns)
        yield {"action": "set-partition-columns", "partition-columns": columns}
    changed = {key: text for key, text in update.set_properties.items() if not is_derived(key)}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    removed = [key for key in update.removed_properties if not is_derived(key)]
    if removed:
        yield {"action": "remove-properties", "removals": removed}
    if update.comment is not None:
        yield {"action": "set-table-comment", "comment": update.comment}
    if update.protocol is not None:
        yield {"action": "set-protocol", "protocol": protocol_json(update.protocol)}
    if update.domains:
        yield {"action": "set-domain-metadata", "updates": dict(update.domains)}
    if update.removed_domains:
        domains = list(update.removed_domains)
        yield {"action": "remove-domain-metadata", "domains": domains}


def creation_json(creation: TableCreation) -> dict[str, Any]:
    """Return the body of the request that makes a table known."""
    given = creation.definition
    properties = {key: text for key, text in given.set_properties.items() if not is_derived(key)}
    return {
        "name": creation.name.table,
        "table-type": creation.kind.value,
        "location": creation.location,
        "columns": type_json(given.columns or {"type": "struct", "fields": []}),
        "partition-columns": list(given.partition_columns or ()),
        "properties": properties,
        "protocol": protocol_json(given.protocol or {}),
        "last-commit-timestamp-ms": creation.timestamp_ms,
        **({"comment": given.comment} if given.comment else {}),
        **({"domain-metadata": dict(given.domains)} if given.domains else {}),
    }


_API = "/api/2.1/unity-catalog"
_PAGE = 100
_PAGES_MAX = 100_000
_READS_MAX = 4
_WAIT_S = 0.2
_WAIT_MAX_S = 30.0
"""However long the server wants no other request."""
_UNAUTHENTICATED = 401
_NOT_FOUND = 404
_TOO_MANY_REQUESTS = 429
_NO_API = (
    "there is no such call. Check that the setting uri names a Unity Catalog server of version 0.5 "
    "or newer, which has the Delta API /delta/v1"
)
_SHOWN = 500
_LOCAL_PREFIX = "file:"
_FOLLOWED_TIMES_MAX = 5
_SHOWN_VERSION = "delta.lastUpdateVersion"
"""The property with the version whose definition the server shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnityCatalog:
    """One catalog of a Unity Catalog server; it shows no token as text.

    Examples:
        >>> from puredelta.catalogs.tokens import fixed_token
        >>> from puredelta.catalogs.transport import HttpTransport
        >>> main = UnityCatalog(
        ...     name="main",
        ...     url="http://127.0.0.1:8080",
        ...     tokens=fixed_token("secret"),
        ...     send=HttpTransport().send,
        ... )
        >>> main.load(TableIdentifier("main", "sales", "orders")).location  # doctest: +SKIP
        's3://lake/orders'
    """

    name: str
    url: str
    """Scheme, host and port, perhaps with the path of the API."""
    tokens: TokenSource
    send: Send
    allow_local: bool = True
    """Whether tables may be on a local disk."""
    sleep: Callable[[float], None] = time.sleep

    def schemas(self) -> Iterator[str]:
        """Yield the names of the schemas, page by page."""
        for row in self._pages("/schemas", "schemas", {"catalog_name": self.name}):
            yield member(row, "name", str, self.name)

    def tables(self, schema: str) -> Iterator[ListedTable]:
        """Yield the tables of a schema, page by page."""
        source = f"{self.name}.{schema}"
        query = {"catalog_name": self.name, "schema_name": schema}
        for row in self._pages("/tables", "tables", query):
            yield ListedTable(
                name=TableIdentifier(self.name, schema, member(row, "name", str, source)),
                format=str(row.get("data_source_format") or "").lower(),
                kind=str(row.get("table_type") or ""),
            )

    def schema(self, name: str) -> DescribedSchema:
        """Return the schema, with its comment and properties."""
        answer = self._read(f"/schemas/{_full_name(self.name, name)}")
        return self._understood(described_schema, answer, name)

    def create_schema(self, schema: DescribedSchema) -> None:
        """Make a schema; a location is the root of its managed tables."""
        body: dict[str, Any] = {"name": schema.name, "catalog_name": self.name}
        if schema.comment:
            body["comment"] = schema.comment
        if schema.location:
            body["storage_root"] = schema.location
        if schema.properties:
            body["properties"] = dict(schema.properties)
        self._call("POST", "/schemas", body)

    def drop_schema(self, name: str, *, cascade: bool) -> None:
        """Remove a schema; the server refuses one with tables, unless ``cascade``."""
        path = f"/schemas/{_full_name(self.name, name)}"
        self._call("DELETE", path, query={"force": "true"} if cascade else None)

    def describe(self, name: TableIdentifier) -> CatalogEntry:
        """Return the entry of a table of any format; of a name with dots, that of a Delta table."""
        if any("." in part for part in name.parts):  # the other request joins the parts by dots
            table = self.load(name)
            return CatalogEntry(
                name=name, format="delta", kind=table.kind.name, location=table.location
            )
        answer = self._read(f"/tables/{_full_name(*name.parts)}")
        return self._understood(
            partial(described_table, allow_local=self.allow_local), answer, name
        )

    def default_location(self, name: TableIdentifier) -> str | None:
        """Return None: the server chooses, see `stage`."""
        del name
        return None

    def follow(self, name: TableIdentifier, update: TableUpdate, at: CommittedVersion) -> None:
        """Let an external table show the definition of a version, unless it shows a newer one."""
        if not (update.changes_metadata or update.domains or update.removed_domains):
            return
        shown = {
            "action": "update-metadata-snapshot-version",
            "last-commit-version": at.version,
            "last-commit-timestamp-ms": at.timestamp_ms,
        }
        for n in range(_FOLLOWED_TIMES_MAX):
            table = self.load(name)
            newest = table.properties.get(_SHOWN_VERSION, "")
            is_older = newest.isdecimal() and int(newest) >= at.version
            if is_older or not is_same_place(table.location, at.location):
                return
            try:
                self._update(table, [*update_json(update), shown], etag=table.etag)
            except CatalogRequestError as refused:
                if refused.refusal is not Refusal.CHANGED or n == _FOLLOWED_TIMES_MAX - 1:
                    raise
            else:
                return

    def load(self, name: TableIdentifier) -> LoadedTable:
        """Return the table, with the commits that are not forgotten yet."""
        return self._loaded(self._read(_table_path(name)), name)

    def _loaded(self, answer: Any, name: TableIdentifier) -> LoadedTable:
        return self._understood(partial(loaded_table, allow_local=self.allow_local), answer, name)

    def stage(self, name: TableIdentifier) -> StagedTable:
        """Ask for the place of a new table; a second request makes a second place."""
        answer = self._call("POST", f"{_schema_path(name)}/staging-tables", {"name": name.table})
        return self._understood(partial(staged_table, allow_local=self.allow_local), answer, name)

    def create(self, creation: TableCreation) -> LoadedTable:
        """Make a table known whose version 0 is written."""
        path = f"{_schema_path(creation.name)}/tables"
        answer = self._call("POST", path, creation_json(creation))
        return self._written(answer, creation.name)

    def ratify(
        self,
        table: LoadedTable,
        commit: RatifiedCommit,
        update: TableUpdate = NO_UPDATE,
    ) -> LoadedTable:
        """Commit a staged file; the etag is sent where metadata changes."""
        added = {
            "version": commit.version,
            "timestamp": commit.timestamp_ms,
            "file-name": commit.file_name,
            "file-size": commit.size_bytes,
            "file-modification-timestamp": commit.modified_ms,
        }
        updates = [{"action": "add-commit", "commit": added}, *update_json(update)]
        etag = table.etag if update.changes_metadata else None
        return self._written(self._update(table, updates, etag=etag), table.name)

    def report_published(self, table: LoadedTable, version: int) -> None:
        """Say that the commits up to a version are plain files of the log."""
        action = "set-latest-backfilled-version"
        self._update(table, [{"action": action, "latest-published-version": version}], etag=None)

    def rename(self, name: TableIdentifier, new_name: str) -> None:
        """Give a table another name in its schema."""
        self._call("POST", f"{_table_path(name)}/rename", {"new-name": new_name})

    def drop(self, name: TableIdentifier) -> None:
        """Remove a table from the catalog; the server removes the files of a managed one."""
        self._call("DELETE", _table_path(name))

    def keys(self, table: LoadedTable, operation: KeyUse) -> Sequence[VendedKeys]:
        """Return the keys for the files of a table; a local path needs none."""
        if table.location.startswith(_LOCAL_PREFIX):
            return ()
        path = f"{_table_path(table.name)}/credentials"
        answer = self._read(path, {"operation": operation.value})
        return self._understood(vended_keys, answer, str(table.name))

    def keys_of_stage(self, staged: StagedTable) -> Sequence[VendedKeys]:
        """Return the keys for the place of a new table."""
        if staged.location.startswith(_LOCAL_PREFIX):
            return ()
        path = f"/delta/v1/staging-tables/{quote(staged.table_id, safe='')}/credentials"
        return self._understood(vended_keys, self._read(path), staged.location)

    def keys_of_path(self, location: str) -> Sequence[VendedKeys]:
        """Return the keys for the location of a new external table."""
        if location.startswith(_LOCAL_PREFIX):
            return ()
        body = {"url": location, "operation": "PATH_CREATE_TABLE"}
        answer = self._call("POST", "/temporary-path-credentials", body)
        return self._understood(partial(older_keys, location=location), answer, location)

    def _written(self, answer: Any, name: TableIdentifier) -> LoadedTable:
        """Return the table after a write that the server has acknowledged.

        An answer that cannot be used leaves the outcome open, as one that never came.
        """
        try:
            return self._loaded(answer, name)
        except CatalogRequestError as unusable:
            text = unusable.message.replace(NOTHING_CHANGED, "The request may be carried out.")
            raise CatalogRequestError(text, refusal=Refusal.NO_ANSWER, **unusable.details) from None

    def _understood(self, read: Callable[[Any, _Name], _Value], answer: Any, name: _Name) -> _Value:
        """Return what an answer says; one that cannot be used shows no secret of the request.

        Whatever goes wrong with it is its fault, so a write never looks as if it had failed.
        """
        try:
            return read(answer, name)
        except CatalogRequestError as wrong:
            failure = wrong
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as odd:
            failure = wrong_answer(str(name), f"it is not as the API says ({type(odd).__name__})")
        raise CatalogRequestError(
            without_secrets(failure.message, self.tokens.secrets()),
            refusal=failure.refusal,
            **failure.details,
        ) from None

    def _update(
        self, table: LoadedTable, updates: Sequence[Mapping[str, Any]], *, etag: str | None
    ) -> Any:
        requirements = [{"type": "assert-table-uuid", "uuid": table.table_id}]
        if etag is not None:
            requirements.append({"type": "assert-etag", "etag": etag})
        body = {"requirements": requirements, "updates": list(updates)}
        return self._call("POST", _table_path(table.name), body)

    def _pages(self, path: str, key: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        page_token: str | None = None
        seen: set[str] = set()
        for _ in range(_PAGES_MAX):
            asked = {**query, "max_results": str(_PAGE)}
            if page_token is not None:
                asked["page_token"] = page_token
            whole = mapping(self._read(path, asked), "the answer", path)
            for row in rows(whole.get(key), key, path):
                yield mapping(row, "a row", path)
            if not whole.get("next_page_token"):
                return
            page_token = member(whole, "next_page_token", str, path)
            if page_token in seen:
                return
            seen.add(page_token)
        raise wrong_answer(path, f"it has more than {_PAGES_MAX} pages")

    def _read(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Ask until an answer comes, a few times."""
        for number in range(1, _READS_MAX):
            try:
                return self._call("GET", path, query=query)
            except CatalogRequestError as failure:  # noqa: PERF203 - a request takes longer
                if failure.refusal is not Refusal.NO_ANSWER:
                    raise
                wait_s = random.uniform(0.5, 1) * _WAIT_S * 2**number  # noqa: S311 - no secret
                self.sleep(max(wait_s, failure.retry_after_s or 0.0))
        return self._call("GET", path, query=query)

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request, and once more with another token if the first one was refused."""
        base = self.url if self.url.endswith(_API) else self.url + _API
        url = base + path + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        token = self._token()
        answer = self.send(_request(method, url, content, token))
        if answer.status == _UNAUTHENTICATED and self.tokens.renew():
            token = self._token()
            answer = self.send(_request(method, url, content, token))
        if answer.is_success:
            return answer.json
        raise self._refused(method, path, answer, token)

    def _token(self) -> str | None:
        """Return the token of now; without one the catalog has not been asked for anything."""
        try:
            return self.tokens.token()
        except CatalogRequestError as failure:
            failure.may_be_done = False
            raise

    def _refused(
        self, method: str, path: str, answer: Answer, token: str | None
    ) -> CatalogRequestError:
        whole = answer.json if isinstance(answer.json, Mapping) else {}
        inner = whole.get("error")
        error = inner if isinstance(inner, Mapping) else whole
        kind = error.get("type") or error.get("error_code")
        said = " ".join(str(error.get("message") or answer.text).split())[:_SHOWN]
        refusal = refusal_of(answer.status, None if kind is None else str(kind))
        if answer.status == _NOT_FOUND and kind is None:
            refusal, said = Refusal.INVALID, _NO_API
        secrets = () if token is None else (token,)
        text = (
            f"Catalog {self.name} answered {method} {path} with status {answer.status}"
            f"{f' ({kind})' if kind else ''}: {(said or refusal.value).rstrip('.')}."
        )
        hint = _HINTS.get(refusal, "")
        failure = CatalogRequestError(
            without_secrets(f"{text}{hint}", secrets),
            refusal=refusal,
            catalog=self.name,
            status=answer.status,
        )
        failure.may_be_done = answer.status != _TOO_MANY_REQUESTS
        if answer.retry_after_s is not None:
            failure.retry_after_s = min(answer.retry_after_s, _WAIT_MAX_S)
        return failure


_HINTS = {
    Refusal.NOT_ALLOWED: " Check the token of the catalog (spark.sql.catalog.NAME.token; over "
    "Spark Connect the variable PUREDELTA_CATALOG_NAME_TOKEN) and the grants of its user.",
    Refusal.NOT_FOUND: " Verify the spelling of catalog, schema and table: the server compares "
    "letters exactly.",
    Refusal.OTHER_FORMAT: " Only Delta tables of this catalog can be used.",
}


def _request(method: str, url: str, content: bytes | None, token: str | None) -> HttpRequest:
    headers = {"Accept": "application/json"}
    if content is not None:
        headers["Content-Type"] = "application/json"
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    secrets = () if token is None else (token,)
    return HttpRequest(method=method, url=url, body=content, headers=headers, secrets=secrets)


def _full_name(*parts: str) -> str:
    return quote(".".join(parts), safe="")


def _schema_path(name: TableIdentifier) -> str:
    catalog, schema = (quote(part, safe="") for part in (name.catalog, name.schema))
    return f"/delta/v1/catalogs/{catalog}/schemas/{schema}"


def _table_path(name: TableIdentifier) -> str:
    return f"{_schema_path(name)}/tables/{quote(name.table, safe='')}"
