"""``python -m simulation.sweep``: every call of every command fails once; the table is judged."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from simulation.report import print_lines
from simulation.sweep.commands import EVERY
from simulation.sweep.session import sweep_session
from simulation.sweep.sweep import Sweep


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken."""
    parser = argparse.ArgumentParser(prog="simulation.sweep", description=__doc__)
    parser.add_argument("--commands", nargs="*", default=list(EVERY), choices=list(EVERY))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="try each N-th point")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then stop, and say so")
    options = parser.parse_args(arguments)
    logging.getLogger("puredelta").setLevel(logging.CRITICAL + 1)
    with tempfile.TemporaryDirectory(prefix="puredelta-sweep-") as directory:
        spark = sweep_session(Path(directory))
        try:
            sweep = Sweep(spark, Path(directory), until=time.monotonic() + options.seconds)
            for name in options.commands:
                sweep.run(name, every=options.every)
                print_lines(*sweep.lines_of(name))
            print_lines(*sweep.summary())
        finally:
            spark.stop()
    return 1 if sweep.violations else 0


if __name__ == "__main__":
    sys.exit(main())
