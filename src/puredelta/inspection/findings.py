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


class Certainty(Enum):
    """Certainty that a finding is damage."""

    CERTAIN = "certain"
    """The log contradicts itself or the files."""
    LIKELY = "likely"
    """Nothing else is known to cause it."""
    POSSIBLE = "possible"
    """Harmless causes are known, too."""


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
    certainty: Certainty | None = None
    """Of damage; None for other findings."""
    evidence: tuple[str, ...] = ()
    """Versions, files and values that show damage, the first ones if there are many."""

    def as_json(self) -> dict[str, object]:
        """Return the finding as values of JSON."""
        value: dict[str, object] = {
            "check": self.check,
            "severity": self.severity.value,
            "message": self.message,
            "mend": self.mend,
        }
        if self.certainty is not None:
            value |= {"certainty": self.certainty.value, "evidence": list(self.evidence)}
        return value


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the severity of the worst finding; ``OK`` if there is none.

    >>> worst([]).value
    'ok'
    """
    order = list(Severity)
    return max((f.severity for f in findings), key=order.index, default=Severity.OK)
