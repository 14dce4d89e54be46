"""Race real processes over one table after the other, and count what happened.

make simulate-processes PUREDELTA_SEEDS=0:100
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from simulation.report import print_lines
from simulation.rivals.process import Product, RivalProcess
from simulation.rivals.race import RaceResult, run_race

_WRITERS = ("puredelta", "puredelta", "delta-rs", "delta-spark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all seeds; 1 if a race lost something."""
    options = _options(arguments)
    low, high = (int(part) for part in options.seeds.split(":"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="puredelta-rivals-") as folder:
        directory = Path(folder)
        writers = [
            RivalProcess(_product(name, options.reference), directory / f"{number}-{name}.log")
            for number, name in enumerate(options.writers.split(","))
        ]
        results: list[RaceResult] = []
        try:
            for seed in range(low, high):
                try:
                    results.append(run_race(seed, writers, directory, count=options.statements))
                except ValueError as wrong:
                    kept = Path(tempfile.mkdtemp(prefix=f"puredelta-race-{seed}-"))
                    shutil.copytree(directory, kept, dirs_exist_ok=True)
                    print_lines(f"SEED {seed} BREAKS A RULE: {wrong}", f"the table is in {kept}")
                    return 1
                shutil.rmtree(directory / f"bank-{seed}")
                if len(results) % 5 == 0:
                    print_lines(f"{len(results)} of {high - low} races, nothing lost")
        finally:
            for writer in writers:
                writer.kill()
    print_lines(*_report(results, time.monotonic() - started))
    return 0


def _product(name: str, reference: str) -> Product:
    python = reference if name == "delta-spark" else sys.executable
    return Product(name=name, python=python, writes_vectors=name != "delta-rs")


def _report(results: Sequence[RaceResult], seconds: float) -> list[str]:
    totals: Counter[tuple[str, str]] = sum((r.outcomes for r in results), Counter())
    kinds = ("done", "conflict", "failed", "killed")
    lines = [f"{'':14}" + "".join(f"{kind:>10}" for kind in kinds)]
    lines += [
        f"{name:14}" + "".join(f"{totals[name, kind]:>10,}" for kind in kinds)
        for name in sorted({name for name, _ in totals})
    ]
    failures = Counter(detail[:160] for result in results for detail in result.details)
    lines += [f"{count:>5} x {detail}" for detail, count in failures.most_common(10)]
    versions = sum(result.num_versions for result in results)
    lines.append(f"{len(results)} races, {versions:,} versions judged, {seconds:,.0f} s")
    return [*lines, "nothing lost"]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation.rivals", description=__doc__)
    parser.add_argument("--seeds", default=os.environ.get("PUREDELTA_SEEDS", "0:100"))
    parser.add_argument("--writers", default=",".join(_WRITERS), help="products, with commas")
    parser.add_argument("--statements", type=int, default=6, help="of each writer")
    parser.add_argument(
        "--reference",
        default=os.environ.get("PUREDELTA_REFERENCE_PYTHON", ".venv-reference/bin/python"),
        help="the Python that has delta-spark",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
