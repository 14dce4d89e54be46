"""Tables, views and versions that a statement names."""

from __future__ import annotations
