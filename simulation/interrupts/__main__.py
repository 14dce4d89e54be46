"""``python -m simulation.interrupts``: interrupt statements at random moments."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from simulation.interrupts.interrupts import COMMANDS, Interrupts
from simulation.report import print_lines
from simulation.sweep.commands import EVERY
from simulation.sweep.session import sweep_session


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken."""
    parser = argparse.ArgumentParser(prog="simulation.interrupts", description=__doc__)
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(EVERY))
    parser.add_argument("--moments", type=int, default=30, help="of each command")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args(arguments)
    logging.getLogger("puredelta").setLevel(logging.CRITICAL + 1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="puredelta-interrupts-") as directory:
        spark = sweep_session(Path(directory))
        try:
            interrupts = Interrupts(spark, Path(directory), seed=options.seed)
            for name in options.commands:
                interrupts.run(name, options.moments)
                print_lines(*interrupts.lines_of(name))
        finally:
            spark.stop()
    print_lines(f"{len(interrupts.violations)} violations, {time.monotonic() - started:,.0f} s")
    return 1 if interrupts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
