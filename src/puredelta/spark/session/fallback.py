"""The answer of a quick way that cannot be taken, so that the caller takes the general one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The quick way is not possible here; nothing was written."""

    reason: str
