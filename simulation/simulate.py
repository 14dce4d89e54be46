"""One run of a plan: a pure function, whose answer is what happened."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from random import Random
from unittest.mock import patch

from puredelta.errors import CommitUnknownError, ConflictError, TableNotFoundError
from puredelta.log.replay import commit_files
from puredelta.protocol.actions.action_json import parse_action
from simulation.bank import STATEMENT_MAX
from simulation.client import Client
from simulation.faults import FaultKind, Place
from simulation.interleaving import Interleaving, Switch
from simulation.ledger import SKEW_MAX
from simulation.mutants import NoAnswerError, Safety
from simulation.plan import Plan
from simulation.process import Killed, Machine, Process
from simulation.statements.statement import Outcome
from simulation.violation import Violation
from simulation.workload import Workload, table_traits

_MILLISECOND = timedelta(milliseconds=1)
_JUMP_MS_MAX = timedelta(hours=2) // _MILLISECOND
_JUMPS = 0.2
_FRESH = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened in one run."""

    plan: Plan
    violation: Violation | None
    outcomes: Mapping[tuple[str, Outcome], int]
    """How often a statement of a kind ended how."""
    faults: tuple[tuple[Place, FaultKind], ...]
    switches: tuple[Switch, ...]
    num_versions: int
    num_steps: int
    cpu_seconds: float
    digest: str
    """Equal for equal runs, step by step and byte by byte."""
    trace: Sequence[str]


def simulate(plan: Plan, *, traced: bool = False) -> Run:
    """Run a plan. The answer depends on nothing else."""
    return _Simulation(plan, traced=traced).run()


class _Simulation:
    """The writers of one plan."""

    def __init__(self, plan: Plan, *, traced: bool) -> None:
        self._plan = plan
        self._interleaving = Interleaving(plan.schedule())
        self._machine = Machine(
            seed=plan.seed, interleaving=self._interleaving, faults=plan.fault_source()
        )
        self._machine.trace = [] if traced else None
        self._traits = table_traits(plan.seed)
        self._safety = Safety(plan.mutant)
        self._workload = Workload(plan.seed)
        self._outcomes: Counter[tuple[str, Outcome]] = Counter()

    def run(self) -> Run:
        started = time.process_time()
        violation: Violation | None = None
        bodies: dict[int, list[int]] = {writer: [] for writer in range(self._plan.writers)}
        for writer, number in self._plan.all_statements():
            bodies[writer].append(number)
        # Four writers read each commit, some of them often: its bytes are parsed once.
        parsed_once = patch.object(commit_files, "parse_action", lru_cache(None)(parse_action))
        try:
            with parsed_once:
                self._interleaving.run([partial(self._live, w, n) for w, n in bodies.items()])
            self._machine.ledger.require_all_there()
        except Violation as found:
            violation = found
        machine = self._machine
        return Run(
            plan=self._plan,
            violation=violation,
            outcomes=self._outcomes,
            faults=tuple(machine.injected),
            switches=tuple(self._interleaving.switches),
            num_versions=machine.ledger.num_checked,
            num_steps=self._interleaving.step,
            cpu_seconds=time.process_time() - started,
            digest=self._digest(),
            trace=machine.trace or (),
        )

    def _live(self, writer: int, statements: Sequence[int]) -> None:
        client = self._process(writer)
        for number in statements:
            statement = self._workload.statement(writer, number)
            seed = self._workload.seed_of(writer, number)
            self._before(client, Random(seed + 1))
            client.begin(number, seed)
            self._machine.note(writer, f"BEGIN {number} {statement}")
            try:
                outcome = self._outcome(partial(statement.run, client))
            except Killed:
                outcome = Outcome.KILLED
                client = self._process(writer)
            client.process.end()
            self._machine.note(writer, f"END {number} {outcome.value}")
            self._outcomes[type(statement).__name__, outcome] += 1
        del self._machine.processes[writer]

    def _process(self, writer: int) -> Client:
        skew_ms = SKEW_MAX // _MILLISECOND
        skew_ms = Random(self._plan.seed * 211 + writer).randint(-skew_ms, skew_ms)
        process = Process(self._machine, writer)
        return Client(process, self._traits, self._safety, skew_ms=skew_ms)

    def _before(self, client: Client, random: Random) -> None:
        """Let time pass now and then, and the writer forget what it knows of the log."""
        if random.random() < _JUMPS:
            longest_ms = STATEMENT_MAX // _MILLISECOND
            self._machine.pass_time(random.randint(0, _JUMP_MS_MAX), longest_ms=longest_ms)
        if random.random() < _FRESH:
            client.forget()

    def _outcome(self, run: Callable[[], Outcome]) -> Outcome:
        """Run a statement and judge how it failed: by a fault, or by a fault of ours."""
        try:
            return run()
        except ConflictError:
            return Outcome.CONFLICT
        except CommitUnknownError:
            return Outcome.UNKNOWN
        except TableNotFoundError:  # the ledger has seen to it that there is none
            return Outcome.REFUSED
        except FileNotFoundError as missing:
            raise Violation("files stay while they may be read", repr(missing)) from missing
        except (OSError, NoAnswerError):
            return Outcome.FAILED
        except Exception as error:
            raise Violation("statements end in a known way", repr(error)) from error

    def _digest(self) -> str:
        digest = hashlib.sha256(str(self._machine.digest).encode())
        for file in self._machine.disk.walk():
            digest.update(file.path.encode())
            digest.update(self._machine.disk.read(file.path))
        return digest.hexdigest()[:16]
