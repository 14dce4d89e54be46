"""``python -m simulation.kills``: kill the driver at every point of every command."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from simulation.kills.kills import Kills
from simulation.report import print_lines
from simulation.sweep.commands import EVERY
from simulation.sweep.session import sweep_session


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if no rule was broken."""
    parser = argparse.ArgumentParser(prog="simulation.kills", description=__doc__)
    parser.add_argument("--commands", nargs="*", default=list(EVERY), choices=list(EVERY))
    options = parser.parse_args(arguments)
    logging.getLogger("puredelta").setLevel(logging.CRITICAL + 1)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="puredelta-kills-") as directory:
        spark = sweep_session(Path(directory))
        try:
            kills = Kills(spark, Path(directory))
            for name in options.commands:
                kills.run(name)
                print_lines(kills.line_of(name))
            print_lines(*kills.summary(), f"{time.monotonic() - started:6,.0f} s")
        finally:
            spark.stop()
    return 1 if kills.violations else 0


if __name__ == "__main__":
    sys.exit(main())
