"""A Connect client reaches a bucket by itself, and its server has no file system for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connect_session import ask
from tests.servers import s3


@pytest.mark.spark
@pytest.mark.thorough
def test_a_table_in_a_bucket(tmp_path: Path) -> None:
    if not s3.is_installed("moto"):
        pytest.skip("no S3 server is installed: pip install 'moto[server]'")
    assert ask("tests.spark.connect_bucket", tmp_path) == {
        "table": [[2, 1, 0, 1], 1, 20, 1, 20],
        "conversion": [["7", "2024-01-02"]],
    }
