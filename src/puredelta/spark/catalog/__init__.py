"""Tables and views of Spark's catalog, and its cached frames."""

from __future__ import annotations
