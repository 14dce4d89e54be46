"""Encryption that a session asks for holds for each file that is written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.commands.write import encrypted_frames, encrypted_statements

ROOT = Path(__file__).parent.parent.parent.parent

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="a client of keys is compiled by javac, which is missing"
)


def require_hidden(module: ModuleType, directory: Path, *arguments: str) -> None:
    """Run statements in a process of its own: Hadoop's configuration is the context's."""
    done = subprocess.run(
        [sys.executable, "-m", module.__name__, str(directory), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def test_a_sample_is_encrypted(tmp_path: Path) -> None:
    """A DELETE's copies were plain, and a MERGE with new rows failed by its own footers."""
    require_hidden(encrypted_statements, tmp_path, "hadoop", "sample")


@pytest.mark.thorough
@pytest.mark.parametrize("how", encrypted_statements.WAYS)
def test_everything_is_encrypted(tmp_path: Path, how: str) -> None:
    """In whichever place the session asks for it."""
    require_hidden(encrypted_statements, tmp_path, how, "every")


@pytest.mark.thorough
@pytest.mark.parametrize("how", encrypted_frames.WAYS)
def test_frames_streams_and_clients_of_connect_are_encrypted(tmp_path: Path, how: str) -> None:
    """Options of a write had no effect, and a server's XML files were not seen."""
    if how.startswith("connect"):
        for package in ("grpc", "google.protobuf", "grpc_status", "pandas"):
            pytest.importorskip(package, reason="Spark Connect needs pyspark[connect]")
    require_hidden(encrypted_frames, tmp_path, how)
