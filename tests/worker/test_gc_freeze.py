"""A worker's modules are taken for no garbage, once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from puredelta.worker import bootstrap


@pytest.mark.parametrize(("loaded", "frozen"), [("json", False), ("pyarrow", True)])
def test_what_is_loaded_is_searched_no_more(loaded: str, frozen: bool) -> None:
    """Once a worker has the libraries, and once only: what comes later may be garbage."""
    program = f"""
import gc, runpy, {loaded}
freeze_once = runpy.run_path({bootstrap.__file__!r})["freeze_once"]
count, asked, counts = gc.get_freeze_count, [], []
gc.get_freeze_count = lambda: asked.append(1) or count()
for _ in range(2):
    freeze_once()
    counts.append(count())
    kept = [[] for _ in range(100)]
print(counts[0] > 10_000, counts[0] == counts[1], asked)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    # To ask how many they are takes as long as to search them.
    assert done.stdout.decode().split() == [str(frozen), "True", "[]"]
