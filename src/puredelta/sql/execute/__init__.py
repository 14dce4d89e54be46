"""From a statement to the command that executes it."""

from __future__ import annotations
