"""Measure merges and conversions, engine beside engine; see docs/performance.md.

    python -m benchmarks

What is chosen, and how, is in `benchmarks.options`. The report is written anew after every
repeat, so that a run which is stopped leaves what it knew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from benchmarks.bench import Bench, heading
from benchmarks.options import RESULTS, Options
from benchmarks.report import Measurement, markdown, picture, restored, stored


def main() -> None:
    """Measure what the environment chooses.

    Raises:
        SystemExit: there are arguments; they would not be obeyed.
    """
    if len(sys.argv) > 1:
        raise SystemExit(f"{__doc__}\nNothing can be chosen by arguments: {sys.argv[1:]}")
    options = Options.of(os.environ)
    found = _earlier(options)
    known = {(m.workload, m.engine) for m in found if not m.problem}
    bench = Bench(options)
    try:
        for workload in options.workloads:
            engines = options.engines_for(workload)
            if all((workload.title, engine.name) in known for engine in engines):
                continue
            others = [m for m in found if m.workload != workload.title]
            for state in bench.measure(workload):
                found = [*others, *state]
                _store(found, options)
    finally:
        bench.close()
    print(f"\n{markdown(found, heading(options))}\n\nKept in {RESULTS} as {options.name}")
    if any(m.problem for m in found):
        sys.exit(1)


def _earlier(options: Options) -> list[Measurement]:
    """Return what an earlier run of the name measured, if this one takes it up."""
    path = RESULTS / f"{options.name}.json"
    return restored(path.read_text()) if options.resumes and path.exists() else []


def _store(found: Sequence[Measurement], options: Options) -> None:
    RESULTS.mkdir(exist_ok=True)
    title = heading(options)
    (RESULTS / f"{options.name}.json").write_text(stored(found, title))
    (RESULTS / f"{options.name}.md").write_text(markdown(found, title) + "\n")
    (RESULTS / f"{options.name}.svg").write_text(picture(found, title))


if __name__ == "__main__":
    main()
