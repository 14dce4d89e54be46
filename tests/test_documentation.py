"""Pages that are generated must not lag behind the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_protocol_coverage_is_up_to_date() -> None:
    script = ROOT / "docs" / "generate_protocol_coverage.py"
    done = subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python docs/generate_protocol_coverage.py"
