"""Statement text: tokens, names, literals and expressions."""

from __future__ import annotations
