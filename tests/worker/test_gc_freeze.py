"""What workers do once to their process: modules are no garbage, freed memory is kept."""

from __future__ import annotations

import platform
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these parameters")
@pytest.mark.parametrize(("kept", "faults_max"), [(True, 60), (False, None)])
def test_freed_memory_is_used_again(kept: bool, faults_max: int | None) -> None:
    """Each array of a batch was new memory, with a fault of 4 kB for each page."""
    program = f"""
import resource, runpy, numpy
keep_memory_once = runpy.run_path({bootstrap.__file__!r})["keep_memory_once"]
for _ in range(2 * {kept}):
    keep_memory_once()

def work():
    first = numpy.zeros(112_500) + 1
    return [first * n for n in range(3)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

work()
before = faults()
for _ in range(20):
    work()
print((faults() - before) // 20)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    faults = int(done.stdout)
    assert faults <= faults_max if faults_max is not None else faults > 100
