"""Clients of some versions of PySpark beside Spark Connect servers of others: ``make connect``.

``python -m tests.servers.connect_versions PYTHON...`` starts a stock server by the packages of each
Python, one after the other, and a client of each Python beside it. A client asks what
`tests.statements.connect_names` asks in ``make thorough``. The matrix is printed: of each pair the
number of checks whose answers are due, the limits of Spark among these, and the names of the other
checks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.connect_session import ROOT, SECONDS_MAX, URL_VARIABLE
from tests.servers.process import LOOPBACK, Server, free_port
from tests.statements.test_connect_names import EXPECTED

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_READY = "Spark Connect server started"
_MEMORY = "1g"
_ERROR = re.compile(r"[\w.]+(Error|Exception)\b")


@dataclass(frozen=True)
class Limit:
    """A check whose answer is another one with some servers, for a reason that is Spark's."""

    check: str
    reason: str
    answer: Any
    """What is due then; of an error the beginning of its text."""


_OF_4_0 = (
    Limit(
        "nested_functions",
        "its optimizer fails for such functions, also where they read Parquet tables",
        "SparkException: [INTERNAL_ERROR] SQL function expression should be rewritten",
    ),
    Limit(
        "scripts",
        "it has no SQL scripts unless a setting allows them",
        [*["DELTA_UNSUPPORTED_ON_CONNECT"] * 3, "UNSUPPORTED_FEATURE", False],
    ),
    Limit(
        "recorded",
        "it has other rules for columns of type VOID",
        {
            "evolution-void-array": [
                {"error": {"class": "DELTA_MERGE_ADD_VOID_COLUMN", "sqlstate": "42K09"}},
                {
                    "error": {
                        "class": "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
                        "sqlstate": "22005",
                    }
                },
            ]
        },
    ),
)
_NEWER_CLIENT = Limit(
    "recorded",
    "the client sends rows by settings that the server lacks: refused with the version to install",
    "UnsupportedHereError: [DELTA_UNSUPPORTED_ON_CONNECT] A client of PySpark ",
)


def limits_of(server: str, client: str) -> dict[str, Limit]:
    """Return what Spark limits for a client of one version beside a server of another, by check.

    >>> sorted(limits_of("4.0.0", "4.0.0"))
    ['nested_functions', 'recorded', 'scripts']
    >>> limits_of("4.3.0", "4.0.0")
    {}
    """
    if not server.startswith("4.0."):
        return {}
    newer = () if client.startswith("4.0.") else (_NEWER_CLIENT,)
    return {limit.check: limit for limit in (*_OF_4_0, *newer)}


def _printed(python: str, text: str) -> str:
    return subprocess.run(
        [python, "-c", text], check=True, capture_output=True, text=True
    ).stdout.strip()


def _version(python: str) -> str:
    return _printed(python, "import pyspark; print(pyspark.__version__)")


def start_server(python: str, folder: Path) -> tuple[Server, str]:
    """Start a stock server by the packages of a Python; return it and its URL."""
    home = _printed(python, "import os, pyspark; print(os.path.dirname(pyspark.__file__))")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": _MEMORY,
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -Duser.timezone=UTC",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
    }
    given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command = [f"{home}/bin/spark-submit", "--master", "local[2]", "--class", _SERVER, *given]
    environment = {"SPARK_HOME": home, "PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    server = Server([*command, "spark-internal"], folder / "log", environment)
    server.wait_until(server.says(_READY))
    return server, f"sc://{LOOPBACK}:{port}"


def _is_due(found: Any, due: Any) -> bool:
    is_text = isinstance(found, str) and isinstance(due, str)
    return found.startswith(due) if is_text else bool(found == due)


def differences(python: str, url: str, directory: Path, limits: Mapping[str, Limit]) -> list[str]:
    """Return the checks whose answers are not due for a client, or what it failed with."""
    run = subprocess.run(
        [python, "-m", "tests.statements.connect_names", str(directory), "every"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", URL_VARIABLE: url},
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    if run.returncode:
        errors = [line for line in run.stderr.splitlines() if _ERROR.match(line)]
        sys.stderr.write(f"{errors[-1] if errors else run.stderr[-1000:]}\n")
        return list(EXPECTED)
    found = json.loads(run.stdout.splitlines()[-1])
    due = EXPECTED | {check: limit.answer for check, limit in limits.items()}
    wrong = [name for name, answer in due.items() if not _is_due(found.get(name), answer)]
    for name in wrong:
        sys.stderr.write(f"{name}: {found.get(name)}\n   not {due[name]}\n")
    return wrong


def main(pythons: list[str]) -> int:
    """Print the matrix; return the number of pairs with answers that are not due."""
    versions = {python: _version(python) for python in pythons}
    failed = 0
    print("server   client   answers that are due")  # noqa: T201 - the report
    for server_python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            server, url = start_server(server_python, Path(folder))
            try:
                for python in pythons:
                    directory = Path(folder) / f"client{versions[python]}"
                    directory.mkdir()
                    limits = limits_of(versions[server_python], versions[python])
                    wrong = differences(python, url, directory, limits)
                    failed += bool(wrong)
                    line = [
                        f"{versions[server_python]:8} {versions[python]:8}",
                        f"{len(EXPECTED) - len(wrong)} of {len(EXPECTED)}",
                        *(f"\n    not {name}" for name in wrong),
                        *(f"\n    {one.check}: {one.reason}" for one in limits.values()),
                    ]
                    print(*line, flush=True)  # noqa: T201 - the report
            finally:
                server.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main([str(Path(python).absolute()) for python in sys.argv[1:]]))
