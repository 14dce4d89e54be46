"""What a commit takes from outside: the time, ids, and who watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from puredelta.log.files.clock import Clock, IdSource, random_id, wall_clock


class Phase(Enum):
    """Where a commit stands, for progress reporting and for tests that interleave writers."""

    STAGED = "checked by itself, nothing written"
    LOST_RACE = "another writer has the version, its commit is not read yet"
    REBASED = "compatible with all winning commits seen, bound to the next version"
    WRITTEN = "the commit file is on disk"
    FINISHED = "the checkpoint is written, failed or not due"


def ignore_phase(_: Phase) -> None:
    """Do nothing."""


ATTEMPTS_MAX = 1_000
"""How many versions a commit tries for. Each loss means that another writer got on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Values that a test passes in to replay a commit, or to come between."""

    clock: Clock = wall_clock
    new_id: IdSource = random_id
    on_phase: Callable[[Phase], None] = ignore_phase
    attempts_max: int = ATTEMPTS_MAX
    sleep: Callable[[float], None] = time.sleep
    """Waits some seconds for a storage that does not list yet what it has."""


DEFAULT_ENVIRONMENT = Environment()
