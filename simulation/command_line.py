"""A plan as options of a command line, and back: what a failing seed is replayed with."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TypeVar

from simulation.faults import FaultKind, Place
from simulation.interleaving import Point, Switch
from simulation.plan import STATEMENTS, WRITERS, Mutant, Plan

T = TypeVar("T")

_NOTHING = "none"


def spell(plan: Plan) -> str:
    """Return the options that make the plan.

    >>> spell(Plan(seed=7, kept=frozenset({(0, 1), (2, 30)})))
    '--seed 7 --keep 0.1,2.30'
    """
    options = [f"--seed {plan.seed}"]
    if plan.writers != WRITERS:
        options.append(f"--writers {plan.writers}")
    if plan.statements != STATEMENTS:
        options.append(f"--statements {plan.statements}")
    if plan.mutant is not None:
        options.append(f"--mutant {plan.mutant.value}")
    if plan.salt:
        options.append(f"--salt {plan.salt}")
    if plan.kept is not None:
        options.append(f"--keep={_listed(f'{w}.{n}' for w, n in sorted(plan.kept))}")
    if plan.faults is not None:
        options.append(f"--faults={_listed(_fault(*fault) for fault in plan.faults)}")
    if plan.switches is not None:
        options.append(f"--switches={_listed(_switch(*switch) for switch in plan.switches)}")
    return " ".join(options)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a plan."""
    parser.add_argument("--seed", type=int, help="run this seed alone, and print what happens")
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--statements", type=int, default=STATEMENTS, help="of each writer")
    parser.add_argument("--mutant", type=Mutant, choices=list(Mutant), metavar="NAME")
    parser.add_argument("--salt", type=int, default=0, help="another schedule of the seed")
    parser.add_argument("--keep", metavar="WRITER.STATEMENT,...")
    parser.add_argument("--faults", metavar="WRITER.STATEMENT.CALL.KIND,...")
    parser.add_argument("--switches", metavar="WRITER.STATEMENT.PAUSE.TO,...")


def plan_of(options: argparse.Namespace, seed: int) -> Plan:
    """Return the plan that the options make of a seed."""
    kept = _parsed(options.keep, _parsed_statement)
    return Plan(
        seed=seed,
        writers=options.writers,
        statements=options.statements,
        mutant=options.mutant,
        salt=options.salt,
        kept=None if kept is None else frozenset(kept),
        faults=_parsed(options.faults, _parsed_fault),
        switches=_parsed(options.switches, _parsed_switch),
    )


def _fault(place: Place, kind: FaultKind) -> str:
    return f"{place.writer}.{place.statement}.{place.call}.{kind.name}"


def _parsed_fault(text: str) -> tuple[Place, FaultKind]:
    writer, statement, call, kind = text.split(".")
    return Place(int(writer), int(statement), int(call)), FaultKind[kind]


def _switch(point: Point, to: int) -> str:
    return f"{point.routine}.{point.statement}.{point.pause}.{to}"


def _parsed_switch(text: str) -> Switch:
    routine, statement, pause, to = map(int, text.split("."))
    return Switch(Point(routine, statement, pause), to)


def _parsed_statement(text: str) -> tuple[int, int]:
    writer, statement = map(int, text.split("."))
    return writer, statement


def _parsed(text: str | None, parse: Callable[[str], T]) -> tuple[T, ...] | None:
    if text is None:
        return None
    return () if text == _NOTHING else tuple(map(parse, text.split(",")))


def _listed(parts: Iterable[str]) -> str:
    return ",".join(parts) or _NOTHING
