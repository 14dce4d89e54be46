"""What commits changed: the change data feed and streams."""

from __future__ import annotations
