"""Clients of some versions of PySpark beside Spark Connect servers of others: ``make connect``.

``python -m tests.servers.connect_versions PYTHON...`` starts a stock server by the packages of each
Python, one after the other, and a client of each Python beside it. A client asks what
`tests.statements.connect_names` asks in every run of the tests. The matrix is printed: of each pair
the number of checks whose answers are right, and the names of the others.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.connect_session import ROOT, SECONDS_MAX, URL_VARIABLE
from tests.servers.process import LOOPBACK, Server, free_port
from tests.statements.test_connect_names import EXPECTED

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_READY = "Spark Connect server started"
_MEMORY = "1g"
_ERROR = re.compile(r"[\w.]+(Error|Exception)\b")


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


def differences(python: str, url: str, directory: Path) -> list[str]:
    """Return the checks whose answers are others for a client, or what it failed with."""
    run = subprocess.run(
        [python, "-m", "tests.statements.connect_names", str(directory)],
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
    wrong = [name for name, right in EXPECTED.items() if found.get(name) != right]
    for name in wrong:
        sys.stderr.write(f"{name}: {found.get(name)}\n   not {EXPECTED[name]}\n")
    return wrong


def main(pythons: list[str]) -> int:
    """Print the matrix; return the number of pairs with other answers."""
    versions = {python: _version(python) for python in pythons}
    failed = 0
    print("server   client   right answers")  # noqa: T201 - the report
    for server_python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            server, url = start_server(server_python, Path(folder))
            try:
                for python in pythons:
                    directory = Path(folder) / f"client{versions[python]}"
                    directory.mkdir()
                    wrong = differences(python, url, directory)
                    failed += bool(wrong)
                    right = f"{len(EXPECTED) - len(wrong)} of {len(EXPECTED)}"
                    names = f"; not {', '.join(wrong)}" if wrong else ""
                    pair = f"{versions[server_python]:8} {versions[python]:8}"
                    print(pair, f"{right}{names}", flush=True)  # noqa: T201 - the report
            finally:
                server.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main([str(Path(python).absolute()) for python in sys.argv[1:]]))
