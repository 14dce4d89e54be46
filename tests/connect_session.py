"""A Spark Connect session in a process of its own, asked everything at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import Self

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 900
URL_VARIABLE = "PUREDELTA_CONNECT_URL"

AMOUNTS = ("sample", pytest.param("every", marks=pytest.mark.thorough))
"""How much a program is asked: params of the fixture that runs it."""
of_every = pytest.mark.parametrize("answers", AMOUNTS[1:], indirect=True)
"""Marks a test of what the sample of a program leaves out."""
Checks = Sequence[Callable[..., Any]]


def each_check(checks: Mapping[str, Sequence[Any]]) -> pytest.MarkDecorator:
    """Make a test of each ``check``, or name of one, that an amount of ``answers`` has."""
    cases = [
        pytest.param(amount, getattr(check, "__name__", check), marks=marks)
        for amount, marks in (("sample", ()), ("every", pytest.mark.thorough))
        for check in checks[amount]
    ]
    of = ("answers", "check")
    return pytest.mark.parametrize(of, cases, indirect=of[:1], scope="module")


def answers_to(checks: Checks, *sessions: Any, directory: Path) -> dict[str, Any]:
    """Make checks, each with the sessions and a directory of its own; a test shows what failed."""
    found: dict[str, Any] = {}
    for check in checks:
        try:
            found[check.__name__] = check(*sessions, directory / check.__name__)
        except Exception as error:  # noqa: BLE001, PERF203
            found[check.__name__] = f"{type(error).__name__}: {error}"[:3000]
    return found


def ask(
    module: str,
    directory: Path,
    *more: str,
    server: str | None = None,
    seconds_max: int = SECONDS_MAX,
) -> dict[str, Any]:
    """Run a module that prints its answers as the last line, in JSON; skip without Connect.

    ``server`` is the URL of the server that `connect_builder` takes in that module.
    """
    for package in ("grpc", "google.protobuf", "grpc_status", "pandas"):
        pytest.importorskip(package, reason="Spark Connect needs pyspark[connect]")
    found, _ = answers_and_log_of(module, directory, *more, server=server, seconds_max=seconds_max)
    return found


def connect_builder(url: str | None = None) -> Any:
    """Return the builder of a session of a test's server, or of a server of its own.

    ``url`` is another way to that server.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - fast tests never load pyspark

    return SparkSession.builder.remote(url or os.environ.get(URL_VARIABLE, "local[2]"))


def server_address() -> tuple[str, int]:
    """Return the host and the port of a test's server."""
    host, _, port = os.environ[URL_VARIABLE].removeprefix("sc://").partition(":")
    return host, int(port)


class Requests(Counter[str]):
    """The requests of a Connect session, counted by name inside the context."""

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self._stub = spark.client._stub
        self._originals: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name in ("ExecutePlan", "AnalyzePlan", "Config"):
            self._originals[name] = original = getattr(self._stub, name)
            setattr(self._stub, name, self._counting(name, original))
        return self

    def __exit__(self, *_: object) -> None:
        for name, original in self._originals.items():
            setattr(self._stub, name, original)

    def _counting(self, name: str, original: Any) -> Any:
        def send(*arguments: Any, **named: Any) -> Any:
            self[name] += 1
            return original(*arguments, **named)

        return send


def answers_of(
    module: str, directory: Path, *more: str, seconds_max: int = SECONDS_MAX
) -> dict[str, Any]:
    """Run a module in a process of its own; its last line is its answers, in JSON."""
    return answers_and_log_of(module, directory, *more, seconds_max=seconds_max)[0]


def answers_and_log_of(
    module: str,
    directory: Path,
    *more: str,
    server: str | None = None,
    seconds_max: int = SECONDS_MAX,
) -> tuple[dict[str, Any], str]:
    """Run a module as `answers_of` does, and return what its server has logged, too."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --conf spark.ui.enabled=false "
        f"--conf spark.sql.warehouse.dir={directory}/spark-warehouse pyspark-shell",
        "SPARK_TESTING": "1",  # a free port instead of the fixed one
        **({} if server is None else {URL_VARIABLE: server}),
    }
    run = subprocess.run(
        [sys.executable, "-m", module, str(directory), *more],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found, run.stderr
