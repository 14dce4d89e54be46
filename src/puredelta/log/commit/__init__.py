"""From a transaction to a commit: checks, conflicts and attempts."""

from __future__ import annotations
