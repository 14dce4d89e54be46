"""One table by its metadata: configuration, checks, statistics and change data."""

from __future__ import annotations
