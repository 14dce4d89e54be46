"""``python -m tests.fuzz.damaged --examples 100000``: mutate Parquet files, and survive them.

With ``--large`` the files have more than 32 MB each.

The files are used in children of this process, a few hundred in each, one after the other. A child
that a signal ends, that needs more than `SECONDS_MAX` for a file or more memory than `memory_max`,
or that meets an error that callers do not expect, is a violation; its seed is printed.
"""

from __future__ import annotations

import argparse
import gc
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa

from tests.fuzz.logs import valid_log
from tests.fuzz.parquet_files import large_files, valid_files
from tests.fuzz.parquet_mutations import changed_file, mutated_file, mutated_large_file
from tests.fuzz.parquet_outcome import USES, outcome_of_checkpoint, outcomes_of_file

SECONDS_MAX = 20
"""Of processor time: a busy machine is no hang."""
WAIT_SECONDS_MAX = 600
_MIB = 1 << 20
_BATCH = 250
_REPORTED = 10_000
"""After so many files the counts are printed: a run takes hours."""
_USES_OF_EACH = 3
"""Of all there are, chosen by the seed."""
_ADDRESSES_MAX = 6 << 30
_SHARED = struct.Struct("q")
_MEMORY = Path("/dev/shm")


def memory_max(size_bytes: int) -> int:
    """Return how much memory a file may take."""
    return 10 * size_bytes + 64 * _MIB


def main() -> int:
    """Return 1 if a file was a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    started = time.monotonic()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as scratch:
        _warm(Path(scratch))
        for first in range(options.seed, options.seed + options.examples, _BATCH):
            last = min(first + _BATCH, options.seed + options.examples)
            counts += survived(first, last, Path(scratch), is_large=options.large)
            done = last - options.seed
            if done % _REPORTED == 0 or done == options.examples:
                _report(counts, done, time.monotonic() - started)
    return 1 if any("VIOLATION" in result for result in counts) else 0


def _report(counts: Counter[str], done: int, seconds: float) -> None:
    for result, number in sorted(counts.items()):
        print(f"{number:8}  {result}")  # noqa: T201
    print(f"{done} damaged files in {seconds:.0f} s", flush=True)  # noqa: T201


def _warm(scratch: Path) -> None:
    """Use every valid file once, so that what stays in memory is there."""
    for number, (kind, content) in enumerate(valid_files().items()):
        directory = scratch / f"warm{number}"
        directory.mkdir()
        found = outcomes_of_file(directory, content, content, USES)
        refused = {use for use, result in found.items() if not _is_read(result)}
        if not any(kind.startswith(writer) for writer in _NOT_PLAIN):
            assert not refused, (kind, found)


_NOT_PLAIN = ("spark encrypted", "pyarrow one column", "polars", "fastparquet")
"""Encrypted, or without columns that are asked for, or with values of other types of Arrow."""


def _is_read(result: str) -> bool:
    return not result.startswith(("refused", "left", "NotApplicable"))


def survived(first: int, last: int, scratch: Path, *, is_large: bool = False) -> Counter[str]:
    """Use the files of some seeds in children; return what came of them."""
    counts: Counter[str] = Counter()
    shared = mmap.mmap(-1, _SHARED.size)
    while first < last:
        shared[:] = _SHARED.pack(first)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _run(range(first, last), scratch, shared, writer, is_large=is_large)
        os.close(writer)
        with os.fdopen(reader) as answers:
            told = answers.read()
        _, status = os.waitpid(child, 0)
        for line in told.splitlines():
            counts[line] += 1
        (at,) = _SHARED.unpack(shared[:])
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            print(f"seed {at}: ended by {name}", flush=True)  # noqa: T201
            counts[f"VIOLATION {name}"] += 1
        first = at + 1
    return counts


def _run(seeds: range, scratch: Path, shared: mmap.mmap, writer: int, *, is_large: bool) -> None:
    """Use files in a child, which ends here."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES_MAX, _ADDRESSES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(name, signal.SIG_DFL)
    with os.fdopen(writer, "w") as answers:
        for seed in seeds:
            shared[:] = _SHARED.pack(seed)
            signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
            signal.alarm(WAIT_SECONDS_MAX)
            try:
                for result in _outcomes(seed, scratch, is_large=is_large):
                    print(result, file=answers)
            except BaseException:  # noqa: BLE001 - that is what is looked for
                print(f"seed {seed}\n{traceback.format_exc()}", flush=True)  # noqa: T201
                print("VIOLATION an error that callers do not expect", file=answers)
            answers.flush()
    sys.stdout.flush()
    os._exit(0)


def _outcomes(seed: int, scratch: Path, *, is_large: bool) -> list[str]:
    random = Random(seed)
    valid = large_files() if is_large else valid_files()
    before = _peak_bytes()
    if not is_large and random.random() < 0.05:
        files = dict(valid_log(random.choice(("classic", "parts", "parquet"))))
        name = random.choice(sorted(n for n in files if n.endswith(".parquet")))
        files[name] = content = changed_file(files[name], random, pages=False)
        found = outcome_of_checkpoint(files)
    else:
        kind, content = mutated_large_file(random) if is_large else mutated_file(random)
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            uses = random.sample(USES, _USES_OF_EACH)
            found = outcomes_of_file(Path(directory), content, valid[kind], uses)
    taken = _peak_bytes() - before
    assert taken <= memory_max(len(content)), f"{len(content)} bytes took {taken}"
    return [f"{use}: {_short(result)}" for use, result in found.items()]


def _short(result: str) -> str:
    return "rows" if result[:1].isdigit() else result


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    gc.freeze()
    sys.exit(main())
