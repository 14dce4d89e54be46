"""Tokens and keys in all that a session leaves: logs, events, plans, reports and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import answers_and_log_of
from tests.servers.s3 import is_installed
from tests.spark.catalogs.secrets_run import KEY, NAME, SESSION, TOKEN


@pytest.mark.spark
@pytest.mark.thorough
def test_no_secret_is_anywhere(tmp_path: Path) -> None:
    if not is_installed("moto"):
        pytest.skip("moto is not installed")
    texts, log = answers_and_log_of("tests.spark.catalogs.secrets_run", tmp_path)
    refusals = [text for text in texts if text.startswith("refused")]
    assert len(refusals) == 4, refusals
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    events = "".join(path.read_text(errors="replace") for path in files if "events" in str(path))
    assert NAME in events, "the event log has the statements"
    assert "SparkListenerSQLExecutionStart" in events
    assert "INFO" in log
    left = {str(path): path.read_bytes() for path in files}
    left |= {"log": log.encode(), "texts": str(texts).encode()}
    found = [
        (place, content[max(0, content.index(secret.encode()) - 200) :][:300])
        for place, content in left.items()
        for secret in (TOKEN, KEY, SESSION)
        if secret.encode() in content
    ]
    assert not found
