"""What the user asked an OPTIMIZE to do, before any schema is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSpec:
    """``OPTIMIZE table [FULL] [WHERE ...] [ZORDER BY (...)]``."""

    predicates: tuple[str, ...] = ()
    """SQL conditions on partition columns; all of them must hold."""
    z_order_by: tuple[str, ...] = ()
    """Columns, and fields with dots; without any, files are brought together as they are."""
    full: bool = False
    """``OPTIMIZE table FULL``: cluster everything anew."""
