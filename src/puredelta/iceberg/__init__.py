"""Iceberg metadata beside a Delta table, for engines that do not read Delta."""

from __future__ import annotations

from puredelta.iceberg.entry import Exported, export, register

__all__ = ["Exported", "export", "register"]
