"""A stand-in for a Unity Catalog server: the calls for Delta tables, in memory, on loopback.

It keeps the rules that were seen on the open-source server: the next version only, the same file
name twice is one commit, at most ten unpublished commits, the newest published commit stays listed
until the report is answered. It checks neither timestamps nor file names, and opens no storage.

`UnityServer.answer` is a function from a request to an answer, so tests may call it without HTTP;
`unity_server` serves it. `UnityServer.fail` plans faults for requests that match.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import shutil
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

BASE = "/api/2.1/unity-catalog"
LIMIT = 10
READER = ["catalogManaged", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"]
REQUIRED = {
    "delta.checkpointPolicy": "v2",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
}
SUGGESTED = {
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": None,
    "delta.rowTracking.materializedRowIdColumnName": None,
    "delta.rowTracking.materializedRowCommitVersionColumnName": None,
    "delta.parquet.compression.codec": "zstd",
}
_ACTIONS = frozenset(
    {
        "add-commit",
        "remove-domain-metadata",
        "remove-properties",
        "set-columns",
        "set-domain-metadata",
        "set-latest-backfilled-version",
        "set-partition-columns",
        "set-properties",
        "set-protocol",
        "set-table-comment",
        "update-metadata-snapshot-version",
    }
)


class RefusedError(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def invalid(message: str) -> RefusedError:
    return RefusedError(400, "InvalidParameterValueException", message)


class LostError(Exception):
    """The connection breaks instead of an answer."""


@dataclass
class Table:
    id: str
    kind: str
    location: str
    fields: list[Any]
    properties: dict[str, str]
    format: str = "DELTA"
    comment: str | None = None
    partition: list[str] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    """Oldest first; the newest published one stays."""
    published: int = 0
    etag: int = 1

    @property
    def latest(self) -> int:
        return self.commits[-1]["version"] if self.commits else 0


@dataclass
class Fault:
    method: str
    path: str
    kind: str
    """``lost request``, ``lost answer``, a status, or a function that changes the answer."""
    times: int
    change: Callable[[Any], Any] | None = None


@dataclass
class UnityServer:
    root: str
    """Where managed tables go: a URI of a directory."""
    tokens: set[str] = field(default_factory=set)
    """Accepted tokens; none: any request is accepted."""
    keys: Callable[[str], dict[str, str]] | None = None
    """Storage keys for a location."""
    keys_live_ms: int | None = None
    clients: dict[str, str] = field(default_factory=dict)
    """Secrets of OAuth clients, by id."""
    tokens_live_s: int = 3600
    url: str = ""
    tables: dict[tuple[str, str, str], Table] = field(default_factory=dict)
    schemas: dict[tuple[str, str], dict[str, Any] | None] = field(default_factory=dict)
    """What was said of each schema; None: nothing."""
    stages: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    """What was asked: method, path, body."""
    targets: list[str] = field(default_factory=list)
    """Paths with their queries."""
    headers: list[dict[str, str]] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def fail(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        times: int = 1,
        change: Callable[[Any], Any] | None = None,
    ) -> None:
        """Plan a fault for the next requests whose path matches."""
        self.faults.append(Fault(method, path, kind, times, change))

    def asked(self, method: str, path: str) -> list[Any]:
        """Return the bodies of the requests that match."""
        return [b for m, p, b in self.requests if m == method and re.fullmatch(path, p)]

    def answer(
        self, method: str, target: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        """Answer a request with a status and a value of JSON."""
        url = urllib.parse.urlsplit(target)
        path = url.path.removeprefix(BASE)
        query = dict(urllib.parse.parse_qsl(url.query))
        with self._lock:
            self.requests.append((method, path, body))
            self.targets.append(target)
            self.headers.append(headers)
            fault = self._fault(method, path)
            if fault is not None and fault.kind == "lost request":
                raise LostError
            if fault is not None and fault.kind.isdecimal():
                return int(fault.kind), {"error": {"type": "Injected", "message": "injected"}}
            try:
                self._require_token(path, headers)
                status, value = self._routed(method, path, query, body)
            except RefusedError as refused:
                status, value = refused.status, self._error(path, refused)
            if fault is not None and fault.kind == "lost answer":
                raise LostError
            if fault is not None and fault.change is not None:
                value = fault.change(value)
            return status, value

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.method == method and re.fullmatch(fault.path, path):
                fault.times -= 1
                return fault
        return None

    def _require_token(self, path: str, headers: dict[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if path != "/oauth/token" and self.tokens and token not in self.tokens:
            raise RefusedError(401, "UNAUTHENTICATED", f"Invalid access token {token}.")

    def _error(self, path: str, refused: RefusedError) -> Any:
        if path.startswith("/delta/v1") and refused.status not in {401, 403}:
            error = {"type": refused.kind, "code": refused.status, "message": str(refused)}
            return {"error": {**error, "stack": None}}
        return {"error_code": refused.kind, "message": str(refused), "details": []}

    def _routed(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        for wanted, pattern, call in _ROUTES:
            match = re.fullmatch(pattern, path)
            if wanted == method and match is not None:
                parts = [urllib.parse.unquote(part) for part in match.groups()]
                value = getattr(self, call.__name__)(query, body, *parts)  # tests replace methods
                return (204 if value is None else 200), value
        return 404, None

    # --- tables -----------------------------------------------------------------------------

    def require_schema(self, catalog: str, schema: str) -> None:
        if catalog not in {name for name, _ in self.schemas}:
            raise RefusedError(404, "NoSuchCatalogException", f"Catalog not found: {catalog}")
        if (catalog, schema) not in self.schemas:
            raise RefusedError(
                404, "NoSuchSchemaException", f"Schema not found: {catalog}.{schema}"
            )

    def table(self, *name: str) -> Table:
        self.require_schema(*name[:2])
        if name not in self.tables:
            raise RefusedError(404, "NoSuchTableException", f"Table not found: {'.'.join(name)}")
        return self.tables[name]  # type: ignore[index]

    def load(self, _: Any, __: Any, *name: str) -> Any:
        table = self.table(*name)
        if table.format != "DELTA":
            raise RefusedError(
                400, "UnsupportedTableFormatException", "Table is not a Delta table."
            )
        listed = [c for c in table.commits if c["version"] > table.published]
        answer = {
            "metadata": {
                "etag": f"etag-{table.etag}",
                "table-type": table.kind,
                "table-uuid": table.id,
                "location": table.location,
                "columns": {"type": "struct", "fields": table.fields},
                "partition-columns": table.partition,
                "properties": table.properties,
            },
            "commits": list(reversed(listed)),
        }
        return (
            {**answer, "latest-table-version": table.latest} if table.kind == "MANAGED" else answer
        )

    def update(self, query: Any, body: Any, *name: str) -> Any:
        table = self.table(*name)
        actions = {update["action"]: update for update in body.get("updates") or ()}
        asserts = {r["type"]: r for r in body.get("requirements") or ()}
        if not actions or not actions.keys() <= _ACTIONS:
            raise invalid(f"Unknown or missing updates: {sorted(actions)}")
        if "assert-table-uuid" not in asserts:
            raise invalid("assert-table-uuid requirement is required.")
        if asserts["assert-table-uuid"]["uuid"] != table.id:
            raise RefusedError(409, "UpdateRequirementConflictException", "another uuid")
        if (
            asserts.get("assert-etag", {"etag": f"etag-{table.etag}"})["etag"]
            != f"etag-{table.etag}"
        ):
            raise RefusedError(409, "UpdateRequirementConflictException", "another etag")
        if actions.get("set-table-comment", {"comment": ""}).get("comment") is None:
            raise invalid("set-table-comment requires a comment.")
        _require_contract(table, actions)
        added = actions.pop("add-commit", None)
        reported = actions.pop("set-latest-backfilled-version", None)
        shown = actions.get("update-metadata-snapshot-version")
        if shown is not None and table.kind != "EXTERNAL":
            raise invalid("update-metadata-snapshot-version is only supported for EXTERNAL tables")
        if (added or reported) and table.kind != "MANAGED":
            raise invalid("add-commit requires a MANAGED Delta table.")
        if added is not None and not self._add(table, added["commit"]):
            return self.load(query, None, *name)
        before = table.published
        if reported is not None:
            version = reported["latest-published-version"]
            if version > table.latest or not table.commits:
                raise invalid(f"Should not backfill version {version}")
            table.published = max(table.published, version)
        self._change(table, actions)
        answer = self.load(query, None, *name)
        if reported is not None and before < table.published == table.latest:
            answer["commits"] = table.commits[-1:]  # this one answer still lists it
        kept = [c for c in table.commits if c["version"] >= table.published]
        table.commits = kept or table.commits[-1:]
        return answer

    def _add(self, table: Table, commit: dict[str, Any]) -> bool:
        """Add a commit; return whether it is new."""
        version, unpublished = commit["version"], table.latest - table.published
        if min(commit["file-size"], commit["timestamp"], version) <= 0:
            raise invalid("Field must be positive")
        for known in table.commits:
            if (known["version"], known["file-name"]) == (version, commit["file-name"]):
                return False
        if version <= table.latest and table.commits:
            raise RefusedError(
                409, "CommitVersionConflictException", f"Current version is {table.latest}"
            )
        if version != table.latest + 1 and table.commits:
            raise invalid(f"Commit version must be {table.latest + 1}, but got {version}")
        if unpublished >= LIMIT:
            raise RefusedError(429, "ResourceExhaustedException", "Max number of commits reached")
        table.commits.append(commit)
        return True

    def _change(self, table: Table, actions: dict[str, Any]) -> None:
        if not actions:
            return
        for key in actions.get("remove-properties", {}).get("removals", ()):
            table.properties.pop(key, None)
        table.properties |= actions.get("set-properties", {}).get("updates", {})
        if "set-protocol" in actions:
            table.properties |= _features(actions["set-protocol"]["protocol"])
        table.fields = actions.get("set-columns", {}).get("columns", {}).get("fields", table.fields)
        partition = actions.get("set-partition-columns", {})
        table.partition = partition.get("partition-columns", table.partition)
        table.comment = actions.get("set-table-comment", {}).get("comment", table.comment)
        table.properties |= _domains(actions.get("set-domain-metadata", {}).get("updates", {}))
        if (shown := actions.get("update-metadata-snapshot-version")) is not None:
            table.properties["delta.lastUpdateVersion"] = str(shown["last-commit-version"])
        table.etag += 1

    def stage(self, _: Any, body: Any, catalog: str, schema: str) -> Any:
        self.require_schema(catalog, schema)
        if (catalog, schema, body["name"]) in self.tables:
            raise RefusedError(
                409, "AlreadyExistsException", f"Table already exists: {body['name']}"
            )
        table_id = str(uuid.uuid4())
        root = self.root.replace("file:/", "file:///", 1)  # as the real server spells it
        location = f"{root.rstrip('/')}/__unitystorage/tables/{table_id}"
        self.stages[table_id] = location
        return {
            "table-id": table_id,
            "table-type": "MANAGED",
            "location": location,
            "storage-credentials": self._keys(location, "READ_WRITE"),
            "required-protocol": {
                "min-reader-version": 3,
                "min-writer-version": 7,
                "reader-features": READER,
                "writer-features": [*READER, "inCommitTimestamp"],
            },
            "suggested-protocol": {
                "reader-features": ["columnMapping"],
                "writer-features": ["columnMapping", "domainMetadata", "rowTracking"],
            },
            "required-properties": {**REQUIRED, "io.unitycatalog.tableId": table_id},
            "suggested-properties": SUGGESTED,
        }

    def create(self, query: Any, body: Any, catalog: str, schema: str) -> Any:
        self.require_schema(catalog, schema)
        name = (catalog, schema, body["name"])
        if name in self.tables:
            raise RefusedError(
                409, "AlreadyExistsException", f"Table already exists: {body['name']}"
            )
        given, protocol = dict(body.get("properties") or {}), body["protocol"]
        table_id = str(uuid.uuid4())
        if body["table-type"] == "MANAGED":
            table_id = self._require_managed(body, given, protocol)
        given |= _features(protocol)
        given |= _domains(body.get("domain-metadata") or {})
        self.tables[name] = Table(
            id=table_id,
            kind=body["table-type"],
            location=body["location"],
            fields=body["columns"]["fields"],
            properties=given,
            comment=body.get("comment"),
            partition=list(body.get("partition-columns") or ()),
        )
        return self.load(query, None, *name)

    def _require_managed(self, body: Any, given: dict[str, str], protocol: Any) -> str:
        staged = [k for k, location in self.stages.items() if location == body["location"]]
        if not staged:
            raise RefusedError(404, "NoSuchTableException", "Staging table not found")
        for key, text in REQUIRED.items():
            if given.get(key) != text:
                raise invalid(f"MANAGED table required property '{key}' must be '{text}'.")
        if given.get("io.unitycatalog.tableId") != staged[0]:
            raise invalid("the table id does not match")
        for feature in READER:
            if feature not in protocol["reader-features"]:
                raise invalid(f"MANAGED table missing required reader-feature '{feature}'.")
        if "inCommitTimestamp" not in protocol["writer-features"]:
            raise invalid("MANAGED table missing required writer-feature 'inCommitTimestamp'.")
        del self.stages[staged[0]]
        return staged[0]

    def drop(self, _: Any, __: Any, *name: str) -> None:
        table = self.table(*name)
        del self.tables[name]  # type: ignore[arg-type]
        if table.kind == "MANAGED" and table.location.startswith("file:"):
            shutil.rmtree(urllib.parse.urlsplit(table.location).path, ignore_errors=True)

    def rename(self, _: Any, body: Any, *name: str) -> None:
        table, new = self.table(*name), (*name[:2], body["new-name"])
        if new in self.tables:
            raise RefusedError(409, "AlreadyExistsException", f"Table already exists: {new[-1]}")
        del self.tables[name]  # type: ignore[arg-type]
        self.tables[new] = table

    def credentials(self, query: Any, _: Any, *name: str) -> Any:
        operation = query.get("operation")
        if operation not in {"READ", "READ_WRITE"}:
            raise invalid(f"unknown enum value: {operation}")
        return {"storage-credentials": self._keys(self.table(*name).location, operation)}

    def credentials_of_stage(self, _: Any, __: Any, table_id: str) -> Any:
        return {"storage-credentials": self._keys(self.stages[table_id], "READ_WRITE")}

    def credentials_of_path(self, _: Any, body: Any) -> Any:
        [row] = self._keys(body["url"], "READ_WRITE")
        config = row["config"]
        return {
            "aws_temp_credentials": {
                "access_key_id": config.get("s3.access-key-id"),
                "secret_access_key": config.get("s3.secret-access-key"),
                "session_token": config.get("s3.session-token"),
            },
            "expiration_time": row["expiration-time-ms"],
            "url": body["url"],
        }

    def _keys(self, location: str, operation: str) -> list[dict[str, Any]]:
        is_local = location.startswith("file:") or self.keys is None
        config = {} if is_local or self.keys is None else self.keys(location)
        lives = self.keys_live_ms
        expires = None if is_local or lives is None else int(time.time() * 1000) + lives
        row = {"prefix": location, "operation": operation, "config": config}
        return [{**row, "expiration-time-ms": expires}]

    def listed_tables(self, query: Any, _: Any) -> Any:
        self.require_schema(query["catalog_name"], query["schema_name"])
        wanted = (query["catalog_name"], query["schema_name"])
        names = sorted(name for name in self.tables if name[:2] == wanted)
        rows = [
            {
                "name": name[2],
                "table_type": self.tables[name].kind,
                "data_source_format": self.tables[name].format,
            }
            for name in names
        ]
        return _page("tables", rows, query)

    def listed_schemas(self, query: Any, _: Any) -> Any:
        names = sorted(
            schema for catalog, schema in self.schemas if catalog == query["catalog_name"]
        )
        return _page("schemas", [{"name": name} for name in names], query)

    def schema(self, _: Any, __: Any, full_name: str) -> Any:
        catalog, _, schema = full_name.partition(".")
        self.require_schema(catalog, schema)
        said = self.schemas[catalog, schema] or {}
        return {"name": schema, "catalog_name": catalog, "full_name": full_name, **said}

    def create_schema(self, query: Any, body: Any) -> Any:
        name = (body["catalog_name"], body["name"])
        if name[0] not in {catalog for catalog, _ in self.schemas}:
            raise RefusedError(404, "CATALOG_NOT_FOUND", f"Catalog not found: {name[0]}")
        if name in self.schemas:
            raise RefusedError(400, "SCHEMA_ALREADY_EXISTS", f"Schema already exists: {name[1]}")
        self.schemas[name] = {k: body[k] for k in ("comment", "properties") if k in body}
        return self.schema(query, None, ".".join(name))

    def drop_schema(self, query: Any, _: Any, full_name: str) -> Any:
        catalog, _, schema = full_name.partition(".")
        self.require_schema(catalog, schema)
        inside = [name for name in self.tables if name[:2] == (catalog, schema)]
        if inside and query.get("force") != "true":
            raise RefusedError(400, "INVALID_ARGUMENT", "Cannot delete schema with tables")
        for name in inside:
            self.drop(query, None, *name)
        del self.schemas[catalog, schema]
        return {}

    def described(self, _: Any, __: Any, full_name: str) -> Any:
        name = tuple(full_name.split("."))
        table = self.table(*name)
        return {
            "name": name[-1],
            "table_type": table.kind,
            "data_source_format": table.format,
            "storage_location": table.location,
            "comment": table.comment,
            "columns": [
                {"name": one["name"], "type_text": _type_text(one["type"])} for one in table.fields
            ],
        }

    def token(self, _: Any, body: Any) -> Any:
        given = urllib.parse.parse_qs(body if isinstance(body, str) else "")
        if given.get("grant_type") != ["client_credentials"] or not self.clients:
            raise RefusedError(400, "invalid_request", "no client credentials")
        token = f"oauth-{uuid.uuid4().hex}"
        self.tokens.add(token)
        return {"access_token": token, "expires_in": self.tokens_live_s, "token_type": "Bearer"}


_SQL_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def _type_text(kind: Any) -> str:
    return _SQL_TYPES.get(kind, kind) if isinstance(kind, str) else str(kind["type"])


def _require_contract(table: Table, actions: dict[str, Any]) -> None:
    """Refuse a change of the protocol of a managed table without a property that is required.

    Each commit of a table with Iceberg metadata says where that is.
    """
    if table.kind != "MANAGED":
        return
    removed = actions.get("remove-properties", {}).get("removals", ())
    left = {key: text for key, text in table.properties.items() if key not in removed}
    left |= actions.get("set-properties", {}).get("updates", {})
    has_iceberg = "iceberg" in left.get("delta.universalFormat.enabledFormats", "").split(",")
    if has_iceberg and "add-commit" in actions and "uniform" not in actions["add-commit"]:
        raise invalid("Uniform metadata must be set")
    if "set-protocol" not in actions:
        return
    for key, text in REQUIRED.items():
        if left.get(key) != text:
            raise invalid(f"MANAGED table required property '{key}' must be '{text}'")


def _features(protocol: Any) -> dict[str, str]:
    names = {*(protocol.get("reader-features") or ()), *(protocol.get("writer-features") or ())}
    return {f"delta.feature.{name}": "supported" for name in sorted(names)}


def _domains(domains: Any) -> dict[str, str]:
    clustering = domains.get("delta.clustering")
    if clustering is None:
        return {}
    return {"clusteringColumns": json.dumps(clustering["clusteringColumns"])}


def _page(key: str, rows: list[Any], query: dict[str, str]) -> Any:
    start, size = int(query.get("page_token") or 0), int(query.get("max_results") or 100)
    more = str(start + size) if len(rows) > start + size else None
    return {key: rows[start : start + size], "next_page_token": more}


_SCHEMA = "/delta/v1/catalogs/([^/]+)/schemas/([^/]+)"
_TABLE = f"{_SCHEMA}/tables/([^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", _TABLE, UnityServer.load),
    ("POST", _TABLE, UnityServer.update),
    ("DELETE", _TABLE, UnityServer.drop),
    ("POST", f"{_TABLE}/rename", UnityServer.rename),
    ("GET", f"{_TABLE}/credentials", UnityServer.credentials),
    ("POST", f"{_SCHEMA}/staging-tables", UnityServer.stage),
    ("POST", f"{_SCHEMA}/tables", UnityServer.create),
    ("GET", "/delta/v1/staging-tables/([^/]+)/credentials", UnityServer.credentials_of_stage),
    ("POST", "/temporary-path-credentials", UnityServer.credentials_of_path),
    ("GET", "/tables", UnityServer.listed_tables),
    ("GET", "/tables/([^/]+)", UnityServer.described),
    ("GET", "/schemas", UnityServer.listed_schemas),
    ("POST", "/schemas", UnityServer.create_schema),
    ("GET", "/schemas/([^/]+)", UnityServer.schema),
    ("DELETE", "/schemas/([^/]+)", UnityServer.drop_schema),
    ("POST", "/oauth/token", UnityServer.token),
]


def _handler(server: UnityServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def reply(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = "json" in (self.headers.get("Content-Type") or "")
            body = json.loads(raw or b"null") if is_json else raw.decode()
            headers = {key.lower(): text for key, text in self.headers.items()}
            try:
                status, value = server.answer(self.command, self.path, body, headers)
            except LostError:
                self.close_connection = True
                return
            self.send_response(status)
            content = value.encode() if isinstance(value, str) else json.dumps(value).encode()
            content = b"" if value is None else content
            if status in range(300, 400):
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = reply  # noqa: N815 - the standard library's names

    return Handler


@contextlib.contextmanager
def unity_server(root: str, **settings: Any) -> Iterator[UnityServer]:
    """Serve a catalog ``main`` with the schema ``sales`` on a free port of loopback."""
    server = UnityServer(root=root, schemas={("main", "sales"): None}, **settings)
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{listener.server_address[1]}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
