"""A cluster whose machines do not share the directory of a table: nothing is lost silently."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.connect_session import answers_of


def test_rows_on_the_disk_of_another_machine_fail_the_statement(tmp_path: Path) -> None:
    try:
        mount = "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt"
        subprocess.run(["unshare", "-m", "sh", "-c", mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"an executor cannot get a disk of its own here: {failure}")
    assert answers_of("tests.spark.write.unshared_cluster", tmp_path) == {
        "write": "WRITE_FAILED",
        "write left": [[], False],
        "ctas": "WRITE_FAILED",
        "ctas left": [[], False],
        "merge": "WRITE_FAILED",
        "merge left": True,
        "rows": 1000,
        "version": 0,
    }
