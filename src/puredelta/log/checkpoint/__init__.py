"""Checkpoints written, and log files that expire."""

from __future__ import annotations
