"""From statement text to statement values."""

from __future__ import annotations
