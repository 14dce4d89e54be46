"""Files for OPTIMIZE to compact and for VACUUM to keep."""

from __future__ import annotations
