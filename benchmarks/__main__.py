"""Measure merges and conversions, engine beside engine; see docs/performance.md.

    python -m benchmarks

What is chosen, and how, is in `benchmarks.options`. The report is written after every
repeat, so that a run which is stopped leaves its results.
"""

from __future__ import annotations

import os
import sys

from benchmarks.bench import Bench, run
from benchmarks.options import Options


def main() -> None:
    """Measure what the environment chooses.

    Raises:
        SystemExit: there are arguments; they would not be obeyed.
    """
    if len(sys.argv) > 1:
        raise SystemExit(f"{__doc__}\nNothing can be chosen by arguments: {sys.argv[1:]}")
    options = Options.of(os.environ)
    bench = Bench(options)
    try:
        run(options, options.workloads, bench.measure)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
