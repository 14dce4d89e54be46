"""``python -m tests.fuzz --examples 20000 --seed 0``: mutate logs, and count what comes of them."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from random import Random

from tests.fuzz.logs import any_log
from tests.fuzz.mutations import mutated
from tests.fuzz.outcome import outcome


def main() -> int:
    """Return 1 if any example was a violation; print each with its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range(options.seed, options.seed + options.examples):
        random = Random(seed)
        try:
            counts[outcome(mutated(any_log(random), random))] += 1
        except Exception:  # noqa: BLE001 - that is what is looked for
            counts["VIOLATION"] += 1
            print(f"seed {seed}\n{traceback.format_exc()}", flush=True)  # noqa: T201
    for result, number in counts.most_common():
        print(f"{number:8}  {result}")  # noqa: T201
    print(f"{options.examples} examples in {time.monotonic() - started:.0f} s")  # noqa: T201
    return 1 if counts["VIOLATION"] else 0


if __name__ == "__main__":
    sys.exit(main())
