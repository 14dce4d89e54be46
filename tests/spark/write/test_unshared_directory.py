"""Machines that do not share the directory of a table: nothing is lost silently."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.connect_session import answers_of, ask


def require_own_disks() -> None:
    """Skip where a process cannot get a disk of its own."""
    try:
        mount = "mount --make-rprivate / && mount -t tmpfs tmpfs /mnt"
        subprocess.run(["unshare", "-m", "sh", "-c", mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"a process cannot get a disk of its own here: {failure}")


@pytest.mark.thorough
def test_rows_on_the_disk_of_another_machine_fail_the_statement(tmp_path: Path) -> None:
    require_own_disks()
    assert answers_of("tests.spark.write.unshared_cluster", tmp_path) == {
        "write": "WRITE_FAILED",
        "write left": [[], False],
        "ctas": "WRITE_FAILED",
        "ctas left": [[], False],
        "merge": "WRITE_FAILED",
        "merge left": True,
        "rows": 1000,
        "version": 1,
    }


def test_a_connect_server_with_a_disk_of_its_own_loses_nothing(tmp_path: Path) -> None:
    require_own_disks()
    file = f"file:{tmp_path}/disk/files/a.parquet"
    assert ask("tests.spark.write.unshared_connect", tmp_path) == {
        "merge": "WRITE_FAILED",
        "append": "WRITE_FAILED",
        "overwrite": "WRITE_FAILED",
        "new": "WRITE_FAILED",
        "by partition": "WRITE_FAILED",
        "delete": "FILE_NOT_FOUND",
        "update": "FILE_NOT_FOUND",
        "read": "AnalysisException",
        "convert": "UNSUPPORTED_STORAGE",
        "dry run": f"[DELTA_UNSUPPORTED_STORAGE] Spark does not see {file}",
        "left": True,
        "left on the server": [],
        "version": 1,
        "no rows": "WRITE_FAILED",
    }
