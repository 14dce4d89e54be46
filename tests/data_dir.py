"""Where the optional test data lies: tables and merge cases that do not ship with the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA_DIRECTORY = Path(__file__).resolve().parent.parent.parent / "shared"
"""Next to the checkout. A test that needs it is skipped, with the reason, where it is absent."""


def find_data(*parts: str) -> Path | None:
    """Return a path below the data directory, or None where it is absent.

    For ``parametrize`` at import time::

        MANIFEST = find_data("golden", "manifest.jsonl")
    """
    path = DATA_DIRECTORY.joinpath(*parts)
    return path if path.exists() else None


def require_data(*parts: str) -> Path:
    """Return a path below the data directory, or skip the test (or module) that asks."""
    path = DATA_DIRECTORY.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"optional test data is absent: {path}", allow_module_level=True)
    return path
