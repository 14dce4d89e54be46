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


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_text(size_bytes: float) -> str:
    """Return a size in the unit that people read.

    >>> size_text(0), size_text(1536), size_text(3 << 30)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    size, units = float(size_bytes), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    unit = units.pop(0)
    while abs(size) >= 1024 and units:  # noqa: PLR2004 - what a KiB is
        size, unit = size / 1024, units.pop(0)
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
