"""What every statement is: a value with a name, which a client runs."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from simulation.client import Client


class Outcome(Enum):
    """How a statement ended."""

    COMMITTED = "committed"
    READ = "read"
    NOTHING_TO_DO = "nothing to do"
    REFUSED = "refused"
    CONFLICT = "conflict"
    FAILED = "failed"
    UNKNOWN = "unknown"
    KILLED = "killed"


class Statement(Protocol):
    """One statement of a writer."""

    def run(self, client: Client) -> Outcome:
        """Run it to its end, whatever that is; failures are raised."""
