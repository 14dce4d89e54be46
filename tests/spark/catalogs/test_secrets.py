"""Tokens and keys in all that a session leaves: logs, events, plans, reports and errors."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.connect_session import answers_and_log_of
from tests.servers.s3 import is_installed
from tests.spark.catalogs.secrets_run import NAME, SECRETS


@pytest.mark.spark
@pytest.mark.thorough
def test_no_secret_is_anywhere(tmp_path: Path) -> None:
    if not is_installed("moto"):
        pytest.skip("moto is not installed")
    texts, log = answers_and_log_of("tests.spark.catalogs.secrets_run", tmp_path)
    refusals = [text for text in texts if text.startswith("refused")]
    assert len(refusals) == 19, [text[:300] for text in refusals]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    events = "".join(path.read_text(errors="replace") for path in files if "events" in str(path))
    assert NAME in events, "the event log has the statements"
    assert "SparkListenerSQLExecutionStart" in events
    assert "INFO" in log
    names = {path.name for path in files}
    assert {"report-True.html", "printed-doctor-True", "printed-history-False"} <= names
    pages = [path.read_text() for path in files if path.name.startswith("page-")]
    assert any("Environment" in page and "redacted" in page for page in pages)
    assert any(NAME in page for page in pages)
    assert any("inCommitTimestamp" in path.read_text(errors="replace") for path in files)
    assert not found_in(files, log, texts)


@pytest.mark.spark
@pytest.mark.thorough
def test_no_secret_of_a_connect_session_is_anywhere(tmp_path: Path) -> None:
    for package in ("grpc", "google.protobuf", "grpc_status", "pandas"):
        pytest.importorskip(package, reason="Spark Connect needs pyspark[connect]")
    if not is_installed("moto"):
        pytest.skip("moto is not installed")
    texts, log = answers_and_log_of("tests.spark.catalogs.secrets_connect_run", tmp_path)
    refusals = [text for text in texts if text.startswith("refused")]
    assert len(refusals) == 19, [text[:300] for text in refusals]
    assert texts.index(refusals[0]) > 20, refusals[0][:300]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    events = "".join(path.read_text(errors="replace") for path in files if "events" in str(path))
    assert "SparkListenerConnectOperationStarted" in events
    assert "ExecuteAndFetchAsIterator. Request" in log, "the client's log has every request"
    pages = [path.read_text() for path in files if path.name.startswith("page-")]
    assert any("Spark Connect" in page for page in pages)
    assert not found_in(files, log, texts)


def found_in(files: Sequence[Path], log: str, texts: object) -> list[tuple[str, str, bytes]]:
    """Return the places with a secret, as it is or encoded."""
    left = {str(path): path.read_bytes() for path in files}
    left |= {"log": log.encode(), "texts": str(texts).encode()}
    return [
        (place, secret, content[max(0, content.index(form) - 200) :][:300])
        for place, content in left.items()
        for secret in SECRETS
        for form in forms(secret)
        if form in content
    ]


def forms(secret: str) -> Iterator[bytes]:
    """Yield a secret as it is, in hexadecimal digits, and in the three alignments of base 64."""
    text = secret.encode()
    yield text
    yield text.hex().encode()
    for shift in range(3):
        yield base64.b64encode(b"x" * shift + text)[4 if shift else 0 : -4]
