"""The marker of these tests: they need an environment of their own."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clients: runs dbt and sqlmesh (make clients)")
