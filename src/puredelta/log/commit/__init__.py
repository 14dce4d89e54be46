"""From a transaction to a commit: checks, conflicts, the attempt."""

from __future__ import annotations
