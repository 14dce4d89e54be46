"""Which files a predicate can skip."""

from __future__ import annotations
