"""Pages that are generated must not lag behind the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_protocol_coverage_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate_protocol_coverage.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_protocol_coverage.py"


def test_layers_and_rooms_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate_rooms.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_rooms.py"


def test_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = set(re.findall(r"`([a-z_/0-9]+\.py)`", text))
    modules = [path.as_posix() for path in (ROOT / "src" / "puredelta").rglob("*.py")]
    gone = [name for name in names if not any(path.endswith(f"/{name}") for path in modules)]
    assert names
    assert not gone


def test_errors_are_up_to_date() -> None:
    script = ROOT / "docs" / "generate_errors.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr or "run: python docs/generate_errors.py"
