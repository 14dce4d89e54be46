"""From the listing of a log to the snapshot of a version."""

from __future__ import annotations
