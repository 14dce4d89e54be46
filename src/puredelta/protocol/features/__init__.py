"""Table features, table properties and what they require."""

from __future__ import annotations
