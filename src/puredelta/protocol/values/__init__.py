"""Values as the log spells them: partition values, timestamps, predicates."""

from __future__ import annotations
