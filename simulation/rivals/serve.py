"""One writer in a process of its own: an order a line in, an outcome a line out.

python -m simulation.rivals.serve puredelta|delta-spark|delta-rs
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from simulation.rivals.bank import Order
from simulation.rivals.rival import ConflictLost, Rival


def answer(rival: Rival, message: dict[str, Any]) -> dict[str, Any]:
    """Do what a message asks, and say how it ended."""
    table = Path(message["table"])
    try:
        match message["ask"]:
            case "open":
                rival.open_bank(table, vectors=message["vectors"])
            case "execute":
                rival.execute(table, Order.of(message["order"]))
            case "rows":
                return {"outcome": "done", "rows": rival.rows(table)}
            case _:
                return {"outcome": "failed", "detail": f"nobody asks {message['ask']!r}"}
    except ConflictLost as lost:
        return {"outcome": "conflict", "detail": str(lost)[:300]}
    except Exception as failure:  # noqa: BLE001 - the race goes on, the judge looks at the table
        return {"outcome": "failed", "detail": f"{type(failure).__name__}: {failure}"[:600]}
    return {"outcome": "done"}


def rival_of(product: str) -> Rival:
    """Start a writer."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if product == "delta-rs":
        rust: Rival = importlib.import_module("simulation.rivals.rust_rival").RustRival()
        return rust
    spark: Rival = importlib.import_module("simulation.rivals.spark_rival").SparkRival(product)
    return spark


def main() -> None:
    """Serve until there are no more orders."""
    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    rival = rival_of(sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(answer(rival, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
