"""What a check found: how bad it is, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad a finding is."""

    OK = "ok"
    """Looked at, and in order."""
    INFO = "info"
    """Worth knowing; nothing has to be done."""
    WARNING = "warning"
    """Works, but costs time or money, or will fail one day."""
    ERROR = "error"
    """Statements fail, or rows are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """A short name that stays the same, such as ``small-files``."""
    severity: Severity
    message: str
    """What was found, in one or two sentences."""
    mend: str | None = None
    """What to do: a statement, a command or a setting; None where nothing has to be done."""

    def as_json(self) -> dict[str, str | None]:
        """Return the finding as values of JSON."""
        return {
            "check": self.check,
            "severity": self.severity.value,
            "message": self.message,
            "mend": self.mend,
        }


def worst(findings: Iterable[Finding]) -> Severity:
    """Return how bad the worst finding is; ``OK`` if there is none.

    >>> worst([]).value
    'ok'
    """
    order = list(Severity)
    return max((f.severity for f in findings), key=order.index, default=Severity.OK)
