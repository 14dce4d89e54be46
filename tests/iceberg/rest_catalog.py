"""A server of Iceberg's REST catalog that has what registering a table needs, in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class RestCatalog:
    """The tables of the server, and what it can do."""

    knows_overwrite: bool = True
    fails_to_register: str | None = None
    """Metadata that the server refuses with an error of its own."""
    tables: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    uri: str = ""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the JSON that answer a request."""
        self.requests.append(f"{method} {path}")
        match method, path.partition("?")[0].strip("/").split("/")[1:]:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "POST", ["namespaces", _, "register"]:
                return self._register(body)
            case "GET" | "HEAD", ["namespaces", _, "tables", name] if name in self.tables:
                return 200, self._table(name)
            case "DELETE", ["namespaces", _, "tables", name] if name in self.tables:
                del self.tables[name]
                return 204, None
        return 404, {"error": {"message": path, "type": "NoSuchTableException", "code": 404}}

    def _register(self, body: Any) -> tuple[int, Any]:
        name, location = body["name"], body["metadata-location"]
        if location == self.fails_to_register:
            return 400, {"error": {"message": "no", "type": "BadRequestException", "code": 400}}
        if name in self.tables and not (self.knows_overwrite and body.get("overwrite")):
            return 409, {"error": {"message": name, "type": "AlreadyExistsException", "code": 409}}
        self.tables[name] = location
        return 200, self._table(name)

    def _table(self, name: str) -> Any:
        location = self.tables[name]
        metadata = json.loads(Path(location.removeprefix("file://")).read_text(encoding="utf-8"))
        return {"metadata-location": location, "metadata": metadata, "config": {}}


@contextmanager
def serving(catalog: RestCatalog) -> Iterator[RestCatalog]:
    """Let a server answer for the catalog, at its ``uri``."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content) if content else None
            status, found = catalog.answer(self.command, self.path, body)
            answer = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    catalog.uri = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield catalog
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
