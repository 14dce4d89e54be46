"""Statement text: tokens, names, literals and expressions; readers step over what they return."""

from __future__ import annotations
