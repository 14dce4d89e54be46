"""Tokens and keys in all that a session leaves: logs, events, plans, reports and errors."""

from __future__ import annotations

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
    left = {str(path): path.read_bytes() for path in files}
    left |= {"log": log.encode(), "texts": str(texts).encode()}
    found = [
        (place, content[max(0, content.index(secret.encode()) - 200) :][:300])
        for place, content in left.items()
        for secret in SECRETS
        if secret.encode() in content
    ]
    assert not found
