"""Google's object store as far as obstore speaks to it: the XML interface, in memory.

No server that can be installed takes conditional puts by that interface, so this one is ours. It
knows objects with generations, `x-goog-if-generation-match`, ranges, listings in pages, copies and
multipart uploads; it asks for no credentials. It answers as the interface is documented
(https://cloud.google.com/storage/docs/xml-api/overview), and refuses what it does not know.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from puredelta.store.registry import Storage
from tests.servers.process import LOOPBACK

BUCKET = "tables"
_PAGE = 100
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PART = re.compile(r"<PartNumber>(\d+)</PartNumber>")


@contextlib.contextmanager
def gcs() -> Iterator[str]:
    """Start a server with an empty bucket and yield its endpoint."""
    server = _Server((LOOPBACK, 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def settings(endpoint: str) -> dict[str, str]:
    """Return the settings of a session: Hadoop's for the address, our own for who asks."""
    return {_ADDRESS: endpoint, "spark.puredelta.storage.service_account_key": _account(endpoint)}


def storage(endpoint: str) -> Storage:
    return Storage().with_options({_ADDRESS: endpoint, "service_account_key": _account(endpoint)})


_ADDRESS = "fs.gs.storage.root.url"


def _account(endpoint: str) -> str:
    """Return an account that asks nobody for a token, as emulators have them."""
    nothing = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    return json.dumps({"gcs_base_url": endpoint, "disable_oauth": True, **nothing})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    content: bytes
    generation: int
    modified: datetime

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(self.content).hexdigest()}"',
            "x-goog-generation": str(self.generation),
            "Last-Modified": format_datetime(self.modified, usegmt=True),
            "Accept-Ranges": "bytes",
        }


@dataclass(slots=True)
class _Bucket:
    objects: dict[str, _Object] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, name: str, content: bytes, generation: str | None) -> _Object | None:
        """Store an object; ``None`` if another generation is there than was expected."""
        with self.lock:
            there = self.objects.get(name)
            if generation is not None and int(generation) != (there.generation if there else 0):
                return None
            new = _Object(
                content=content,
                generation=next(self.numbers),
                modified=datetime.now(timezone.utc),
            )
            self.objects[name] = new
            return new


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.bucket = _Bucket()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        name, query = self._asked()
        if name:
            self._send_object(name)
        elif query.get("list-type") == "2":
            self._send_list(query)
        else:
            self._answer(400, b"InvalidArgument")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        name, query = self._asked()
        content, bucket = self._body(), self.server.bucket
        source = self.headers.get("x-goog-copy-source")
        if "uploadId" in query:
            upload = bucket.uploads.get(query["uploadId"])
            if upload is None:
                self._answer(404, b"NoSuchUpload")
                return
            upload[int(query["partNumber"])] = content
            self._answer(200, headers={"ETag": f'"{hashlib.md5(content).hexdigest()}"'})
            return
        if source is not None:
            copied = bucket.objects.get(unquote(source).lstrip("/").removeprefix(f"{BUCKET}/"))
            if copied is None:
                self._answer(404, b"NoSuchKey")
                return
            content = copied.content
        new = bucket.put(name, content, self.headers.get("x-goog-if-generation-match"))
        if new is None:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self._answer(200, headers=new.headers)

    def do_DELETE(self) -> None:
        name, query = self._asked()
        bucket = self.server.bucket
        held: dict[str, object] = bucket.uploads if "uploadId" in query else bucket.objects  # type: ignore[assignment]
        found = held.pop(query.get("uploadId", name), None)
        self._answer(404 if found is None else 204)

    def do_POST(self) -> None:
        name, query = self._asked()
        content, bucket = self._body(), self.server.bucket
        if "uploads" in query:
            upload = str(next(bucket.numbers))
            bucket.uploads[upload] = {}
            named = f"<Bucket>{BUCKET}</Bucket><Key>{escape(name)}</Key>"
            text = f"{named}<UploadId>{upload}</UploadId>"
            self._answer(200, _xml("InitiateMultipartUploadResult", text))
        elif query.get("uploadId") in bucket.uploads:
            parts = bucket.uploads.pop(query["uploadId"])
            chosen = [int(number) for number in _PART.findall(content.decode())]
            whole = b"".join(parts[number] for number in chosen)
            new = bucket.put(name, whole, self.headers.get("x-goog-if-generation-match"))
            assert new is not None
            tag = escape(new.headers["ETag"])
            text = f"<Key>{escape(name)}</Key><ETag>{tag}</ETag>"
            self._answer(200, _xml("CompleteMultipartUploadResult", text), new.headers)
        else:
            self._answer(404, b"NoSuchUpload")

    def _send_object(self, name: str) -> None:
        found = self.server.bucket.objects.get(name)
        if found is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        size = len(found.content)
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, found.content, found.headers)
            return
        first, last = wanted.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= size:
            self._answer(416, headers={"Content-Range": f"bytes */{size}"})
            return
        headers = {**found.headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
        self._answer(206, found.content[start:end], headers)

    def _send_list(self, query: dict[str, str]) -> None:
        """Answer one page; what follows a delimiter is one common prefix."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        with self.server.bucket.lock:
            names = sorted(n for n in self.server.bucket.objects if n.startswith(prefix))
            objects = dict(self.server.bucket.objects)
        entries: dict[str, str] = {}
        for name in names:
            below, found, _ = name.removeprefix(prefix).partition(delimiter or "\0")
            common = f"{prefix}{below}{delimiter}"
            shown = common if delimiter and found else name
            if shown > after and shown not in entries:
                entries[shown] = _entry(shown, None if shown != name else objects[name])
        page = sorted(entries)[:_PAGE]
        text = "".join(entries[name] for name in page)
        if len(page) < len(entries):
            text += f"<IsTruncated>true</IsTruncated><NextContinuationToken>{escape(page[-1])}"
            text += "</NextContinuationToken>"
        self._answer(200, _xml("ListBucketResult", text))

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        _, bucket, *name = unquote(parts.path).split("/", 2)
        assert bucket == BUCKET, self.path
        query = parse_qs(parts.query, keep_blank_values=True)
        return "".join(name), {key: values[0] for key, values in query.items()}

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def _answer(
        self, status: int, content: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _entry(name: str, found: _Object | None) -> str:
    if found is None:
        return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
    tag = escape(found.headers["ETag"])
    modified = found.modified.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    about = f"<Size>{len(found.content)}</Size><LastModified>{modified}Z</LastModified>"
    return f"<Contents><Key>{escape(name)}</Key><ETag>{tag}</ETag>{about}</Contents>"


def _xml(name: str, content: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{content}</{name}>'.encode()
