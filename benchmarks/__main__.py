"""Measure merges and conversions, engine beside engine; see docs/performance.md.

    python -m benchmarks

What is chosen, and how, is in `benchmarks.options`. The report is written anew after every
repeat, so that a run which is stopped leaves what it knew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from benchmarks.bench import Bench, due, earlier, heading, not_measured
from benchmarks.options import RESULTS, Options
from benchmarks.report import Measurement, markdown, picture, stored


def main() -> None:
    """Measure what the environment chooses.

    Raises:
        SystemExit: there are arguments; they would not be obeyed.
    """
    if len(sys.argv) > 1:
        raise SystemExit(f"{__doc__}\nNothing can be chosen by arguments: {sys.argv[1:]}")
    options = Options.of(os.environ)
    found = earlier(options)
    bench = Bench(options)
    try:
        for workload in due(options, found):
            others = not_measured(found, workload, options)
            for state in bench.measure(workload):
                found = [*others, *state]
                _store(found, options)
    finally:
        bench.close()
    print(f"\n{markdown(found, heading(options))}\n\nKept in {RESULTS} as {options.name}")
    if any(m.problem for m in found):
        sys.exit(1)


def _store(found: Sequence[Measurement], options: Options) -> None:
    RESULTS.mkdir(exist_ok=True)
    title = heading(options)
    (RESULTS / f"{options.name}.json").write_text(stored(found, title))
    (RESULTS / f"{options.name}.md").write_text(markdown(found, title) + "\n")
    (RESULTS / f"{options.name}.svg").write_text(picture(found, title))


if __name__ == "__main__":
    main()
