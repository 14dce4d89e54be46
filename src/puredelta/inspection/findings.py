"""Findings of checks: severity, meaning and next step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Severity of a finding."""

    OK = "ok"
    """Checked, and in order."""
    INFO = "info"
    """Information without a next step."""
    WARNING = "warning"
    """Works, but costs time or money, or will fail one day."""
    ERROR = "error"
    """Statements fail, or rows are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    check: str
    """A short, stable name, such as ``small-files``."""
    severity: Severity
    message: str
    """The result, in one or two sentences."""
    mend: str | None = None
    """The next step: a statement, a command or a setting; None if there is none."""

    def as_json(self) -> dict[str, str | None]:
        """Return the finding as values of JSON."""
        return {
            "check": self.check,
            "severity": self.severity.value,
            "message": self.message,
            "mend": self.mend,
        }


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the severity of the worst finding; ``OK`` if there is none.

    >>> worst([]).value
    'ok'
    """
    order = list(Severity)
    return max((f.severity for f in findings), key=order.index, default=Severity.OK)
