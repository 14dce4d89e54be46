"""One race: a seed chooses the table, the writers' orders and who is killed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from simulation.rivals.bank import ACCOUNTS, Kind, Order, require_sound
from simulation.rivals.judge import Told, judge
from simulation.rivals.process import RivalProcess

_AMOUNT_MAX = 50
_KINDS = {Kind.TRANSFER: 6, Kind.NOTE: 3, Kind.FORGET: 1, Kind.COMPACT: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """What came of a race in which nothing was lost."""

    seed: int
    num_versions: int
    outcomes: Counter[tuple[str, str]]
    """By writer and outcome."""
    details: tuple[str, ...]
    """What failed for other reasons than a conflict."""


def orders_of(seed: int, writer: int, count: int) -> Sequence[Order]:
    """Return the orders of one writer."""
    random = Random(f"{seed}/{writer}")
    kinds = random.choices(list(_KINDS), list(_KINDS.values()), k=count)
    notes: list[str] = []
    orders = []
    for number, kind in enumerate(kinds):
        name = f"{kind.value}-{seed}-{writer}-{number}"
        if kind is Kind.NOTE:
            notes.append(name)
        if kind is Kind.FORGET and notes:
            name = random.choice(notes)
            notes.remove(name)
        source, target = random.sample(range(ACCOUNTS), 2)
        amount = random.randint(1, _AMOUNT_MAX)
        orders.append(Order(kind=kind, name=name, source=source, target=target, amount=amount))
    return orders


def run_race(
    seed: int, writers: Sequence[RivalProcess], directory: Path, *, count: int
) -> RaceResult:
    """Let the writers run their orders on one new table, and judge it.

    Raises:
        ValueError: a version or an answer is wrong.
    """
    random = Random(seed)
    vectors = random.random() < 0.5
    running = [w for w in writers if w.product.writes_vectors or not vectors]
    table = directory / f"bank-{seed}"
    opened = random.choice(running).ask({"ask": "open", "table": str(table), "vectors": vectors})
    if opened["outcome"] != "done":
        raise ValueError(f"the bank could not be opened: {opened}")
    victim = random.choice(running) if random.random() < 0.3 else None
    killer = threading.Timer(random.uniform(0.5, 4.0), victim.kill) if victim else None
    if killer is not None:
        killer.start()
    with ThreadPoolExecutor(len(running)) as pool:
        parts = pool.map(
            lambda each: _run_writer(each[1], table, orders_of(seed, each[0], count)),
            list(enumerate(running)),
        )
        told = [each for part in parts for each in part]
    if killer is not None:
        killer.cancel()
    num_versions = judge(table, told)
    _require_readable(running, table)
    return RaceResult(
        seed=seed,
        num_versions=num_versions,
        outcomes=Counter((each.writer, each.outcome) for each in told),
        details=tuple(f"{t.writer}: {t.detail}" for t in told if t.outcome == "failed"),
    )


def _run_writer(writer: RivalProcess, table: Path, orders: Sequence[Order]) -> list[Told]:
    told = []
    for order in orders:
        answer = writer.ask({"ask": "execute", "table": str(table), "order": order.message()})
        told.append(
            Told(
                order=order,
                writer=writer.product.name,
                outcome=answer["outcome"],
                detail=answer.get("detail", ""),
            )
        )
        if answer["outcome"] == "killed":
            break  # starting again takes longer than the race
        time.sleep(0.01)
    return told


def _require_readable(writers: Sequence[RivalProcess], table: Path) -> None:
    """Every product must read the same sound rows of the newest version."""
    seen = {}
    for writer in {w.product.name: w for w in writers}.values():
        answer = writer.ask({"ask": "rows", "table": str(table)})
        if answer["outcome"] != "done":
            raise ValueError(f"{writer.product.name} cannot read the table: {answer}")
        rows = [(row[0], row[1], row[2], row[3]) for row in answer["rows"]]
        require_sound(rows)
        seen[writer.product.name] = frozenset(rows)
    if len(set(seen.values())) > 1:
        raise ValueError(f"readers differ: { {name: len(rows) for name, rows in seen.items()} }")
