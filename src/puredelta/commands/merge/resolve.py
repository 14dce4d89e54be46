"""Names, types and rules of a MERGE, judged before anything runs (requirements 1.2 to 1.4)."""

from __future__ import annotations
