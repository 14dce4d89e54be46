"""Writing checkpoints, and removing log files that have expired."""

from __future__ import annotations
