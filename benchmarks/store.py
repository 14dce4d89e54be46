"""Merges and conversions in a bucket whose server takes its time: 30 ms for every request.

    python -m benchmarks.store

versitygw keeps a bucket as a folder, so tables are laid, and results are judged, on the disk.
Between it and the engines a proxy of this process holds back each answer, and counts requests.
puredelta has no JAR, delta-spark goes through s3a, delta-rs through its own client. Choices are
those of `benchmarks.options`, and PUREDELTA_BENCH_DELAY: milliseconds of each answer (30).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from benchmarks.bench import Answer, Bench, due, earlier, heading, not_measured
from benchmarks.engines import Engine
from benchmarks.options import PREFIX, RESULTS, Options
from benchmarks.report import markdown, stored, table_head, table_row
from benchmarks.requests import HADOOP, STORAGE_OPTIONS, Request
from tests.servers import s3
from tests.servers.proxy import Proxy

_SERVER = "versitygw"
_TAG = "user.etag"
"""Where it keeps the tag of an object."""
_ENGINES = "puredelta,delta-spark,delta-rs"
Counts: TypeAlias = dict[str, dict[str, list[Counter[str]]]]
"""The requests of each command, by verb, of each engine, of each workload."""


class StoreBench(Bench):
    """Engines are asked for tables by their addresses in the bucket; requests are counted."""

    def __init__(self, options: Options, proxy: Proxy, bucket: Path) -> None:
        super().__init__(options)
        self.scratch = bucket / "scratch"
        self._proxy, self._bucket = proxy, bucket
        self.requests: dict[str, list[Counter[str]]] = defaultdict(list)
        """By engine, the requests of each command, by verb."""

    def ask(self, engine: Engine, request: Request) -> Answer:
        """Send one request with the address of the table."""
        _tag(Path(request["table"]))
        table = Path(request["table"]).relative_to(self._bucket).as_posix()
        self._proxy.requests.clear()
        answer = super().ask(engine, {**request, "table": f"s3a://{s3.BUCKET}/{table}"})
        self.requests[engine.name].append(Counter(r.verb for r in self._proxy.requests))
        return answer


def _tag(table: Path) -> None:
    """Give files the tags that the server would have given them: s3a insists on one.

    It also keeps footers by name and tag, so that files of one name have tags of their own.
    """
    for file in table.rglob("*"):
        if file.is_file() and _TAG not in os.listxattr(file):
            content = f"{file.name} {file.stat().st_ino} {file.stat().st_mtime_ns}".encode()
            tag = hashlib.md5(content, usedforsecurity=False).hexdigest()
            os.setxattr(file, _TAG, f'"{tag}"'.encode())


@contextmanager
def delayed_bucket(directory: Path, delay_ms: float) -> Iterator[tuple[Proxy, Path]]:
    """Start a server and a proxy before it; yield the proxy and the folder of the bucket."""
    if not s3.is_installed(_SERVER):
        raise SystemExit(f"SERVERS_BIN has no {_SERVER}: run scripts/servers")
    seconds = delay_ms / 1_000
    shutil.rmtree(directory, ignore_errors=True)
    with (
        s3.s3_server(_SERVER, directory) as endpoint,
        Proxy(endpoint, delay_seconds=seconds) as proxy,
    ):
        yield proxy, directory / "data" / s3.BUCKET


def _environment(endpoint: str) -> dict[str, str]:
    rust = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    return {HADOOP: json.dumps(s3.settings(endpoint)), STORAGE_OPTIONS: json.dumps(rust)}


def _counted(of_workload: Counts) -> str:
    """Return the median number of requests of each workload, and how many of them wrote."""
    names = list(dict.fromkeys(name for found in of_workload.values() for name in found))
    lines = [*table_head(["requests (of them writes)", *names])]
    for title, found in of_workload.items():
        cells = []
        for name in names:
            if name not in found:
                cells.append("-")
                continue
            totals = statistics.median(sum(c.values()) for c in found[name])
            writes = statistics.median(c["PUT"] + c["POST"] + c["DELETE"] for c in found[name])
            cells.append(f"{totals:g} ({writes:g})")
        lines.append(table_row([title, *cells]))
    return "\n".join(lines)


def _earlier_counts(options: Options) -> Counts:
    path = RESULTS / f"{options.name}-requests.json"
    if not (options.resumes and path.exists()):
        return {}
    return {
        title: {name: [Counter(one) for one in some] for name, some in engines.items()}
        for title, engines in json.loads(path.read_text()).items()
    }


def main() -> None:
    """Measure what the environment chooses."""
    options = Options.of(os.environ, engines=_ENGINES, suffix="-store")
    delay_ms = float(os.environ.get(f"{PREFIX}DELAY", "30"))
    options = replace(options, directory=options.directory / "store")
    found, counts = earlier(options), _earlier_counts(options)
    title = f"{heading(options)}, {delay_ms:g} ms a request"
    with delayed_bucket(options.directory / "server", delay_ms) as (proxy, bucket):
        os.environ.update(_environment(proxy.endpoint))
        bench = StoreBench(options, proxy, bucket)
        try:
            for workload in due(options, found, options.workloads):
                others = not_measured(found, workload, options)
                former = counts.get(workload.title, {})
                for state in bench.measure(workload):
                    found = [*others, *state]
                    counts[workload.title] = former | {
                        name: list(of[-options.repeats :]) for name, of in bench.requests.items()
                    }
                    text = f"{markdown(found, title)}\n\n{_counted(counts)}\n"
                    RESULTS.mkdir(exist_ok=True)
                    (RESULTS / f"{options.name}.json").write_text(stored(found, title))
                    (RESULTS / f"{options.name}.md").write_text(text)
                    (RESULTS / f"{options.name}-requests.json").write_text(json.dumps(counts))
        finally:
            bench.close()
    print(f"\n{(RESULTS / f'{options.name}.md').read_text()}\nKept in {RESULTS} as {options.name}")
    if any(m.problem for m in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
