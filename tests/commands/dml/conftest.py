"""Fixtures of the MERGE stages."""

from __future__ import annotations

from tests.spark.conftest import conf

__all__ = ["conf"]
