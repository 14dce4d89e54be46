"""Exports of tests, which find nothing in memory, as those of another process."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def decoded_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every export read what it needs from the files of the folder."""
    if importlib.util.find_spec("pyiceberg") is None:
        return
    for name in ("storage._METADATA", "manifests._LISTS", "manifests._RECORDS"):
        monkeypatch.setattr(f"puredelta.iceberg.{name}._bytes_max", 0)
        monkeypatch.setattr(f"puredelta.iceberg.{name}._kept", {})
