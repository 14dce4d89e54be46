"""The answer of a fast path that does not apply, so that the caller takes the general one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The fast path is not possible here; nothing was written."""

    reason: str
